//! Groups beside a real sing-box's: the same members behind the same links.
//!
//! | situation | sing-box | ours |
//! | --- | --- | --- |
//! | one is faster by more than the tolerance, becomes slow, recovers a little, dies | follows, stays, leaves | the same |
//! | several are faster than each other by less than the tolerance | the first in order that beat the one before | the fastest |
//! | the chosen one refuses a connection | the connection fails, and so do the next | the next member, within the same connection |
//! | the fastest one's page is an error | chooses it | chooses another |
//! | a selector is moved | connections on the member that was left are closed if that is configured, and stay if not | the same |
//! | the current member is chosen, then the default changes | forgets the choice | keeps it |

mod page;
mod scene;

use crate::node::PATIENCE;
use anyhow::{Result, ensure};
use scene::{Chooser, Group, MEMBERS, Scene};
use tests::rig::eventually;

/// A page that is there, for every member.
const FINE: [u16; 3] = [204; 3];

/// Tests come every 2 s, sing-box's every 4 s.
const OFTEN: Group = Group::UrlTest { interval: "2s", tolerance_ms: 300 };
/// One test at the start, and none again within the time of a test.
const ONCE: Group = Group::UrlTest { interval: "10m", tolerance_ms: 50 };

async fn chooses(chooser: &Chooser, member: &str, why: &str) {
    let chosen = eventually(why, PATIENCE, async || {
        let now = chooser.now().await?;
        ensure!(now == member, "it is {now}, not {member}; {:?}", chooser.latencies().await?);
        Ok(())
    });
    chosen.await.unwrap_or_else(|error| panic!("{error:#}"));
    let (through, _) = chooser.connect().await.unwrap();
    assert_eq!(through, member, "{why}");
}

/// Waits until every member has passed a test.
async fn tested(chooser: &Chooser, check: impl Fn(f64, f64, f64) -> bool) {
    let all = eventually("every member is measured", PATIENCE, async || -> Result<()> {
        let found = chooser.latencies().await?;
        let [Some(a), Some(b), Some(c)] = MEMBERS.map(|name| found.get(name).copied()) else {
            anyhow::bail!("{found:?}")
        };
        ensure!(check(a, b, c), "{found:?}");
        Ok(())
    });
    all.await.unwrap_or_else(|error| panic!("{error:#}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fastest_by_more_than_the_tolerance_is_the_same_for_both() {
    let Some(mut scene) = Scene::start(OFTEN, [10, 60, 120], FINE).await else { return };
    for chooser in scene.both() {
        chooses(chooser, "a", "the fastest at the start").await;
    }
    scene.delay("a", 200);
    for chooser in scene.both() {
        chooses(chooser, "b", "a has become slow").await;
    }
    // Faster than b again, but not by the tolerance: four round trips of 60 ms against four of 120 ms.
    scene.delay("a", 30);
    for chooser in scene.both() {
        tested(chooser, |a, b, _| a < b).await;
        chooses(chooser, "b", "what is won is less than the tolerance").await;
    }
    scene.kill("b").await;
    for chooser in scene.both() {
        chooses(chooser, "a", "b is dead").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lowest_delay_wins_and_not_the_last_that_beat_a_running_best() {
    let group = Group::UrlTest { interval: "10m", tolerance_ms: 1000 };
    // Four round trips each: 3.2 s, 2 s and 1.2 s.
    let Some(scene) = Scene::start(group, [400, 250, 150], FINE).await else { return };
    for chooser in scene.both() {
        tested(chooser, |a, b, c| a > b + 1000.0 && b > c && b <= c + 1000.0).await;
    }
    chooses(&scene.theirs, "b", "c is not better than b by the tolerance").await;
    chooses(&scene.ours, "c", "c is the fastest").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_dial_costs_no_connection() {
    let Some(mut scene) = Scene::start(ONCE, [5, 60, 120], FINE).await else { return };
    for chooser in scene.both() {
        tested(chooser, |a, b, c| a + 50.0 < b && b < c).await;
        chooses(chooser, "a", "the fastest").await;
    }
    scene.kill("a").await;
    for attempt in 1..=3 {
        let (through, _) = scene.ours.connect().await.unwrap();
        assert_eq!(through, "b", "attempt {attempt}: the next best, within the same connection");
        assert!(scene.theirs.connect().await.is_err(), "attempt {attempt}: sing-box has learned it");
    }
    assert_eq!(scene.ours.now().await.unwrap(), "b", "the failed dial was a failed test");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_an_error_is_no_success() {
    let Some(scene) = Scene::start(ONCE, [5, 60, 120], [503, 204, 204]).await else { return };
    chooses(&scene.theirs, "a", "any answer is a success there").await;
    chooses(&scene.ours, "b", "a shows no page").await;
    let alive = eventually("the others have passed", PATIENCE, async || {
        let alive: Vec<String> = scene.ours.latencies().await?.into_keys().collect();
        ensure!(alive.contains(&"c".to_owned()), "{alive:?}");
        Ok(alive)
    });
    assert_eq!(alive.await.unwrap(), ["b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_selector_closes_what_was_left_if_it_shall() {
    for interrupt in [true, false] {
        let group = Group::Selector { default: "a", interrupt };
        let Some(scene) = Scene::start(group, [5, 5, 5], FINE).await else { return };
        for chooser in scene.both() {
            let (through, mut left) = chooser.connect().await.unwrap();
            assert_eq!(through, "a", "the default");
            left.echoes().await.unwrap();
            chooser.choose("b").await.unwrap();
            chooses(chooser, "b", "chosen by hand").await;
            if interrupt {
                left.closed().await.unwrap();
            } else {
                left.echoes().await.unwrap();
            }
            assert!(chooser.choose("d").await.is_err(), "there is no d");
            chooses(chooser, "b", "nothing has changed").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn choosing_the_current_member_is_a_choice() {
    let selector = |default| Group::Selector { default, interrupt: false };
    let (before, after) = (selector("a"), selector("b"));
    let Some(mut scene) = Scene::start(before, [5, 5, 5], FINE).await else { return };
    for chooser in [&mut scene.ours, &mut scene.theirs] {
        chooser.choose("a").await.unwrap();
        chooser.restart(after).await;
    }
    chooses(&scene.ours, "a", "it was chosen").await;
    chooses(&scene.theirs, "b", "the choice of what was in use was not stored").await;
    for chooser in [&mut scene.ours, &mut scene.theirs] {
        chooser.choose("c").await.unwrap();
        chooser.restart(before).await;
        chooses(chooser, "c", "a stored choice is above the default").await;
    }
}
