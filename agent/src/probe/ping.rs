//! `TcpPing`, exactly as the peer's agents do it.

use super::Tools;
use super::connect::sample;
use shared::link::{Sample, TcpPing, TcpPingResult};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Attempts when the panel names none.
const DEFAULT_COUNT: u32 = 4;
/// Deadline of an attempt when the panel names none.
const DEFAULT_TIMEOUT_MS: u64 = 5000;
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// More attempts are refused: a ping must end while somebody still waits for it.
const MAX_COUNT: u32 = 100;
/// A longer timeout is refused.
const MAX_TIMEOUT_MS: u64 = 60_000;
/// Added to the time a ping needs at most, for the name and the way back.
const GRACE: Duration = Duration::from_secs(1);

fn count(ping: &TcpPing) -> u32 {
    if ping.count == 0 { DEFAULT_COUNT } else { ping.count }
}

fn timeout(ping: &TcpPing) -> Duration {
    Duration::from_millis(if ping.timeout == 0 { DEFAULT_TIMEOUT_MS } else { ping.timeout })
}

/// How long the panel waits for the answer: `count * (timeout + 100 ms) + 1 s`.
pub(crate) fn deadline(ping: &TcpPing) -> Duration {
    let each = timeout(ping).min(Duration::from_millis(MAX_TIMEOUT_MS)) + PAUSE;
    each * count(ping).min(MAX_COUNT) + GRACE
}

/// Measures. A failure is an answer too: `success: false`, numbers 0, and the reason.
pub(crate) async fn ping(ping: &TcpPing, tools: &Tools) -> TcpPingResult {
    let mut result = TcpPingResult {
        ip: ping.ip.clone(),
        port: ping.port,
        success: false,
        average_time: 0.0,
        packet_loss: 0.0,
        error_message: None,
    };
    match measure(ping, tools).await {
        Ok((average_time, packet_loss)) => {
            result.success = true;
            result.average_time = average_time;
            result.packet_loss = packet_loss;
        }
        Err(reason) => result.error_message = Some(reason),
    }
    result
}

/// Mean of the successful attempts in milliseconds and lost attempts in percent.
async fn measure(ping: &TcpPing, tools: &Tools) -> Result<(f64, f64), String> {
    check(ping)?;
    let address = tools.resolver.first(&ping.ip).await.map_err(|error| error.to_string())?;
    let address = SocketAddr::new(address, ping.port);
    let count = count(ping);
    let mut answered = Vec::new();
    let mut last = Sample::Lost;
    for attempt in 0..count {
        if attempt > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        match sample(&tools.clock, address, timeout(ping)).await {
            Sample::Ok { ms, .. } => answered.push(ms),
            failed => last = failed,
        }
    }
    if answered.is_empty() {
        return Err(format!("all attempts failed: {}", reason(&last)));
    }
    let mean = answered.iter().sum::<f64>() / answered.len() as f64;
    let lost = f64::from(count) - answered.len() as f64;
    Ok((mean, 100.0 * lost / f64::from(count)))
}

fn check(ping: &TcpPing) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if ping.ip.parse::<IpAddr>().is_err() && (ping.ip.is_empty() || !ping.ip.chars().all(plain)) {
        return Err(format!("`{}` is neither a host name nor an address", ping.ip));
    }
    if ping.port == 0 {
        return Err("the port must be 1 to 65535".to_owned());
    }
    if ping.count > MAX_COUNT {
        return Err(format!("count must be at most {MAX_COUNT}"));
    }
    if ping.timeout > MAX_TIMEOUT_MS {
        return Err(format!("timeout must be at most {MAX_TIMEOUT_MS} ms"));
    }
    Ok(())
}

fn reason(sample: &Sample) -> &'static str {
    match sample {
        Sample::Ok { .. } => "connected",
        Sample::Lost => "no answer in time",
        Sample::Refused => "connection refused",
        Sample::Unresolved => "the name was not resolved",
        Sample::Unreachable => "unreachable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(ip: &str, port: u16, count: u32, timeout: u64) -> TcpPing {
        TcpPing { ip: ip.to_owned(), port, count, timeout }
    }

    #[test]
    fn the_panel_waits_as_long_as_the_attempts_may_take() {
        assert_eq!(deadline(&ask("x", 1, 0, 0)), Duration::from_millis(4 * 5100 + 1000));
        assert_eq!(deadline(&ask("x", 1, 3, 900)), Duration::from_millis(4000));
        assert_eq!(deadline(&ask("x", 1, u32::MAX, u64::MAX)), Duration::from_secs(100 * 60 + 10 + 1));
    }

    #[test]
    fn hosts_are_names_or_addresses_only() {
        for host in ["exit.example", "192.0.2.1", "2001:db8::1", "x-1"] {
            assert_eq!(check(&ask(host, 443, 4, 900)), Ok(()), "{host}");
        }
        for host in ["", "a b", "[2001:db8::1]", "http://x", "a_b", "出口", "x;reboot", "a:b"] {
            assert!(check(&ask(host, 443, 4, 900)).is_err(), "{host}");
        }
        assert!(check(&ask("x", 0, 4, 900)).is_err());
        assert!(check(&ask("x", 1, 101, 900)).is_err());
        assert!(check(&ask("x", 1, 4, 60_001)).is_err());
    }
}
