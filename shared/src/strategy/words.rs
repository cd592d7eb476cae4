//! Strategies and protocols in words.

use super::{Protocol, Strategy};
use crate::policy::{Latency, Policy};
use crate::texts;
use crate::words::{Lang, Text};

texts! {
    FIFO = "主备", "Failover";
    FIFO_WHEN = "总是使用第一个可用的节点，其余作为备用。", "Always the first usable node; the others stand by.";
    ROUND = "轮询", "Round robin";
    ROUND_WHEN = "依次使用每个节点，平均分担流量。", "Each node in turn, to share the traffic evenly.";
    RAND = "随机", "Random";
    RAND_WHEN = "每个连接随机选择一个节点。", "A random node for each connection.";
    HASH = "哈希", "Hash";
    HASH_WHEN = "同一客户端总是使用同一个节点。", "The same client always gets the same node.";
    BEST = "最优", "Best";
    BEST_WHEN = "面板测量每个出口的延迟与丢包，新连接自动走最好的出口。", "The panel measures latency and loss of every exit; new connections take the best one.";
    CONSISTENT = "一致哈希", "Consistent hash";
    CONSISTENT_WHEN = "同一客户端保持同一个节点，即使其他节点失效或恢复。", "The same client keeps its node, even while other nodes fail or return.";
    PARALLEL = "并发", "Parallel";
    PARALLEL_WHEN = "同时连接所有节点，使用最先连通的一个；换取最快的建立，连接数更多。", "Dials all nodes at once and keeps the first that is up: the quickest start, at the price of more dials.";
    LOWEST_LATENCY = "最低延迟", "Lowest latency";
    LOWEST_LATENCY_WHEN = "入口定期探测到各节点的延迟，使用最低的一个。", "The node that probes have found the nearest; the way behind it does not count.";
    SELECTOR = "手动", "Manual";
    SELECTOR_WHEN = "由人在监控页选择节点，保持到再次更改。", "A person chooses the node on the monitor page, until told otherwise.";
    URLTEST = "自动测速", "URL test";
    URLTEST_WHEN = "定期通过每个节点访问网页，更快的超过容差才切换；闲置时停止测试。", "Fetches a page through every node and moves only to one that is clearly faster; idle groups do not test.";
    FIXED = "固定", "Fixed";
    FIXED_WHEN = "总是同一个节点，即使它不可用。", "Always the same node, even when it is dead.";
    MIN = "最近延迟", "Last latency";
    MIN_WHEN = "最近一次测试延迟最低的节点；反应最快，切换最多。", "The lowest latency of the last test: follows fastest and moves most.";
    MIN_AVG10 = "十次平均延迟", "Mean of ten";
    MIN_AVG10_WHEN = "最近十次测试平均延迟最低的节点；稳定，反应较慢。", "The lowest mean of the last ten tests: steady, and slower to follow.";
    MIN_MOVING_AVG = "移动平均延迟", "Moving average";
    MIN_MOVING_AVG_WHEN = "移动平均延迟最低的节点；介于两者之间。", "The lowest moving average: between the two.";
    FIXED_FALLBACK = "固定回退", "Fixed with fallback";
    FIXED_FALLBACK_WHEN = "使用指定节点；它失效时改用其余节点，恢复后立即返回。", "One node while it lives; the others while it is dead, and back at once when it returns.";
    OTHER = "{strategy}（未知）", "{strategy} (unknown)";
    OTHER_WHEN = "此版本的页面不认识这个策略，保存时保持不变。", "This page does not know this strategy and leaves it as it is.";
    UNKNOWN_PROTOCOL = "{protocol}（未知）", "{protocol} (unknown)";
}

/// What a strategy is called, and one sentence on when to use it.
fn words(strategy: &Strategy) -> (Text, Text) {
    match strategy {
        Strategy::Fifo => (FIFO, FIFO_WHEN),
        Strategy::Round => (ROUND, ROUND_WHEN),
        Strategy::Rand => (RAND, RAND_WHEN),
        Strategy::Hash => (HASH, HASH_WHEN),
        Strategy::Best => (BEST, BEST_WHEN),
        Strategy::Policy(written) => match written.policy() {
            Policy::Fifo => (FIFO, FIFO_WHEN),
            Policy::Round => (ROUND, ROUND_WHEN),
            Policy::Rand => (RAND, RAND_WHEN),
            Policy::Best => (BEST, BEST_WHEN),
            Policy::Hash { consistent: false, .. } => (HASH, HASH_WHEN),
            Policy::Hash { consistent: true, .. } => (CONSISTENT, CONSISTENT_WHEN),
            Policy::Parallel => (PARALLEL, PARALLEL_WHEN),
            Policy::LowestLatency { .. } => (LOWEST_LATENCY, LOWEST_LATENCY_WHEN),
            Policy::Selector { .. } => (SELECTOR, SELECTOR_WHEN),
            Policy::UrlTest { .. } => (URLTEST, URLTEST_WHEN),
            Policy::Fixed(_) => (FIXED, FIXED_WHEN),
            Policy::Min { latency: Latency::Last, .. } => (MIN, MIN_WHEN),
            Policy::Min { latency: Latency::Avg10, .. } => (MIN_AVG10, MIN_AVG10_WHEN),
            Policy::Min { latency: Latency::Moving, .. } => (MIN_MOVING_AVG, MIN_MOVING_AVG_WHEN),
            Policy::FixedFallback { .. } => (FIXED_FALLBACK, FIXED_FALLBACK_WHEN),
        },
        Strategy::Other(_) => (OTHER, OTHER_WHEN),
    }
}

/// What a strategy is called.
pub fn name(strategy: &Strategy) -> Text {
    words(strategy).0
}

/// One sentence on when to use it.
pub fn when(strategy: &Strategy) -> Text {
    words(strategy).1
}

/// What a strategy is called, an unknown one by its own text.
pub fn label(strategy: &Strategy, lang: Lang) -> String {
    name(strategy).with(lang, &[("strategy", strategy.as_str())])
}

/// What a protocol is called: its text in capitals, as operators write it.
pub fn protocol(protocol: &Protocol, lang: Lang) -> String {
    match protocol {
        Protocol::Other(text) => UNKNOWN_PROTOCOL.with(lang, &[("protocol", text)]),
        known => known.as_str().to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_has_words_in_both_languages() {
        for (name, text) in ALL {
            assert!(!text.zh.is_empty() && text.en.is_ascii(), "{name}");
            assert_eq!(text.zh.matches('{').count(), text.en.matches('{').count(), "{name}");
        }
        let known = Strategy::from("urltest(tolerance=20ms)");
        assert_eq!(
            (label(&known, Lang::En), label(&known, Lang::Zh)),
            ("URL test".into(), "自动测速".into())
        );
        assert_eq!(label(&Strategy::from("weighted(3)"), Lang::En), "weighted(3) (unknown)");
        assert_eq!(protocol(&Protocol::Mwss, Lang::Zh), "MWSS");
    }
}
