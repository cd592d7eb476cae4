//! The multiplexed sessions to one node, shared by all that dial it.

use super::smux::{Heard, Session};
use crate::chain::failure::FailureKind;
use crate::net::Interface;
use crate::stream::Stream;
use shared::gost::ChainNodeConfig;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How a node is reached. Sessions are shared only by those that would reach it in the same way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Way {
    /// Where the first hop is dialled from.
    pub interface: Option<Interface>,
    /// The nodes of the hops before.
    pub through: Vec<ChainNodeConfig>,
}

/// Why no session could be made; everybody who waits for it gets the same.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{stage}: {text}")]
pub struct DialFailure {
    /// What failed.
    pub stage: &'static str,
    /// The word by which it is counted.
    pub kind: FailureKind,
    /// In words.
    pub text: String,
    /// For want of time of the one who tried: it says nothing about the node, and others try for themselves.
    pub hurried: bool,
}

/// A stream and the session that it belongs to.
pub struct Opened {
    /// For the connector.
    pub stream: Stream,
    /// Where it came from.
    pub session: Shared,
}

/// The session of a stream that was opened.
pub struct Shared {
    session: Session,
    heard: Heard,
    /// The session was there before.
    reused: bool,
}

impl Shared {
    /// Whether the session was open before.
    pub fn was_there(&self) -> bool {
        self.reused
    }

    /// A stream of it failed. If it was open before and nothing was heard of it since the stream was opened, it is
    /// probably dead: it gets no new streams, and the answer is true.
    pub fn distrust(&self) -> bool {
        let silent = self.reused && self.session.heard() == self.heard;
        if silent {
            self.session.drain();
        }
        silent
    }
}

/// The sessions to one node. Dropped, it closes them as soon as no stream uses them.
#[derive(Default)]
pub struct Pool(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    open: Vec<(Way, Session)>,
    /// At most one attempt per way is under way, and the others wait for it.
    dialing: Vec<(Way, watch::Receiver<Option<DialFailure>>)>,
}

enum Turn {
    Opened(Opened),
    Wait(watch::Receiver<Option<DialFailure>>),
    Dial(watch::Sender<Option<DialFailure>>),
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a stream in a session that is there.
    pub fn open(&self, way: &Way) -> Option<Opened> {
        self.lock().open(way)
    }

    /// Opens a stream in a session that is there, or in one that `dial` makes. Of those who come at the same time one
    /// dials; its failure is everybody's, unless it lacked only time.
    pub async fn open_or_dial(
        &self,
        way: &Way,
        dial: impl Future<Output = Result<Session, DialFailure>>,
    ) -> Result<Opened, DialFailure> {
        let (told, _guard) = loop {
            match self.turn(way) {
                Turn::Opened(opened) => return Ok(opened),
                Turn::Dial(told) => break (told, Dialing { pool: self, way }),
                Turn::Wait(mut outcome) => {
                    // An error means that it succeeded, or gave up: look again.
                    let failure = outcome.wait_for(Option::is_some).await.ok().and_then(|told| told.clone());
                    if let Some(failure) = failure {
                        return Err(failure);
                    }
                }
            }
        };
        match dial.await {
            Ok(session) => {
                let heard = session.heard();
                let stream = session.open().map_err(|error| DialFailure {
                    stage: "open",
                    kind: FailureKind::Handshake,
                    text: error.to_string(),
                    hurried: false,
                });
                self.lock().open.push((way.clone(), session.clone()));
                Ok(Opened { stream: stream?, session: Shared { session, heard, reused: false } })
            }
            Err(failure) => {
                if !failure.hurried {
                    told.send_replace(Some(failure.clone()));
                }
                Err(failure)
            }
        }
    }

    fn turn(&self, way: &Way) -> Turn {
        let mut sessions = self.lock();
        if let Some(opened) = sessions.open(way) {
            return Turn::Opened(opened);
        }
        if let Some((_, outcome)) = sessions.dialing.iter().find(|(other, _)| other == way) {
            return Turn::Wait(outcome.clone());
        }
        let (told, outcome) = watch::channel(None);
        sessions.dialing.push((way.clone(), outcome));
        Turn::Dial(told)
    }

    /// Open sessions and their streams.
    pub fn counts(&self) -> (usize, usize) {
        let sessions = self.lock();
        let alive = sessions.open.iter().filter(|(_, session)| session.is_alive());
        alive.fold((0, 0), |(n, streams), (_, session)| (n + 1, streams + session.streams()))
    }
}

impl Sessions {
    fn open(&mut self, way: &Way) -> Option<Opened> {
        self.open.retain(|(_, session)| session.is_alive());
        let usable = self.open.iter().filter(|(other, session)| other == way && session.is_fresh());
        usable.into_iter().find_map(|(_, session)| {
            let heard = session.heard();
            let stream = session.open().ok()?;
            Some(Opened { stream, session: Shared { session: session.clone(), heard, reused: true } })
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (_, session) in &self.lock().open {
            session.drain();
        }
    }
}

/// Lets the next one dial when this attempt ends, however it ends.
struct Dialing<'a> {
    pool: &'a Pool,
    way: &'a Way,
}

impl Drop for Dialing<'_> {
    fn drop(&mut self) {
        self.pool.lock().dialing.retain(|(way, _)| way != self.way);
    }
}
