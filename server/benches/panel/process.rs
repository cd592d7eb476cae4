//! The panel as a process of its own: what it takes is its alone.

use anyhow::{Context as _, Result, bail, ensure};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Of the user `admin`.
pub(crate) const PASSWORD: &str = "password-of-the-benchmark";
/// `/proc` counts processor time in hundredths of a second, whatever the kernel's own clock does.
const TICKS_PER_SECOND: f64 = 100.0;
/// From SIGTERM to the end.
const STOP: Duration = Duration::from_secs(20);

/// A running panel. Killed when dropped.
pub(crate) struct Panel {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Panel {
    /// Starts the executable that was built beside this one and waits until it accepts requests.
    pub(crate) fn start(folder: &Path, port: u16) -> Result<Self> {
        let log = fs::File::options().create(true).append(true).open(folder.join("panel.log"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_exitpilot"));
        command.arg("serve").current_dir(folder);
        // What is meant for another panel is not meant for this one.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("EXITPILOT_")) {
                command.env_remove(name);
            }
        }
        command.env_remove("DATABASE_URL");
        command.env("EXITPILOT_LISTEN", format!("127.0.0.1:{port}"));
        command.env("EXITPILOT_DATABASE", url(folder));
        command.env("EXITPILOT_ADMIN_PASSWORD", PASSWORD);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context("cannot start the panel")?;
        let stdout = child.stdout.take().context("the panel has no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut address = None;
        for line in &mut lines {
            if let Some(told) = line?.strip_prefix("listening on http://") {
                address = Some(told.trim().parse()?);
                break;
            }
        }
        // Its log is on the same output: who does not read stops it in the end.
        std::thread::spawn(move || lines.count());
        let address = address.context("the panel ended before it listened")?;
        Ok(Self { child, address })
    }

    /// Processor time that it has taken, user and system, in seconds.
    pub(crate) fn processor_s(&self) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in front may hold anything, and ends with the last parenthesis.
        let fields: Vec<&str> = text.rsplit_once(')').context("no name")?.1.split_whitespace().collect();
        let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("a field")?.parse()?) };
        Ok((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
    }

    /// Resident memory now, and the most that it ever was, in MB.
    pub(crate) fn memory_mb(&self) -> Result<(f64, f64)> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let mb = |name: &str| -> Result<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
            let kb: f64 = line.split_whitespace().next().context("no number")?.parse()?;
            Ok(kb * 1024.0 / 1e6)
        };
        Ok((mb("VmRSS:")?, mb("VmHWM:")?))
    }

    /// SIGTERM, and waits for the end.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let killed = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status()?;
        ensure!(killed.success(), "the panel could not be told to stop");
        let step = Duration::from_millis(20);
        for _ in 0..STOP.as_millis() / step.as_millis() {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(step).await;
        }
        bail!("the panel did not stop within {} s", STOP.as_secs())
    }
}

impl Drop for Panel {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the panel in this folder keeps its data.
pub(crate) fn url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("exitpilot.db").display())
}
