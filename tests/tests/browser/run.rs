//! What is around each test: a panel, a browser, and an end in order whatever happens.

use crate::browser::{self, Browser, Device};
use crate::page::Page;
use anyhow::{Result, ensure};
use futures_util::FutureExt as _;
use std::any::Any;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use tests::netlab::LabError;
use tests::rig::{Panel, PanelOptions, Place, Stage, StageOptions};

/// A whole system in a lab, and the panel's address for a browser outside.
pub(crate) struct Lab {
    pub(crate) stage: Stage,
    pub(crate) address: SocketAddr,
}

/// Whether there is a browser; says so if not.
pub(crate) fn has_browser() -> bool {
    let found = browser::installed().is_some();
    if !found {
        println!("SKIPPED: chromium not installed, run cargo xtask setup");
    }
    found
}

/// Without its page a panel has nothing to show, and every test would wait long for it.
async fn has_page(panel: &Panel) {
    let start = panel.api().await.unwrap().text("/").await;
    assert!(start.is_ok(), "this panel has no page, build one with cargo xtask: {start:?}");
}

/// Runs a test against a panel on loopback.
pub(crate) async fn with_panel(
    name: &str,
    device: Device,
    test: impl AsyncFnOnce(&Page, &mut Panel) -> Result<()>,
) {
    if !has_browser() {
        return;
    }
    let mut panel = Panel::start(Place::Loopback, PanelOptions::default()).await.unwrap();
    has_page(&panel).await;
    in_browser(name, device, panel.address(), async |page| test(page, &mut panel).await).await;
}

/// Starts a lab, or says why there is none.
pub(crate) async fn lab(options: StageOptions) -> Option<Lab> {
    if !has_browser() {
        return None;
    }
    let stage = match Stage::start(options).await {
        Ok(stage) => stage,
        Err(error) if matches!(error.downcast_ref(), Some(LabError::Unavailable { .. })) => {
            println!("SKIPPED: {error:#}");
            return None;
        }
        Err(error) => panic!("{error:#}"),
    };
    has_page(&stage.panel).await;
    let panel = stage.host("panel").unwrap();
    let address = stage.lab.publish(&panel, stage.panel.address().port()).unwrap();
    Some(Lab { stage, address })
}

/// Runs a test in a browser of its own and ends the browser. A failure leaves a screenshot and the browser's log.
pub(crate) async fn in_browser(
    name: &str,
    device: Device,
    panel: SocketAddr,
    test: impl AsyncFnOnce(&Page) -> Result<()>,
) {
    let browser = Browser::start(device).await.unwrap();
    in_this_browser(name, browser, panel, test).await;
}

/// The same in a browser that runs already.
pub(crate) async fn in_this_browser(
    name: &str,
    browser: Browser,
    panel: SocketAddr,
    test: impl AsyncFnOnce(&Page) -> Result<()>,
) {
    let page = Page::new(browser.driver.clone(), format!("http://{panel}"));
    let outcome = AssertUnwindSafe(test(&page)).catch_unwind().await;
    if !matches!(outcome, Ok(Ok(()))) {
        report(name, &page).await;
    }
    let ended = browser.quit().await;
    match outcome {
        Ok(Ok(())) => ended.unwrap(),
        Ok(Err(error)) => panic!("{name}: {error:#}"),
        Err(panic) => resume_unwind(panic as Box<dyn Any + Send>),
    }
}

async fn report(name: &str, page: &Page) {
    match page.screenshot(&format!("failed-{name}")).await {
        Ok(path) => eprintln!("{name}: see {}", path.display()),
        Err(error) => eprintln!("{name}: no screenshot: {error:#}"),
    }
    eprintln!("{name}: at {:?}", page.path().await);
    eprintln!("{name}: the browser complains: {:#?}", page.complaints().await);
}

/// Loads the page and logs in; from here on the browser has nothing to complain about.
pub(crate) async fn logged_in(page: &Page, password: &str) -> Result<()> {
    page.open("/").await?;
    page.log_in(password).await?;
    // Asking who is logged in is how the page finds out that nobody is.
    page.only_complains_about("/api/v1/auth/me").await
}

/// Makes sure that the browser had nothing to complain about.
pub(crate) async fn nothing_wrong(page: &Page) -> Result<()> {
    let complaints = page.complaints().await?;
    ensure!(complaints.is_empty(), "the browser complains: {complaints:#?}");
    Ok(())
}
