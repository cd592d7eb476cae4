//! The decoders of bytes from outside on the corpora of `fuzz/corpus` and on mutations of them.
//!
//! Without more, some thousand mutations each, the same every time. `EXITPILOT_FUZZ_SECONDS=60 cargo test --release -p
//! fuzz --test corpus` goes on for as long, from a start that `EXITPILOT_FUZZ_SEED` gives. An input that fails is printed
//! in hexadecimal: it belongs into the corpus. `cargo xtask fuzz` looks deeper.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]

mod mutate;

use agent::clock::{Clock, Random};
use fuzz::{TARGETS, Target};
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::Duration;

/// Mutations of each target in an ordinary run: seconds in a debug build.
const MUTATIONS: u64 = 2_000;
/// Cuts of each input.
const MOST_CUTS: usize = 20;

fn corpus_of(target: &Target) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 3, "{} holds next to nothing", folder.display());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

fn run(target: &Target, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(input))) {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        eprintln!("{} fails on {hex}", target.name);
        resume_unwind(panic);
    }
}

fn fuzz(name: &str) {
    let target = fuzz::target(name).unwrap();
    let mut corpus = corpus_of(target);
    for input in &corpus {
        run(target, input);
        // What a stream can be cut to.
        let step = input.len().div_ceil(MOST_CUTS).max(1);
        (0..input.len()).step_by(step).for_each(|length| run(target, &input[..length]));
    }
    corpus.push(Vec::new());
    let random = Random::seeded(number("EXITPILOT_FUZZ_SEED").unwrap_or(1));
    let (clock, limit) = (Clock::system(), number("EXITPILOT_FUZZ_SECONDS").map(Duration::from_secs));
    let start = clock.instant();
    let mut done = 0;
    while limit.map_or(done < MUTATIONS, |limit| clock.instant() - start < limit) {
        run(target, &mutate::mutated(&corpus, target.words, &random));
        done += 1;
    }
    println!("{name}: {} inputs, {done} mutations", corpus.len());
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                fuzz(stringify!($name));
            }
        )*

        #[test]
        fn no_target_is_forgotten() {
            assert_eq!(TARGETS.each_ref().map(|target| target.name), [$(stringify!($name)),*]);
        }
    };
}

tests! {
    relay datagrams smux smux_session socks5 socks5_session http http_session tls websocket proxy_header opening document envelope
    command limits policy address api
}
