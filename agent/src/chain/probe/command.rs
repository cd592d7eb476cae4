//! Probes that run a command on this machine.
//!
//! A command does what the agent itself may do. So it runs only where the operator of the machine wrote it, or allowed
//! the panel to write it ([`crate::options::RuntimeOptions::allow_commands`]).

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Begins the names of the variables that configure the agent; its secret is among them.
const OWN_VARIABLES: &str = "EXITPILOT_";

/// Runs `command` in a shell, within `timeout`. Input and output are nothing. When the time is over, or this future is
/// dropped, the shell is killed with everything it has started, unless that has left the process group.
pub(super) async fn run(command: &str, timeout: Duration) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).process_group(0).kill_on_drop(true);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(OWN_VARIABLES.as_bytes()) {
            shell.env_remove(name);
        }
    }
    let mut child = shell.spawn().map_err(|error| format!("cannot run sh: {error}"))?;
    let mut group = Group(child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw));
    match tokio::time::timeout(timeout, child.wait()).await {
        Ok(status) => {
            // The shell is no more, so its number may soon be another's.
            group.0 = None;
            let status = status.map_err(|error| error.to_string())?;
            if status.success() { Ok(()) } else { Err(status.to_string()) }
        }
        Err(_) => Err(format!("not done within {timeout:?}")),
    }
}

/// A group of processes, killed when this is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.map(|group| killpg(group, Signal::SIGKILL)) {
            tracing::debug!(%error, "command not killed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn the_exit_status_is_the_verdict() {
        assert_eq!(run("true", LONG).await, Ok(()));
        assert!(run("false", LONG).await.unwrap_err().contains('1'));
        assert!(run("no-such-program-anywhere", LONG).await.unwrap_err().contains("127"));
        assert_eq!(run("echo one two | grep -q two", LONG).await, Ok(()));
        assert_eq!(run("test $(date +%H) -ge 0 -a $(date +%H) -lt 24", LONG).await, Ok(()));
        assert!(run("kill -9 $$", LONG).await.is_err());
        assert_eq!(run("cat", LONG).await, Ok(()), "there is no input to wait for");
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let file = file.display();
        let command = format!("sleep 600 & echo $! >{file}.new; mv {file}.new {file}; wait");
        let text = format!("{file}");
        let outcome = tokio::spawn(async move { run(&command, Duration::from_secs(2)).await });
        let child = loop {
            if let Ok(id) = std::fs::read_to_string(&text) {
                break Pid::from_raw(id.trim().parse().unwrap());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(outcome.await.unwrap().unwrap_err().contains("not done within 2s"));
        let gone = async {
            while is_alive(child) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, gone).await.expect("the child lives on");
    }

    /// Whether a process runs; one that only waits for its end to be noticed does not.
    fn is_alive(process: Pid) -> bool {
        std::fs::read_to_string(format!("/proc/{process}/stat"))
            .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
    }

    #[tokio::test]
    async fn a_command_that_nobody_waits_for_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shell").display().to_string();
        let command = format!("echo $$ >{file}.new; mv {file}.new {file}; sleep 600; true");
        let running = tokio::spawn(async move { run(&command, LONG * 20).await });
        let shell = loop {
            if let Ok(id) = std::fs::read_to_string(&file) {
                break Pid::from_raw(id.trim().parse().unwrap());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        running.abort();
        let gone = async {
            while is_alive(shell) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, gone).await.expect("the shell lives on");
    }
}
