//! Where the body of a message ends (RFC 9112, section 6). Pure: bodies are passed on as they are.

use super::head::{Fields, RequestHead, ResponseHead};

/// Why the end of a body cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Lengths that contradict each other, or a coding that does not say where it ends.
    #[error("the length of the body is unclear")]
    Unclear,
    /// A chunk that does not follow the format.
    #[error("malformed chunk")]
    Chunk,
}

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunk),
    /// Everything until the connection ends.
    UntilEnd,
}

/// What comes next in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// A digit of a size, or its end.
    Size {
        /// So far.
        size: u64,
        /// Digits so far.
        digits: u8,
    },
    /// The rest of the line with a size.
    Extension(u64),
    /// So many bytes.
    Data(u64),
    /// The line end behind the bytes.
    DataEnd,
    /// A line behind the last chunk.
    Trailer {
        /// Nothing of it has come.
        empty: bool,
    },
    /// Nothing.
    End,
}

const NOTHING: Body = Body::Length(0);
const FIRST_CHUNK: Chunk = Chunk::Size { size: 0, digits: 0 };

impl Body {
    /// The body that follows a request.
    pub fn of_request(head: &RequestHead) -> Result<Self, BodyError> {
        let length = length(&head.fields)?;
        let mut codings = head.fields.members("transfer-encoding");
        match (codings.next(), codings.next(), length) {
            (None, _, length) => Ok(Body::Length(length.unwrap_or(0))),
            // Both at once is how requests are smuggled past proxies.
            (Some(coding), None, None) if coding.eq_ignore_ascii_case(b"chunked") && head.minor == 1 => {
                Ok(Body::Chunked(FIRST_CHUNK))
            }
            (Some(_), _, _) => Err(BodyError::Unclear),
        }
    }

    /// The body that follows a response to a request of this method.
    pub fn of_response(head: &ResponseHead, method: &str) -> Result<Self, BodyError> {
        if method == "HEAD" || head.code < 200 || matches!(head.code, 204 | 304) {
            return Ok(NOTHING);
        }
        match head.fields.members("transfer-encoding").last() {
            Some(last) if last.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked(FIRST_CHUNK)),
            Some(_) => Ok(Body::UntilEnd),
            None => Ok(length(&head.fields)?.map_or(Body::UntilEnd, Body::Length)),
        }
    }

    /// Whether nothing is left.
    pub fn is_complete(&self) -> bool {
        matches!(self, Body::Length(0) | Body::Chunked(Chunk::End))
    }

    /// How many of the bytes that have come belong to the body; they are off it then.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, BodyError> {
        match self {
            Body::UntilEnd => Ok(bytes.len()),
            Body::Length(left) => {
                let taken = (bytes.len() as u64).min(*left);
                *left -= taken;
                Ok(taken as usize)
            }
            Body::Chunked(chunk) => {
                let mut taken = 0;
                while taken < bytes.len() && *chunk != Chunk::End {
                    taken += chunk.take(&bytes[taken..])?;
                }
                Ok(taken)
            }
        }
    }
}

impl Chunk {
    /// Takes at least one byte; there must be one.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, BodyError> {
        if let Chunk::Data(left) = self {
            let taken = (bytes.len() as u64).min(*left);
            *left -= taken;
            if *left == 0 {
                *self = Chunk::DataEnd;
            }
            return Ok(taken as usize);
        }
        *self = match (*self, bytes[0]) {
            (Chunk::Size { size, digits }, byte) if byte.is_ascii_hexdigit() => {
                // Sixteen digits are all that 64 bits hold.
                if digits == 16 {
                    return Err(BodyError::Chunk);
                }
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                Chunk::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            (Chunk::Size { digits: 0, .. }, _) => return Err(BodyError::Chunk),
            (Chunk::Size { size, .. } | Chunk::Extension(size), b'\n') => match size {
                0 => Chunk::Trailer { empty: true },
                size => Chunk::Data(size),
            },
            (Chunk::Size { size, .. }, b'\r' | b';' | b' ' | b'\t') => Chunk::Extension(size),
            (Chunk::Size { .. }, _) => return Err(BodyError::Chunk),
            (extension @ Chunk::Extension(_), _) => extension,
            (Chunk::DataEnd, b'\r') => Chunk::DataEnd,
            (Chunk::DataEnd, b'\n') => FIRST_CHUNK,
            (Chunk::DataEnd, _) => return Err(BodyError::Chunk),
            (Chunk::Trailer { empty: true }, b'\n') => Chunk::End,
            (Chunk::Trailer { .. }, b'\n') => Chunk::Trailer { empty: true },
            (trailer @ Chunk::Trailer { .. }, b'\r') => trailer,
            (Chunk::Trailer { .. }, _) => Chunk::Trailer { empty: false },
            (Chunk::Data(_) | Chunk::End, _) => return Err(BodyError::Chunk),
        };
        Ok(1)
    }
}

/// What `Content-Length` says, if it is there; several must say the same.
fn length(fields: &Fields) -> Result<Option<u64>, BodyError> {
    let mut length = None;
    for value in fields.members("content-length") {
        let number = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let number: u64 = number.and_then(|text| text.parse().ok()).ok_or(BodyError::Unclear)?;
        if length.is_some_and(|before| before != number) {
            return Err(BodyError::Unclear);
        }
        length = Some(number);
    }
    Ok(length)
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
