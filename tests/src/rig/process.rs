//! One child process: its output is read and kept, and it dies with its owner.

use super::eventually::eventually;
use crate::clock;
use anyhow::{Context as _, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::Child;

/// Lines kept of one process; older ones are dropped. A chatty minute of the panel has some thousand.
const LINES: usize = 50_000;

/// What a process wrote, both streams in the order read, with times since it was started.
#[derive(Clone, Debug)]
pub struct Log {
    lines: Arc<Mutex<VecDeque<(Duration, String)>>>,
    start: Instant,
}

impl Log {
    fn new() -> Self {
        Self { lines: Arc::default(), start: clock::now() }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Duration, String)>> {
        // Nothing panics while the queue is half changed.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back((self.start.elapsed(), line));
    }

    /// All lines kept.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.lock().iter().map(|(_, line)| line.clone()).collect()
    }

    /// How many lines hold this text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.lock().iter().filter(|(_, line)| line.contains(text)).count()
    }

    /// The first answer that is not `None`.
    pub fn find<T>(&self, check: impl FnMut(&str) -> Option<T>) -> Option<T> {
        let mut check = check;
        self.lock().iter().find_map(|(_, line)| check(line))
    }

    /// The last lines with their times, for people.
    #[must_use]
    pub fn tail(&self, lines: usize) -> String {
        let all = self.lock();
        let shown = all.iter().skip(all.len().saturating_sub(lines));
        shown.map(|(at, line)| format!("{:9.3} {line}\n", at.as_secs_f64())).collect()
    }

    async fn read(self, stream: impl AsyncRead + Unpin) {
        let mut lines = BufReader::new(stream).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            self.push(without_colours(&String::from_utf8_lossy(&line)));
        }
    }
}

/// Terminal colours would hide words from whoever searches the log.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..start]);
        let sequence = &rest[start + 2..];
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).map_or(sequence.len(), |end| end + 1);
        rest = &sequence[end..];
    }
    plain + rest
}

/// A running child. Killed when dropped; then, if the owner is panicking, the end of its log is printed.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: Log,
}

impl Process {
    /// Starts it. Needs a tokio runtime, in which its output is read.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, command: Command) -> Result<Self> {
        let mut command = tokio::process::Command::from(command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let log = Log::new();
        // These end with the pipes, and the pipes with the child.
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(log.clone().read(stdout));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(log.clone().read(stderr));
        }
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// What it is called in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it wrote so far.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Its status, once it has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until a line gives an answer.
    ///
    /// # Errors
    /// When it ends before, or `limit` is over; the end of its log is part of the error.
    pub async fn wait_for<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut check: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let log = self.log.clone();
        let mut looks_after_end = 0;
        let answer = eventually(what, limit, async || {
            if let Some(found) = log.find(&mut check) {
                return Ok(Ok(found));
            }
            match self.child.try_wait()? {
                // Its last words may not have been read yet.
                Some(status) if looks_after_end == 3 => Ok(Err(anyhow!("it ended ({status})"))),
                Some(_) => {
                    looks_after_end += 1;
                    bail!("it ended")
                }
                None => bail!("no such line"),
            }
        });
        let answer = answer.await.and_then(|answer| answer);
        answer.with_context(|| format!("{}: {what}; its log:\n{}", self.name, log.tail(30)))
    }

    /// `kill -9`, and waits until it is gone.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn kill(&mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("cannot kill {}", self.name))
    }

    /// SIGTERM, and waits until it is gone.
    ///
    /// # Errors
    /// When it is not gone within `limit`.
    pub async fn terminate(&mut self, limit: Duration) -> Result<ExitStatus> {
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()) {
            kill(Pid::from_raw(id), Signal::SIGTERM)?;
        }
        let status = tokio::time::timeout(limit, self.child.wait()).await;
        Ok(status.with_context(|| format!("{} did not end within {limit:?}", self.name))??)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("---- the end of the log of {} ----\n{}", self.name, self.log.tail(60));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    const LIMIT: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn reads_both_streams_and_finds_lines() {
        let mut process = Process::start("both", script("echo out 7; echo err >&2; exec sleep 100")).unwrap();
        let number = process
            .wait_for("a number", LIMIT, |line| line.strip_prefix("out ")?.parse::<u32>().ok())
            .await
            .unwrap();
        assert_eq!(number, 7);
        process.wait_for("the other stream", LIMIT, |line| (line == "err").then_some(())).await.unwrap();
        assert_eq!(process.log().count("err"), 1);
        assert!(!process.terminate(LIMIT).await.unwrap().success());
        assert!(process.ended().unwrap().is_some());
    }

    #[tokio::test]
    async fn tells_why_nothing_more_will_come() {
        let mut process = Process::start("short", script("echo last words; exit 3")).unwrap();
        let error = process.wait_for("a miracle", LIMIT, |_| None::<()>).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("a miracle") && text.contains("exit status: 3"), "{text}");
    }

    #[test]
    fn colours_are_taken_out() {
        assert_eq!(without_colours("\u{1b}[32m INFO\u{1b}[0m listening \u{1b}[2mx"), " INFO listening x");
    }
}
