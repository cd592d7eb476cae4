//! Addresses, ports and names as people type them.

use crate::Target;
use agent::link::PanelAddress;
use agent::net::{Interface, ListenAddress};
use shared::address::{HostPort, PortRange, validate_host};
use shared::strategy::{Protocol, Strategy};

pub(crate) const TARGET: Target = Target {
    name: "address",
    run: fuzz,
    words: &[
        "localhost",
        "192.0.2.1",
        "[2001:db8::1]",
        "::ffff:1.2.3.4",
        "fe80::1%eth0",
        ":443",
        ":0",
        ":65536",
        "ws://",
        "wss://",
        "/",
        ".",
        "-",
        "_",
        "10000-60000",
        ",",
        "%",
        "a.example",
        "xn--a",
    ],
};

fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(address) = HostPort::parse(text) {
        assert_eq!(HostPort::parse(&address.to_string()).as_ref(), Ok(&address));
        assert!(address.port > 0 && validate_host(&address.host).is_ok());
        let json = serde_json::to_string(&address).expect("an address can be written");
        assert_eq!(serde_json::from_str::<HostPort>(&json).ok(), Some(address));
    }
    if validate_host(text).is_ok() {
        let address = HostPort::new(text, 1);
        assert_eq!(HostPort::parse(&address.to_string()), Ok(address));
        assert!(!text.contains(|c: char| c.is_control() || c.is_whitespace()));
    }
    if let Ok(ports) = PortRange::parse(text) {
        let again = PortRange::parse(&ports.to_string());
        assert_eq!(again.as_ref(), Ok(&ports));
        let first = ports.ports().next().expect("there is one at least");
        assert!(first > 0 && ports.contains(first));
    }
    if let Ok(panel) = text.parse::<PanelAddress>() {
        for scheme in panel.schemes(None) {
            let again: PanelAddress = panel.shown(scheme).parse().expect("what is shown can be typed");
            assert_eq!((again.at(), again.schemes(None)), (panel.at(), vec![scheme]));
        }
    }
    if let Ok(listen) = ListenAddress::parse(text) {
        assert!(
            text.ends_with(&listen.port().to_string())
                || text.rsplit(':').next().is_some_and(|p| p.starts_with('0'))
        );
    }
    let _ = Interface::parse(text);
    assert_eq!(String::from(Protocol::from(text)), text);
    assert_eq!(Strategy::from(Strategy::from(text).as_str()), Strategy::from(text));
}
