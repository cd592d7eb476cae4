//! A configuration file of the operator: GOST's YAML or JSON, the subset of [`GostConfig`].

use crate::document_problems::{Scalars, problems};
use anyhow::Context as _;
use shared::gost::GostConfig;
use std::path::Path;

/// Larger files are refused: thousands of services fit in a tenth of it.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Reads a file. An unknown or unsupported key is an error that names its place.
pub fn read(path: &Path) -> anyhow::Result<GostConfig> {
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    anyhow::ensure!(size <= MAX_BYTES, "{}: larger than {} MiB", path.display(), MAX_BYTES >> 20);
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text).map_err(|error| error.context(path.display().to_string()))
}

/// Understands a text; JSON when it begins with a brace, else YAML. Hops that chains name are in their places then.
pub fn parse(text: &str) -> anyhow::Result<GostConfig> {
    deserialize(text)?.with_hops_in_place().map_err(anyhow::Error::msg)
}

fn deserialize(text: &str) -> anyhow::Result<GostConfig> {
    let is_json = text.trim_start().starts_with('{');
    let first = match if is_json { from_json(text) } else { from_yaml(text) } {
        Ok(config) => return Ok(config),
        Err(first) => first,
    };
    let whole = if is_json { serde_json::from_str(text).ok() } else { serde_saphyr::from_str(text).ok() };
    let mut found =
        problems(whole.unwrap_or_default(), if is_json { Scalars::Typed } else { Scalars::AsExpected });
    // In YAML a scalar is whatever is expected, which the document read as a whole does not know: `1234` is a password.
    found.retain(|problem| problem.unknown_key || is_json);
    let mut lines: Vec<String> = found.into_iter().map(|problem| problem.text).collect();
    if lines.is_empty() || !first.contains("unknown field") && !lines.contains(&first) {
        lines.insert(0, first);
    }
    Err(anyhow::anyhow!("{}", lines.join("\n")))
}

fn from_json(text: &str) -> Result<GostConfig, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let config = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| located(error.path().to_string(), error.inner().to_string()))?;
    json.end().map_err(|error| error.to_string())?;
    Ok(config)
}

fn from_yaml(text: &str) -> Result<GostConfig, String> {
    let mut place = String::new();
    serde_saphyr::with_deserializer_from_str(text, |yaml| {
        serde_path_to_error::deserialize(yaml).map_err(|error| {
            place = error.path().to_string();
            error.into_inner()
        })
    })
    // Without the quoted lines: they may hold passwords, and this text reaches logs.
    .map_err(|error| located(place, error.without_snippet().to_string()))
}

fn located(place: String, error: String) -> String {
    // `.` and `?` are how the path of nothing is written.
    if place.is_empty() || place == "." || place == "?" { error } else { format!("{place}: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_in_several_lists_are_all_named() {
        let text = "
services:
  - {name: s, adr: ':1', handler: {type: tcp}, listener: {type: tcp}}
chains:
  - name: c
    hops:
      - name: h
        selector: {strategy: fifo, failTimeot: 30s}
        nodes: [{name: n, addr: '192.0.2.1:1', connector: {type: relay}, dialer: {type: tcp}}]
limiters:
  - {name: l, limit: []}
";
        let error = parse(text).unwrap_err().to_string();
        for place in ["services[0].adr", "chains[0].hops[0].selector.failTimeot", "limiters[0].limit"] {
            assert!(error.contains(place), "{place} is not in {error}");
        }
    }

    const YAML: &str = "
services:
  - name: entry
    addr: :8080
    handler: {type: tcp, chain: chain-0}
    listener: {type: tcp}
    forwarder:
      nodes: [{name: target, addr: 192.0.2.1:80}]
      selector: {strategy: fifo, failTimeout: 600s}
chains:
  - name: chain-0
    hops:
      - name: hop-0
        nodes:
          - name: exit
            addr: 192.0.2.2:8443
            connector: {type: relay, auth: {username: u, password: hunter2}}
            dialer: {type: tls}
";

    #[test]
    fn yaml_and_json_say_the_same() {
        let config = parse(YAML).unwrap();
        assert_eq!((config.services.len(), config.chains.len()), (1, 1));
        assert_eq!(parse(&serde_json::to_string_pretty(&config).unwrap()).unwrap(), config);
    }

    #[test]
    fn a_chain_may_name_its_hops() {
        let (before, hop) = YAML.split_once("    hops:\n      - name: hop-0\n").unwrap();
        let named = format!("{before}    hops:\n      - name: hop-0\nhops:\n  - name: hop-0\n");
        let named = named + &hop.replace("\n    ", "\n").replacen("    ", "", 1);
        assert_eq!(parse(&named).unwrap(), parse(YAML).unwrap());
        let error = parse(&named.replace("hops:\n  - name: hop-0", "hops:\n  - name: hop-1")).unwrap_err();
        assert_eq!(error.to_string(), "chain chain-0: hops[0].name: there is no hop hop-0");
    }

    #[test]
    fn errors_name_the_place_and_no_password() {
        let cases = [
            (YAML.replace("addr: :8080", "adress: :8080"), "services[0].adress"),
            (YAML.replace("600s", "soon"), "services[0].forwarder.selector.failTimeout"),
            (YAML.replace("username: u", "user: u"), "chains[0].hops[0].nodes[0].connector.auth.user"),
            (format!("{YAML}bypasses: []\n"), "bypasses"),
            (YAML.replace("handler: {type: tcp", "handler: {type: [tcp]"), "services[0].handler.type"),
        ];
        for (text, place) in cases {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.contains(place), "{place} not in: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = parse(r#"{"chains":[{"name":"c","hops":[],"failover":1}]}"#).unwrap_err().to_string();
        assert!(error.starts_with("chains[0].failover"), "{error}");
        for text in ["chains: [", "chains: []\nchains: []\n", "{\"chains\":[]} x", "[]"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_unknown_key_is_named_with_what_may_have_been_meant() {
        let text = YAML
            .replace("addr: :8080", "addr: :8080\n    adrr: x")
            .replace("failTimeout: 600s", "failTimeout: 600s, fail_timeout: 1s, brew: 1")
            .replace("password: hunter2", "password: 1234, pass: hunter2")
            + "climitters: []\nlog: {level: debug}\n";
        let error = parse(&text).unwrap_err().to_string();
        let mut lines: Vec<&str> = error.lines().collect();
        lines.sort_unstable();
        let expected = [
            ("chains[0].hops[0].nodes[0].connector.auth.pass: unknown field `pass`", ""),
            ("climitters: unknown field `climitters`", "did you mean `climiters`?"),
            ("log: unknown field `log`", ""),
            ("services[0].adrr: unknown field `adrr`", "did you mean `addr`?"),
            ("services[0].forwarder.selector.brew: unknown field `brew`", ""),
            ("services[0].forwarder.selector.fail_timeout: unknown", "did you mean `failTimeout`?"),
        ];
        assert_eq!(lines.len(), expected.len(), "{error}");
        for (line, (start, end)) in lines.iter().zip(expected) {
            assert!(line.starts_with(start) && line.ends_with(end), "{line}");
        }
        assert!(!error.contains("hunter2") && !error.contains("1234"), "{error}");
        // The same from JSON; there a fault of another kind is told, too.
        let json =
            r#"{"services": [{"nam": "a", "addr": 1}], "chains": [{"name": "c", "hops": [], "x": 1}]}"#;
        let error = parse(json).unwrap_err().to_string();
        for part in ["services[0].nam:", "did you mean `name`?", "services[0].addr:", "chains[0].x:"] {
            assert!(error.contains(part), "{part} not in: {error}");
        }
    }

    #[test]
    fn a_number_is_a_password_in_yaml() {
        let config = parse(&YAML.replace("hunter2", "1234")).unwrap();
        let auth = config.chains[0].hops[0].nodes.as_ref().unwrap()[0].connector.auth.clone();
        assert_eq!(auth.unwrap().password, "1234");
    }

    #[test]
    fn durations_are_text_or_nanoseconds() {
        let text = parse(YAML).unwrap();
        assert_eq!(parse(&YAML.replace("600s", "600000000000")).unwrap(), text);
        assert_eq!(parse(&YAML.replace("600s", "10m")).unwrap(), text);
    }
}
