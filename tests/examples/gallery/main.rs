//! `cargo xtask screenshots`: pictures of every screen for docs/screens.md, of a real panel whose agents run over bad links.
//!
//! Half of them Chinese and light, half English and dark, and some as a phone shows them.
#![allow(dead_code, reason = "the page as the browser suite handles it, of which this needs less")]

#[path = "../../tests/browser/browser.rs"]
mod browser;
#[path = "../../tests/browser/page.rs"]
mod page;
mod scene;
mod screens;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use browser::{Browser, Device};
use clap::Parser;
use page::Page;
use scene::Scene;
use std::path::{Path, PathBuf};
use tests::netlab::LabError;
use thirtyfour::WebDriver;
use thirtyfour::cdp::domains::page::{CaptureScreenshot, ImageFormat};

/// Of the lossy format: text stays sharp at it, and a screen takes some 15 KB.
const QUALITY: u32 = 55;

#[derive(Parser)]
struct Arguments {
    /// Where the pictures go
    #[arg(long)]
    folder: PathBuf,
}

/// How the page looks, and what its pictures' names begin with.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    name: &'static str,
    device: Device,
    language: &'static str,
    theme: &'static str,
}

const LOOKS: [Look; 3] = [
    Look { name: "zh-light", device: Device::Desk, language: "zh-CN", theme: "light" },
    Look { name: "en-dark", device: Device::Desk, language: "en", theme: "dark" },
    Look { name: "phone", device: Device::Phone, language: "en", theme: "light" },
];

/// Takes pictures in one look.
pub(crate) struct Camera<'a> {
    pub(crate) page: &'a Page,
    pub(crate) look: Look,
    driver: &'a WebDriver,
    folder: &'a Path,
}

impl Camera<'_> {
    /// Saves what is seen.
    pub(crate) async fn take(&self, name: &str) -> Result<()> {
        self.page.is_still().await?;
        let command = CaptureScreenshot {
            format: Some(ImageFormat::Webp),
            quality: Some(QUALITY),
            capture_beyond_viewport: None,
        };
        let picture = self.driver.cdp().send(command).await?;
        let path = self.folder.join(format!("{}-{name}.webp", self.look.name));
        let bytes = STANDARD.decode(picture.data)?;
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        println!("screenshots: {}", path.display());
        Ok(())
    }

    /// Whether this is a phone.
    pub(crate) fn is_phone(&self) -> bool {
        self.look.device == Device::Phone
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    tokio::runtime::Runtime::new()?.block_on(run(&arguments.folder))
}

async fn run(folder: &Path) -> Result<()> {
    browser::installed().context("there is no browser: run cargo xtask setup")?;
    std::fs::create_dir_all(folder)?;
    let scene = match Scene::start().await {
        Err(error) if matches!(error.downcast_ref(), Some(LabError::Unavailable { .. })) => {
            return Err(error.context("the pictures need the network lab: run this as root"));
        }
        scene => scene?,
    };
    for look in LOOKS {
        let browser = Browser::start(look.device).await?;
        let page = Page::new(browser.driver.clone(), format!("http://{}", scene.address));
        let taken =
            screens::all(&Camera { page: &page, look, driver: &browser.driver, folder }, &scene).await;
        browser.quit().await?;
        taken.with_context(|| format!("in the look {}", look.name))?;
    }
    scene.stage.close().await;
    Ok(())
}
