//! Policies back to their text.

use super::spec::{Fallback, Interrupt, Measure, Policy};
use super::text;
use std::fmt;

/// A duration in its largest whole unit.
pub(super) fn written(ms: u64) -> String {
    match ms {
        0 => "0ms".to_owned(),
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}

impl fmt::Display for Policy {
    /// Complete and canonical: parsing it gives the same policy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interrupts = |interrupt: Interrupt, drain_ms: u64| {
            let when = match interrupt {
                Interrupt::Never => "never",
                Interrupt::OnDeath => "on_death",
                Interrupt::OnSwitch => "on_switch",
            };
            format!("interrupt={when}, drain={}", written(drain_ms))
        };
        let measures = |m: &Measure| {
            let (url, interval, tolerance) =
                (text::quoted(&m.url), written(m.interval_ms), written(m.tolerance_ms));
            let (fall, rise) = (m.fall, m.rise);
            let status = m.expected_status.map_or_else(String::new, |s| format!(", expected_status={s}"));
            let file = m.ca_file.as_deref().map(|file| format!(", ca_file={}", text::quoted(file)));
            let file = file.unwrap_or_default();
            format!(
                "url={url}, interval={interval}, tolerance={tolerance}, fall={fall}, rise={rise}{status}{file}"
            )
        };
        match self {
            Policy::Fifo => f.write_str("fifo"),
            Policy::Round => f.write_str("round"),
            Policy::Rand => f.write_str("rand"),
            Policy::Parallel => f.write_str("parallel"),
            Policy::Best => f.write_str("best"),
            Policy::Hash { host, consistent } => {
                let by = if *host { "host" } else { "client" };
                write!(f, "hash({by}{})", if *consistent { ", consistent" } else { "" })
            }
            Policy::LowestLatency { tolerance_ms } => {
                write!(f, "lowestlatency(tolerance={})", written(*tolerance_ms))
            }
            Policy::Selector { default, interrupt, drain_ms } => {
                f.write_str("selector(")?;
                if let Some(default) = default {
                    write!(f, "default={}, ", text::quoted(default))?;
                }
                write!(f, "{})", interrupts(*interrupt, *drain_ms))
            }
            Policy::UrlTest { measure, idle_timeout_ms, interrupt, drain_ms } => write!(
                f,
                "urltest({}, idle_timeout={}, {})",
                measures(measure),
                written(*idle_timeout_ms),
                interrupts(*interrupt, *drain_ms)
            ),
            Policy::Fixed(index) => write!(f, "fixed({index})"),
            Policy::Min { latency, measure, interrupt, drain_ms } => {
                let interrupts = interrupts(*interrupt, *drain_ms);
                write!(f, "{}({}, {interrupts})", latency.name(), measures(measure))
            }
            Policy::FixedFallback {
                index,
                timeout_ms,
                retries,
                fallback,
                return_delay_ms,
                measure,
                interrupt,
                drain_ms,
            } => {
                let fallback = match fallback {
                    Fallback::Random => "random",
                    Fallback::Min(latency) => latency.name(),
                };
                let (timeout, delay) = (written(*timeout_ms), written(*return_delay_ms));
                let (measure, interrupts) = (measures(measure), interrupts(*interrupt, *drain_ms));
                write!(
                    f,
                    "fixed_fallback({index}, {timeout}, {retries}, {fallback}, return_delay={delay}, {measure}, \
                     {interrupts})"
                )
            }
        }
    }
}
