//! Credentials of the scheme Basic (RFC 7617).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shared::gost::Auth;

/// The value of `Proxy-Authorization`. Configurations refuse a user name with a colon, which this scheme cannot carry.
pub fn encode(auth: &Auth) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", auth.username, auth.password)))
}

/// Reads the value of `Proxy-Authorization`; `None` if it is anything else.
pub fn decode(value: &[u8]) -> Option<Auth> {
    let (scheme, rest) = value.split_at_checked(5)?;
    let encoded = rest.strip_prefix(b" ")?.trim_ascii();
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (username, password) = text.split_once(':')?;
    Some(Auth { username: username.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_both_ways() {
        let auth = Auth { username: "Aladdin".into(), password: "open:sesame".into() };
        assert_eq!(encode(&auth), "Basic QWxhZGRpbjpvcGVuOnNlc2FtZQ==");
        for value in [encode(&auth), "bAsIc   QWxhZGRpbjpvcGVuOnNlc2FtZQ== ".to_owned()] {
            assert_eq!(decode(value.as_bytes()), Some(auth.clone()));
        }
        let wrong: [&[u8]; 8] =
            [b"", b"Basic", b"Basic ", b"Basic !", b"Basic YQ==", b"Bearer QTpC", b"Basic /zov", b"\xff\xff"];
        for value in wrong {
            assert_eq!(decode(value), None, "{value:?}");
        }
    }
}
