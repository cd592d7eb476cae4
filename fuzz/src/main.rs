//! libFuzzer around one target, which the environment names. `cargo xtask fuzz` builds and runs it.

#![no_main]

use fuzz::Target;
use std::sync::OnceLock;

/// The variable with the name of the target.
const TARGET: &str = "EXITPILOT_FUZZ_TARGET";
/// If it is set, the target's words are written to the file it names, as libFuzzer's dictionaries are, and nothing is
/// run.
const WORDS: &str = "EXITPILOT_FUZZ_WORDS";

static CHOSEN: OnceLock<&'static Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: start(),
    |bytes: &[u8]| {
        (chosen().run)(bytes);
    }
);

fn chosen() -> &'static Target {
    CHOSEN.get_or_init(|| {
        let name = std::env::var(TARGET).unwrap_or_default();
        fuzz::target(&name).unwrap_or_else(|| panic!("{TARGET} names no target: {name:?}"))
    })
}

fn start() {
    let target = chosen();
    if let Some(file) = std::env::var_os(WORDS) {
        let lines = target.words.iter().map(|word| {
            let escaped: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("\"{escaped}\"\n")
        });
        std::fs::write(file, lines.collect::<String>()).expect("the words can be written");
        std::process::exit(0);
    }
}
