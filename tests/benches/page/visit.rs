//! One visit, from an empty cache to the end of a long list.

use crate::browser::Browser;
use crate::page::Page;
use crate::scale::Size;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use shared::testid;

/// What is searched for, letter by letter. It finds ten of a thousand.
const SEARCH: &str = "tunnel-012";

/// Notes tasks that keep the page from answering, and how long each letter takes from the key to the next picture.
const WATCH: &str = "
    window.tasks = [];
    window.letters = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: 'longtask' });
    addEventListener('input', (event) => {
        const start = event.timeStamp;
        requestAnimationFrame(() => {
            const after = new MessageChannel();
            after.port1.onmessage = () => letters.push(performance.now() - start);
            after.port2.postMessage(0);
        });
    }, true);";

/// When a row of the list can be used: it is there, and a picture of it and a task after that have been made.
const FIRST_ROW: &str = "
    const [done] = arguments;
    const look = () => {
        if (!document.querySelector(ROW)) return requestAnimationFrame(look);
        requestAnimationFrame(() => setTimeout(() => done(performance.now())));
    };
    look();";

/// Scrolls through the list, a part of a screen with every picture. The time between two pictures is told.
const SCROLL: &str = "
    const [done] = arguments;
    const frames = [];
    let last;
    const next = (now) => {
        if (last !== undefined) frames.push(now - last);
        last = now;
        const before = scrollY;
        scrollBy({ top: 300, behavior: 'instant' });
        if (frames.length < 120 && scrollY > before) requestAnimationFrame(next); else done(frames);
    };
    scrollTo({ top: 0, behavior: 'instant' });
    requestAnimationFrame(next);";

/// What a click takes until there are so many rows, and a picture of them.
const SHOW_ALL: &str = "
    const [done] = arguments;
    const start = performance.now();
    document.querySelector('.more button').click();
    const look = () => {
        if (document.querySelectorAll(ROW).length < COUNT) return requestAnimationFrame(look);
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
    };
    look();";

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("{value} is no number"))
}

fn numbers(value: Value) -> Result<Vec<f64>> {
    Ok(serde_json::from_value(value)?)
}

fn rows(script: &str, row: &str, count: usize) -> String {
    let row = format!("'[data-testid^=\"{row}\"]'");
    script.replace("ROW", &row).replace("COUNT", &count.to_string())
}

/// All that is measured, in milliseconds where the name says nothing else.
pub(crate) async fn visit(
    browser: &Browser,
    page: &Page,
    password: &str,
    slowdown: u32,
    size: Size,
) -> Result<Vec<(&'static str, f64)>> {
    let rate = json!({ "rate": slowdown });
    browser.driver.cdp().send_raw("Emulation.setCPUThrottlingRate", rate).await?;
    let mut found = Vec::new();

    page.open("/").await?;
    page.shows(testid::LOGIN_SUBMIT).await?;
    let paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null";
    found.push(("01 first contentful paint, nothing cached", number(&page.script(paint).await?)?));
    page.log_in(password).await?;

    page.open("/tunnels").await?;
    let first = page.answer(&rows(FIRST_ROW, testid::TUNNEL_ROW, 0)).await?;
    found.push(("02 list of tunnels can be used, from the address", number(&first)?));
    page.script(WATCH).await?;
    let (letters, tasks) = search(page).await?;
    found.push(("03 a letter of the search, longest, 100 rows", longest(&letters)));
    found.push(("04 tasks over 50 ms while typing, longest", longest(&tasks)));

    page.fill(testid::TUNNEL_SEARCH, "").await?;
    let all = page.answer(&rows(SHOW_ALL, testid::TUNNEL_ROW, size.tunnels)).await?;
    found.push(("05 all rows are shown, from the click", number(&all)?));
    let (letters, tasks) = search(page).await?;
    found.push(("06 a letter of the search, longest, all rows", longest(&letters)));
    found.push(("07 tasks over 50 ms while typing, longest, all rows", longest(&tasks)));
    page.fill(testid::TUNNEL_SEARCH, "").await?;
    let mut frames = numbers(page.answer(SCROLL).await?)?;
    frames.sort_by(f64::total_cmp);
    ensure!(!frames.is_empty(), "the list does not scroll");
    found.push(("08 scrolling all rows, picture to picture, median", frames[frames.len() / 2]));
    found.push(("09 the same, 95 of 100 below", frames[frames.len() * 95 / 100]));
    found.push(("10 the same, longest", longest(&frames)));

    page.open("/nodes").await?;
    let first = page.answer(&rows(FIRST_ROW, testid::NODE_ROW, 0)).await?;
    found.push(("11 list of nodes can be used, from the address", number(&first)?));
    Ok(found)
}

/// Types the search. Answers with the time of each letter, and the long tasks.
async fn search(page: &Page) -> Result<(Vec<f64>, Vec<f64>)> {
    page.click(testid::TUNNEL_SEARCH).await?;
    page.script("letters.length = 0; tasks.length = 0;").await?;
    for letter in SEARCH.chars() {
        page.keys(letter.to_string()).await?;
    }
    ensure!(page.value(testid::TUNNEL_SEARCH).await? == SEARCH, "something else was typed");
    // Long tasks are told after the fact.
    let rest =
        "const [done] = arguments; setTimeout(() => requestAnimationFrame(() => setTimeout(done)), 100);";
    page.answer(rest).await?;
    let letters = numbers(page.script("return letters").await?)?;
    ensure!(letters.len() == SEARCH.len(), "{} letters were noticed", letters.len());
    Ok((letters, numbers(page.script("return tasks").await?)?))
}

fn longest(all: &[f64]) -> f64 {
    all.iter().copied().fold(0.0, f64::max)
}
