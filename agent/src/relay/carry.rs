//! Carries payload both ways between two connections.
//!
//! Whatever arrives is read into a borrowed buffer and written from there. Between two plain TCP connections, a
//! direction whose sender fills whole buffers goes over to pipes, through which the kernel moves the bytes by itself
//! (`splice`); for little payload that costs more than it saves. A sender that never pauses would keep its task going
//! while the receivers of all others run dry, so directions go on in turns. Buffers and pipes are held only while they
//! hold bytes.

use super::buffer::Buffer;
use super::traffic::{Counter, Traffic};
use crate::stream::Stream;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncWrite as _};
#[cfg(target_os = "linux")]
use {
    super::splice::{self, Lease, Splice},
    tokio::io::Interest,
    tokio::net::TcpStream,
};

/// Arrivals of this size begin splicing: the receiver of the next ones will hardly wait for them.
#[cfg(target_os = "linux")]
const LARGE_BYTES: usize = 32 * 1024;
/// Arrivals below this size end splicing: such are cheaper to copy.
#[cfg(target_os = "linux")]
const SMALL_BYTES: usize = 8 * 1024;

/// Bytes that one direction carries before other connections have their turn. With 64 connections on a busy machine of two
/// cores this doubles what all carry together; without it, only the runtime's own limit ends a turn, after megabytes.
const TURN_BYTES: usize = 512 * 1024;

/// Carries until both directions have ended, and passes on the end of each; fails with the first error. `early` is what
/// the client has sent already.
pub(super) async fn carry(
    client: &mut Stream,
    upstream: &mut Stream,
    early: Vec<u8>,
    traffic: Option<&Traffic>,
) -> io::Result<()> {
    let mut up = Direction::new(traffic.map(Traffic::counter_up));
    let mut down = Direction::new(traffic.map(Traffic::counter_down));
    if !early.is_empty() {
        up.buffer = Some(Buffer::of(&early));
    }
    let (mut lasts, mut has_lasted) = (pin!(tokio::time::sleep(crate::net::KEEPALIVE)), false);
    std::future::poll_fn(|cx| {
        if !has_lasted && lasts.as_mut().poll(cx).is_ready() {
            has_lasted = true;
            client.keep_alive();
            upstream.keep_alive();
        }
        let up = up.poll(cx, client, upstream, down.has_ended())?;
        let down = down.poll(cx, upstream, client, up.is_ready())?;
        if up.is_ready() && down.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}

enum Stage {
    Carrying,
    /// All was written; the end is being passed on.
    Ending,
    Ended,
}

/// How the next bytes go.
#[cfg(target_os = "linux")]
#[derive(PartialEq, Eq)]
enum Way {
    Copy,
    Splice,
    /// Splicing was refused once, and will be again.
    CopyOnly,
}

/// What a splice came to.
#[cfg(target_os = "linux")]
enum Spliced {
    End,
    /// The next bytes are to be copied.
    Copy,
}

struct Direction<'a> {
    stage: Stage,
    counter: Option<Counter<'a>>,
    /// Holds bytes whenever it is there between two polls.
    buffer: Option<Buffer>,
    /// How reading ended, while bytes from before are still to be written.
    last: Option<io::Result<()>>,
    unflushed: bool,
    #[cfg(target_os = "linux")]
    way: Way,
    /// As the buffer.
    #[cfg(target_os = "linux")]
    pipe: Option<Lease>,
    #[cfg(target_os = "linux")]
    splice: Splice,
}

impl<'a> Direction<'a> {
    fn new(counter: Option<Counter<'a>>) -> Self {
        Self {
            stage: Stage::Carrying,
            counter,
            buffer: None,
            last: None,
            unflushed: false,
            #[cfg(target_os = "linux")]
            way: Way::Copy,
            #[cfg(target_os = "linux")]
            pipe: None,
            #[cfg(target_os = "linux")]
            splice: splice::by_kernel,
        }
    }

    fn count(&self, bytes: usize) {
        if let Some(counter) = self.counter {
            counter.add(bytes);
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    /// `last` says that the other direction has ended.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
        last: bool,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.stage {
                Stage::Carrying => {
                    ready!(self.poll_carry(cx, from, to))?;
                    self.stage = Stage::Ending;
                }
                // Both connections are closed at once, which says the same with one system call less.
                Stage::Ending if last && matches!(to, Stream::Tcp(_)) => self.stage = Stage::Ended,
                Stage::Ending => {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx))?;
                    self.stage = Stage::Ended;
                }
                Stage::Ended => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Ready at the end of what `from` sends.
    fn poll_carry(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut Stream,
        to: &mut Stream,
    ) -> Poll<io::Result<()>> {
        let mut turn = 0;
        loop {
            turn += self.buffer.as_ref().map_or(0, |buffer| buffer.filled().len());
            ready!(self.poll_write(cx, to))?;
            if let Some(last) = self.last.take() {
                return Poll::Ready(last);
            }
            #[cfg(target_os = "linux")]
            if self.rescue()? {
                continue;
            }
            // What waits in the pipe came before all that can be read now, also when the next bytes are to be copied.
            #[cfg(target_os = "linux")]
            if (self.way == Way::Splice || self.pipe.is_some())
                && let (Stream::Tcp(from), Stream::Tcp(to)) = (&*from, &*to)
            {
                match ready!(self.poll_splice(cx, from, to))? {
                    Spliced::End => return Poll::Ready(Ok(())),
                    // Perhaps what is left in the pipe.
                    Spliced::Copy => continue,
                }
            }
            if turn >= TURN_BYTES {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !self.poll_read(cx, from) && self.last.is_none() {
                if self.unflushed {
                    ready!(Pin::new(&mut *to).poll_flush(cx))?;
                    self.unflushed = false;
                }
                return Poll::Pending;
            }
        }
    }

    /// Writes all that the buffer holds, and gives it back.
    fn poll_write(&mut self, cx: &mut Context<'_>, to: &mut Stream) -> Poll<io::Result<()>> {
        while let Some(buffer) = self.buffer.as_mut().filter(|buffer| !buffer.is_empty()) {
            let went = ready!(Pin::new(&mut *to).poll_write(cx, buffer.filled()))?;
            if went == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            buffer.advance(went);
            self.unflushed = true;
            self.count(went);
        }
        self.buffer = None;
        Poll::Ready(Ok(()))
    }

    /// Reads until the buffer is full, nothing more is there or the end has come, so that several records of a layer
    /// leave in one write. Says whether anything came.
    fn poll_read(&mut self, cx: &mut Context<'_>, from: &mut Stream) -> bool {
        let mut buffer = Buffer::take();
        while !buffer.is_full() {
            let (outcome, came) = buffer.fill(|free| Pin::new(&mut *from).poll_read(cx, free));
            match outcome {
                Poll::Pending => break,
                Poll::Ready(Ok(())) if came > 0 =>
                {
                    #[cfg(target_os = "linux")]
                    if came >= LARGE_BYTES && self.way == Way::Copy {
                        self.way = Way::Splice;
                    }
                }
                Poll::Ready(last) => {
                    self.last = Some(last);
                    break;
                }
            }
        }
        let any = !buffer.is_empty();
        if any {
            self.buffer = Some(buffer);
        }
        any
    }

    /// Moves bytes through a pipe. Nothing may be in the buffer.
    #[cfg(target_os = "linux")]
    fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        from: &TcpStream,
        to: &TcpStream,
    ) -> Poll<io::Result<Spliced>> {
        let mut turn = 0;
        loop {
            while let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.held() > 0) {
                ready!(to.poll_write_ready(cx))?;
                match to.try_io(Interest::WRITABLE, || pipe.drain(to, self.splice)) {
                    Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Ok(went) => {
                        turn += went;
                        self.count(went);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if splice::is_refusal(&error) => return Poll::Ready(Ok(self.refused(&error))),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            if self.way != Way::Splice {
                self.pipe = None;
                return Poll::Ready(Ok(Spliced::Copy));
            }
            if turn >= TURN_BYTES {
                self.pipe = None;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match from.poll_read_ready(cx) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => {
                    self.pipe = None;
                    return Poll::Pending;
                }
            }
            let Some(pipe) = self.pipe.take().or_else(Lease::take) else {
                self.way = Way::Copy;
                return Poll::Ready(Ok(Spliced::Copy));
            };
            let pipe = self.pipe.insert(pipe);
            match from.try_io(Interest::READABLE, || pipe.fill(from, self.splice)) {
                Ok(0) => return Poll::Ready(Ok(Spliced::End)),
                Ok(came) if came < SMALL_BYTES => self.way = Way::Copy,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if splice::is_refusal(&error) => return Poll::Ready(Ok(self.refused(&error))),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// From now on this direction is copied.
    #[cfg(target_os = "linux")]
    fn refused(&mut self, error: &io::Error) -> Spliced {
        tracing::debug!(%error, "splicing refused");
        self.way = Way::CopyOnly;
        Spliced::Copy
    }

    /// After a refusal, takes what is left in the pipe into the buffer; says whether there was something.
    #[cfg(target_os = "linux")]
    fn rescue(&mut self) -> io::Result<bool> {
        if self.way != Way::CopyOnly {
            return Ok(false);
        }
        let Some(mut pipe) = self.pipe.take().filter(|pipe| pipe.held() > 0) else { return Ok(false) };
        let mut buffer = Buffer::take();
        buffer.fill(|free| pipe.rescue(free)).0?;
        (self.buffer, self.pipe) = (Some(buffer), Some(pipe));
        Ok(true)
    }
}

#[cfg(all(test, target_os = "linux"))]
#[path = "carry_tests.rs"]
mod tests;
