//! GOST's `tls.options`, as far as rustls has them: TLS 1.2 and 1.3, and the cipher suites of these that are still
//! thought to be safe. What it does not have is an error, where GOST ignores what it does not know.

use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion};
use shared::gost::TlsOptions;
use std::sync::{Arc, LazyLock};

/// Names are written with one byte for their length (RFC 7301).
const LONGEST_PROTOCOL: usize = 255;

/// GOST's words for the versions, in order.
const VERSIONS: [(&str, &SupportedProtocolVersion); 2] = [("VersionTLS12", &TLS12), ("VersionTLS13", &TLS13)];

/// The algorithms of all connections without options.
pub(super) static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let mut provider = ring::default_provider();
    // As GOST has it: the shorter key has no known weakness either, and takes ten rounds per block instead of fourteen.
    provider.cipher_suites.sort_by_key(|suite| !AES_128.contains(&suite.suite()));
    Arc::new(provider)
});

/// Suites that come first; the others stay in their order.
const AES_128: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
];

/// What may be spoken.
pub(super) struct Allowed {
    pub(super) versions: Vec<&'static SupportedProtocolVersion>,
    pub(super) provider: Arc<CryptoProvider>,
    /// Protocols to agree upon, in order of preference.
    pub(super) alpn: Vec<Vec<u8>>,
}

impl Allowed {
    /// Everything, if there are no options. An error begins with the option.
    pub(super) fn read(options: Option<&TlsOptions>) -> Result<Self, String> {
        let default = TlsOptions::default();
        let TlsOptions { min_version, max_version, cipher_suites, alpn } = options.unwrap_or(&default);
        let lowest = version("minVersion", min_version.as_deref())?.unwrap_or(0);
        let highest = version("maxVersion", max_version.as_deref())?.unwrap_or(VERSIONS.len() - 1);
        if lowest > highest {
            return Err("options.maxVersion: is below minVersion".to_owned());
        }
        let versions: Vec<_> = VERSIONS[lowest..=highest].iter().map(|(_, version)| *version).collect();
        Ok(Self { provider: provider(cipher_suites, &versions)?, versions, alpn: protocols(alpn)? })
    }
}

fn version(field: &str, name: Option<&str>) -> Result<Option<usize>, String> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let known = VERSIONS.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(Some).ok_or_else(|| {
        let list: Vec<_> = VERSIONS.iter().map(|(known, _)| *known).collect();
        format!("options.{field}: {name} is not supported ({})", list.join(", "))
    })
}

/// Of each version of which suites are named, only those; of the others, all. So a list for TLS 1.2, as GOST's are, leaves
/// TLS 1.3 alone, as there.
fn provider(
    names: &[String],
    versions: &[&'static SupportedProtocolVersion],
) -> Result<Arc<CryptoProvider>, String> {
    if names.is_empty() {
        return Ok(PROVIDER.clone());
    }
    let all = &PROVIDER.cipher_suites;
    let mut named: Vec<SupportedCipherSuite> = Vec::with_capacity(names.len());
    for (i, name) in names.iter().enumerate() {
        let wrong = |reason: String| format!("options.cipherSuites[{i}]: {name} {reason}");
        let suite = all.iter().find(|suite| iana(suite.suite()).eq_ignore_ascii_case(name));
        let suite = suite.ok_or_else(|| {
            let list: Vec<_> = all.iter().map(|suite| iana(suite.suite())).collect();
            wrong(format!("is not supported ({})", list.join(", ")))
        })?;
        if !versions.contains(&suite.version()) {
            return Err(wrong("belongs to a version that minVersion and maxVersion leave out".to_owned()));
        }
        named.push(*suite);
    }
    let is_restricted = |version| named.iter().any(|suite| suite.version() == version);
    let cipher_suites = all
        .iter()
        .filter(|suite| !is_restricted(suite.version()) || named.contains(suite))
        .copied()
        .collect();
    Ok(Arc::new(CryptoProvider { cipher_suites, ..CryptoProvider::clone(&PROVIDER) }))
}

/// As the registry of IANA, and GOST, name it.
fn iana(suite: CipherSuite) -> String {
    suite.as_str().unwrap_or_default().replace("TLS13_", "TLS_")
}

fn protocols(names: &[String]) -> Result<Vec<Vec<u8>>, String> {
    for (i, name) in names.iter().enumerate() {
        if name.is_empty() || name.len() > LONGEST_PROTOCOL {
            return Err(format!("options.alpn[{i}]: must have 1 to {LONGEST_PROTOCOL} bytes"));
        }
    }
    Ok(names.iter().map(|name| name.clone().into_bytes()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(options: Value) -> Result<Allowed, String> {
        Allowed::read(Some(&serde_json::from_value(options).unwrap()))
    }

    fn suites(allowed: &Allowed) -> Vec<String> {
        allowed.provider.cipher_suites.iter().map(|suite| iana(suite.suite())).collect()
    }

    #[test]
    fn versions_have_the_names_of_gost_in_any_case() {
        let both = [&TLS12, &TLS13];
        assert_eq!(Allowed::read(None).unwrap().versions, both);
        assert_eq!(read(json!({})).unwrap().versions, both);
        assert_eq!(read(json!({"minVersion": "versiontls13"})).unwrap().versions, [&TLS13]);
        assert_eq!(read(json!({"maxVersion": "VersionTLS12", "minVersion": ""})).unwrap().versions, [&TLS12]);
        let exactly = json!({"minVersion": "VersionTLS12", "maxVersion": "VersionTLS12"});
        assert_eq!(read(exactly).unwrap().versions, [&TLS12]);
    }

    #[test]
    fn a_list_restricts_the_version_whose_suites_it_names() {
        let all = suites(&Allowed::read(None).unwrap());
        assert!(all.contains(&"TLS_AES_128_GCM_SHA256".to_owned()), "{all:?}");
        let old = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        let left = suites(&read(json!({"cipherSuites": [old.to_lowercase()]})).unwrap());
        assert_eq!(left.iter().filter(|name| name.starts_with("TLS_ECDHE")).collect::<Vec<_>>(), [old]);
        assert_eq!(left.len(), 1 + 3, "all of TLS 1.3: {left:?}");
        let left = suites(&read(json!({"cipherSuites": ["TLS_AES_256_GCM_SHA384", old]})).unwrap());
        assert_eq!(left, [old, "TLS_AES_256_GCM_SHA384"], "in the order of preference");
    }

    #[test]
    fn what_there_is_not_is_an_error_that_lists_what_there_is() {
        let cases = [
            (
                json!({"minVersion": "VersionTLS11"}),
                "options.minVersion: VersionTLS11 is not supported (VersionTLS12, VersionTLS13)",
            ),
            (json!({"maxVersion": "1.3"}), "options.maxVersion: 1.3 is not supported ("),
            (
                json!({"minVersion": "VersionTLS13", "maxVersion": "VersionTLS12"}),
                "options.maxVersion: is below minVersion",
            ),
            (
                json!({"cipherSuites": ["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"]}),
                "options.cipherSuites[1]: TLS_RSA_WITH_RC4_128_SHA is not supported (TLS_AES_128_GCM_SHA256, ",
            ),
            (
                json!({"minVersion": "VersionTLS13", "cipherSuites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]}),
                "options.cipherSuites[0]: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 belongs to a version",
            ),
            (json!({"alpn": ["h2", ""]}), "options.alpn[1]: must have 1 to 255 bytes"),
        ];
        for (options, expected) in cases {
            let error = read(options).err().unwrap();
            assert!(error.starts_with(expected), "{error} instead of {expected}");
        }
    }
}
