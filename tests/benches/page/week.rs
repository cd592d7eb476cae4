//! What-if on a week of rounds: how long fetching takes, and replaying.

use crate::browser::Browser;
use crate::page::Page;
use crate::scale::Week;
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use shared::testid;

/// Notes what the worker is asked and when it answers, when a picture of that was made, and tasks over 50 ms in the page.
const WATCH: &str = "
    window.asked = [];
    window.tasks = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: 'longtask' });
    addEventListener('input', () => { window.input = performance.now(); }, true);
    window.Worker = class extends Worker {
        constructor(...given) {
            super(...given);
            this.addEventListener('message', () => {
                const work = asked.at(-1);
                work.took = performance.now() - work.at;
                requestAnimationFrame(() => setTimeout(() => { work.painted = performance.now(); }));
            });
        }
        postMessage(text) {
            asked.push({ load: text.includes('\"load\"'), at: performance.now(), input: window.input ?? performance.now() });
            super.postMessage(text);
        }
    };";

/// The last work that was answered, once it is painted: `[loaded?, by the worker, from the input to the picture]`.
const LAST: &str = "
    const [done] = arguments;
    const look = () => {
        const work = asked.at(-1);
        if (asked.length < COUNT || work.painted === undefined) return setTimeout(look, 5);
        done([work.load, work.took, work.painted - work.input, asked.filter((one) => one.load).at(-1).took]);
    };
    look();";

/// Waits until the worker was given so many pieces of work and the last is seen.
async fn answered(page: &Page, count: usize) -> Result<[f64; 3]> {
    let told = page.answer(&LAST.replace("COUNT", &count.to_string())).await?;
    ensure!(told[0] == false, "the worker was not asked after the history came: {told}");
    let number = |at: usize| told[at].as_f64().with_context(|| format!("{told}"));
    Ok([number(1)?, number(2)?, number(3)?])
}

async fn rows(page: &Page) -> Result<String> {
    let text = page.text(testid::WHAT_IF_TABLE).await?;
    if text.is_empty() {
        bail!("nothing was replayed");
    }
    Ok(text)
}

/// All that is measured, in milliseconds. The worker is not slowed by what slows the page.
pub(crate) async fn replay(browser: &Browser, page: &Page, week: Week) -> Result<Vec<(&'static str, f64)>> {
    let on_new = json!({ "source": WATCH });
    browser.driver.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", on_new).await?;
    page.open(&format!("/tunnels/{}/what-if", week.tunnel)).await?;
    // The last day, which is what the screen begins with.
    answered(page, 2).await?;
    let mut found = Vec::new();

    page.choose(&testid::with(testid::WHAT_IF_FIELD, "span"), "168").await?;
    let [first, _, fetched] = answered(page, 4).await?;
    found.push(("20 what-if, a week is fetched and read", fetched));
    found.push(("21 what-if, a week replayed under two settings", first));

    let before = rows(page).await?;
    page.script("tasks.length = 0;").await?;
    page.choose(&testid::with(testid::WHAT_IF_FIELD, "decisionRules"), "adaptive").await?;
    let [took, seen, _] = answered(page, 5).await?;
    ensure!(rows(page).await? != before, "other rules change nothing");
    found.push(("22 what-if, a week replayed, classic and adaptive", took));
    found.push(("23 the same, from the choice to the picture", seen));
    page.choose(&testid::with(testid::WHAT_IF_FIELD, "decisionRules"), "classic").await?;
    answered(page, 6).await?;
    page.fill(&testid::with(testid::WHAT_IF_FIELD, "confirmations"), "5").await?;
    let [took, seen, _] = answered(page, 7).await?;
    found.push(("24 what-if, a week replayed, classic twice", took));
    found.push(("25 the same, from the key to the picture", seen));
    let tasks: Vec<f64> = serde_json::from_value(page.script("return tasks").await?)?;
    found.push(("26 tasks over 50 ms in the page meanwhile, longest", tasks.into_iter().fold(0.0, f64::max)));
    Ok(found)
}
