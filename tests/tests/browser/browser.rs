//! Chromium and its driver as processes.

use crate::page::PATIENCE;
use anyhow::{Context as _, Result};
use serde_json::json;
use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tests::rig::Process;
use thirtyfour::{ChromiumLikeCapabilities as _, DesiredCapabilities, LoggingPrefsLogLevel, WebDriver};

/// From the start of the driver to its word that it listens.
const START: Duration = Duration::from_secs(60);
/// The programs, by the names that distributions give them.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const DRIVER: &str = "chromedriver";

/// Needed on every machine that runs this: no window, no sandbox (there is none to be had as root or in a container),
/// nothing that asks the internet, memory where a container has it, and no brake on whoever changes screens faster than
/// people do.
const FLAGS: [&str; 10] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-ipc-flooding-protection",
];

/// What kind of device the browser plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// A window of 1280 × 900.
    Desk,
    /// A touch screen, 390 points wide.
    Phone,
    /// The narrowest touch screen that the page is made for, 360 points.
    Narrow,
}

/// A browser with a profile of its own, speaking Chinese.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) driver: WebDriver,
    process: Process,
    profile: TempDir,
}

/// The browser and its driver, where both are installed.
pub(crate) fn installed() -> Option<(PathBuf, PathBuf)> {
    Some((BROWSERS.into_iter().find_map(on_path)?, on_path(DRIVER)?))
}

fn on_path(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

impl Browser {
    /// Starts both.
    pub(crate) async fn start(device: Device) -> Result<Self> {
        Self::start_with(device, &[]).await
    }

    /// Starts both, the browser with further flags.
    pub(crate) async fn start_with(device: Device, further: &[String]) -> Result<Self> {
        let (browser, driver) = installed().context("no browser")?;
        let mut command = Command::new(driver);
        command.arg("--port=0");
        let mut process = Process::start(DRIVER, command)?;
        let port = process
            .wait_for("its port", START, |line| {
                let port = line.split_once("started successfully on port ")?.1;
                port.trim_end_matches('.').parse::<u16>().ok()
            })
            .await?;

        let profile = tempfile::Builder::new().prefix("exitpilot-browser-").tempdir()?;
        // The driver calls both browsers so.
        let mut wanted = DesiredCapabilities::chrome();
        wanted.set_binary(&browser.to_string_lossy())?;
        for flag in FLAGS {
            wanted.add_arg(flag)?;
        }
        for flag in further {
            wanted.add_arg(flag)?;
        }
        wanted.add_arg("--lang=zh-CN")?;
        wanted.add_arg(&format!("--user-data-dir={}", profile.path().display()))?;
        wanted.add_experimental_option("prefs", json!({ "intl.accept_languages": "zh-CN,zh" }))?;
        match device {
            Device::Desk => wanted.add_arg("--window-size=1280,900")?,
            // Windows are at least 500 points wide; an emulated screen is not.
            Device::Phone | Device::Narrow => wanted.add_experimental_option(
                "mobileEmulation",
                json!({ "deviceMetrics": { "width": if device == Device::Phone { 390 } else { 360 }, "height": 844, "pixelRatio": 2, "touch": true, "mobile": true } }),
            )?,
        }
        wanted.set_browser_log_level(LoggingPrefsLogLevel::All)?;
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), wanted).await?;
        driver.set_page_load_timeout(PATIENCE).await?;
        Ok(Self { driver, process, profile })
    }

    /// Ends both.
    pub(crate) async fn quit(self) -> Result<()> {
        let Self { driver, mut process, profile } = self;
        driver.quit().await?;
        process.kill().await?;
        drop(profile);
        Ok(())
    }
}
