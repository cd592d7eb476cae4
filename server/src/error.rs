//! What a request can fail with, and the one place where that becomes an HTTP answer.

use crate::store::{StoreError, Taken};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use shared::api::Problem;
use shared::field::FieldError;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The body or the query cannot be parsed.
    #[error("{0}")]
    Malformed(String),
    /// No session, or one that has ended.
    #[error("log in first")]
    Unauthenticated,
    /// User name or password are wrong.
    #[error("user name or password are wrong")]
    WrongPassword,
    /// A viewer wants to change something.
    #[error("your role may only read")]
    Forbidden,
    /// A write with the session cookie from another site.
    #[error("the request comes from another site; use a bearer token for programs")]
    BadOrigin,
    /// There is no such thing.
    #[error("{0} does not exist")]
    NotFound(String),
    /// The path exists, the method does not.
    #[error("this path does not know this method")]
    MethodNotAllowed,
    /// Somebody else's edit came first.
    #[error("{what} was changed by another edit in the meantime (version {stored}); load it again")]
    StaleVersion {
        /// What was edited.
        what: &'static str,
        /// The version stored now.
        stored: i64,
    },
    /// What is to be deleted is in use.
    #[error("{0}")]
    InUse(String),
    /// The body is too large.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// Fields of the body or the query are wrong; nothing was stored.
    #[error("some fields are invalid")]
    Invalid(Vec<FieldError>),
    /// Too many attempts.
    #[error("too many attempts; try again in {retry_after_s} s")]
    Throttled {
        /// When the next attempt is possible.
        retry_after_s: u64,
    },
    /// As many of its kind run as there is room for.
    #[error("too much of this is being computed already; try again")]
    Busy,
    /// It took too long and was given up; nothing of it was stored.
    #[error("the panel is too busy; try again")]
    TimedOut,
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A defect; the text is for the log only.
    #[error("internal error")]
    Internal(#[source] anyhow::Error),
}

/// Media type of RFC 9457.
pub const PROBLEM_JSON: &str = "application/problem+json";
/// When a request that met a busy panel or an unavailable database may be repeated, in seconds.
const UNAVAILABLE_RETRY_S: u64 = 5;

impl AppError {
    /// One wrong field.
    pub fn field(field: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        AppError::Invalid(vec![FieldError::new(field, code, message)])
    }

    /// Status, stable code and title.
    fn kind(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            AppError::Malformed(_) => (StatusCode::BAD_REQUEST, "malformed_json", "Malformed request"),
            AppError::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated", "Not logged in"),
            AppError::WrongPassword => (StatusCode::UNAUTHORIZED, "wrong_password", "Login failed"),
            AppError::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "Not allowed"),
            AppError::BadOrigin => (StatusCode::FORBIDDEN, "bad_origin", "Wrong origin"),
            AppError::NotFound(_) => (StatusCode::NOT_FOUND, "not_found", "Not found"),
            AppError::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed")
            }
            AppError::StaleVersion { .. } => (StatusCode::CONFLICT, "stale_version", "Edited meanwhile"),
            AppError::InUse(_) => (StatusCode::CONFLICT, "in_use", "Still in use"),
            AppError::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "Body too large"),
            AppError::Invalid(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid_fields", "Some fields are invalid")
            }
            AppError::Throttled { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "too_many_attempts", "Too many attempts")
            }
            AppError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Too busy"),
            AppError::TimedOut => (StatusCode::SERVICE_UNAVAILABLE, "timeout", "Too busy"),
            AppError::Store(StoreError::Unavailable { .. }) => {
                (StatusCode::SERVICE_UNAVAILABLE, "database_unavailable", "Database not available")
            }
            AppError::Store(StoreError::Taken(_)) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid_fields", "Some fields are invalid")
            }
            AppError::Store(StoreError::Reference) => (StatusCode::CONFLICT, "in_use", "Still in use"),
            AppError::Store(StoreError::Unreadable { .. } | StoreError::Failed(_))
            | AppError::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        }
    }

    /// The answer's body.
    pub fn problem(&self) -> Problem {
        let (status, kind, title) = self.kind();
        let (detail, errors) = match self {
            AppError::Invalid(errors) => {
                let text = errors.iter().map(FieldError::to_string).collect::<Vec<_>>().join("; ");
                (text, errors.clone())
            }
            AppError::Store(StoreError::Taken(taken)) => {
                let error = taken_field(*taken);
                (error.to_string(), vec![error])
            }
            // Causes may name paths of the machine: they are for the log.
            AppError::Store(StoreError::Unreadable { .. } | StoreError::Failed(_)) => {
                ("something went wrong inside the panel; its log says what".to_owned(), Vec::new())
            }
            other => (other.to_string(), Vec::new()),
        };
        Problem { kind: kind.to_owned(), title: title.to_owned(), status: status.as_u16(), detail, errors }
    }
}

/// A race for something unique ends like the validation that came too early to see it.
fn taken_field(taken: Taken) -> FieldError {
    match taken {
        Taken::NodeName => FieldError::new("name", "name_taken", "another node has this name"),
        Taken::TunnelName => FieldError::new("name", "name_taken", "another tunnel has this name"),
        Taken::Username => FieldError::new("username", "name_taken", "another user has this name"),
        Taken::Port => FieldError::new("port", "port_taken", "the port is used by something else"),
        Taken::Other => FieldError::new("", "taken", "it exists already"),
    }
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        let (status, kind, _) = self.kind();
        if status.is_server_error() {
            let error = anyhow::Error::from(self);
            tracing::error!(error.kind = kind, "a request failed: {error:#}");
            return answer(&error.downcast::<AppError>().unwrap_or_else(AppError::Internal));
        }
        answer(&self)
    }
}

fn answer(error: &AppError) -> Response {
    let (status, ..) = error.kind();
    let mut response = (status, axum::Json(error.problem())).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    match error {
        AppError::Throttled { retry_after_s } => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(*retry_after_s));
        }
        AppError::Busy | AppError::TimedOut | AppError::Store(StoreError::Unavailable { .. }) => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(UNAVAILABLE_RETRY_S));
        }
        AppError::Unauthenticated => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    response
}
