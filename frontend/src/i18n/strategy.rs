//! Strategies and protocols in words.

use super::{Text, texts};
use shared::strategy::{Protocol, Strategy};

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
    OTHER = "{strategy}（未知）", "{strategy} (unknown)";
    OTHER_WHEN = "此版本的页面不认识这个策略，保存时保持不变。", "This page does not know this strategy and leaves it as it is.";
    UNKNOWN_PROTOCOL = "{protocol}（未知）", "{protocol} (unknown)";
}

/// What a strategy is called.
pub fn name(strategy: &Strategy) -> Text {
    match strategy {
        Strategy::Fifo => FIFO,
        Strategy::Round => ROUND,
        Strategy::Rand => RAND,
        Strategy::Hash => HASH,
        Strategy::Best => BEST,
        Strategy::Other(_) => OTHER,
    }
}

/// One sentence on when to use it.
pub fn when(strategy: &Strategy) -> Text {
    match strategy {
        Strategy::Fifo => FIFO_WHEN,
        Strategy::Round => ROUND_WHEN,
        Strategy::Rand => RAND_WHEN,
        Strategy::Hash => HASH_WHEN,
        Strategy::Best => BEST_WHEN,
        Strategy::Other(_) => OTHER_WHEN,
    }
}

/// What a strategy is called, an unknown one by its own text.
pub fn label(strategy: &Strategy, lang: super::Lang) -> String {
    name(strategy).with(lang, &[("strategy", strategy.as_str())])
}

/// What a protocol is called: its text in capitals, as operators write it.
pub fn protocol(protocol: &Protocol, lang: super::Lang) -> String {
    match protocol {
        Protocol::Other(text) => UNKNOWN_PROTOCOL.with(lang, &[("protocol", text)]),
        known => known.as_str().to_uppercase(),
    }
}
