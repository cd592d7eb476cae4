//! The OpenAPI document.

use crate::panel::Panel;
use axum::http::Method;
use serde_json::Value;

/// A change of the API cannot land unseen: `UPDATE=1 cargo test -p server --test api document` writes the file anew.
#[tokio::test]
async fn the_document_is_the_committed_one_and_is_served() {
    let text = format!("{}\n", server::http::document().to_pretty_json().unwrap());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).unwrap();
        std::fs::write(path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(committed == text, "docs/openapi.json is not what the code says; see the comment of this test");

    let panel = Panel::new().await;
    let served = panel.call(Method::GET, "/api/openapi.json").send().await;
    assert_eq!(served.json(), serde_json::from_str::<Value>(&text).unwrap());
}

#[test]
fn every_operation_says_what_it_answers_and_how_it_fails() {
    let document = serde_json::to_value(server::http::document()).unwrap();
    assert_eq!(document["openapi"].as_str().map(|version| &version[..3]), Some("3.1"));
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("default"), "{method} {path}");
            assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path}");
            assert!(operation["summary"].is_string(), "{method} {path}");
        }
    }
}

/// A part of an `allOf` that forbids other fields would forbid those of the other parts.
#[test]
fn parts_of_a_whole_allow_each_other() {
    let document = serde_json::to_value(server::http::document()).unwrap();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let target = part["$ref"].as_str().map(|target| document.pointer(&target[1..]).unwrap());
            assert_ne!(target.unwrap_or(part)["additionalProperties"], false, "{name}");
        }
    }
}

/// Every `$ref` leads somewhere.
#[test]
fn references_resolve() {
    fn check(value: &Value, document: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                    let pointer = target.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{target}");
                }
                fields.values().for_each(|field| check(field, document));
            }
            Value::Array(items) => items.iter().for_each(|item| check(item, document)),
            _ => {}
        }
    }
    let document = serde_json::to_value(server::http::document()).unwrap();
    check(&document, &document);
}
