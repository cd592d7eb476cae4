//! Connections that end when a group leaves the member they are on.

use crate::chain::state::OpenConnection;
use futures_util::future::select_all;
use tokio_util::sync::CancellationToken;

/// What ends a connection beside its service.
pub(super) struct Tied {
    ties: Vec<CancellationToken>,
    stop: CancellationToken,
}

impl Tied {
    /// `None` for a connection whose groups leave it alone, which is the usual one.
    pub(super) fn of(ties: Vec<CancellationToken>, stop: &CancellationToken) -> Option<Self> {
        (!ties.is_empty()).then(|| Self { ties, stop: stop.child_token() })
    }

    /// What the connection is to end at.
    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits for the end of what looks at [`Tied::stop`], and brings it about when a tie is cut.
    pub(super) async fn until<T>(&self, carried: impl Future<Output = T>) -> T {
        let mut carried = std::pin::pin!(carried);
        tokio::select! {
            biased;
            done = &mut carried => return done,
            () = cut(&self.ties) => self.stop.cancel(),
        }
        carried.await
    }
}

/// What ends these.
pub(super) fn ties(open: &[OpenConnection]) -> Vec<CancellationToken> {
    open.iter().filter_map(OpenConnection::tie).cloned().collect()
}

/// Ends when one of the ties is cut; never, if there is none.
pub(super) async fn cut(ties: &[CancellationToken]) {
    if ties.is_empty() {
        return std::future::pending().await;
    }
    select_all(ties.iter().map(|tie| Box::pin(tie.cancelled()))).await;
}

/// Carries a connection to its end. What a tie costs is paid by those that have one.
macro_rules! carried {
    ($ties:expr, $stop:expr, |$token:ident| $carry:expr) => {
        match $crate::service::tied::Tied::of($ties, $stop) {
            None => {
                let $token = $stop;
                $carry.await
            }
            Some(tied) => {
                let $token = tied.stop();
                Box::pin(tied.until($carry)).await
            }
        }
    };
}
pub(super) use carried;
