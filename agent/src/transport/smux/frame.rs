//! smux frames as bytes: `version, command, length (2, little-endian), stream (4, little-endian), payload`.

/// Bytes before the payload.
pub const HEADER_LEN: usize = 8;
/// Longest payload of a data frame: what the length field holds.
pub const LONGEST_PAYLOAD: usize = u16::MAX as usize;
/// Payload of a window update: consumed and window, four bytes each.
const UPDATE_LEN: usize = 8;

const SYN: u8 = 0;
const FIN: u8 = 1;
const PSH: u8 = 2;
const NOP: u8 = 3;
const UPD: u8 = 4;

/// The stream number of an ordinary keepalive.
pub const KEEPALIVE: u32 = 0;
/// The stream number of a [`Body::Nothing`] by which a side says that it understands the ends of single directions and
/// aborts. The library that GOST uses ignores the number, and begins its streams at 2.
pub const GREETING: u32 = 1;
/// The stream number of a [`Body::Nothing`] by which a server that greeted says that it takes no new streams.
pub const GO_AWAY: u32 = u32::MAX;

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Which stream it is about.
    pub stream: u32,
    /// What it says.
    pub body: Body<'a>,
}

/// What a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The stream begins.
    Open,
    /// The sender's direction ends.
    End,
    /// Payload, at most [`LONGEST_PAYLOAD`] bytes.
    Data(&'a [u8]),
    /// Keepalive. Between peers that greeted with [`GREETING`], one with the number of a stream aborts that stream.
    Nothing,
    /// Version 2: how many bytes of the stream the sender has consumed, and how many it buffers.
    Window {
        /// Modulo 2³².
        consumed: u32,
        /// At most 2³¹ − 1.
        window: u32,
    },
}

/// Why bytes are no frame. The session cannot go on then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Both sides must be configured with the same version.
    #[error("the peer speaks version {0} of the multiplexer")]
    Version(u8),
    /// No such command in this version.
    #[error("unknown command {0}")]
    Command(u8),
    /// A command with a payload that it does not have.
    #[error("command {command} with {length} bytes")]
    Length {
        /// As on the wire.
        command: u8,
        /// As on the wire.
        length: u16,
    },
    /// More than 2³¹ − 1 bytes.
    #[error("a window of {0} bytes")]
    Window(u32),
}

/// Reads the frame at the head of `bytes`: it and its length, or `None` if it is not complete yet. At most
/// [`HEADER_LEN`] + [`LONGEST_PAYLOAD`] bytes make a complete frame.
pub fn decode(version: u8, bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((&head, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        // What is wrong already is not waited for.
        return match bytes.first() {
            Some(&other) if other != version => Err(FrameError::Version(other)),
            Some(_) | None => Ok(None),
        };
    };
    let [got, command, l0, l1, s0, s1, s2, s3] = head;
    if got != version {
        return Err(FrameError::Version(got));
    }
    let (length, stream) = (u16::from_le_bytes([l0, l1]), u32::from_le_bytes([s0, s1, s2, s3]));
    let whole = HEADER_LEN + usize::from(length);
    let body = match command {
        PSH => match rest.get(..usize::from(length)) {
            Some(payload) => Body::Data(payload),
            None => return Ok(None),
        },
        UPD if version == 2 => {
            if usize::from(length) != UPDATE_LEN {
                return Err(FrameError::Length { command, length });
            }
            let Some(&[c0, c1, c2, c3, w0, w1, w2, w3]) = rest.first_chunk::<UPDATE_LEN>() else {
                return Ok(None);
            };
            let window = u32::from_le_bytes([w0, w1, w2, w3]);
            if i32::try_from(window).is_err() {
                return Err(FrameError::Window(window));
            }
            Body::Window { consumed: u32::from_le_bytes([c0, c1, c2, c3]), window }
        }
        SYN | FIN | NOP if length != 0 => return Err(FrameError::Length { command, length }),
        SYN => Body::Open,
        FIN => Body::End,
        NOP => Body::Nothing,
        other => return Err(FrameError::Command(other)),
    };
    Ok(Some((Frame { stream, body }, whole)))
}

/// Writes a frame to the end of `out`. Payload beyond [`LONGEST_PAYLOAD`] is left out; whoever has more sends more frames.
pub fn encode(version: u8, frame: Frame<'_>, out: &mut Vec<u8>) {
    let update: [u8; UPDATE_LEN];
    let (command, payload): (u8, &[u8]) = match frame.body {
        Body::Open => (SYN, &[]),
        Body::End => (FIN, &[]),
        Body::Nothing => (NOP, &[]),
        Body::Data(payload) => (PSH, &payload[..payload.len().min(LONGEST_PAYLOAD)]),
        Body::Window { consumed, window } => {
            let ([c0, c1, c2, c3], [w0, w1, w2, w3]) = (consumed.to_le_bytes(), window.to_le_bytes());
            update = [c0, c1, c2, c3, w0, w1, w2, w3];
            (UPD, &update)
        }
    };
    header(version, command, payload.len(), frame.stream, out);
    out.extend_from_slice(payload);
}

/// Writes the head of a data frame whose `length` bytes of payload follow, at most [`LONGEST_PAYLOAD`].
pub(super) fn data_header(version: u8, stream: u32, length: usize, out: &mut Vec<u8>) {
    header(version, PSH, length, stream, out);
}

fn header(version: u8, command: u8, length: usize, stream: u32, out: &mut Vec<u8>) {
    debug_assert!(length <= LONGEST_PAYLOAD, "frames are split before");
    let [l0, l1] = (length as u16).to_le_bytes();
    let [s0, s1, s2, s3] = stream.to_le_bytes();
    out.extend_from_slice(&[version, command, l0, l1, s0, s1, s2, s3]);
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
