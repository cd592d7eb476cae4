//! Network namespaces by `ip netns`: names, setting up, taking down, and clearing what dead processes left.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::error::LabError;

/// Where iproute2 keeps the namespaces (a constant of its build).
const NAMESPACES: &str = "/var/run/netns";
/// Where `ip netns exec` looks for files to put over those in /etc.
const ETC: &str = "/etc/netns";
/// All namespaces of labs begin with this.
const PREFIX: &str = "netlab-";
/// Name of the one interface of a host, besides loopback.
pub(crate) const INTERFACE: &str = "lab0";
/// Largest packet, in bytes; Ethernet's.
pub(crate) const MTU: usize = 1500;

/// A namespace; removed when dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes an empty namespace with a name that says which process it belongs to.
    pub(crate) fn create(lab: &str, host: &str) -> Result<Self, LabError> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let process = ProcessId::of(process::id()).map_err(LabError::io("reading /proc/self/stat"))?;
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{process}-{number}-{lab}-{host}");
        let namespace = Self { name };
        match run(ip().args(["netns", "add", &namespace.name])) {
            // In a user namespace that shares the network of the machine, `ip` makes the namespace, cannot go back to
            // the network it came from, and calls that a failure. On real failures it leaves nothing.
            Err(error) if !namespace.exists() => Err(error),
            _ => Ok(namespace),
        }
    }

    fn exists(&self) -> bool {
        Path::new(NAMESPACES).join(&self.name).exists()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread, and threads it will start, into the namespace.
    pub(crate) fn enter(name: &str) -> io::Result<()> {
        let file = File::open(Path::new(NAMESPACES).join(name))?;
        setns(file, CloneFlags::CLONE_NEWNET)?;
        Ok(())
    }

    /// Loopback up, the TUN device up with `address`, and everything else routed to it.
    pub(crate) fn configure(&self, address: Ipv4Addr) -> Result<(), LabError> {
        // A long queue, so that what is dropped is dropped by the link and not by the device in front of it. No
        // link-local IPv6 address: its neighbour discovery would be noise.
        let batch = format!(
            "link set lo up\n\
             link set {INTERFACE} mtu {MTU} txqueuelen 10000 addrgenmode none\n\
             addr add {address}/32 dev {INTERFACE}\n\
             link set {INTERFACE} up\n\
             route add default dev {INTERFACE}\n"
        );
        run_with_input(ip().args(["-n", &self.name, "-batch", "-"]), &batch)
    }

    /// Writes the file that programs in the namespace see as /etc/hosts. Programs that run already see the change,
    /// the file is written in place. Without the right to write in /etc (rootless) there are no names.
    pub(crate) fn write_hosts(&self, hosts: &str) {
        // Nobody listens there, so other names fail at once; the machine's name servers would never answer.
        let files = [("hosts", hosts), ("resolv.conf", "nameserver 127.0.0.1\n")];
        let folder = Path::new(ETC).join(&self.name);
        let written = fs::create_dir_all(&folder).and_then(|()| {
            // `ip netns exec` puts them over files, which must be there.
            let mut over = files.iter().filter(|(name, _)| Path::new("/etc").join(name).exists());
            over.try_for_each(|(name, text)| fs::write(folder.join(name), text))
        });
        if let Err(error) = written {
            tracing::debug!(namespace = self.name, %error, "no host names in this namespace");
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        remove(&self.name);
    }
}

/// Makes the TUN device in the namespace the calling thread is in.
pub(crate) fn create_tun() -> io::Result<SyncDevice> {
    let device = DeviceBuilder::new().name(INTERFACE).build_sync()?;
    device.set_nonblocking(true)?;
    Ok(device)
}

/// Whether this process can make namespaces and TUN devices, tried once; clears leftovers first.
pub(crate) fn check_available() -> Result<(), LabError> {
    static AVAILABLE: OnceLock<Result<(), String>> = OnceLock::new();
    let available = AVAILABLE.get_or_init(|| {
        sweep();
        try_out().map_err(|error| error.to_string().replace('\n', " "))
    });
    available.clone().map_err(|reason| LabError::Unavailable { reason })
}

fn try_out() -> Result<(), LabError> {
    // In `unshare --net` loopback is down, and published ports would have no address. Elsewhere it is up, or not ours.
    if let Err(error) = run(ip().args(["link", "set", "lo", "up"])) {
        tracing::debug!(%error, "loopback stays as it is");
    }
    let namespace = Namespace::create("check", "tun")?;
    let name = namespace.name.clone();
    let device = std::thread::spawn(move || {
        Namespace::enter(&name).map_err(LabError::io("entering a namespace"))?;
        create_tun().map_err(LabError::io("making a TUN device"))
    });
    let _device = device.join().map_err(|_| LabError::Stopped)??;
    namespace.configure(Ipv4Addr::new(10, 66, 0, 1))
}

/// Removes the namespaces of labs whose process is gone, and ends the programs still running in them. The first lab of
/// a process does it too.
pub fn sweep() {
    for folder in [NAMESPACES, ETC] {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(owner) = owner(&name) else { continue };
            if owner.is_gone() {
                kill_programs(&name);
                remove(&name);
            }
        }
    }
}

fn kill_programs(name: &str) {
    let Ok(output) = ip().args(["netns", "pids", name]).stdin(Stdio::null()).output() else { return };
    for pid in String::from_utf8_lossy(&output.stdout).split_whitespace().filter_map(|pid| pid.parse().ok()) {
        match kill(Pid::from_raw(pid), Signal::SIGKILL) {
            Ok(()) => tracing::info!(namespace = name, pid, "ended a program of a lab that is gone"),
            Err(error) => {
                tracing::debug!(namespace = name, pid, %error, "cannot end a program of a lab that is gone")
            }
        }
    }
}

fn remove(name: &str) {
    if Path::new(NAMESPACES).join(name).exists()
        && let Err(error) = run(ip().args(["netns", "del", name]))
    {
        // Two processes may sweep at the same time.
        tracing::debug!(namespace = name, %error, "cannot remove a namespace");
    }
    let _ = fs::remove_dir_all(Path::new(ETC).join(name));
}

/// A process, told apart from a later one with the same number by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcessId {
    pid: u32,
    /// Clock ticks after the machine's start.
    started: u64,
}

impl ProcessId {
    fn of(pid: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // Field 22 (proc_pid_stat(5)); the name in field 2 may hold spaces and brackets, so count after it.
        let fields = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(22 - 3));
        let started = fields.and_then(|field| field.parse().ok());
        let started = started.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no start time"))?;
        Ok(Self { pid, started })
    }

    fn is_gone(self) -> bool {
        match Self::of(self.pid) {
            Ok(found) => found != self,
            Err(error) => {
                error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::ESRCH as i32)
            }
        }
    }
}

impl std::fmt::Display for ProcessId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.pid, self.started)
    }
}

/// Whose namespace this is, if it is a lab's.
fn owner(namespace: &str) -> Option<ProcessId> {
    let (process, _) = namespace.strip_prefix(PREFIX)?.split_once('-')?;
    let (pid, started) = process.split_once('.')?;
    Some(ProcessId { pid: pid.parse().ok()?, started: started.parse().ok()? })
}

/// `ip` with no arguments yet; Debian keeps it where the path of a plain user does not look.
pub(crate) fn ip() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let known = ["/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip"];
        known.iter().map(PathBuf::from).find(|path| path.exists()).unwrap_or_else(|| PathBuf::from("ip"))
    });
    Command::new(program)
}

fn run(command: &mut Command) -> Result<(), LabError> {
    run_with_input(command, "")
}

fn run_with_input(command: &mut Command, input: &str) -> Result<(), LabError> {
    let shown = format!("{command:?}").replace('"', "");
    let fail = |message: String| LabError::Command { command: shown.clone(), message };
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| fail(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may have failed before reading; its own words say more than a broken pipe.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| fail(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().map(str::trim).find(|line| !line.is_empty());
    Err(fail(first.map_or_else(|| output.status.to_string(), str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_owner() {
        let own = ProcessId::of(process::id()).unwrap();
        assert_eq!(owner(&format!("netlab-{own}-3-my-lab-my-host")), Some(own));
        for foreign in ["netlab-", "netlab-1-2-a-b", "other-1.2-3-a-b", "netlab-x.2-3-a-b", "blue"] {
            assert_eq!(owner(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_running_process_is_there_and_one_with_another_start_is_gone() {
        let own = ProcessId::of(process::id()).unwrap();
        assert!(!own.is_gone());
        assert!(ProcessId { started: own.started + 1, ..own }.is_gone());
        // Numbers end at 2^22 (PID_MAX_LIMIT).
        assert!(ProcessId { pid: 1 << 22, started: 1 }.is_gone());
    }
}
