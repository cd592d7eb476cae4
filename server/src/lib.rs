//! The panel.
//!
//! `http → app → { store, plan, auth, agents }`: handlers speak HTTP, use cases hold the transaction boundaries, the
//! store holds all SQL, a plan is a pure function of what is stored, and agents are told what the plan says.

pub mod agents;
pub mod app;
pub mod auth;
pub mod best_exit;
pub mod cli;
pub mod clock;
pub mod config;
pub mod diagnose;
pub mod error;
pub mod events;
pub mod http;
pub mod metrics;
pub mod plan;
mod replay;
pub mod state;
pub mod store;

use crate::clock::Clock;
use crate::config::Config;
use crate::state::AppState;
use anyhow::Context as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Requests and tasks under way get this long to end when the panel stops.
const DRAIN: Duration = Duration::from_secs(5);

/// Runs the panel on `listener` until `shutdown` is cancelled.
pub async fn run(
    config: Config,
    listener: std::net::TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let clock = Clock::system();
    let db = store::Db::open(&config.database).await.context("opening the database")?;
    if let Some(first) = app::users::ensure_first(&db, &clock, config.admin_password.as_deref()).await? {
        match first.password {
            Some(password) => println!("created the user {} with the password {password}", first.username),
            None => println!("created the user {} with the configured password", first.username),
        }
    }

    let tracker = TaskTracker::new();
    let state = start(config, db.clone(), clock, &tracker, &shutdown).await?;
    let router = http::router(state);
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    println!("listening on http://{}", listener.local_addr()?);

    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, service).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let drained = async {
        shutdown.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        result = server.into_future() => result.context("serving")?,
        () = drained => tracing::warn!("connections were still open after {} s", DRAIN.as_secs()),
    }
    tracker.close();
    if tokio::time::timeout(DRAIN, tracker.wait()).await.is_err() {
        tracing::warn!("background tasks were still busy after {} s", DRAIN.as_secs());
    }
    db.close().await;
    Ok(())
}

/// Builds the parts and starts the background tasks.
pub async fn start(
    config: Config,
    db: store::Db,
    clock: Clock,
    tracker: &TaskTracker,
    shutdown: &CancellationToken,
) -> anyhow::Result<AppState> {
    let bus = events::Bus::new();
    let metrics = metrics::Metrics::new();
    let agents = agents::Agents::start(
        db.clone(),
        clock.clone(),
        bus.clone(),
        metrics.clone(),
        tracker.clone(),
        shutdown.clone(),
    );
    let best_exit = best_exit::BestExit::start(
        db.clone(),
        clock.clone(),
        bus.clone(),
        agents.clone(),
        metrics.clone(),
        tracker.clone(),
        shutdown.clone(),
    );
    Ok(AppState {
        agent_binary: http::install::AgentBinary::at(config.agent_binary.clone()),
        db,
        clock,
        bus,
        agents,
        best_exit,
        metrics,
        config: Arc::new(config),
        passwords: auth::password::Passwords::new()?,
        logins: state::Logins::default(),
        recall: auth::recall::Recall::new(),
        replays: app::replays::Replays::default(),
        shutdown: shutdown.clone(),
    })
}
