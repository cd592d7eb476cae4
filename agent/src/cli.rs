//! The command line.

use crate::api::ApiOptions;
use crate::clash::ClashOptions;
use crate::link::{PanelAddress, Secret};
use anyhow::Context as _;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Relays traffic on a node, as a panel or a file says.
#[derive(Debug, Parser)]
#[command(
    name = "exitpilot-agent",
    version,
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Action>,
    /// Run this file (GOST's YAML or JSON) without a panel; SIGHUP reads it again.
    #[arg(short = 'C', value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder in which the members that persons choose in groups are kept; without it they are forgotten at the end.
    #[arg(long, value_name = "FOLDER", requires = "config")]
    pub state_dir: Option<PathBuf>,
    /// The agent's own HTTP API.
    #[command(flatten)]
    pub api: ApiArgs,
    /// The API that dashboards made for Clash speak.
    #[command(flatten)]
    pub clash: ClashArgs,
    /// Form of the log on standard error.
    #[arg(long, value_enum, default_value_t, global = true, env = "EXITPILOT_AGENT_LOG")]
    pub log: LogForm,
}

/// Arguments of the API.
#[derive(Debug, Args)]
pub struct ApiArgs {
    /// Serve the API and metrics on this address, such as 127.0.0.1:18081. Other than loopback needs a token.
    #[arg(long, global = true, value_name = "ADDRESS", env = "EXITPILOT_AGENT_API")]
    api: Option<SocketAddr>,
    /// File with the token that requests have to carry.
    #[arg(long, global = true, value_name = "FILE", env = "EXITPILOT_AGENT_API_TOKEN_FILE")]
    api_token_file: Option<PathBuf>,
    /// The token itself: only from the environment, since others can read a command line.
    #[arg(skip = std::env::var("EXITPILOT_AGENT_API_TOKEN").ok())]
    api_token: Option<String>,
}

impl ApiArgs {
    /// What to serve, if anything.
    pub fn options(&self) -> anyhow::Result<Option<ApiOptions>> {
        let Some(address) = self.api else { return Ok(None) };
        let token = trimmed("the API token", self.api_token_file.as_deref(), self.api_token.as_deref())?;
        Ok(Some(ApiOptions { address, token }))
    }
}

/// A secret from a file or, if there is none, from the environment. One that is there is not empty.
fn trimmed(what: &str, file: Option<&Path>, given: Option<&str>) -> anyhow::Result<Option<String>> {
    let text = match file {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {what} from {}", path.display()))?,
        ),
        None => given.map(str::to_owned),
    };
    let text = text.map(|text| text.trim().to_owned());
    anyhow::ensure!(text.as_deref() != Some(""), "{what} is empty");
    Ok(text)
}

/// Arguments of the API for dashboards.
#[derive(Debug, Args)]
pub struct ClashArgs {
    /// Serve the API that dashboards made for Clash speak on this address, such as 127.0.0.1:9090. Needs a secret.
    #[arg(long, global = true, value_name = "ADDRESS", env = "EXITPILOT_AGENT_CLASH_API")]
    clash_api: Option<SocketAddr>,
    /// File with the secret that dashboards have to give; or the variable EXITPILOT_AGENT_CLASH_SECRET.
    #[arg(long, global = true, value_name = "FILE", env = "EXITPILOT_AGENT_CLASH_SECRET_FILE")]
    clash_secret_file: Option<PathBuf>,
    /// Let pages of this origin, such as https://dashboard.example, use it from within a browser. May be given several times.
    #[arg(
        long,
        global = true,
        value_name = "ORIGIN",
        env = "EXITPILOT_AGENT_CLASH_ALLOW_ORIGIN",
        value_delimiter = ','
    )]
    clash_allow_origin: Vec<String>,
    /// The secret itself: only from the environment, since others can read a command line.
    #[arg(skip = std::env::var("EXITPILOT_AGENT_CLASH_SECRET").ok())]
    clash_secret: Option<String>,
}

impl ClashArgs {
    /// What to serve, if anything. Never without a secret.
    pub fn options(&self) -> anyhow::Result<Option<ClashOptions>> {
        let Some(address) = self.clash_api else { return Ok(None) };
        let (file, given) = (self.clash_secret_file.as_deref(), self.clash_secret.as_deref());
        let secret = trimmed("the secret of the Clash API", file, given)?.context(
            "the Clash API needs a secret: --clash-secret-file FILE or EXITPILOT_AGENT_CLASH_SECRET",
        )?;
        Ok(Some(ClashOptions { address, secret, origins: self.clash_allow_origin.clone() }))
    }
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Obey a panel.
    Run(RunArgs),
    /// Validate a file and say every problem; nothing is started.
    Check {
        /// The file.
        #[arg(short = 'C', value_name = "FILE")]
        config: PathBuf,
    },
    /// Print a completion script.
    Completion {
        /// For this shell.
        shell: clap_complete::Shell,
    },
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// host:port, ws://host[:port][/prefix] or wss://…; without a scheme wss is tried before ws.
    #[arg(long, env = "EXITPILOT_AGENT_PANEL")]
    pub panel: PanelAddress,
    /// Secret of this node. Others on the machine can read a command line: prefer --secret-file or the variable.
    #[arg(long, env = "EXITPILOT_AGENT_SECRET", hide_env_values = true, conflicts_with = "secret_file")]
    secret: Option<String>,
    /// File with the secret of this node.
    #[arg(long, env = "EXITPILOT_AGENT_SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// PEM file of a further certificate authority for wss.
    #[arg(long, env = "EXITPILOT_AGENT_PANEL_CA", value_name = "FILE")]
    pub panel_ca: Option<PathBuf>,
    /// Folder of the last accepted configuration.
    #[arg(long, env = "EXITPILOT_AGENT_STATE_DIR", default_value = "/var/lib/exitpilot-agent")]
    pub state_dir: PathBuf,
    /// Let the panel write probes that run commands on this machine, as the user of the agent.
    #[arg(long, env = "EXITPILOT_AGENT_ALLOW_PROBE_COMMANDS")]
    pub allow_probe_commands: bool,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl RunArgs {
    /// The secret from wherever it was given.
    pub fn secret(&self) -> anyhow::Result<Secret> {
        let text = match (&self.secret, &self.secret_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the secret from {}", path.display()))?,
            (None, None) => anyhow::bail!(
                "give the node secret: --secret-file FILE, EXITPILOT_AGENT_SECRET or --secret SECRET"
            ),
        };
        Secret::new(&text).context("the node secret is empty")
    }
}

/// The completion script for `shell`.
pub fn completion(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "exitpilot-agent", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        assert!(!completion(clap_complete::Shell::Bash).is_empty());
    }

    #[test]
    fn both_ways_to_run() {
        let cli = parse("exitpilot-agent run --panel panel.example:6365 --secret 00ff --log json").unwrap();
        assert_eq!(cli.log, LogForm::Json);
        let Some(Action::Run(args)) = cli.command else { panic!("not run") };
        assert!(!args.allow_probe_commands, "only when asked for");
        assert_eq!(args.secret().unwrap(), Secret::new("00ff").unwrap());
        let cli = parse("exitpilot-agent -C gost.yaml").unwrap();
        assert!(cli.command.is_none() && cli.config.is_some());
        for wrong in [
            "exitpilot-agent",
            "exitpilot-agent -C gost.yaml run --panel a:1 --secret x",
            "exitpilot-agent run --panel http://a --secret x",
            "exitpilot-agent run --panel a:1 --secret x --secret-file y",
            "exitpilot-agent check",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn without_a_secret_dashboards_are_not_served() {
        let options = |line: &str| parse(line).unwrap().clash.options();
        assert!(options("exitpilot-agent -C gost.yaml").unwrap().is_none(), "only when asked for");
        let file = tempfile::NamedTempFile::new().unwrap();
        let serve = "exitpilot-agent -C gost.yaml --clash-api 127.0.0.1:0";
        let error = options(serve).unwrap_err().to_string();
        assert!(error.starts_with("the Clash API needs a secret: --clash-secret-file"), "{error}");
        let from_file = format!("{serve} --clash-secret-file {}", file.path().display());
        assert_eq!(options(&from_file).unwrap_err().to_string(), "the secret of the Clash API is empty");
        std::fs::write(file.path(), "s3cret\n").unwrap();
        let origins = "--clash-allow-origin https://a.example --clash-allow-origin http://b.example:81";
        let options = options(&format!("{from_file} {origins}")).unwrap().unwrap();
        assert_eq!((options.secret.as_str(), options.origins.len()), ("s3cret", 2));
        assert!(!format!("{options:?}").contains("s3cret"));
    }

    #[test]
    fn the_secret_is_read_from_a_file_and_never_blank() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = format!("exitpilot-agent run --panel a:1 --secret-file {}", file.path().display());
        let secret = || match parse(&line).unwrap().command {
            Some(Action::Run(args)) => args.secret(),
            _ => panic!("not run"),
        };
        assert!(secret().is_err());
        std::fs::write(file.path(), "00ff\n").unwrap();
        assert_eq!(secret().unwrap(), Secret::new("00ff").unwrap());
    }
}
