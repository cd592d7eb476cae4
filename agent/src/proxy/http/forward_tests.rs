use super::*;
use crate::proxy::http::head;

fn forwarded(text: &str, upgrade: bool) -> String {
    let head = head::request(text.replace('\n', "\r\n").as_bytes()).unwrap();
    String::from_utf8(request(&head, "example.com:81", "/p", upgrade)).unwrap().replace("\r\n", "\n")
}

fn answered(text: &str) -> String {
    let text = text.replace('\n', "\r\n");
    let (head, _) = head::response(text.as_bytes()).unwrap().unwrap();
    String::from_utf8(response(&head)).unwrap().replace("\r\n", "\n")
}

#[test]
fn what_was_meant_for_the_proxy_goes_no_further() {
    let from_client = "GET http://example.com:81/p HTTP/1.1\nHost: forged.example\nUser-Agent: a b\n\
        Proxy-Authorization: Basic dTpw\nproxy-connection: keep-alive\nConnection: keep-alive, X-Own, Content-Length\n\
        Keep-Alive: timeout=5\nTE: trailers\nX-Own: 1\nX-Other: 2\nUpgrade: h2c\nContent-Length: 3\nCookie: c=d\n\n";
    assert_eq!(
        forwarded(from_client, false),
        "GET /p HTTP/1.1\nHost: example.com:81\nUser-Agent: a b\nX-Other: 2\nContent-Length: 3\nCookie: c=d\n\
         Connection: close\n\n"
    );
}

#[test]
fn an_upgrade_is_passed_on() {
    let text = "GET http://example.com:81/p HTTP/1.1\nHost: a\nConnection: keep-alive, Upgrade\nUpgrade: websocket\n\
        Sec-WebSocket-Key: k\n\n";
    let head = head::request(text.replace('\n', "\r\n").as_bytes()).unwrap();
    assert!(wants_upgrade(&head, false) && !wants_upgrade(&head, true));
    assert_eq!(
        forwarded(text, true),
        "GET /p HTTP/1.1\nHost: example.com:81\nSec-WebSocket-Key: k\nConnection: Upgrade\nUpgrade: websocket\n\n"
    );
    for text in [
        "GET http://a/ HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nConnection: upgrade\r\n\r\n",
        "GET http://a/ HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ] {
        assert!(!wants_upgrade(&head::request(text.as_bytes()).unwrap(), false), "{text}");
    }
}

#[test]
fn answers() {
    assert_eq!(
        answered(
            "HTTP/1.1 200 OK\nServer: s\nConnection: keep-alive\nKeep-Alive: timeout=5\n\
            Transfer-Encoding: chunked\nProxy-Authenticate: Basic\n\n"
        ),
        "HTTP/1.1 200 OK\nServer: s\nTransfer-Encoding: chunked\nConnection: close\n\n"
    );
    assert_eq!(answered("HTTP/1.1 100 Continue\n\n"), "HTTP/1.1 100 Continue\n\n");
    assert_eq!(
        answered(
            "HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Accept: a\n\n"
        ),
        "HTTP/1.1 101 Switching Protocols\nSec-WebSocket-Accept: a\nConnection: Upgrade\nUpgrade: websocket\n\n"
    );
    assert_eq!(answered("HTTP/1.0 404\n\n"), "HTTP/1.0 404 \nConnection: close\n\n");
}
