//! Heads as a proxy passes them on: without what was meant for the proxy. Pure.

use super::head::{Fields, RequestHead, ResponseHead};

/// Fields that concern one connection only (RFC 9110, section 7.6.1), and those by which client and proxy know each other.
/// `Transfer-Encoding` is not among them, since bodies are passed on as they are.
const OF_ONE_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];
/// `Connection` may name any field as one of its kind, but not those that say where the body ends.
const OF_THE_BODY: [&str; 2] = ["content-length", "transfer-encoding"];

/// Whether a request wants to change the protocol. One with a body does not get its wish, which every server may deny.
pub fn wants_upgrade(head: &RequestHead, has_body: bool) -> bool {
    let named = head.fields.values("upgrade").next().is_some();
    head.minor == 1 && !has_body && named && head.fields.lists("connection", "upgrade")
}

/// A request as its target gets it. The connection is used for nothing else afterwards.
pub fn request(head: &RequestHead, authority: &str, path: &str, upgrade: bool) -> Vec<u8> {
    let mut out = format!("{} {path} HTTP/1.{}\r\n", head.method, head.minor).into_bytes();
    // What the client wrote into `Host` does not count (RFC 9112, section 3.2.2).
    push(&mut out, "Host", authority.as_bytes());
    pass(&mut out, &head.fields, &["host"]);
    end(&mut out, &head.fields, upgrade);
    out
}

/// A response as the client gets it.
pub fn response(head: &ResponseHead) -> Vec<u8> {
    let mut out = format!("HTTP/1.{} {:03} {}\r\n", head.minor, head.code, head.reason).into_bytes();
    pass(&mut out, &head.fields, &[]);
    if head.code == 101 || head.code >= 200 {
        end(&mut out, &head.fields, head.code == 101);
    } else {
        // An interim response says nothing about the connection.
        out.extend(b"\r\n");
    }
    out
}

/// The fields that go further.
fn pass(out: &mut Vec<u8>, fields: &Fields, without: &[&str]) {
    let is_one_of = |name: &str, names: &[&str]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    for (name, value) in fields.iter() {
        let named = || fields.lists("connection", name) && !is_one_of(name, &OF_THE_BODY);
        if !is_one_of(name, without) && !is_one_of(name, &OF_ONE_CONNECTION) && !named() {
            push(out, name, value);
        }
    }
}

fn end(out: &mut Vec<u8>, fields: &Fields, upgrade: bool) {
    if upgrade {
        push(out, "Connection", b"Upgrade");
        fields.values("upgrade").for_each(|value| push(out, "Upgrade", value));
    } else {
        push(out, "Connection", b"close");
    }
    out.extend(b"\r\n");
}

fn push(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend(name.as_bytes());
    out.extend(b": ");
    out.extend(value);
    out.extend(b"\r\n");
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
