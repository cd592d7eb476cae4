//! The page as its tests handle it: elements by their test ids, and patience for everything.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use shared::testid;
use std::path::PathBuf;
use std::time::Duration;
use tests::rig::eventually;
use thirtyfour::components::SelectElement;
use thirtyfour::{By, Key, TypingData, WebDriver, WebElement};

/// For what the page does by itself or after an answer of the panel, in debug builds on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Trunk writes a checksum where this browser does not look at it yet.
const HARMLESS: &str = "`integrity` attribute is currently ignored for preload destinations";

/// One browser window on one panel.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    driver: WebDriver,
    base: String,
    /// The host of the shadow tree whose elements are meant, as a selector.
    host: Option<&'static str>,
}

impl Page {
    pub(crate) fn new(driver: WebDriver, base: String) -> Self {
        Self { driver, base, host: None }
    }

    /// The same page, but elements are those in a shadow tree.
    pub(crate) fn inside(&self, host: &'static str) -> Self {
        Self { host: Some(host), ..self.clone() }
    }

    /// Asks the browser itself (Chrome DevTools Protocol).
    pub(crate) async fn browser(&self, command: &str) -> Result<Value> {
        Ok(self.driver.cdp().send_raw(command, serde_json::json!({})).await?)
    }

    /// Tells the browser itself to do something.
    pub(crate) async fn tell_browser(&self, command: &str, with: Value) -> Result<()> {
        self.driver.cdp().send_raw(command, with).await?;
        Ok(())
    }

    /// Loads an address of the page anew.
    pub(crate) async fn open(&self, path: &str) -> Result<()> {
        self.driver.goto(format!("{}{path}", self.base)).await?;
        Ok(())
    }

    /// Loads the present address anew.
    pub(crate) async fn reload(&self) -> Result<()> {
        self.driver.refresh().await?;
        Ok(())
    }

    /// What the browser's button does.
    pub(crate) async fn back(&self) -> Result<()> {
        self.driver.back().await?;
        Ok(())
    }

    /// The present address without the panel's.
    pub(crate) async fn path(&self) -> Result<String> {
        Ok(self.driver.current_url().await?.path().to_owned())
    }

    /// Waits for an address, for example after a form was sent.
    pub(crate) async fn comes_to(&self, path: &str) -> Result<()> {
        eventually(&format!("the page is at {path}"), PATIENCE, async || {
            let now = self.path().await?;
            ensure!(now == path, "it is at {now}");
            Ok(())
        })
        .await
    }

    /// Logs in through the form.
    pub(crate) async fn log_in(&self, password: &str) -> Result<()> {
        self.log_in_as("admin", password).await
    }

    /// Logs in as somebody else, and waits for the frame.
    pub(crate) async fn log_in_as(&self, username: &str, password: &str) -> Result<()> {
        self.fill(testid::LOGIN_USERNAME, username).await?;
        self.fill(testid::LOGIN_PASSWORD, password).await?;
        self.click(testid::LOGIN_SUBMIT).await?;
        self.shows(testid::SHELL).await?;
        Ok(())
    }

    /// Waits until an element of this name can be seen.
    pub(crate) async fn shows(&self, id: &str) -> Result<WebElement> {
        eventually(&format!("{id} is shown"), PATIENCE, async || self.visible(id).await).await
    }

    async fn visible(&self, id: &str) -> Result<WebElement> {
        for element in self.all(id).await? {
            if element.is_displayed().await? {
                return Ok(element);
            }
        }
        bail!("it is not")
    }

    /// All elements whose name is this one.
    pub(crate) async fn all(&self, id: &str) -> Result<Vec<WebElement>> {
        let selector = By::Css(format!("[data-testid=\"{id}\"]"));
        let Some(host) = self.host else { return Ok(self.driver.find_all(selector).await?) };
        let mut found = Vec::new();
        for host in self.driver.find_all(By::Css(host)).await? {
            found.extend(host.get_shadow_root().await?.find_all(selector.clone()).await?);
        }
        Ok(found)
    }

    /// All elements whose name starts so, in the order of the page.
    pub(crate) async fn all_of(&self, prefix: &str) -> Result<Vec<WebElement>> {
        Ok(self.driver.find_all(By::Css(format!("[data-testid^=\"{prefix}\"]"))).await?)
    }

    /// The names of these elements without what they have in common.
    pub(crate) async fn names_of(&self, prefix: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for element in self.all_of(prefix).await? {
            let name = element.attr("data-testid").await?.unwrap_or_default();
            names.push(name.strip_prefix(prefix).unwrap_or_default().to_owned());
        }
        Ok(names)
    }

    /// Waits until no element of this name can be seen.
    pub(crate) async fn hides(&self, id: &str) -> Result<()> {
        eventually(&format!("{id} is not shown any more"), PATIENCE, async || {
            ensure!(self.visible(id).await.is_err(), "it is");
            Ok(())
        })
        .await
    }

    /// Presses it, once it can be pressed.
    pub(crate) async fn click(&self, id: &str) -> Result<()> {
        eventually(&format!("{id} can be pressed"), PATIENCE, async || {
            let element = self.visible(id).await?;
            ensure!(element.is_enabled().await?, "it is disabled");
            // What is covered by a bar at the edge is scrolled to, and what has a label is chosen by it: as people do.
            let script = "
                const [element] = arguments;
                const chosen = ['radio', 'checkbox'].includes(element.type) && element.labels.length > 0;
                const pressed = chosen ? element.labels[0] : element;
                pressed.scrollIntoView({ block: 'center', behavior: 'instant' });
                return pressed;";
            self.driver.execute(script, vec![element.to_json()?]).await?.element()?.click().await?;
            Ok(())
        })
        .await
    }

    /// Waits until an element at this XPath can be seen.
    pub(crate) async fn shows_at(&self, xpath: &str) -> Result<WebElement> {
        eventually(&format!("{xpath} is shown"), PATIENCE, async || {
            for element in self.all_at(xpath).await? {
                if element.is_displayed().await? {
                    return Ok(element);
                }
            }
            bail!("it is not")
        })
        .await
    }

    /// All elements at this XPath, seen or not.
    pub(crate) async fn all_at(&self, xpath: &str) -> Result<Vec<WebElement>> {
        Ok(self.driver.find_all(By::XPath(xpath)).await?)
    }

    /// Presses what is at this XPath, once it can be pressed.
    pub(crate) async fn press(&self, xpath: &str) -> Result<()> {
        eventually(&format!("{xpath} can be pressed"), PATIENCE, async || {
            Ok(self.shows_at(xpath).await?.click().await?)
        })
        .await
    }

    /// Replaces what is written in an input, as a person would.
    pub(crate) async fn fill(&self, id: &str, text: &str) -> Result<()> {
        let input = self.shows(id).await?;
        if self.host.is_some() {
            // In a shadow tree the driver puts the caret to the end each time.
            input.clear().await?;
        } else {
            input.send_keys(Key::Control + "a").await?;
        }
        if text.is_empty() {
            input.send_keys(Key::Backspace + "").await?;
        } else {
            input.send_keys(text).await?;
        }
        let now = self.value(id).await?;
        ensure!(now == text, "{id} has {now:?} after {text:?} was typed");
        Ok(())
    }

    /// What is written in an input.
    pub(crate) async fn value(&self, id: &str) -> Result<String> {
        Ok(self.shows(id).await?.prop("value").await?.unwrap_or_default())
    }

    /// Chooses in a select by value.
    pub(crate) async fn choose(&self, id: &str, value: &str) -> Result<()> {
        eventually(&format!("{value} can be chosen in {id}"), PATIENCE, async || {
            let element = self.visible(id).await?;
            SelectElement::new(&element).await?.select_by_value(value).await?;
            Ok(())
        })
        .await
    }

    /// Whether a checkbox or radio button is on.
    pub(crate) async fn is_on(&self, id: &str) -> Result<bool> {
        let found = self.all(id).await?;
        let input = found.first().with_context(|| format!("no {id}"))?;
        Ok(input.is_selected().await?)
    }

    /// The text of an element, once it is there.
    pub(crate) async fn text(&self, id: &str) -> Result<String> {
        Ok(self.shows(id).await?.text().await?)
    }

    /// An attribute of an element, once it is there.
    pub(crate) async fn attribute(&self, id: &str, name: &str) -> Result<Option<String>> {
        Ok(self.shows(id).await?.attr(name).await?)
    }

    /// Waits until an element's text holds this.
    pub(crate) async fn says(&self, id: &str, text: &str) -> Result<()> {
        self.says_within(id, text, PATIENCE).await
    }

    /// The same with another limit.
    pub(crate) async fn says_within(&self, id: &str, text: &str, limit: Duration) -> Result<()> {
        eventually(&format!("{id} says {text:?}"), limit, async || {
            let now = self.visible(id).await?.text().await?;
            ensure!(now.contains(text), "it says {now:?}");
            Ok(())
        })
        .await
    }

    /// Waits until an element's attribute is this.
    pub(crate) async fn has(&self, id: &str, name: &str, value: &str, limit: Duration) -> Result<()> {
        eventually(&format!("{id} has {name}={value}"), limit, async || {
            let now = self.visible(id).await?.attr(name).await?;
            ensure!(now.as_deref() == Some(value), "it has {now:?}");
            Ok(())
        })
        .await
    }

    /// What a piece of JavaScript returns.
    pub(crate) async fn script(&self, text: &str) -> Result<Value> {
        Ok(self.driver.execute(text, Vec::new()).await?.json().clone())
    }

    /// What a piece of JavaScript hands to its last argument, later.
    pub(crate) async fn answer(&self, text: &str) -> Result<Value> {
        Ok(self.driver.execute_async(text, Vec::new()).await?.json().clone())
    }

    /// Brings everything that moves or changes its colour to its end.
    pub(crate) async fn rests(&self) -> Result<()> {
        let script = "for (const moving of document.getAnimations()) {
                          if (moving.effect.getComputedTiming().endTime !== Infinity) moving.finish();
                      }";
        self.script(script).await.map(|_| ())
    }

    /// Types into whatever has the focus.
    pub(crate) async fn keys(&self, keys: impl Into<TypingData>) -> Result<()> {
        self.driver.action_chain().send_keys(keys).perform().await?;
        Ok(())
    }

    /// The name of what has the focus; empty when it has none.
    pub(crate) async fn focused(&self) -> Result<String> {
        let name = self.script("return document.activeElement?.dataset?.testid ?? ''").await?;
        Ok(name.as_str().unwrap_or_default().to_owned())
    }

    /// Gives something the focus, once it is there.
    pub(crate) async fn focus_on(&self, id: &str) -> Result<()> {
        self.shows(id).await?;
        self.script(&format!("document.querySelector('[data-testid=\"{id}\"]').focus()")).await.map(|_| ())
    }

    /// Waits until this has the focus.
    pub(crate) async fn focus_comes_to(&self, id: &str) -> Result<()> {
        eventually(&format!("{id} has the focus"), PATIENCE, async || {
            let now = self.focused().await?;
            ensure!(now == id, "it is on {now:?}");
            Ok(())
        })
        .await
    }

    /// Everything that can be read.
    pub(crate) async fn everything(&self) -> Result<String> {
        let text = self.script("return document.documentElement.outerHTML").await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Leaves a mark that a reload would wipe out.
    pub(crate) async fn mark(&self) -> Result<()> {
        self.script("window.exitpilotTestMark = true").await.map(|_| ())
    }

    /// Makes sure that the page was not loaded anew since [`Page::mark`].
    pub(crate) async fn was_not_reloaded(&self) -> Result<()> {
        let mark = self.script("return window.exitpilotTestMark === true").await?;
        ensure!(mark == Value::Bool(true), "the page was loaded anew");
        Ok(())
    }

    /// Waits until nothing is being loaded.
    pub(crate) async fn is_still(&self) -> Result<()> {
        eventually("the page has everything", PATIENCE, async || {
            let busy = self.script("return document.querySelector('.state.loading') !== null").await?;
            ensure!(busy == Value::Bool(false), "it is loading");
            Ok(())
        })
        .await
    }

    /// What the browser complained about since the last time this was asked: errors of scripts and of the network.
    pub(crate) async fn complaints(&self) -> Result<Vec<String>> {
        let log = self.driver.browser_log().await?;
        let bad = log.into_iter().filter(|entry| entry.level == "SEVERE" || entry.level == "WARNING");
        let bad = bad.filter(|entry| !entry.message.contains(HARMLESS));
        Ok(bad.map(|entry| format!("{} {}", entry.level, entry.message)).collect())
    }

    /// The same, but those that hold `expected` are fine.
    pub(crate) async fn only_complains_about(&self, expected: &str) -> Result<()> {
        let others: Vec<String> =
            self.complaints().await?.into_iter().filter(|entry| !entry.contains(expected)).collect();
        ensure!(others.is_empty(), "the browser complains: {others:#?}");
        Ok(())
    }

    /// Saves what is seen, all of the screen's height. Returns where.
    pub(crate) async fn screenshot(&self, name: &str) -> Result<PathBuf> {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/screenshots"));
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(format!("{name}.png"));
        self.driver.screenshot(&path).await?;
        Ok(path)
    }

    /// A further window on the same session, in front from now on.
    pub(crate) async fn new_tab(&self) -> Result<()> {
        let tab = self.driver.new_tab().await?;
        self.driver.switch_to_window(tab).await?;
        Ok(())
    }

    /// Brings a window to the front, counted from 0 in the order of opening.
    pub(crate) async fn switch_to(&self, tab: usize) -> Result<()> {
        let tabs = self.driver.windows().await?;
        let tab = tabs.get(tab).context("no such window")?;
        self.driver.switch_to_window(tab.clone()).await?;
        Ok(())
    }
}
