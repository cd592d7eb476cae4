//! The finished page in target/site/: what is compressed ahead of time and how much a first visit loads.

use crate::modules;
use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The highest quality of brotli: the work is done once per build.
const BROTLI_QUALITY: i32 = 11;
/// The largest window (4 MiB) that every browser accepts, as a power of two.
const BROTLI_WINDOW: i32 = 22;

/// Lets the panel build before the page was ever built: it embeds the folder, which has to exist and to be not empty.
pub(crate) fn ensure_placeholder(site: &Path) -> Result<()> {
    fs::create_dir_all(site).with_context(|| format!("cannot create {}", site.display()))?;
    if fs::read_dir(site)?.next().is_none() {
        fs::write(site.join(".keep"), "")?;
    }
    Ok(())
}

/// Writes `<file>.br` and `<file>.gz` beside every file of the page. The files themselves stay as they are: the page
/// names their hashes.
pub(crate) fn precompress(site: &Path) -> Result<()> {
    for file in files(site)? {
        let content = fs::read(site.join(&file))?;
        for (ending, compressed) in [("br", brotli(&content)?), ("gz", gzip(&content)?)] {
            let path = beside(&site.join(&file), ending);
            fs::write(&path, compressed).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// At the highest quality.
pub(crate) fn brotli(content: &[u8]) -> Result<Vec<u8>> {
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW,
        size_hint: content.len(),
        ..Default::default()
    };
    let mut out = Vec::new();
    brotli::BrotliCompress(&mut &content[..], &mut out, &parameters)?;
    Ok(out)
}

fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

/// The files a first visit loads, with their sizes in bytes as brotli: index.html, what it names, and what that names
/// in turn (scripts import scripts, style sheets name fonts). The code of screens that are loaded when they are first
/// opened is named, too, and not loaded.
pub(crate) fn first_visit(site: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut all = files(site)?;
    all.retain(|file| !file.starts_with(modules::FOLDER));
    let mut wanted = BTreeSet::from([PathBuf::from("index.html")]);
    let mut unread: Vec<PathBuf> = wanted.iter().cloned().collect();
    while let Some(file) = unread.pop() {
        let path = site.join(&file);
        if !path.extension().is_some_and(|ending| ["html", "js", "css"].iter().any(|text| ending == *text)) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        for other in &all {
            let named =
                other.file_name().and_then(|name| name.to_str()).is_some_and(|name| text.contains(name));
            if named && wanted.insert(other.clone()) {
                unread.push(other.clone());
            }
        }
    }
    wanted
        .into_iter()
        .map(|file| {
            let size = fs::metadata(beside(&site.join(&file), "br"))?.len();
            Ok((file, size))
        })
        .collect()
}

/// The page's own files, relative to its folder, without their compressed forms and without hidden ones.
fn files(site: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(site, Path::new(""), &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(site: &Path, below: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let dir = site.join(below);
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let relative = below.join(entry.file_name());
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(site, &relative, found)?;
        } else if !relative.extension().is_some_and(|ending| ending == "br" || ending == "gz") {
            found.push(relative);
        }
    }
    Ok(())
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn page() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("index.html", "x=later-3.js <link href=\"/style-1.css\"><script src=\"/app-2.js\"></script>");
        fs::create_dir(dir.path().join("modules")).unwrap();
        write("modules/later-3.js", "");
        write("style-1.css", "@font-face { src: url(/face.woff2) }");
        write("app-2.js", "import './part.js'; fetch('/app-2_bg.wasm')");
        write("part.js", "console.log('index.html')");
        write("app-2_bg.wasm", &"wasm ".repeat(1000));
        write("face.woff2", "font");
        write("unused.svg", "<svg/>");
        dir
    }

    #[test]
    fn every_file_gets_both_forms_and_stays_itself() {
        let dir = page();
        precompress(dir.path()).unwrap();
        let original = fs::read(dir.path().join("app-2_bg.wasm")).unwrap();
        assert_eq!(original, "wasm ".repeat(1000).as_bytes());

        let mut plain = Vec::new();
        let packed = fs::read(dir.path().join("app-2_bg.wasm.br")).unwrap();
        assert!(packed.len() < 100);
        brotli::BrotliDecompress(&mut &packed[..], &mut plain).unwrap();
        assert_eq!(plain, original);

        let mut plain = Vec::new();
        let packed = fs::read(dir.path().join("app-2_bg.wasm.gz")).unwrap();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, original);

        // A second time compresses nothing that is compressed already.
        let before = fs::read_dir(dir.path()).unwrap().count();
        precompress(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
        assert_eq!(before, 7 * 3 + 1);
    }

    #[test]
    fn a_first_visit_loads_what_is_named_directly_or_not() {
        let dir = page();
        precompress(dir.path()).unwrap();
        let visit = first_visit(dir.path()).unwrap();
        let names: Vec<&str> = visit.iter().map(|(file, _)| file.to_str().unwrap()).collect();
        assert_eq!(
            names,
            ["app-2.js", "app-2_bg.wasm", "face.woff2", "index.html", "part.js", "style-1.css"]
        );
        for (file, size) in visit {
            assert_eq!(size, fs::metadata(beside(&dir.path().join(file), "br")).unwrap().len());
        }
    }

    #[test]
    fn the_placeholder_only_fills_an_empty_folder() {
        let dir = tempfile::tempdir().unwrap();
        let site = dir.path().join("target/site");
        ensure_placeholder(&site).unwrap();
        assert!(site.join(".keep").exists());
        fs::remove_file(site.join(".keep")).unwrap();
        fs::write(site.join("index.html"), "x").unwrap();
        ensure_placeholder(&site).unwrap();
        assert!(!site.join(".keep").exists());
    }
}
