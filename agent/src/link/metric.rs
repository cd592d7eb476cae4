//! What the machine is doing, as the `metric` message of the peer's protocol wants it.
//!
//! Read from `/proc`; a file that cannot be read leaves its numbers at 0.

use serde::Serialize;
use std::time::Duration;

/// The `data` of a `metric` message. Field names are the peer's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Metric {
    /// Seconds since the machine started.
    pub(crate) uptime: u64,
    /// Bytes received by all interfaces but the loopback.
    pub(crate) bytes_received: u64,
    /// Bytes sent by all interfaces but the loopback.
    pub(crate) bytes_transmitted: u64,
    /// Percent of all cores since the last message.
    pub(crate) cpu_usage: f64,
    /// Percent of the memory that is not available.
    pub(crate) memory_usage: f64,
    /// Percent of the root file system.
    pub(crate) disk_usage: f64,
    /// Load average of one minute.
    pub(crate) load1: f64,
    /// Load average of five minutes.
    pub(crate) load5: f64,
    /// Load average of fifteen minutes.
    pub(crate) load15: f64,
    /// TCP sockets in use, IPv4 and IPv6.
    pub(crate) tcp_conns: u64,
    /// UDP sockets in use, IPv4 and IPv6.
    pub(crate) udp_conns: u64,
    /// Bytes received per second since the last message.
    pub(crate) net_in_speed: u64,
    /// Bytes sent per second since the last message.
    pub(crate) net_out_speed: u64,
}

/// Keeps what rates are computed from.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    cpu: Option<CpuTime>,
    bytes: Option<(u64, u64)>,
}

impl Machine {
    /// Reads the current numbers. `since_last` is the time since the previous call, for the rates.
    pub(crate) fn read(&mut self, since_last: Duration) -> Metric {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let mut metric = Metric {
            uptime: file("/proc/uptime").split('.').next().and_then(|s| s.parse().ok()).unwrap_or(0),
            memory_usage: memory_usage(&file("/proc/meminfo")),
            disk_usage: disk_usage(),
            ..Metric::default()
        };
        [metric.load1, metric.load5, metric.load15] = load(&file("/proc/loadavg"));
        let sockets = file("/proc/net/sockstat") + &file("/proc/net/sockstat6");
        metric.tcp_conns = sockets_in_use(&sockets, "TCP");
        metric.udp_conns = sockets_in_use(&sockets, "UDP");
        let cpu = CpuTime::parse(&file("/proc/stat"));
        metric.cpu_usage = self.cpu.map_or(0.0, |before| cpu.usage_since(before));
        self.cpu = Some(cpu);
        let (received, sent) = traffic(&file("/proc/net/dev"));
        (metric.bytes_received, metric.bytes_transmitted) = (received, sent);
        if let Some((received_before, sent_before)) = self.bytes {
            metric.net_in_speed = rate(received, received_before, since_last);
            metric.net_out_speed = rate(sent, sent_before, since_last);
        }
        self.bytes = Some((received, sent));
        metric
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTime {
    idle: u64,
    total: u64,
}

impl CpuTime {
    /// First line of `/proc/stat`: user nice system idle iowait irq softirq steal, in ticks. The guest columns behind
    /// them are contained in user and nice already.
    fn parse(stat: &str) -> Self {
        let columns = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let ticks: Vec<u64> = columns.take(8).map(|n| n.parse().unwrap_or(0)).collect();
        Self { idle: ticks.iter().skip(3).take(2).sum(), total: ticks.iter().sum() }
    }

    fn usage_since(self, before: Self) -> f64 {
        let total = self.total.saturating_sub(before.total);
        let idle = self.idle.saturating_sub(before.idle).min(total);
        if total == 0 { 0.0 } else { 100.0 * (total - idle) as f64 / total as f64 }
    }
}

fn memory_usage(meminfo: &str) -> f64 {
    let kilobytes = |key: &str| -> Option<f64> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    match (kilobytes("MemTotal:"), kilobytes("MemAvailable:")) {
        (Some(total), Some(available)) if total > 0.0 => 100.0 * (total - available).max(0.0) / total,
        _ => 0.0,
    }
}

fn load(loadavg: &str) -> [f64; 3] {
    let mut numbers = loadavg.split_whitespace().map(|n| n.parse().unwrap_or(0.0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

/// `TCP: inuse 5 orphan 0 …` and `TCP6: inuse 3`.
fn sockets_in_use(sockstat: &str, protocol: &str) -> u64 {
    let count = |line: &str| -> Option<u64> {
        let rest = line.strip_prefix(protocol)?;
        let rest = rest.strip_prefix('6').unwrap_or(rest).strip_prefix(": inuse ")?;
        rest.split_whitespace().next()?.parse().ok()
    };
    sockstat.lines().filter_map(count).sum()
}

/// Received and sent bytes of all interfaces whose name does not start with `lo`.
fn traffic(dev: &str) -> (u64, u64) {
    let interface = |line: &str| -> Option<(u64, u64)> {
        let (name, rest) = line.split_once(':')?;
        let columns: Vec<&str> = rest.split_whitespace().collect();
        if name.trim().starts_with("lo") {
            return None;
        }
        Some((columns.first()?.parse().ok()?, columns.get(8)?.parse().ok()?))
    };
    dev.lines().filter_map(interface).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
}

fn rate(now: u64, before: u64, seconds: Duration) -> u64 {
    let seconds = seconds.as_secs_f64();
    // An interface that went away makes the sum smaller; that is no traffic.
    if seconds > 0.0 { (now.saturating_sub(before) as f64 / seconds) as u64 } else { 0 }
}

fn disk_usage() -> f64 {
    let Ok(stat) = nix::sys::statvfs::statvfs("/") else { return 0.0 };
    let used = stat.blocks().saturating_sub(stat.blocks_free());
    // As df counts: the blocks reserved for root are neither used nor usable.
    let usable = used + stat.blocks_available();
    if usable == 0 { 0.0 } else { 100.0 * used as f64 / usable as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_understood() {
        let before = CpuTime::parse("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3\n");
        assert_eq!(before, CpuTime { idle: 800, total: 1000 });
        let after = CpuTime::parse("cpu  150 0 125 770 125 0 0 30 50 0\n");
        assert_eq!(after, CpuTime { idle: 895, total: 1200 });
        assert_eq!(after.usage_since(before), 52.5);
        assert_eq!(before.usage_since(before), 0.0);
        assert_eq!(CpuTime::parse(""), CpuTime { idle: 0, total: 0 });

        let meminfo = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     250 kB\n";
        assert_eq!(memory_usage(meminfo), 75.0);
        assert_eq!(memory_usage(""), 0.0);
        assert_eq!(load("0.50 1.25 2.00 1/234 5678\n"), [0.5, 1.25, 2.0]);
        assert_eq!(load("nonsense"), [0.0; 3]);

        let sockstat = "sockets: used 9\nTCP: inuse 5 orphan 0 tw 1\nUDP: inuse 2 mem 0\nUDPLITE: inuse 7\nTCP6: inuse 3\nUDP6: inuse 1\n";
        assert_eq!((sockets_in_use(sockstat, "TCP"), sockets_in_use(sockstat, "UDP")), (8, 3));

        let dev = "Inter-| Receive | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n  wg0:7 1 0 0 0 0 0 0 8 2 0 0 0 0 0 0\n";
        assert_eq!(traffic(dev), (107, 208));
        assert_eq!(rate(1500, 500, Duration::from_secs(2)), 500);
        assert_eq!(rate(0, 500, Duration::from_secs(2)), 0);
        assert_eq!(rate(1500, 500, Duration::ZERO), 0);
    }

    #[test]
    fn this_machine_has_plausible_numbers() {
        let mut machine = Machine::default();
        machine.read(Duration::ZERO);
        let metric = machine.read(Duration::from_secs(5));
        assert!(metric.uptime > 0 && metric.memory_usage > 0.0 && metric.memory_usage <= 100.0, "{metric:?}");
        assert!((0.0..=100.0).contains(&metric.cpu_usage) && metric.disk_usage <= 100.0, "{metric:?}");
    }
}
