//! The protocol between client and server, over TCP: frames of 64 bytes, little-endian.
//!
//! ```text
//!  0..8 magic   8..10 version   10 kind   11..64 by kind:
//!
//!  client  Hello ───→  task, message bytes, time limit, port for datagrams, seed, congestion
//!          ←─ Answer   refused or not and why, port for datagrams, congestion in effect
//!          payload ─→  by task
//!  client  Ended ───→  how many datagrams were sent (the other tasks end with the stream)
//!          ←─ Account  bytes and messages received, and whether they were right
//! ```
//!
//! Every number is checked against its bounds before use: a hostile client can cost at most a session's
//! time, and a fixed amount of memory.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The version of the protocol: both sides must have the same.
pub(super) const VERSION: u16 = 1;
pub(super) const FRAME_BYTES: usize = 64;
/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The longest session that a client may request.
pub(super) const TIME_MAX: Duration = Duration::from_secs(600);
const MAGIC: [u8; 8] = *b"qrgauge\n";
const NAME_BYTES: usize = 16;
const REASON_BYTES: usize = 32;

/// The task of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Stream = 1,
    StreamEcho = 2,
    Datagrams = 3,
    DatagramEcho = 4,
}

/// A short string in a frame: the name of a congestion control.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Name([u8; NAME_BYTES]);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) task: Task,
    pub(super) message_bytes: u32,
    pub(super) time: Duration,
    /// The port from which the client sends its datagrams.
    pub(super) datagram_port: u16,
    /// The seed of the payload.
    pub(super) seed: u64,
    /// The requested congestion control; empty for the server's default.
    pub(super) congestion: Name,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Why the server refuses the session.
    pub(super) refused: Option<String>,
    pub(super) datagram_port: u16,
    pub(super) congestion: Name,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) bytes: u64,
    pub(super) messages: u64,
    /// Datagrams that arrived after a later one.
    pub(super) late: u64,
    /// Messages that differ from those sent.
    pub(super) wrong: u64,
    /// From the first byte received to the last, in nanoseconds.
    pub(super) span_ns: u64,
}

const HELLO: u8 = 1;
const ANSWER: u8 = 2;
const ENDED: u8 = 3;
const ACCOUNT: u8 = 4;

impl Name {
    /// Returns `None` if the name is too long, or has characters that no kernel name has.
    pub(super) fn new(text: &str) -> Option<Name> {
        let mut name = [0; NAME_BYTES];
        name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Name(name).checked()
    }

    fn checked(self) -> Option<Name> {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        let (text, rest) = self.0.split_at(end);
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        (text.iter().all(known) && rest.iter().all(|&byte| byte == 0)).then_some(self)
    }

    pub(super) fn text(&self) -> &str {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        std::str::from_utf8(&self.0[..end]).unwrap_or("")
    }
}

/// A frame to write, or one that was read.
struct Frame([u8; FRAME_BYTES]);

impl Frame {
    fn new(kind: u8) -> Frame {
        let mut frame = [0; FRAME_BYTES];
        frame[..8].copy_from_slice(&MAGIC);
        frame[8..10].copy_from_slice(&VERSION.to_le_bytes());
        frame[10] = kind;
        Frame(frame)
    }

    fn put<const N: usize>(mut self, at: usize, bytes: [u8; N]) -> Frame {
        self.0[at..at + N].copy_from_slice(&bytes);
        self
    }

    fn get<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|index| self.0[at + index])
    }

    fn number(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.get(at))
    }

    /// Checks the magic, version and kind of a frame.
    fn of(bytes: [u8; FRAME_BYTES], kind: u8) -> Result<Frame, String> {
        let frame = Frame(bytes);
        if frame.get(0) != MAGIC {
            return Err(
                "the answer is not a gauge's: does another service listen at this address?".into(),
            );
        }
        let version = u16::from_le_bytes(frame.get(8));
        if version != VERSION {
            return Err(format!("the other gauge speaks version {version}, this one {VERSION}"));
        }
        if frame.0[10] != kind {
            return Err(format!("a frame of kind {} where {kind} was due", frame.0[10]));
        }
        Ok(frame)
    }
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; FRAME_BYTES] {
        let milliseconds = self.time.as_millis() as u32;
        Frame::new(HELLO)
            .put(11, [self.task as u8])
            .put(12, self.message_bytes.to_le_bytes())
            .put(16, milliseconds.to_le_bytes())
            .put(20, self.datagram_port.to_le_bytes())
            .put(24, self.seed.to_le_bytes())
            .put(32, self.congestion.0)
            .0
    }

    pub(super) fn decode(bytes: [u8; FRAME_BYTES]) -> Result<Hello, String> {
        let frame = Frame::of(bytes, HELLO)?;
        let task = match frame.0[11] {
            1 => Task::Stream,
            2 => Task::StreamEcho,
            3 => Task::Datagrams,
            4 => Task::DatagramEcho,
            other => return Err(format!("task {other} is not known")),
        };
        let message_bytes = u32::from_le_bytes(frame.get(12));
        if message_bytes == 0 || message_bytes as usize > MESSAGE_BYTES_MAX {
            return Err(format!("messages of {message_bytes} bytes: 1 to {MESSAGE_BYTES_MAX}"));
        }
        let time = Duration::from_millis(u32::from_le_bytes(frame.get(16)).into());
        if time > TIME_MAX {
            return Err(format!("{} s: at most {} s", time.as_secs(), TIME_MAX.as_secs()));
        }
        let congestion = Name(frame.get(32)).checked().ok_or("a name with odd characters")?;
        if frame.get::<2>(22) != [0; 2] || frame.get::<16>(48) != [0; 16] {
            return Err("bytes that must be 0 are not".into());
        }
        let datagram_port = u16::from_le_bytes(frame.get(20));
        Ok(Hello { task, message_bytes, time, datagram_port, seed: frame.number(24), congestion })
    }
}

impl Answer {
    pub(super) fn encode(&self) -> [u8; FRAME_BYTES] {
        let reason = self.refused.as_deref().unwrap_or("");
        let mut end = reason.len().min(REASON_BYTES);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let mut text = [0; REASON_BYTES];
        text[..end].copy_from_slice(&reason.as_bytes()[..end]);
        Frame::new(ANSWER)
            .put(11, [u8::from(self.refused.is_some())])
            .put(12, self.datagram_port.to_le_bytes())
            .put(16, self.congestion.0)
            .put(32, text)
            .0
    }

    pub(super) fn decode(bytes: [u8; FRAME_BYTES]) -> Result<Answer, String> {
        let frame = Frame::of(bytes, ANSWER)?;
        let text: [u8; REASON_BYTES] = frame.get(32);
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        // People see the other machine's message: no control characters.
        let reason = text[..end].iter().map(|&byte| match byte {
            b' '..=b'~' => byte as char,
            _ => '?',
        });
        Ok(Answer {
            refused: (frame.0[11] != 0).then(|| reason.collect()),
            datagram_port: u16::from_le_bytes(frame.get(12)),
            congestion: Name(frame.get(16)).checked().ok_or("a name with odd characters")?,
        })
    }
}

/// Encodes the message that the client has sent `datagrams`.
pub(super) fn encode_ended(datagrams: u64) -> [u8; FRAME_BYTES] {
    Frame::new(ENDED).put(16, datagrams.to_le_bytes()).0
}

pub(super) fn decode_ended(bytes: [u8; FRAME_BYTES]) -> Result<u64, String> {
    Ok(Frame::of(bytes, ENDED)?.number(16))
}

impl Account {
    pub(super) fn encode(&self) -> [u8; FRAME_BYTES] {
        Frame::new(ACCOUNT)
            .put(16, self.bytes.to_le_bytes())
            .put(24, self.messages.to_le_bytes())
            .put(32, self.late.to_le_bytes())
            .put(40, self.wrong.to_le_bytes())
            .put(48, self.span_ns.to_le_bytes())
            .0
    }

    pub(super) fn decode(bytes: [u8; FRAME_BYTES]) -> Result<Account, String> {
        let frame = Frame::of(bytes, ACCOUNT)?;
        Ok(Account {
            bytes: frame.number(16),
            messages: frame.number(24),
            late: frame.number(32),
            wrong: frame.number(40),
            span_ns: frame.number(48),
        })
    }
}

/// Reads a frame, within `time` in all. The socket's own time limit for reads is shorter, so that
/// `stopped` is checked regularly.
pub(super) fn read_frame(
    mut stream: &TcpStream,
    time: Duration,
    stopped: impl Fn() -> bool,
) -> io::Result<[u8; FRAME_BYTES]> {
    let until = Instant::now() + time;
    let mut frame = [0; FRAME_BYTES];
    let mut read = 0;
    while read < FRAME_BYTES {
        if stopped() {
            return Err(io::Error::other("stopped"));
        }
        if Instant::now() > until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
        }
        match stream.read(&mut frame[read..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => read += bytes,
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(frame)
}

/// Whether the socket's own time limit was reached, or a signal arrived, neither of which is an error.
pub(super) fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
