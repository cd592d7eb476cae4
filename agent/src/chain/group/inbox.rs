//! What connections tell the one who decides for their group. Never waits and never allocates.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

use shared::policy::Network;

/// Uses within this time of the last one that was told are not told: they would change nothing.
const USED_EVERY_MS: u64 = 1000;

/// News of one group.
#[derive(Debug)]
pub(super) struct Inbox {
    /// By member, then network: a dial failed since somebody looked.
    failed: Vec<[AtomicBool; 4]>,
    /// By member: it has changed inside.
    changed: Vec<AtomicBool>,
    used: AtomicBool,
    /// When a use was told last, plus one; 0 is never.
    told_ms: AtomicU64,
    news: Notify,
}

/// One piece of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A connection used the group.
    Used,
    /// A dial failed at the member.
    Failed(usize, Network),
    /// A member that is a group itself uses another one now.
    Changed(usize),
}

impl Inbox {
    pub(super) fn new(members: usize) -> Self {
        Self {
            failed: (0..members).map(|_| Default::default()).collect(),
            changed: (0..members).map(|_| AtomicBool::new(false)).collect(),
            used: AtomicBool::new(false),
            told_ms: AtomicU64::new(0),
            news: Notify::new(),
        }
    }

    /// A connection used the group.
    pub(super) fn used(&self, now_ms: u64) {
        let told = self.told_ms.load(Ordering::Relaxed);
        if told == 0 || now_ms.saturating_sub(told - 1) >= USED_EVERY_MS {
            self.told_ms.store(now_ms + 1, Ordering::Relaxed);
            self.used.store(true, Ordering::Release);
            self.news.notify_one();
        }
    }

    /// A dial failed at the member.
    pub(super) fn failed(&self, member: usize, network: Network) {
        if let Some(flags) = self.failed.get(member) {
            flags[network.index()].store(true, Ordering::Release);
            self.news.notify_one();
        }
    }

    /// The member has changed inside.
    pub(super) fn changed(&self, member: usize) {
        if let Some(flag) = self.changed.get(member) {
            flag.store(true, Ordering::Release);
            self.news.notify_one();
        }
    }

    /// Waits for news.
    pub(super) async fn arrived(&self) {
        self.news.notified().await;
    }

    /// Takes what has come.
    pub(super) fn take(&self) -> Vec<News> {
        let mut news = Vec::new();
        if self.used.swap(false, Ordering::AcqRel) {
            news.push(News::Used);
        }
        for (member, flags) in self.failed.iter().enumerate() {
            for network in Network::ALL {
                if flags[network.index()].swap(false, Ordering::AcqRel) {
                    news.push(News::Failed(member, network));
                }
            }
        }
        for (member, flag) in self.changed.iter().enumerate() {
            if flag.swap(false, Ordering::AcqRel) {
                news.push(News::Changed(member));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn news_are_kept_until_somebody_looks() {
        let inbox = Inbox::new(2);
        inbox.failed(1, Network::Udp4);
        inbox.failed(1, Network::Udp4);
        inbox.used(0);
        inbox.used(999);
        inbox.changed(0);
        inbox.failed(7, Network::Tcp4);
        inbox.arrived().await;
        assert_eq!(inbox.take(), [News::Used, News::Failed(1, Network::Udp4), News::Changed(0)]);
        assert_eq!(inbox.take(), []);
        inbox.used(999);
        assert_eq!(inbox.take(), [], "within a second of the last");
        inbox.used(1000);
        assert_eq!(inbox.take(), [News::Used]);
    }
}
