//! Commands of a panel, and the check of what they bring.

use super::document;
use crate::Target;
use agent::limit::{LimitKind, check};
use shared::gost::{GostConfig, LimiterConfig};
use shared::link::{Command, Frame};

pub(crate) const TARGET: Target = Target {
    name: "command",
    run: fuzz,
    words: &[
        "{\"type\":\"",
        "AddService",
        "UpdateService",
        "DeleteService",
        "PauseService",
        "ResumeService",
        "AddChains",
        "UpdateChains",
        "DeleteChains",
        "TcpPing",
        "ProbeBatch",
        "ConnectThrough",
        "SetProtocol",
        "AddLimiters",
        "UpdateCLimiters",
        "DeleteRLimiters",
        "\",\"data\":",
        "\"requestId\":\"1_1\"",
        "{\"services\":[\"",
        "{\"chain\":\"",
        "\"name\":\"",
        "\"addr\":\"",
        "\"handler\":{\"type\":\"",
        "\"listener\":{\"type\":\"",
        "\"metadata\":{",
        "\"hops\":[{\"name\":\"",
        "\"nodes\":[{\"name\":\"",
        "\"connector\":{\"type\":\"",
        "\"dialer\":{\"type\":\"",
        "\"selector\":{\"strategy\":\"",
        "\"limits\":[\"$ ",
        "null",
        "true",
        "0",
        "-1",
        "1e9",
        "18446744073709551616",
        "\"}",
        "]}",
        "}}",
    ],
};

fn fuzz(bytes: &[u8]) {
    let Ok(frame) = serde_json::from_slice::<Frame>(bytes) else { return };
    if let Ok(limiter) = serde_json::from_value::<LimiterConfig>(frame.data.clone()) {
        for kind in LimitKind::ALL {
            let _ = check(kind, &limiter);
        }
    }
    let Ok(command) = Command::from_frame(&frame) else { return };
    let again = Command::from_frame(&command.to_frame("1".to_owned())).expect("what we send we can read");
    // What is no command is told by its name alone.
    assert_eq!(again, command);
    let config = match command {
        Command::AddService(services) | Command::UpdateService(services) => {
            GostConfig { services, ..GostConfig::default() }
        }
        Command::AddChains(chain) | Command::UpdateChains(chain) => {
            GostConfig { chains: vec![chain], ..GostConfig::default() }
        }
        _ => return,
    };
    document::check(&config);
}
