//! Heads of requests and responses: reading them, and what they say. Pure.

use shared::address::HostPort;

/// Bytes of a head at most; what browsers and servers keep to is a quarter of it or less.
pub const MAX_HEAD: usize = 64 * 1024;
/// Fields of a head at most.
const MAX_FIELDS: usize = 128;

/// Why bytes are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// It has more bytes or fields than are taken.
    #[error("the head is too large")]
    TooLarge,
    /// Not HTTP/1.
    #[error("not HTTP: {0}")]
    Malformed(httparse::Error),
    /// It ends in the middle.
    #[error("the head is cut off")]
    CutOff,
}

/// The fields of a head, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Vec<u8>)>);

impl Fields {
    fn of(parsed: &[httparse::Header<'_>]) -> Self {
        Self(parsed.iter().map(|field| (field.name.to_owned(), field.value.to_vec())).collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// The values of all with this name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The members of all lists with this name.
    pub fn members<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let split = |value: &'a [u8]| value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        self.values(name).flat_map(split).filter(|member| !member.is_empty())
    }

    /// Whether a list with this name has this member.
    pub fn lists(&self, name: &str, member: &str) -> bool {
        self.members(name).any(|other| other.eq_ignore_ascii_case(member.as_bytes()))
    }
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// As sent: methods have case.
    pub method: String,
    /// What stands between method and version.
    pub target: String,
    /// 0 or 1.
    pub minor: u8,
    /// The fields.
    pub fields: Fields,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// 0 or 1.
    pub minor: u8,
    /// 100 to 999.
    pub code: u16,
    /// What stands behind the code.
    pub reason: String,
    /// The fields.
    pub fields: Fields,
}

/// Reads the head of a request, which must be there as a whole and be all that is there.
pub fn request(bytes: &[u8]) -> Result<RequestHead, HeadError> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    let end = complete(bytes, parsed.parse(bytes))?;
    match (parsed.method, parsed.path, parsed.version) {
        (Some(method), Some(target), Some(minor)) if end == Some(bytes.len()) => Ok(RequestHead {
            method: method.to_owned(),
            target: target.to_owned(),
            minor,
            fields: Fields::of(parsed.headers),
        }),
        _ => Err(HeadError::CutOff),
    }
}

/// Reads the head of a response and says where it ends; `None` while it is incomplete.
pub fn response(bytes: &[u8]) -> Result<Option<(ResponseHead, usize)>, HeadError> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let Some(end) = complete(bytes, parsed.parse(bytes))? else { return Ok(None) };
    let (Some(minor), Some(code)) = (parsed.version, parsed.code) else { return Err(HeadError::CutOff) };
    let reason = parsed.reason.unwrap_or_default().to_owned();
    Ok(Some((ResponseHead { minor, code, reason, fields: Fields::of(parsed.headers) }, end)))
}

fn complete(bytes: &[u8], outcome: httparse::Result<usize>) -> Result<Option<usize>, HeadError> {
    match outcome {
        Ok(httparse::Status::Complete(end)) if end <= MAX_HEAD => Ok(Some(end)),
        Ok(httparse::Status::Partial) if bytes.len() <= MAX_HEAD => Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => Err(HeadError::TooLarge),
        Err(error) => Err(HeadError::Malformed(error)),
    }
}

/// What a client wants from a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A connection.
    Tunnel(HostPort),
    /// That the request is passed on.
    Plain {
        /// Where to.
        target: HostPort,
        /// As the client wrote it.
        authority: String,
        /// What the target is asked for.
        path: String,
    },
}

impl RequestHead {
    /// What is wanted; `None` if it is nothing that a proxy does: it asks the proxy itself, or has a scheme other than
    /// `http`, or a host that is none.
    pub fn wanted(&self) -> Option<Wanted> {
        if self.method == "CONNECT" {
            return HostPort::parse(&self.target).ok().map(Wanted::Tunnel);
        }
        let (scheme, rest) = self.target.split_at_checked("http://".len())?;
        if !scheme.eq_ignore_ascii_case("http://") {
            return None;
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // A fragment is none of the target's business, and no client sends one.
        if path.contains('#') {
            return None;
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let target = match authority.strip_suffix(':') {
            Some(host) => HostPort::parse(&format!("{host}:80")),
            None if has_port => HostPort::parse(authority),
            None => HostPort::parse(&format!("{authority}:80")),
        };
        let path = match path {
            "" if self.method == "OPTIONS" => "*".to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        Some(Wanted::Plain { target: target.ok()?, authority: authority.to_owned(), path })
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
