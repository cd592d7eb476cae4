//! `ProbeBatch`: many targets in one command, every sample reported.

use super::Tools;
use super::connect::sample;
use super::resolve::{RESOLVE_TIMEOUT, ResolveError, Resolver};
use crate::clock::Clock;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use shared::link::{MAX_BATCH_TARGETS, ProbeBatch, ProbeBatchResult, ProbeResult, ProbeTarget, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Samples per target; the panel's own setting allows as many.
const MAX_COUNT: u32 = 20;
/// Deadline of one sample; six times what the panel's own setting allows.
const MAX_TIMEOUT_MS: u64 = 60_000;
/// Between two samples.
const MAX_SPACING_MS: u64 = 10_000;
/// Starts vary by this part of the spacing.
const JITTER: f64 = 0.25;
/// Added to the time a batch needs at most, for the way back.
const GRACE: Duration = Duration::from_secs(1);

/// Refuses what no panel of ours asks; the text names the field.
pub(crate) fn check(batch: &ProbeBatch) -> Result<(), String> {
    if batch.targets.len() > MAX_BATCH_TARGETS {
        return Err(format!(
            "targets: at most {MAX_BATCH_TARGETS} in one batch, not {}",
            batch.targets.len()
        ));
    }
    if batch.count == 0 || batch.count > MAX_COUNT {
        return Err(format!("count: 1 to {MAX_COUNT}, not {}", batch.count));
    }
    if batch.timeout_ms == 0 || batch.timeout_ms > MAX_TIMEOUT_MS {
        return Err(format!("timeoutMs: 1 to {MAX_TIMEOUT_MS}, not {}", batch.timeout_ms));
    }
    if batch.spacing_ms > MAX_SPACING_MS {
        return Err(format!("spacingMs: at most {MAX_SPACING_MS}, not {}", batch.spacing_ms));
    }
    Ok(())
}

/// Time after which nobody needs the answer any more: the latest last sample, the names and a second.
pub(crate) fn deadline(batch: &ProbeBatch) -> Duration {
    let spacing = Duration::from_millis(batch.spacing_ms).mul_f64(1.0 + JITTER);
    spacing * batch.count + Duration::from_millis(batch.timeout_ms) + RESOLVE_TIMEOUT + GRACE
}

/// Measures all targets concurrently.
pub(crate) async fn probe(batch: &ProbeBatch, tools: &Tools) -> ProbeBatchResult {
    let addresses = resolve_all(&batch.targets, &tools.resolver).await;
    let timeout = Duration::from_millis(batch.timeout_ms);
    let targets = batch.targets.iter().map(|target| {
        let starts = schedule(batch.count, Duration::from_millis(batch.spacing_ms), || tools.random.unit());
        let address = addresses.get(target.host.as_str());
        async move {
            match address {
                Some(Ok(ip)) => {
                    let address = SocketAddr::new(*ip, target.port);
                    let samples = take_samples(&tools.clock, address, timeout, starts).await;
                    ProbeResult { id: target.id, address: Some(address.to_string()), samples }
                }
                _ => ProbeResult { id: target.id, address: None, samples: vec![Sample::Unresolved] },
            }
        }
    });
    ProbeBatchResult { results: join_all(targets).await }
}

async fn resolve_all<'a>(
    targets: &'a [ProbeTarget],
    resolver: &Resolver,
) -> BTreeMap<&'a str, Result<IpAddr, ResolveError>> {
    let names: BTreeSet<&str> = targets.iter().map(|target| target.host.as_str()).collect();
    let resolved = names.into_iter().map(|name| async move { (name, resolver.first(name).await) });
    join_all(resolved).await.into_iter().collect()
}

/// When each sample starts, counted from now. The distance of two starts is the spacing ±25 %; the first one waits up
/// to a quarter of it, so that many targets do not start in the same instant.
fn schedule(count: u32, spacing: Duration, mut random: impl FnMut() -> f64) -> Vec<Duration> {
    let mut at = spacing.mul_f64(JITTER * random().clamp(0.0, 1.0));
    let mut starts = vec![at];
    for _ in 1..count {
        at += spacing.mul_f64(1.0 - JITTER + 2.0 * JITTER * random().clamp(0.0, 1.0));
        starts.push(at);
    }
    starts
}

/// Samples overlap: a target that does not answer costs the last start plus one timeout, not the sum of timeouts.
/// A closed port or a missing route ends the series: more samples would say the same.
async fn take_samples(
    clock: &Clock,
    address: SocketAddr,
    timeout: Duration,
    starts: Vec<Duration>,
) -> Vec<Sample> {
    let mut running: FuturesUnordered<_> = starts
        .into_iter()
        .enumerate()
        .map(|(index, start)| async move {
            if !start.is_zero() {
                tokio::time::sleep(start).await;
            }
            (index, sample(clock, address, timeout).await)
        })
        .collect();
    let mut done = BTreeMap::new();
    while let Some((index, sample)) = running.next().await {
        let hopeless = matches!(sample, Sample::Refused | Sample::Unreachable);
        done.insert(index, sample);
        if hopeless {
            break;
        }
    }
    done.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn batch(targets: &[(&str, u16)], count: u32, timeout_ms: u64, spacing_ms: u64) -> ProbeBatch {
        let targets = targets.iter().zip(1..);
        let targets = targets.map(|((host, port), id)| ProbeTarget { id, host: (*host).into(), port: *port });
        ProbeBatch { targets: targets.collect(), count, timeout_ms, spacing_ms }
    }

    #[test]
    fn limits_name_the_field() {
        assert_eq!(check(&batch(&[], 4, 900, 200)), Ok(()));
        let wrong = [
            (batch(&[("x", 1); MAX_BATCH_TARGETS + 1], 4, 900, 200), "targets"),
            (batch(&[], 0, 900, 200), "count"),
            (batch(&[], 21, 900, 200), "count"),
            (batch(&[], 4, 0, 200), "timeoutMs"),
            (batch(&[], 4, 60_001, 200), "timeoutMs"),
            (batch(&[], 4, 900, 10_001), "spacingMs"),
        ];
        for (batch, field) in wrong {
            assert!(check(&batch).unwrap_err().starts_with(field), "{field}");
        }
        assert_eq!(deadline(&batch(&[], 4, 900, 200)), Duration::from_millis(1000 + 900 + 3000 + 1000));
    }

    proptest! {
        #[test]
        fn starts_are_spaced_with_jitter(count in 1u32..20, spacing_ms in 0u64..1000, seed in any::<u64>()) {
            let mut state = seed;
            let random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            let starts = schedule(count, Duration::from_millis(spacing_ms), random);
            prop_assert_eq!(starts.len() as u32, count);
            let spacing = spacing_ms as f64 / 1000.0;
            prop_assert!(starts[0].as_secs_f64() <= spacing * 0.2501);
            for pair in starts.windows(2) {
                let gap = (pair[1] - pair[0]).as_secs_f64();
                prop_assert!(gap >= spacing * 0.7499 - 1e-8 && gap <= spacing * 1.2501 + 1e-8, "{}", gap);
            }
        }
    }

    #[tokio::test]
    async fn every_kind_of_target_is_told_apart_in_the_order_asked() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap().port();
        let closed = {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap().port()
        };
        let batch = batch(&[("exit.invalid", 443), ("127.0.0.1", closed), ("localhost", open)], 3, 900, 5);
        let ProbeBatchResult { results } = probe(&batch, &Tools::default()).await;
        assert_eq!(results.iter().map(|r| r.id).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!((&results[0].samples[..], &results[0].address), (&[Sample::Unresolved][..], &None));
        assert_eq!(results[1].samples, [Sample::Refused]);
        assert_eq!(results[1].address.as_deref(), Some(format!("127.0.0.1:{closed}").as_str()));
        assert_eq!(results[2].samples.len(), 3);
        assert!(
            results[2].samples.iter().all(|s| matches!(s, Sample::Ok { retransmits: 0, .. })),
            "{results:?}"
        );
    }
}
