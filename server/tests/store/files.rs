//! Files: opening, reopening, and what happens when they cannot be used.

use crate::world::{AT, add_node, fill};
use server::store::{Db, OpenError, StoreError, Unavailability};
use shared::best_exit::Settings;
use shared::envelope::link_key;
use std::os::unix::fs::PermissionsExt as _;

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("panel.db").display());
    let db = Db::open(&url).await.unwrap();
    let world = fill(&db).await;
    db.node_connected(world.entry, "1.2.3", &["protocol:tls".to_owned()], AT).await.unwrap();
    db.node_seen(world.entry, AT + 5).await.unwrap();
    // What is heard late does not turn the time back.
    db.node_seen(world.entry, AT + 1).await.unwrap();
    let mut tx = db.write().await.unwrap();
    assert_eq!(tx.settings().await.unwrap(), (1, Settings::default()));
    let settings = Settings { confirmations: 9, ..Settings::default() };
    assert_eq!(tx.update_settings(&settings).await.unwrap(), 2);
    tx.commit().await.unwrap();
    let mut tx = db.write().await.unwrap();
    assert_eq!(tx.update_settings(&Settings::default()).await.unwrap(), 3);
    drop(tx); // not committed
    let before = db.intent().await.unwrap();
    db.close().await;

    let db = Db::open(&url).await.unwrap();
    assert_eq!(db.intent().await.unwrap(), before);
    assert_eq!(db.settings().await.unwrap(), (2, settings));
    let node = db.read().await.unwrap().node(world.entry).await.unwrap().unwrap();
    assert_eq!((node.version.as_str(), node.last_seen), ("1.2.3", Some(AT + 5)));
    assert_eq!(node.capabilities, ["protocol:tls"]);
    assert_eq!(db.node_by_key(&link_key("entry")).await.unwrap(), Some(world.entry));
    assert_eq!(db.node_by_key(&link_key("nobody")).await.unwrap(), None);
    assert_eq!(db.node_link_key(world.entry).await.unwrap(), Some(link_key("entry")));
    let forward = db.read().await.unwrap().forward(world.forward).await.unwrap().unwrap();
    assert_eq!(forward.forward.targets, ["a.example:80"]);
    let tunnel = &before.tunnels[&world.tunnel];
    assert_eq!(tunnel.entry, [world.entry]);
    let exits = tunnel.exit.as_ref().unwrap();
    assert_eq!(
        exits.nodes.iter().map(|m| (m.node, m.port)).collect::<Vec<_>>(),
        [(world.exits[0], 20_001), (world.exits[1], 20_002)]
    );
}

#[tokio::test]
async fn others_on_the_machine_cannot_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("panel.db").display());
    let db = Db::open(&url).await.unwrap();
    fill(&db).await;
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        files.push((file.file_name().into_string().unwrap(), mode));
    }
    files.sort();
    let private = |name: &str| (name.to_owned(), 0o600);
    assert_eq!(files, [private("panel.db"), private("panel.db-shm"), private("panel.db-wal")]);
    db.close().await;
}

#[tokio::test]
async fn other_databases_are_refused_without_repeating_their_password() {
    for url in ["postgres://me:topsecret@db/panel", "mysql://x", "panel.db", "sqlite:///nowhere/at/all.db"] {
        let error = Db::open(url).await.map(|_| ()).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("topsecret"), "{text}");
        assert_eq!(matches!(error, OpenError::NotSqlite { .. }), !url.starts_with("sqlite"), "{text}");
    }
}

#[tokio::test]
async fn a_file_of_something_else_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letter.db");
    let letter = "Dear Sir or Madam, this is no database. ".repeat(100);
    std::fs::write(&path, &letter).unwrap();
    assert!(Db::open(&format!("sqlite://{}", path.display())).await.is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), letter);
}

/// Somebody else's lock makes writes wait, then fail in a way that callers can tell; reading goes on all the time.
#[tokio::test]
async fn a_locked_database_is_said_to_be_locked_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("panel.db").display());
    let (ours, theirs) = (Db::open(&url).await.unwrap(), Db::open(&url).await.unwrap());
    add_node(&ours, "a").await;
    let lock = theirs.write().await.unwrap();
    let error = ours.write().await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: Unavailability::Locked, .. }), "{error:?}");
    assert!(ours.ping().await.is_err());
    assert_eq!(ours.read().await.unwrap().nodes(server::store::Page::ALL).await.unwrap().len(), 1);
    drop(lock);
    theirs.ping().await.unwrap();
    add_node(&ours, "b").await;
}
