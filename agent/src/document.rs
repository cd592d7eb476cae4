//! A configuration file of the operator: GOST's YAML or JSON, the subset of [`GostConfig`].

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
    if text.trim_start().starts_with('{') {
        let mut json = serde_json::Deserializer::from_str(text);
        let config = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            anyhow::anyhow!("{}", located(error.path().to_string(), error.inner().to_string()))
        })?;
        json.end()?;
        return Ok(config);
    }
    let mut place = String::new();
    serde_saphyr::with_deserializer_from_str(text, |yaml| {
        serde_path_to_error::deserialize(yaml).map_err(|error| {
            place = error.path().to_string();
            error.into_inner()
        })
    })
    // Without the quoted lines: they may hold passwords, and this text reaches logs.
    .map_err(|error| anyhow::anyhow!("{}", located(place, error.without_snippet().to_string())))
}

fn located(place: String, error: String) -> String {
    // `.` and `?` are how the path of nothing is written.
    if place.is_empty() || place == "." || place == "?" { error } else { format!("{place}: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
