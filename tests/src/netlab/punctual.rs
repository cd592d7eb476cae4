//! Threads that are woken in time on a busy machine.

use std::process::{Command, Stdio};

use nix::sys::prctl::set_timerslack;
use nix::unistd::gettid;

/// Asks the kernel to wake the calling thread in time: no timer slack, and, as root, real-time scheduling. For the
/// lab's own thread and for threads that measure; they must not compute for long. Where the kernel does not agree,
/// times are only less exact.
pub fn be_punctual() {
    // A timer may otherwise be up to 50 µs late to save power.
    if let Err(error) = set_timerslack(1) {
        tracing::debug!(%error, "the timer keeps its slack");
    }
    // At the lowest real-time level, and not for the programs and threads this one starts. There is no safe call for this; the program takes a thread's id as well.
    let thread = gettid().to_string();
    let arguments = ["--fifo", "--reset-on-fork", "--pid", "1", &thread];
    match Command::new("chrt").args(arguments).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            tracing::debug!(said = said.trim(), "ordinary scheduling");
        }
        Err(error) => tracing::debug!(%error, "ordinary scheduling"),
    }
}
