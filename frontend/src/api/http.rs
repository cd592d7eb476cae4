//! One request, one answer, or an [`ApiError`].

use super::json::parse;
use super::session;
use js_sys::Uint8Array;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shared::api::Problem;
use shared::field::FieldError;
use std::pin::Pin;
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

/// After this the panel counts as not answering. Saves answer as soon as they are stored, so this is generous.
const DEADLINE_MS: u32 = 15_000;
/// A diagnosis of a big tunnel takes a while; this is for one that hangs.
const STREAM_DEADLINE_MS: u32 = 300_000;

/// Why a request has no good answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// HTTP status; 0 = no answer at all.
    pub status: u16,
    /// What the panel said, if it said it in its way.
    pub problem: Option<Problem>,
    /// Seconds until the next try makes sense (`Retry-After`).
    pub retry_after_s: Option<u32>,
}

impl ApiError {
    fn unreachable() -> Self {
        Self { status: 0, problem: None, retry_after_s: None }
    }

    /// What is wrong with which field.
    pub fn fields(&self) -> &[FieldError] {
        self.problem.as_ref().map_or(&[], |problem| &problem.errors)
    }

    /// Stable code of the kind of problem, `stale_version` for example.
    pub fn kind(&self) -> &str {
        self.problem.as_ref().map_or("", |problem| &problem.kind)
    }

    /// Somebody else changed the same thing first.
    pub fn is_stale(&self) -> bool {
        self.status == 409 && self.kind() == "stale_version"
    }
}

/// The verb of a request.
#[derive(Clone, Copy)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or does something.
    Post,
    /// Changes.
    Put,
    /// Deletes.
    Delete,
}

impl Method {
    fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// The way to the panel: the page's own, or one that was given by whoever shows a screen somewhere else. That one takes
/// a path below the API (`/tunnels`) and what the browser's `fetch` takes, and answers what that answers.
#[derive(Clone, Default)]
pub struct Access(Option<js_sys::Function>);

impl Access {
    /// The given way.
    pub fn by(fetch: js_sys::Function) -> Self {
        Self(Some(fetch))
    }

    /// Sends a request without a body and reads the answer.
    pub async fn call<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, ApiError> {
        read(send(self, method, path.to_owned(), None).await?)
    }

    /// Sends a request with a body and reads the answer.
    pub async fn call_with<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        read(send(self, method, path.to_owned(), Some(json(body)?)).await?)
    }

    fn fetch(&self, path: &str, options: &web_sys::RequestInit) -> Result<js_sys::Promise, JsValue> {
        match &self.0 {
            Some(given) => {
                let answer = given.call2(&JsValue::UNDEFINED, &JsValue::from_str(path), options)?;
                Ok(js_sys::Promise::resolve(&answer))
            }
            None => own_fetch(path, options),
        }
    }
}

/// Asks this page's panel.
pub fn own_fetch(path: &str, options: &web_sys::RequestInit) -> Result<js_sys::Promise, JsValue> {
    let window = web_sys::window().ok_or(JsValue::UNDEFINED)?;
    Ok(window.fetch_with_str_and_init(&format!("/api/v1{path}"), options))
}

/// Sends a request without a body and reads the answer.
pub(super) async fn call<T: DeserializeOwned>(method: Method, path: &str) -> Result<T, ApiError> {
    read(send(&Access::default(), method, path.to_owned(), None).await?)
}

/// Sends a request with a body and reads the answer.
pub(super) async fn call_with<T: DeserializeOwned>(
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> Result<T, ApiError> {
    read(send(&Access::default(), method, path.to_owned(), Some(json(body)?)).await?)
}

/// Sends a request whose answer does not matter.
pub(super) async fn tell(method: Method, path: &str) -> Result<(), ApiError> {
    send(&Access::default(), method, path.to_owned(), None).await.map(drop)
}

/// Sends a request with a body whose answer does not matter.
pub(super) async fn tell_with(method: Method, path: &str, body: &impl Serialize) -> Result<(), ApiError> {
    send(&Access::default(), method, path.to_owned(), Some(json(body)?)).await.map(drop)
}

fn json(body: &impl Serialize) -> Result<Value, ApiError> {
    serde_json::to_value(body).map_err(|error| unreadable(&error))
}

/// All answers are read by way of [`Value`]: reading each type straight from text would put a parser for every type
/// into the page.
fn read<T: DeserializeOwned>(answer: Value) -> Result<T, ApiError> {
    serde_json::from_value(answer).map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::fmt::Display) -> ApiError {
    let problem = Problem {
        kind: "unreadable_answer".into(),
        title: "Unreadable answer".into(),
        status: 200,
        detail: format!("the panel's answer cannot be read: {error}"),
        errors: Vec::new(),
    };
    ApiError { status: 200, problem: Some(problem), retry_after_s: None }
}

type Sent = Pin<Box<dyn Future<Output = Result<Value, ApiError>>>>;

/// Sends a request; an empty answer is null.
fn send(access: &Access, method: Method, path: String, body: Option<Value>) -> Sent {
    let access = access.clone();
    Box::pin(async move {
        let signal = web_sys::AbortSignal::timeout_with_u32(DEADLINE_MS);
        let response = fetch(&access, method, &path, body.map(|body| body.to_string()), &signal).await?;
        let text = response.text().map_err(|_| ApiError::unreachable())?;
        let text = JsFuture::from(text).await.map_err(|_| ApiError::unreachable())?;
        match text.as_string().filter(|text| !text.is_empty()) {
            Some(text) => parse(&text).ok_or_else(|| unreadable(&"it is no JSON")),
            None => Ok(Value::Null),
        }
    })
}

/// The response, or the error that its status says.
async fn fetch(
    access: &Access,
    method: Method,
    path: &str,
    body: Option<String>,
    signal: &web_sys::AbortSignal,
) -> Result<web_sys::Response, ApiError> {
    let lost = |_: JsValue| ApiError::unreachable();
    let options = web_sys::RequestInit::new();
    options.set_method(method.as_str());
    options.set_credentials(web_sys::RequestCredentials::SameOrigin);
    options.set_signal(Some(signal));
    let headers = web_sys::Headers::new().map_err(lost)?;
    headers.set("accept", "application/json").map_err(lost)?;
    if let Some(body) = body {
        headers.set("content-type", "application/json").map_err(lost)?;
        options.set_body(&JsValue::from_str(&body));
    }
    options.set_headers(&headers);
    let response = JsFuture::from(access.fetch(path, &options).map_err(lost)?).await.map_err(lost)?;
    let response: web_sys::Response = response.dyn_into().map_err(lost)?;
    if response.ok() {
        return Ok(response);
    }
    let status = response.status();
    // A refused login says nothing about a session, and neither does somebody else's way.
    if status == 401 && access.0.is_none() && path != "/auth/login" {
        session::lost();
    }
    let retry_after_s =
        response.headers().get("retry-after").ok().flatten().and_then(|text| text.parse().ok());
    let text = match response.text() {
        Ok(text) => JsFuture::from(text).await.ok().and_then(|text| text.as_string()).unwrap_or_default(),
        Err(_) => String::new(),
    };
    Err(ApiError { status, problem: problem_of(&text), retry_after_s })
}

fn problem_of(text: &str) -> Option<Problem> {
    read(parse(text)?).ok()
}

/// Stops a stream when it is dropped: nobody reads it any more.
pub struct StreamGuard(web_sys::AbortController);

impl StreamGuard {
    /// A guard for one stream.
    pub fn new() -> Option<Self> {
        web_sys::AbortController::new().ok().map(Self)
    }

    fn signal(&self) -> web_sys::AbortSignal {
        let ended = web_sys::AbortSignal::timeout_with_u32(STREAM_DEADLINE_MS);
        let both = js_sys::Array::of2(&self.0.signal(), &ended);
        web_sys::AbortSignal::any(&both)
    }

    /// The signal to hand to [`lines`]; the guard itself stays with whoever may close the stream.
    pub fn handle(&self) -> StreamHandle {
        StreamHandle(self.signal())
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What a stream listens to in order to stop.
pub struct StreamHandle(web_sys::AbortSignal);

/// POSTs and reads the answer line by line as it comes (NDJSON). Lines that are no `T` are passed over.
pub(super) async fn lines<T: DeserializeOwned>(
    path: &str,
    handle: StreamHandle,
    mut on_line: impl FnMut(T),
) -> Result<(), ApiError> {
    let lost = |_: JsValue| ApiError::unreachable();
    let response = fetch(&Access::default(), Method::Post, path, None, &handle.0).await?;
    let stream = response.body().ok_or_else(ApiError::unreachable)?;
    let reader: web_sys::ReadableStreamDefaultReader = stream.get_reader().unchecked_into();
    let mut buffer: Vec<u8> = Vec::new();
    loop {
        let part = JsFuture::from(reader.read()).await.map_err(lost)?;
        let field = |name: &str| js_sys::Reflect::get(&part, &JsValue::from_str(name)).ok();
        if let Some(bytes) = field("value").and_then(|value| value.dyn_into::<Uint8Array>().ok()) {
            buffer.extend(bytes.to_vec());
        }
        let done = field("done").is_some_and(|done| done.is_truthy());
        if done {
            buffer.push(b'\n');
        }
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let value = std::str::from_utf8(&line).ok().and_then(parse);
            if let Some(Ok(value)) = value.map(read) {
                on_line(value);
            }
        }
        if done {
            return Ok(());
        }
    }
}
