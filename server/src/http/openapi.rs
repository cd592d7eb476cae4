//! The OpenAPI document: generated from the handlers, completed with what all of them have in common.

use shared::api::Problem;
use shared::best_exit::settings::RANGES;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{Number, OpenApi as _};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "ExitPilot",
        description = "Control panel for traffic-forwarding networks. Times are UTC milliseconds. Errors are \
            `application/problem+json`.",
        license(name = "MIT OR Apache-2.0")
    ),
    // What a reason refers to is not followed, because reasons hold reasons.
    components(schemas(Problem, shared::best_exit::Why, shared::best_exit::LegName, shared::best_exit::Trigger)),
    security(("bearer" = []), ("session" = []))
)]
struct Head;

/// The document before the handlers are added.
pub(crate) fn head() -> OpenApi {
    Head::openapi()
}

/// Adds the ways to log in, and the error answer of every operation.
pub(crate) fn complete(mut document: OpenApi) -> OpenApi {
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    let cookie = ApiKey::Cookie(ApiKeyValue::new(super::session::COOKIE));
    components.add_security_scheme("session", SecurityScheme::ApiKey(cookie));

    // Files with unknown settings are refused, hence `additionalProperties: false`; the answer that has all of them and
    // their version besides would contradict it.
    if let Some(RefOr::T(Schema::Object(settings))) = components.schemas.get_mut("Settings") {
        settings.additional_properties = None;
    }

    // The same numbers that are checked.
    for name in ["Settings", "SettingsInput"] {
        if let Some(RefOr::T(Schema::Object(settings))) = components.schemas.get_mut(name) {
            for range in RANGES {
                if let Some(RefOr::T(Schema::Object(number))) = settings.properties.get_mut(range.field) {
                    number.minimum = Some(Number::Float(range.min));
                    number.maximum = Some(Number::Float(range.max));
                }
            }
        }
    }

    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let response = ResponseBuilder::new()
        .description("What went wrong")
        .content(crate::error::PROBLEM_JSON, problem)
        .build();
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            operation.responses.responses.insert("default".to_owned(), RefOr::T(response.clone()));
        }
    }
    document
}
