//! Identifiers. A newtype per noun, so that a node id never stands where a tunnel id is meant.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                s.parse().map(Self)
            }
        }
    };
}

id!(
    /// A server with an agent.
    NodeId
);
id!(
    /// A path: entry group, middle hop groups, exit group.
    TunnelId
);
id!(
    /// A listening port on the entry nodes of a tunnel.
    ForwardId
);
id!(
    /// Somebody who may log in.
    UserId
);
