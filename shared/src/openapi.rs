//! Schemas of the types that are written as text.

use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

macro_rules! text_schema {
    ($($type:ty => $description:literal),* $(,)?) => {$(
        impl utoipa::PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(SchemaType::new(Type::String))
                    .description(Some($description))
                    .into()
            }
        }
        impl utoipa::ToSchema for $type {}
    )*};
}

text_schema! {
    crate::address::HostPort => "host:port; an IPv6 host is written in brackets",
    crate::strategy::Strategy => "fifo, round, rand, hash, or best (exits only)",
    crate::strategy::Protocol => "tls, wss, tcp, ws, mtls, mwss or mtcp",
}
