//! Pipes through which the kernel moves payload from one TCP connection to another without copying it.
//!
//! The kernel offers that only by way of a pipe. Pipes are borrowed for as long as they hold something and are used again
//! afterwards; both calls go through `nix`, so that nothing here is unsafe.

use crate::spare::Spare;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{pipe2, read};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::ReadBuf;

/// What a pipe holds at most: four times the kernel's default, since a pipe's places are used up by small segments too,
/// and since each way through it costs two system calls.
pub(super) const PIPE_BYTES: usize = 256 * 1024;
/// Pipes of the process at most. Together they do not exceed the 16,384 pages that an ordinary user's pipes get before
/// the kernel shrinks new ones (`fs.pipe-user-pages-soft`).
const MOST_PIPES: u64 = 256;
/// Spare pipes per thread.
const SPARE: usize = 8;

/// Pipes of this process.
static PIPES: AtomicUsize = AtomicUsize::new(0);

static LIMIT: LazyLock<usize> = LazyLock::new(|| {
    let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
    usize::try_from(most_pipes(files)).unwrap_or(0)
});

thread_local! {
    static POOL: Spare<Pipe> = const { Spare::new(SPARE) };
}

/// Pipes that are opened at most when so many files may be open. Each takes two.
pub(crate) fn most_pipes(files: u64) -> u64 {
    (files / 32).min(MOST_PIPES)
}

/// Moves bytes from one file to another; the kernel's `splice`, or a test's in its place.
pub(super) type Splice = fn(BorrowedFd<'_>, BorrowedFd<'_>, usize) -> io::Result<usize>;

/// The kernel's.
pub(super) fn by_kernel(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    Ok(splice(from, None, to, None, bytes, flags)?)
}

/// Whether an error says that the kernel does not splice these files at all.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EPERM))
}

struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    /// `None` when there are enough of them, or no file is left: copying needs none.
    fn open() -> Option<Self> {
        if PIPES.fetch_add(1, Ordering::Relaxed) >= *LIMIT {
            PIPES.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        match pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC) {
            Ok((read, write)) => {
                if let Err(error) = fcntl(&write, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES as i32)) {
                    tracing::trace!(%error, "pipe keeps its size");
                }
                Some(Self { read, write })
            }
            Err(error) => {
                PIPES.fetch_sub(1, Ordering::Relaxed);
                tracing::debug!(%error, "no pipe");
                None
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        PIPES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A borrowed pipe. Given back when dropped, unless it still holds something.
pub(super) struct Lease {
    /// `None` only after the drop.
    pipe: Option<Pipe>,
    held: usize,
}

impl Lease {
    /// An empty one, if there is one to be had.
    pub(super) fn take() -> Option<Self> {
        let pipe = POOL.with(Spare::take).or_else(Pipe::open)?;
        Some(Self { pipe: Some(pipe), held: 0 })
    }

    /// Bytes inside.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    fn pipe(&self) -> io::Result<&Pipe> {
        self.pipe.as_ref().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Moves what has arrived at `from` into the pipe, which must be empty: a full one would look like an idle sender.
    /// 0 bytes are the end.
    pub(super) fn fill(&mut self, from: impl AsFd, splice: Splice) -> io::Result<usize> {
        debug_assert_eq!(self.held, 0);
        let came = splice(from.as_fd(), self.pipe()?.write.as_fd(), PIPE_BYTES)?;
        self.held = came;
        Ok(came)
    }

    /// Moves what `to` takes out of the pipe.
    pub(super) fn drain(&mut self, to: impl AsFd, splice: Splice) -> io::Result<usize> {
        let went = splice(self.pipe()?.read.as_fd(), to.as_fd(), self.held)?;
        self.held -= went.min(self.held);
        Ok(went)
    }

    /// Reads what is inside into memory.
    pub(super) fn rescue(&mut self, into: &mut ReadBuf<'_>) -> io::Result<()> {
        let got = read(&self.pipe()?.read, into.initialize_unfilled())?;
        into.advance(got);
        self.held -= got;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(pipe) = self.pipe.take().filter(|_| self.held == 0) else { return };
        Spare::give_back(&POOL, pipe);
    }
}
