//! A TLS connection over another one.
//!
//! The records are made and opened by rustls; here is only where their bytes are while they are on their way. One read
//! brings several records and one write takes several, in memory that is borrowed for just as long. With the buffers that
//! rustls has in its connections, each idle one would keep 4 KiB, and every record would be a read of its own.

use super::space::Space;
use crate::spare::AT_ONCE_BYTES;
use crate::stream::{Layer, Stream};
use rustls::Error;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedConnectionCommon,
    UnbufferedStatus,
};
use std::io;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// One of rustls' connections, in one of the roles.
pub(super) trait Session:
    Deref<Target = UnbufferedConnectionCommon<Self::Data>> + Send + Unpin + 'static
{
    type Data;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Session for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl Session for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

/// What to do as soon as payload may be sent.
enum Wish<'a> {
    Nothing,
    Encrypt(&'a [u8]),
    CloseNotify,
}

/// What one step of the protocol came to.
#[derive(PartialEq, Eq)]
enum Step {
    /// There may be more to do.
    Again,
    /// Nothing to do until more bytes have come.
    Starved,
    /// The wish is fulfilled. Nothing else is to do until more bytes have come.
    Granted,
    /// Both directions have ended.
    Closed,
}

/// Payload that was decrypted while somebody wrote, or that the reader had no room for.
#[derive(Default)]
struct Surplus {
    bytes: Vec<u8>,
    start: usize,
}

impl Surplus {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn move_to(&mut self, out: &mut ReadBuf<'_>) {
        let rest = &self.bytes[self.start..];
        let fits = rest.len().min(out.remaining());
        out.put_slice(&rest[..fits]);
        self.start += fits;
        if self.start == self.bytes.len() {
            // The memory too.
            *self = Self::default();
        }
    }
}

/// See the module.
pub(super) struct TlsStream<S> {
    io: Stream,
    session: S,
    /// What came and is no whole record yet, or waits for a reader.
    incoming: Option<Space>,
    /// Records that are to be written.
    outgoing: Option<Space>,
    surplus: Surplus,
    /// The peer has said that this is all.
    peer_closed: bool,
    /// The connection below has ended.
    ended: bool,
    /// We have said that this is all.
    closed: bool,
    /// Why nothing goes on.
    failure: Option<Error>,
}

impl<S: Session> TlsStream<S> {
    /// Does the handshake.
    pub(super) async fn handshake(io: Stream, session: S) -> io::Result<Self> {
        let mut stream = Self {
            io,
            session,
            incoming: None,
            outgoing: None,
            surplus: Surplus::default(),
            peer_closed: false,
            ended: false,
            closed: false,
            failure: None,
        };
        std::future::poll_fn(|cx| stream.poll_handshake(cx)).await?;
        Ok(stream)
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.step(cx, Wish::Nothing, None)? == Step::Again {
                continue;
            }
            ready!(self.poll_outgoing(cx))?;
            ready!(Pin::new(&mut self.io).poll_flush(cx))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if self.ended || self.peer_closed {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the peer ended the TLS handshake",
                )));
            }
            ready!(self.poll_fill(cx))?;
        }
    }

    /// One step of the protocol. What is decrypted goes to `out` and, as far as it does not fit, into the surplus. After
    /// an error the connection is of no use; the peer is told if that is possible without waiting.
    fn step(
        &mut self,
        cx: &mut Context<'_>,
        wish: Wish<'_>,
        out: Option<&mut ReadBuf<'_>>,
    ) -> io::Result<Step> {
        let invalid = |error| Err(io::Error::new(io::ErrorKind::InvalidData, error));
        if let Some(failure) = &self.failure {
            return invalid(failure.clone());
        }
        self.try_step(wish, out).or_else(|error| {
            self.failure = Some(error.clone());
            // The alert is all that is left to do. What came after the failure must not be looked at again.
            while self.session.wants_write() && self.try_step(Wish::Nothing, None).is_ok() {}
            // The first error is the one to tell.
            let _ = self.poll_outgoing(cx);
            invalid(error)
        })
    }

    fn try_step(&mut self, wish: Wish<'_>, mut out: Option<&mut ReadBuf<'_>>) -> Result<Step, Error> {
        let Self { session, incoming, outgoing, surplus, peer_closed, .. } = self;
        let UnbufferedStatus { mut discard, state } =
            session.process(incoming.as_mut().map_or(&mut [], Space::filled_mut));
        let step = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    discard += record.discard;
                    let mut payload = record.payload;
                    if let (Some(out), true) = (out.as_deref_mut(), surplus.is_empty()) {
                        let fits = payload.len().min(out.remaining());
                        out.put_slice(&payload[..fits]);
                        payload = &payload[fits..];
                    }
                    surplus.bytes.extend_from_slice(payload);
                }
                Ok(Step::Again)
            }
            Ok(ConnectionState::EncodeTlsData(mut record)) => {
                let space = outgoing.get_or_insert_with(Space::take);
                put_sized(space, |free| match record.encode(free) {
                    Err(EncodeError::InsufficientSize(size)) => Ok(Err(size)),
                    Err(error) => Err(Error::General(error.to_string())),
                    Ok(bytes) => Ok(Ok(bytes)),
                })?;
                Ok(Step::Again)
            }
            Ok(ConnectionState::TransmitTlsData(records)) => {
                // They leave before anything else does, since all of it goes through the same memory.
                records.done();
                Ok(Step::Again)
            }
            Ok(ConnectionState::PeerClosed) => {
                *peer_closed = true;
                Ok(Step::Again)
            }
            Ok(ConnectionState::Closed) => {
                *peer_closed = true;
                Ok(Step::Closed)
            }
            Ok(ConnectionState::BlockedHandshake) => Ok(Step::Starved),
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                if !matches!(wish, Wish::Nothing) {
                    let space = outgoing.get_or_insert_with(Space::take);
                    put_sized(space, |free| {
                        let put = match wish {
                            Wish::Encrypt(payload) => traffic.encrypt(payload, free),
                            Wish::CloseNotify | Wish::Nothing => traffic.queue_close_notify(free),
                        };
                        match put {
                            Err(EncryptError::InsufficientSize(size)) => Ok(Err(size)),
                            Err(EncryptError::EncryptExhausted) => Err(Error::EncryptError),
                            Ok(bytes) => Ok(Ok(bytes)),
                        }
                    })?;
                }
                Ok(Step::Granted)
            }
            // Early data, which is not allowed to anybody here.
            Ok(_) => Err(Error::General("a state that cannot be".to_owned())),
            Err(error) => Err(error),
        };
        if let Some(space) = incoming {
            space.advance(discard);
            if space.is_empty() {
                *incoming = None;
            }
        }
        step
    }

    /// Writes all records that wait, and gives their memory back.
    fn poll_outgoing(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(space) = self.outgoing.as_mut().filter(|space| !space.is_empty()) {
            let went = ready!(Pin::new(&mut self.io).poll_write(cx, space.filled()))?;
            if went == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            space.advance(went);
        }
        self.outgoing = None;
        Poll::Ready(Ok(()))
    }

    /// Reads more of what the peer sends, or its end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut space = self.incoming.take().unwrap_or_else(Space::take);
        let mut free = ReadBuf::new(space.most_free());
        let outcome = if free.remaining() == 0 {
            Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a TLS message without end")))
        } else {
            Pin::new(&mut self.io).poll_read(cx, &mut free)
        };
        let came = free.filled().len();
        space.put(came);
        self.ended |= matches!(outcome, Poll::Ready(Ok(()))) && came == 0;
        if !space.is_empty() {
            self.incoming = Some(space);
        }
        outcome
    }
}

/// Lets `put` write into the free part, once more after that was made as long as it says.
fn put_sized(
    space: &mut Space,
    mut put: impl FnMut(&mut [u8]) -> Result<Result<usize, InsufficientSizeError>, Error>,
) -> Result<(), Error> {
    let bytes = match put(space.free())? {
        Ok(bytes) => bytes,
        Err(InsufficientSizeError { required_size }) => {
            space.reserve(required_size);
            put(space.free())?.map_err(|size| Error::General(size.required_size.to_string()))?
        }
    };
    space.put(bytes);
    Ok(())
}

impl<S: Session> AsyncRead for TlsStream<S> {
    /// Fills the buffer from as many records as are there.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = out.filled().len();
        if out.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            this.surplus.move_to(out);
            while out.remaining() > 0
                && !this.peer_closed
                && (this.incoming.is_some() || this.failure.is_some())
            {
                match this.step(cx, Wish::Nothing, Some(out)) {
                    Ok(Step::Again) => {}
                    Ok(Step::Starved | Step::Granted | Step::Closed) => break,
                    // What was good is to be seen; the error comes again.
                    Err(_) if out.filled().len() > before => break,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            if out.filled().len() > before || this.peer_closed {
                return Poll::Ready(Ok(()));
            }
            if this.ended {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the peer ended the connection without ending TLS",
                )));
            }
            ready!(this.poll_fill(cx))?;
        }
    }
}

impl<S: Session> AsyncWrite for TlsStream<S> {
    /// Takes as much as fits into a few records, when those before have left.
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, payload: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.closed {
            // Rustls would go on after the end that the peer was told.
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        ready!(this.poll_outgoing(cx))?;
        let payload = &payload[..payload.len().min(AT_ONCE_BYTES)];
        loop {
            match this.step(cx, Wish::Encrypt(payload), None)? {
                Step::Again => {}
                Step::Granted => break,
                Step::Starved | Step::Closed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        // What does not leave now does so before the next write, or with a flush.
        match this.poll_outgoing(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(payload.len())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_outgoing(cx))?;
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while !this.closed {
            this.closed = this.step(cx, Wish::CloseNotify, None)? != Step::Again;
        }
        ready!(this.poll_outgoing(cx))?;
        Pin::new(&mut this.io).poll_shutdown(cx)
    }
}

impl<S: Session> Layer for TlsStream<S> {
    fn abort(self: Box<Self>) {
        self.io.abort();
    }

    fn own_tcp(&self) -> Option<&TcpStream> {
        self.io.own_tcp()
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
