//! HTTP as bytes: heads, what a proxy makes of them, and the ends of bodies.

use crate::Target;
use agent::proxy::http::body::{Body, BodyError};
use agent::proxy::http::head::{self, Wanted};
use agent::proxy::http::{basic, forward};

pub(crate) const TARGET: Target = Target {
    name: "http",
    run: fuzz,
    words: &[
        "\r\n",
        "\r\n\r\n",
        ": ",
        "CONNECT ",
        " HTTP/1.1",
        "http://",
        "Content-Length: ",
        "Transfer-Encoding: chunked",
        "Connection: close, ",
        "Upgrade: ",
        "Host: ",
        "Proxy-Authorization: Basic ",
        "0\r\n\r\n",
        "HTTP/1.1 101 ",
        "ffffffffffffffff",
    ],
};

fn fuzz(bytes: &[u8]) {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let (head, body) = bytes.split_at(end);
    if let Ok(request) = head::request(head) {
        let length = Body::of_request(&request);
        if let Ok(length) = length {
            same_end(length, body);
        }
        if let (Some(Wanted::Plain { authority, path, .. }), Ok(length)) = (request.wanted(), length) {
            let has_body = !length.is_complete();
            let upgrade = forward::wants_upgrade(&request, has_body);
            let passed_on = forward::request(&request, &authority, &path, upgrade);
            // The target must see one request, with the same end.
            let again = head::request(&passed_on).expect("what is passed on is a request");
            assert_eq!(Body::of_request(&again), Ok(length), "{:?}", String::from_utf8_lossy(&passed_on));
            assert_eq!(again.method, request.method);
        }
        for value in request.fields.values("proxy-authorization") {
            if let Some(auth) = basic::decode(value) {
                assert_eq!(basic::decode(basic::encode(&auth).as_bytes()), Some(auth));
            }
        }
    }
    if let Ok(Some((response, length))) = head::response(bytes) {
        assert!(length <= bytes.len());
        for method in ["GET", "HEAD", "CONNECT"] {
            if let Ok(end) = Body::of_response(&response, method) {
                same_end(end, &bytes[length..]);
            }
        }
        let passed_on = forward::response(&response);
        let (again, length) =
            head::response(&passed_on).expect("what is passed on is a response").expect("as a whole");
        assert_eq!((again.code, length), (response.code, passed_on.len()));
    }
}

/// A body ends at the same place, however its bytes are cut.
fn same_end(body: Body, bytes: &[u8]) {
    let (mut whole, mut cut) = (body, body);
    let at_once = whole.take(bytes);
    let mut one_by_one: Result<usize, BodyError> = Ok(0);
    for byte in bytes {
        if cut.is_complete() {
            break;
        }
        let taken = cut.take(std::slice::from_ref(byte));
        one_by_one = one_by_one.and_then(|before| taken.map(|taken| before + taken));
        if one_by_one.is_err() {
            break;
        }
    }
    assert_eq!(at_once, one_by_one);
    if at_once.is_ok() {
        assert_eq!(whole, cut);
    }
}
