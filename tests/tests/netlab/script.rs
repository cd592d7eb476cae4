//! Changes over time.

use std::time::Duration;

use tests::netlab::{Change, Impairment, LabError, Passage, Script, Trace};
use tokio::time::timeout;

use crate::measure::{LIMIT, MS, pair};

#[tokio::test]
async fn changes_are_made_in_order_and_never_early() {
    let Some((lab, a, b)) = pair("script") else { return };
    // Given out of order.
    let script = Script::new()
        .at(MS * 60, Change::repair(&a, &b))
        .at(MS * 20, Change::set_both(&a, &b, Impairment::delay(MS * 7)))
        .at(MS * 40, Change::cut(&a, &b))
        .at(MS * 60, Change::set(&b, &a, Impairment::lossy(0.5)));
    let mut playback = lab.play(script).unwrap();
    let applied = timeout(LIMIT, playback.finished()).await.unwrap().unwrap();
    let asked: Vec<_> = applied.iter().map(|done| done.asked).collect();
    assert_eq!(asked, [MS * 20, MS * 40, MS * 60, MS * 60]);
    assert_eq!(applied[2].change, Change::repair(&a, &b), "same time: in the order they were added");
    assert!(applied.iter().all(|done| done.at >= done.asked), "{applied:?}");
    assert_eq!(lab.link(&a, &b).impairment().unwrap(), Impairment::delay(MS * 7));
    assert_eq!(lab.link(&b, &a).impairment().unwrap(), Impairment::lossy(0.5));
    assert_eq!(lab.link(&a, &b).passage().unwrap(), Passage::Open);
}

#[tokio::test]
async fn a_trace_is_followed_and_leaves_the_rest_of_the_link() {
    let Some((lab, a, b)) = pair("trace") else { return };
    lab.link(&a, &b).set(Impairment::default().jitter(MS)).unwrap();
    let trace = Trace::parse_csv("time_ms,delay_ms,loss\n0,5,0\n30,80,0.1\n60,20,0\n").unwrap();
    let mut playback = lab.play(Script::new().trace(&a, &b, &trace)).unwrap();
    let applied = timeout(LIMIT, playback.finished()).await.unwrap().unwrap();
    let expected: Vec<Change> =
        [(5, 0.0), (80, 0.1), (20, 0.0)].map(|(delay, loss)| Change::path(&a, &b, MS * delay, loss)).into();
    assert_eq!(applied.into_iter().map(|done| done.change).collect::<Vec<_>>(), expected);
    assert_eq!(lab.link(&a, &b).impairment().unwrap(), Impairment::delay(MS * 20).jitter(MS));
    assert_eq!(lab.link(&b, &a).impairment().unwrap(), Impairment::default());
}

#[tokio::test]
async fn a_script_that_is_stopped_or_wrong_does_not_play() {
    let Some((lab, a, b)) = pair("stop") else { return };
    let mut playback = lab.play(Script::new().at(LIMIT, Change::cut(&a, &b))).unwrap();
    lab.stop_scripts().unwrap();
    assert!(matches!(playback.finished().await, Err(LabError::Stopped)));
    let wrong = Script::new().at(Duration::ZERO, Change::cut(&a, &b)).at(MS, Change::cut(&a, "c"));
    assert!(matches!(lab.play(wrong), Err(LabError::UnknownHost { name }) if name == "c"));
    let wrong = Script::new().at(MS, Change::set(&a, &b, Impairment::lossy(2.0)));
    assert!(matches!(lab.play(wrong), Err(LabError::Impairment(_))));
    assert_eq!(lab.link(&a, &b).passage().unwrap(), Passage::Open);
}
