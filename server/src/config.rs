//! Configuration: flags, environment and a TOML file, read once.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The file that is read when `--config` names none and it exists.
pub const DEFAULT_FILE: &str = "exitpilot.toml";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The settings as given in one place; what is absent comes from the next one.
#[derive(Clone, Default, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Address and port to listen on; port 0 = any free one.
    #[arg(long, env = "EXITPILOT_LISTEN", global = true, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Where the data is kept: sqlite://PATH. DATABASE_URL is looked at too.
    #[arg(long, env = "EXITPILOT_DATABASE", global = true, value_name = "URL", hide_env_values = true)]
    pub database: Option<String>,
    /// Address at which users and agents reach the panel, https://panel.example for example.
    #[arg(long, env = "EXITPILOT_PUBLIC_URL", global = true, value_name = "URL")]
    pub public_url: Option<String>,
    /// The agent that new nodes fetch from the panel; the file exitpilot-agent beside the panel's own where there is one.
    #[arg(long, env = "EXITPILOT_AGENT_BINARY", global = true, value_name = "FILE")]
    pub agent_binary: Option<PathBuf>,
    /// What is logged, as in `info` or `server=debug`.
    #[arg(long, env = "EXITPILOT_LOG", global = true, value_name = "FILTER")]
    pub log: Option<String>,
    /// How log lines look.
    #[arg(long, env = "EXITPILOT_LOG_FORMAT", global = true, value_enum)]
    pub log_format: Option<LogFormat>,
    /// Password of the user admin when he is created on first start; a random one is printed otherwise.
    // Not a flag: command lines are visible to every user of the machine.
    #[arg(skip)]
    pub admin_password: Option<String>,
}

/// The settings in force.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// Where the data is kept.
    pub database: String,
    /// Address at which users and agents reach the panel, without a slash at the end.
    pub public_url: Option<String>,
    /// The agent that new nodes fetch; `None` = there is none to hand out.
    pub agent_binary: Option<PathBuf>,
    /// What is logged.
    pub log: String,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Password of the user admin when he is created on first start.
    pub admin_password: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 6365)),
            database: "sqlite://./exitpilot.db".to_owned(),
            public_url: None,
            agent_binary: None,
            log: "info".to_owned(),
            log_format: LogFormat::Text,
            admin_password: None,
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_toml())
    }
}

impl Config {
    /// Flags and their environment variables first, then the other variables, then the file, then the defaults.
    pub fn load(
        flags: Options,
        file: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let file = match file {
            Some(path) => read_file(path)?,
            None if Path::new(DEFAULT_FILE).exists() => read_file(Path::new(DEFAULT_FILE))?,
            None => Options::default(),
        };
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let default = Config::default();
        let public_url = flags.public_url.or(file.public_url);
        let config = Config {
            listen: flags.listen.or(file.listen).unwrap_or(default.listen),
            database: flags
                .database
                .or_else(|| set("DATABASE_URL"))
                .or(file.database)
                .unwrap_or(default.database),
            public_url: public_url.map(|url| url.trim_end_matches('/').to_owned()),
            agent_binary: flags.agent_binary.or(file.agent_binary).or_else(beside),
            log: flags.log.or(file.log).unwrap_or(default.log),
            log_format: flags.log_format.or(file.log_format).unwrap_or(default.log_format),
            admin_password: set("EXITPILOT_ADMIN_PASSWORD").or(file.admin_password),
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> anyhow::Result<()> {
        if let Some(url) = &self.public_url {
            let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            if !host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' '])) {
                bail!("public_url: write http://HOST[:PORT] or https://HOST[:PORT], not `{url}`");
            }
        }
        Ok(())
    }

    /// As a file that would have the same effect, without the password.
    pub fn to_toml(&self) -> String {
        #[derive(Serialize)]
        struct Shown<'a> {
            listen: SocketAddr,
            database: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            public_url: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            agent_binary: Option<&'a Path>,
            log: &'a str,
            log_format: LogFormat,
            #[serde(skip_serializing_if = "Option::is_none")]
            admin_password: Option<&'a str>,
        }
        let shown = Shown {
            listen: self.listen,
            database: without_password(&self.database),
            public_url: self.public_url.as_deref(),
            agent_binary: self.agent_binary.as_deref(),
            log: &self.log,
            log_format: self.log_format,
            admin_password: self.admin_password.as_ref().map(|_| "***"),
        };
        toml::to_string(&shown).unwrap_or_else(|error| format!("# {error}"))
    }

    /// Where the panel is reached: as configured, else as whoever asks has reached it by `host`.
    pub fn address_for(&self, host: Option<&str>) -> String {
        // What a client sends is not repeated unless it is a host and a port.
        let plain = |host: &&str| {
            host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']' | '_'))
        };
        match (&self.public_url, host.filter(plain)) {
            (Some(url), _) => url.clone(),
            (None, Some(host)) => format!("http://{host}"),
            (None, None) => format!("http://{}", self.listen),
        }
    }

    /// Whether the page is reached over TLS, so that the cookie may be kept to it.
    pub fn is_https(&self) -> bool {
        self.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }
}

/// The agent in the folder of the running panel.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name("exitpilot-agent");
    path.is_file().then_some(path)
}

fn read_file(path: &Path) -> anyhow::Result<Options> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("in {}", path.display()))
}

/// A database address with its password masked.
fn without_password(url: &str) -> String {
    let masked = || {
        let (scheme, rest) = url.split_once("://")?;
        let (login, host) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:***@{host}"))
    };
    masked().unwrap_or_else(|| url.to_owned())
}

/// Variables that begin like ours and are none: a typing error, most likely.
pub fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    const KNOWN: [&str; 7] = [
        "EXITPILOT_LISTEN",
        "EXITPILOT_DATABASE",
        "EXITPILOT_PUBLIC_URL",
        "EXITPILOT_LOG",
        "EXITPILOT_LOG_FORMAT",
        "EXITPILOT_ADMIN_PASSWORD",
        "EXITPILOT_CONFIG",
    ];
    let mut unknown: Vec<_> = names
        .filter(|name| name.starts_with("EXITPILOT_") && !name.starts_with("EXITPILOT_AGENT_"))
        .filter(|name| !KNOWN.contains(&name.as_str()))
        .collect();
    unknown.sort();
    unknown
}

/// The configuration file named by the flag or by EXITPILOT_CONFIG.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConfigFile {
    /// Configuration file; ./exitpilot.toml is read where it exists.
    #[arg(long, env = "EXITPILOT_CONFIG", global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn flags_come_before_environment_before_file_before_defaults() {
        let file = file(
            "listen = \"127.0.0.1:1\"\ndatabase = \"sqlite://file.db\"\npublic_url = \"https://p.example/\"\n",
        );
        let none = |_: &str| None;
        let config = Config::load(Options::default(), Some(file.path()), &none).unwrap();
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.database, "sqlite://file.db");
        assert_eq!(config.public_url.as_deref(), Some("https://p.example"));
        assert_eq!(config.log, "info");
        let env = |name: &str| (name == "DATABASE_URL").then(|| "sqlite://env.db".to_owned());
        let config = Config::load(Options::default(), Some(file.path()), &env).unwrap();
        assert_eq!(config.database, "sqlite://env.db");
        let flags = Options { database: Some("sqlite://flag.db".into()), ..Options::default() };
        assert_eq!(Config::load(flags, Some(file.path()), &env).unwrap().database, "sqlite://flag.db");
    }

    #[test]
    fn unknown_keys_and_wrong_values_are_named() {
        for (text, named) in [
            ("listne = \"127.0.0.1:1\"", "listne"),
            ("listen = \"nowhere\"", "listen"),
            ("log_format = \"xml\"", "log_format"),
            ("public_url = \"panel\"", "public_url"),
        ] {
            let file = file(text);
            let error = Config::load(Options::default(), Some(file.path()), &|_| None).unwrap_err();
            assert!(format!("{error:#}").contains(named), "{error:#}");
        }
        let names = ["EXITPILOT_LISTN", "PATH", "EXITPILOT_LOG", "EXITPILOT_AGENT_PANEL"];
        assert_eq!(unknown_variables(names.map(str::to_owned).into_iter()), ["EXITPILOT_LISTN"]);
    }

    #[test]
    fn what_is_shown_holds_no_password_and_reads_back() {
        let config = Config {
            database: "postgres://me:topsecret@db/x".into(),
            admin_password: Some("topsecret".into()),
            ..Config::default()
        };
        let text = format!("{config:?}");
        assert!(!text.contains("topsecret"), "{text}");
        let read: Options = toml::from_str(&Config::default().to_toml()).unwrap();
        assert_eq!(read.database, Some(Config::default().database));
    }
}
