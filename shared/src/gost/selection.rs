//! How one of several is chosen, as it is configured: selectors, probes, groups of chains, named hops.

use super::{GoDuration, GostConfig, HopConfig, Metadata, is_zero, is_zero_duration};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Chains of which one is chosen per connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChainGroupConfig {
    /// In order of preference.
    pub chains: Vec<ChainGroupEntry>,
    /// How one of them is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<SelectorConfig>,
}

/// A chain of a group: its name, or an object with the name and what else there is to say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainGroupEntry {
    /// Name of the chain.
    pub chain: String,
    /// How it is seen whether the chain works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeConfig>,
}

impl<'de> Deserialize<'de> for ChainGroupEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Object {
            chain: String,
            #[serde(default)]
            probe: Option<ProbeConfig>,
        }
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = ChainGroupEntry;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a chain or an object with `chain`")
            }
            fn visit_str<E: serde::de::Error>(self, chain: &str) -> Result<ChainGroupEntry, E> {
                Ok(ChainGroupEntry { chain: chain.to_owned(), probe: None })
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<ChainGroupEntry, A::Error> {
                let object = serde::de::value::MapAccessDeserializer::new(map);
                let Object { chain, probe } = Object::deserialize(object)?;
                Ok(ChainGroupEntry { chain, probe })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// How a node of a group is chosen, and when a failing one is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SelectorConfig {
    /// Text of the strategy; empty means `round`.
    #[serde(default)]
    pub strategy: String,
    /// Failures after which a node is left out; 0 means GOST's default 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_fails: u32,
    /// For how long it is left out; 0 means GOST's default 10 s.
    #[serde(default, skip_serializing_if = "is_zero_duration")]
    pub fail_timeout: GoDuration,
    /// Nodes whose probe took longer, or failed, are left out while others are there; 0 means no limit.
    #[serde(default, skip_serializing_if = "is_zero_duration")]
    pub max_latency: GoDuration,
    /// `lowestlatency` stays with its node until another is faster by more than this. Not in GOST.
    #[serde(default, skip_serializing_if = "is_zero_duration")]
    pub tolerance: GoDuration,
    /// Options of strategies that test their members or leave the choice to a person: `url`, `interval`, `default`, …
    /// Not in GOST.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: Metadata,
}

/// How it is seen from time to time whether a node works. Zeros and empty texts mean GOST's defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProbeConfig {
    /// `tcp` (when empty), `http` or `cmd`.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// What is asked for through the node, `host:port`; the node's own address asks only the node itself. Required for
    /// `tcp` and `http`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub addr: String,
    /// From one probe to the next; 30 s.
    #[serde(default, skip_serializing_if = "is_zero_duration")]
    pub interval: GoDuration,
    /// For the whole probe; 10 s.
    #[serde(default, skip_serializing_if = "is_zero_duration")]
    pub timeout: GoDuration,
    /// `/`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http_path: String,
    /// The `Host` header; `addr`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http_host: String,
    /// Further headers of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub http_headers: BTreeMap<String, String>,
    /// The status that means success; 200.
    #[serde(default, skip_serializing_if = "is_zero_status")]
    pub expected_status: u16,
    /// Run by the shell; exit status 0 means success. Required for `cmd`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

impl GostConfig {
    /// Puts the hops that chains name in their places. What is wrong, with its path, if there is no such hop.
    pub fn with_hops_in_place(mut self) -> Result<Self, String> {
        for (i, hop) in self.hops.iter().enumerate() {
            if hop.nodes.is_none() {
                return Err(format!("hops[{i}].nodes: is missing"));
            }
            if self.hops[..i].iter().any(|other| other.name == hop.name) {
                return Err(format!("hops[{i}].name: {} is there twice", hop.name));
            }
        }
        for chain in &mut self.chains {
            for (i, hop) in chain.hops.iter_mut().enumerate().filter(|(_, hop)| hop.nodes.is_none()) {
                let path = || format!("chain {}: hops[{i}]", chain.name);
                let bare = HopConfig { name: hop.name.clone(), ..HopConfig::default() };
                if *hop != bare {
                    return Err(format!(
                        "{}: without nodes it names a hop, and has nothing but its name",
                        path()
                    ));
                }
                let Some(named) = self.hops.iter().find(|named| named.name == hop.name) else {
                    return Err(format!("{}.name: there is no hop {}", path(), hop.name));
                };
                *hop = named.clone();
            }
        }
        self.hops.clear();
        Ok(self)
    }
}

fn is_zero_status(status: &u16) -> bool {
    *status == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_of_a_chain_group_is_a_name_or_an_object() {
        let group: ChainGroupConfig = serde_json::from_value(json!({
            "chains": ["a", {"chain": "b", "probe": {"type": "cmd", "command": "true", "interval": "5s"}}]
        }))
        .unwrap();
        assert_eq!((group.chains[0].chain.as_str(), &group.chains[0].probe), ("a", &None));
        assert_eq!(group.chains[1].probe.as_ref().unwrap().command, "true");
        let again = serde_json::from_value(serde_json::to_value(&group).unwrap()).unwrap();
        assert_eq!(group, again);
        for wrong in [json!({"chain": "a", "matcher": {"rule": "x"}}), json!({"probe": {}}), json!(1)] {
            assert!(serde_json::from_value::<ChainGroupEntry>(wrong).is_err());
        }
    }

    #[test]
    fn a_probe_says_nothing_about_what_is_not_set() {
        let probe: ProbeConfig = serde_json::from_value(json!({"addr": "192.0.2.1:80"})).unwrap();
        assert_eq!(serde_json::to_value(&probe).unwrap(), json!({"addr": "192.0.2.1:80"}));
        let error = serde_json::from_value::<ProbeConfig>(json!({"intervall": "5s"})).unwrap_err();
        assert!(error.to_string().contains("intervall"), "{error}");
    }

    #[test]
    fn hops_that_are_named_are_put_in_their_places() {
        let document = |hops, chain_hop| -> GostConfig {
            serde_json::from_value(json!({"hops": hops, "chains": [{"name": "c", "hops": [chain_hop]}]}))
                .unwrap()
        };
        let node = json!({"name": "n", "addr": "192.0.2.1:80"});
        let named = json!({"name": "h", "selector": {"strategy": "fifo"}, "nodes": [node]});
        let placed = document(json!([named]), json!({"name": "h"})).with_hops_in_place().unwrap();
        assert_eq!(placed, document(json!([]), named.clone()));
        // A hop with nodes, even none, is one of its own.
        let own = json!({"name": "h", "nodes": []});
        let placed = document(json!([named]), own.clone()).with_hops_in_place().unwrap();
        assert_eq!(placed, document(json!([]), own));

        let error = |hops, hop| document(hops, hop).with_hops_in_place().unwrap_err();
        let missing = error(json!([named]), json!({"name": "other"}));
        assert_eq!(missing, "chain c: hops[0].name: there is no hop other");
        assert!(
            error(json!([named]), json!({"name": "h", "interface": "eth0"})).contains("nothing but its name")
        );
        assert_eq!(error(json!([named, named]), json!({"name": "h"})), "hops[1].name: h is there twice");
        assert_eq!(error(json!([{"name": "h"}]), json!({"name": "h"})), "hops[0].nodes: is missing");
    }
}
