#![expect(clippy::unwrap_used, reason = "a step that fails is a failed test")]

use super::*;
use crate::relay::buffer::BUFFER_BYTES;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Two ends of one connection.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (near, listener.accept().await.unwrap().0)
}

/// Bytes whose order can be seen.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8).collect()
}

/// Carries one direction with this instead of the kernel's splice, beginning with it; returns what arrived and how the
/// direction went on.
async fn carried(splice: Splice, sent: Vec<u8>) -> (Vec<u8>, u64, Way) {
    let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
    let sending = tokio::spawn(async move {
        sender.write_all(&sent).await.unwrap();
        sender.shutdown().await.unwrap();
        sender
    });
    let receiving = tokio::spawn(async move {
        let mut got = Vec::new();
        receiver.read_to_end(&mut got).await.unwrap();
        got
    });
    let (mut from, mut to) = (Stream::Tcp(from), Stream::Tcp(to));
    let traffic = Traffic::default();
    let mut direction = Direction::new(Some(traffic.counter_up()));
    (direction.way, direction.splice) = (Way::Splice, splice);
    std::future::poll_fn(|cx| direction.poll(cx, &mut from, &mut to, false)).await.unwrap();
    let way = std::mem::replace(&mut direction.way, Way::Copy);
    assert!(direction.buffer.is_none() && direction.pipe.is_none_or(|pipe| pipe.held() == 0));
    sending.await.unwrap();
    (receiving.await.unwrap(), traffic.up(), way)
}

fn refuse(_: BorrowedFd<'_>, _: BorrowedFd<'_>, _: usize) -> io::Result<usize> {
    Err(nix::errno::Errno::EINVAL.into())
}

/// As a kernel that splices sockets into pipes but, after the first time, not out of them.
fn refuse_way_out(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    static OUT: AtomicUsize = AtomicUsize::new(0);
    let out = nix::sys::socket::getsockopt(&to, nix::sys::socket::sockopt::SockType).is_ok();
    if out && OUT.fetch_add(1, Ordering::SeqCst) > 0 {
        return refuse(from, to, bytes);
    }
    splice::by_kernel(from, to, bytes)
}

#[tokio::test]
async fn a_kernel_that_does_not_splice_leaves_copying() {
    let sent = pattern(3 * BUFFER_BYTES + 5);
    let (got, counted, way) = carried(refuse, sent.clone()).await;
    assert!(got == sent && way == Way::CopyOnly);
    assert_eq!(counted, sent.len() as u64);
}

#[tokio::test]
async fn what_is_in_the_pipe_when_splicing_is_refused_arrives_in_its_place() {
    let sent = pattern(40 * BUFFER_BYTES);
    let (got, counted, way) = carried(refuse_way_out, sent.clone()).await;
    assert!(got == sent && way == Way::CopyOnly);
    assert_eq!(counted, sent.len() as u64);
}

#[tokio::test]
async fn little_payload_is_copied_again_after_much() {
    let sent = pattern(20);
    let (got, counted, way) = carried(splice::by_kernel, sent.clone()).await;
    assert!(got == sent && way == Way::Copy);
    assert_eq!(counted, 20);
}

/// How often [`little_and_much`] moved little.
static LITTLE: AtomicUsize = AtomicUsize::new(0);

/// Splices into pipes little and much by turns, as from a sender that pauses.
fn little_and_much(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    static IN: AtomicUsize = AtomicUsize::new(0);
    let out = nix::sys::socket::getsockopt(&to, nix::sys::socket::sockopt::SockType).is_ok();
    if out || IN.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) {
        return splice::by_kernel(from, to, bytes);
    }
    let came = splice::by_kernel(from, to, SMALL_BYTES / 2)?;
    LITTLE.fetch_add(1, Ordering::SeqCst);
    Ok(came)
}

/// A direction goes to and fro between copying and splicing while its receiver takes little at a time, so that changes
/// meet bytes that wait in a pipe or in a buffer. None may pass another.
#[tokio::test]
async fn what_waits_for_a_slow_receiver_is_not_overtaken() {
    let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
    socket2::SockRef::from(&to).set_send_buffer_size(4096).unwrap();
    socket2::SockRef::from(&receiver).set_recv_buffer_size(32 * 1024).unwrap();
    let sent: Vec<u8> = (0..1 << 20).flat_map(|number: u32| number.to_le_bytes()).collect();
    let expected = sent.clone();
    let sending = tokio::spawn(async move {
        sender.write_all(&sent).await.unwrap();
        sender.shutdown().await.unwrap();
        sender
    });
    let receiving = tokio::spawn(async move {
        let mut got = Vec::new();
        let mut part = vec![0; 6000];
        loop {
            match receiver.read(&mut part).await.unwrap() {
                0 => return got,
                came => got.extend_from_slice(&part[..came]),
            }
            // Meanwhile everything before it fills up.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        }
    });
    let (mut from, mut to) = (Stream::Tcp(from), Stream::Tcp(to));
    let mut direction = Direction::new(None);
    direction.splice = little_and_much;
    std::future::poll_fn(|cx| direction.poll(cx, &mut from, &mut to, false)).await.unwrap();
    drop(to);
    let got = receiving.await.unwrap();
    assert_eq!(got.len(), expected.len());
    let first = got.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(first, None, "the first byte that is another");
    assert!(LITTLE.load(Ordering::SeqCst) > 10, "it has to go to and fro");
    sending.await.unwrap();
}

#[tokio::test]
async fn much_payload_is_spliced_and_nothing_is_held_when_it_pauses() {
    let ((mut sender, from), (to, mut receiver)) = (pair().await, pair().await);
    let (mut from, mut to) = (Stream::Tcp(from), Stream::Tcp(to));
    let mut direction = Direction::new(None);
    let sent = pattern(64 * BUFFER_BYTES);
    let expected = sent.clone();
    let receiving = tokio::spawn(async move {
        let mut got = vec![0; expected.len()];
        receiver.read_exact(&mut got).await.unwrap();
        assert!(got == expected);
        receiver
    });
    // The whole queue is there before the first look, so that a whole buffer comes in one read.
    sender.set_nodelay(true).unwrap();
    let mut rest = &sent[..];
    while let Ok(went) = sender.try_write(rest) {
        rest = &rest[went..];
    }
    let rest = rest.to_vec();
    let sending = tokio::spawn(async move {
        sender.write_all(&rest).await.unwrap();
        sender
    });
    let mut spliced = false;
    let carrying = std::future::poll_fn(|cx| {
        let outcome = direction.poll(cx, &mut from, &mut to, false);
        spliced |= direction.way == Way::Splice;
        outcome
    });
    tokio::select! {
        outcome = carrying => panic!("ended: {outcome:?}"),
        received = receiving => drop(received.unwrap()),
    }
    let _sender = sending.await.unwrap();
    assert!(spliced);
    std::future::poll_fn(|cx| {
        assert!(direction.poll(cx, &mut from, &mut to, false).is_pending());
        Poll::Ready(())
    })
    .await;
    assert!(direction.buffer.is_none() && direction.pipe.is_none());
}

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// As a kernel that always has another whole pipe, and always room for it.
fn endless(_: BorrowedFd<'_>, _: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    Ok(bytes)
}

#[tokio::test]
async fn a_sender_that_never_pauses_leaves_the_others_their_turn() {
    let ((mut sender, from), (to, _receiver)) = (pair().await, pair().await);
    sender.write_all(&[1]).await.unwrap();
    from.readable().await.unwrap();
    to.writable().await.unwrap();
    let (mut from, mut to) = (Stream::Tcp(from), Stream::Tcp(to));
    let traffic = Traffic::default();
    let mut direction = Direction::new(Some(traffic.counter_up()));
    (direction.way, direction.splice) = (Way::Splice, endless);
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    let waker = Waker::from(wakes.clone());
    for turn in 1..=3 {
        assert!(direction.poll(&mut Context::from_waker(&waker), &mut from, &mut to, false).is_pending());
        assert_eq!(traffic.up(), (turn * TURN_BYTES) as u64);
        assert_eq!(wakes.0.load(Ordering::SeqCst), turn, "its next turn comes by itself");
        assert!(direction.pipe.is_none(), "nothing is held meanwhile");
    }
}

/// Always has another whole buffer, and takes everything.
struct Endless;

impl AsyncRead for Endless {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buf.remaining();
        buf.initialize_unfilled();
        buf.advance(room);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Endless {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl crate::stream::Layer for Endless {
    fn abort(self: Box<Self>) {}

    fn own_tcp(&self) -> Option<&TcpStream> {
        None
    }
}

#[test]
fn copying_goes_in_turns_too() {
    let (mut from, mut to) = (Stream::Layered(Box::new(Endless)), Stream::Layered(Box::new(Endless)));
    let traffic = Traffic::default();
    let mut direction = Direction::new(Some(traffic.counter_up()));
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    let waker = Waker::from(wakes.clone());
    for turn in 1..=3 {
        assert!(direction.poll(&mut Context::from_waker(&waker), &mut from, &mut to, false).is_pending());
        assert_eq!(traffic.up(), (turn * TURN_BYTES) as u64);
        assert_eq!(wakes.0.load(Ordering::SeqCst), turn, "its next turn comes by itself");
        assert!(direction.buffer.is_none(), "nothing is held meanwhile");
    }
}

/// Both ends of it, to look at while it is carried.
fn watched(stream: &TcpStream) -> socket2::Socket {
    socket2::SockRef::from(stream).try_clone().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_lasts_is_asked_whether_its_ends_are_there() {
    let ((_far_client, client), (upstream, _far_upstream)) = (pair().await, pair().await);
    let sockets = [watched(&client), watched(&upstream)];
    let (mut client, mut upstream) = (Stream::Tcp(client), Stream::Tcp(upstream));
    let mut carrying = std::pin::pin!(carry(&mut client, &mut upstream, Vec::new(), None));
    for lasts in [false, true] {
        std::future::poll_fn(|cx| {
            assert!(carrying.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(sockets.iter().all(|socket| socket.keepalive().unwrap() == lasts), "lasts: {lasts}");
        tokio::time::advance(crate::net::KEEPALIVE).await;
    }
}
