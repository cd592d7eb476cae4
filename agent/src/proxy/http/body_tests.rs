use super::*;
use crate::proxy::http::head;
use proptest::prelude::*;

fn of_request(fields: &str) -> Result<Body, BodyError> {
    let text = format!("POST http://a/ HTTP/1.1\r\n{fields}\r\n");
    Body::of_request(&head::request(text.as_bytes()).unwrap())
}

fn of_response(code: u16, fields: &str, method: &str) -> Result<Body, BodyError> {
    let text = format!("HTTP/1.1 {code} X\r\n{fields}\r\n");
    Body::of_response(&head::response(text.as_bytes()).unwrap().unwrap().0, method)
}

#[test]
fn bodies_of_requests() {
    let cases = [
        ("", Ok(Body::Length(0))),
        ("Content-Length: 7\r\n", Ok(Body::Length(7))),
        ("Content-Length: 7\r\nContent-Length: 7\r\n", Ok(Body::Length(7))),
        ("Content-Length: 7, 7\r\n", Ok(Body::Length(7))),
        ("Transfer-Encoding: Chunked\r\n", Ok(Body::Chunked(FIRST_CHUNK))),
        ("Content-Length: 7\r\nContent-Length: 8\r\n", Err(BodyError::Unclear)),
        ("Content-Length: +7\r\n", Err(BodyError::Unclear)),
        ("Content-Length: 99999999999999999999\r\n", Err(BodyError::Unclear)),
        ("Content-Length: 7\r\nTransfer-Encoding: chunked\r\n", Err(BodyError::Unclear)),
        ("Transfer-Encoding: gzip, chunked\r\n", Err(BodyError::Unclear)),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", Err(BodyError::Unclear)),
        ("Transfer-Encoding: identity\r\n", Err(BodyError::Unclear)),
    ];
    for (fields, expected) in cases {
        assert_eq!(of_request(fields), expected, "{fields}");
    }
    let old = head::request(b"POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    assert_eq!(Body::of_request(&old), Err(BodyError::Unclear));
}

#[test]
fn bodies_of_responses() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    let cases = [
        (200, "", "GET", Ok(Body::UntilEnd)),
        (200, "Content-Length: 7\r\n", "GET", Ok(Body::Length(7))),
        (200, "Content-Length: 7\r\n", "HEAD", Ok(Body::Length(0))),
        (304, "Content-Length: 7\r\n", "GET", Ok(Body::Length(0))),
        (204, chunked, "GET", Ok(Body::Length(0))),
        (101, "", "GET", Ok(Body::Length(0))),
        (200, chunked, "GET", Ok(Body::Chunked(FIRST_CHUNK))),
        (200, "Transfer-Encoding: gzip, chunked\r\n", "GET", Ok(Body::Chunked(FIRST_CHUNK))),
        (200, "Transfer-Encoding: gzip\r\nContent-Length: 7\r\n", "GET", Ok(Body::UntilEnd)),
        (200, "Content-Length: x\r\n", "GET", Err(BodyError::Unclear)),
    ];
    for (code, fields, method, expected) in cases {
        assert_eq!(of_response(code, fields, method), expected, "{code} {fields} {method}");
    }
}

#[test]
fn chunks() {
    let whole: [&[u8]; 6] = [
        b"0\r\n\r\n",
        b"4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n",
        b"4;name=value\r\nWiki\r\n0;x\r\nExpires: never\r\nA: b\r\n\r\n",
        b"00a \r\n0123456789\r\n0\r\n\r\n",
        b"A\n0123456789\n0\n\n",
        b"1\r\n\n\r\n000\r\n\r\n",
    ];
    for bytes in whole {
        // In every pair of pieces, and with bytes behind that are none of its.
        for cut in 0..=bytes.len() {
            let mut body = Body::Chunked(FIRST_CHUNK);
            assert_eq!(body.take(&bytes[..cut]), Ok(cut), "{bytes:?} at {cut}");
            assert_eq!(body.is_complete(), cut == bytes.len());
            let rest = [&bytes[cut..], b"GET /"].concat();
            assert_eq!(body.take(&rest), Ok(bytes.len() - cut));
            assert!(body.is_complete());
            assert_eq!(body.take(b"x"), Ok(0));
        }
    }
    let broken: [&[u8]; 6] =
        [b"\r\n", b"x\r\n", b"-1\r\n", b"2\r\nabc", b"11111111111111111\r\n", b"1 \r\na1\r\n"];
    for bytes in broken {
        assert_eq!(Body::Chunked(FIRST_CHUNK).take(bytes), Err(BodyError::Chunk), "{bytes:?}");
    }
}

#[test]
fn a_length_is_kept_to() {
    let mut body = Body::Length(5);
    assert_eq!(body.take(b"abc"), Ok(3));
    assert!(!body.is_complete());
    assert_eq!(body.take(b"defg"), Ok(2));
    assert!(body.is_complete());
    let mut body = Body::UntilEnd;
    assert_eq!(body.take(b"abc"), Ok(3));
    assert!(!body.is_complete());
}

proptest! {
    #[test]
    fn what_was_chunked_ends_where_it_ends(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6), rest: Vec<u8>) {
        let mut bytes = Vec::new();
        for chunk in chunks {
            bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        let end = bytes.len();
        bytes.extend(rest);
        let mut body = Body::Chunked(FIRST_CHUNK);
        prop_assert_eq!(body.take(&bytes), Ok(end));
        prop_assert!(body.is_complete());
    }

    #[test]
    fn no_bytes_make_it_panic_or_take_what_is_not_there(bytes: Vec<u8>, length: u64) {
        for mut body in [Body::Chunked(FIRST_CHUNK), Body::Length(length), Body::UntilEnd] {
            if let Ok(taken) = body.take(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
