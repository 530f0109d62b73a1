//! The envelope of a message: its end, and whether it arrived intact.
//!
//! ```text
//!  8=FIX.4.4|9=57|35=D|…|55=ABC|10=128|
//!            └ bytes from here ─┘ to here    the sum of all bytes before 10= is 128 (mod 256)
//! ```

use memchr::{memchr2, memchr2_iter, memchr3_iter};

use super::SEPARATOR;
use super::bytes::find_separator;
use crate::Fault;

/// The keys of the fields around a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    pub(super) begin: &'static [u8],
    pub(super) length: &'static [u8],
    pub(super) check: &'static [u8],
    /// The body's first field.
    pub(super) type_of: &'static [u8],
    /// Whether a message may lack the envelope.
    pub(super) are_optional: bool,
}

pub(super) const TAGS: Keys =
    Keys { begin: b"8=", length: b"9=", check: b"10=", type_of: b"35=", are_optional: false };

pub(super) const NAMES: Keys = Keys {
    begin: b"BeginString=",
    length: b"BodyLength=",
    check: b"CheckSum=",
    type_of: b"MsgType=",
    are_optional: true,
};

/// The parts of a message, as offsets in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The offset after BodyLength.
    pub(super) body: usize,
    /// The offset of CheckSum.
    pub(super) check: usize,
    /// The offset after the last separator.
    pub(super) end: usize,
}

/// Maximum number of digits of a BodyLength.
const LENGTH_DIGITS_MAX: usize = 9;

/// Maximum length of BeginString and BodyLength.
const HEAD_BYTES_MAX: usize = 128;

impl Keys {
    /// Whether `message` has no envelope and need not have one.
    pub(super) fn is_open(&self, message: &[u8]) -> bool {
        self.are_optional && {
            let at = find_separator(message, 0) + 1;
            !message.starts_with(self.begin)
                || !message.get(at..).is_some_and(|rest| rest.starts_with(self.length))
        }
    }

    /// Verifies the envelope of `message`, which ends with its bytes.
    #[inline]
    pub(super) fn check(&self, message: &[u8]) -> Result<Envelope, Fault> {
        let envelope = self.find(message)?;
        if envelope.end != message.len() {
            return Err(Fault::new(envelope.end, "more data after the CheckSum"));
        }
        let said = &message[envelope.end - 4..envelope.end - 1];
        let said = said.iter().fold(0, |said, digit| said * 10 + u32::from(digit - b'0'));
        if u32::from(sum(&message[..envelope.check])) != said {
            return Err(Fault::new(envelope.check, "a CheckSum that does not match the bytes"));
        }
        Ok(envelope)
    }

    /// Finds the message at the start of `bytes` by its BodyLength, without verifying the sum.
    #[inline]
    fn find(&self, bytes: &[u8]) -> Result<Envelope, Fault> {
        let (body, length) = self.body(bytes)?;
        let check = body + length;
        let digits = check + self.check.len();
        if digits + 4 > bytes.len() {
            return Err(Fault::new(body, "a BodyLength beyond the message's end"));
        }
        if bytes[check - 1] != SEPARATOR || !bytes[check..].starts_with(self.check) {
            return Err(Fault::new(check, "no CheckSum where BodyLength says"));
        }
        match &bytes[digits..digits + 4] {
            [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', SEPARATOR] => {
                Ok(Envelope { body, check, end: digits + 4 })
            }
            _ => Err(Fault::new(digits, "a CheckSum that is not three digits")),
        }
    }

    /// Returns the start and the length of the body.
    #[inline]
    fn body(&self, bytes: &[u8]) -> Result<(usize, usize), Fault> {
        if !bytes.starts_with(self.begin) {
            return Err(Fault::new(0, "no BeginString"));
        }
        let head = &bytes[..bytes.len().min(HEAD_BYTES_MAX)];
        let at = find_separator(head, self.begin.len()) + 1;
        if !head.get(at..).is_some_and(|rest| rest.starts_with(self.length)) {
            return Err(Fault::new(at.min(bytes.len()), "no BodyLength after BeginString"));
        }
        let start = at + self.length.len();
        let digits = head[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = start + digits;
        if !(1..=LENGTH_DIGITS_MAX).contains(&digits) || head.get(end) != Some(&SEPARATOR) {
            return Err(Fault::new(start, "a BodyLength that is not a number or too large"));
        }
        let length = head[start..end].iter().fold(0, |n, digit| n * 10 + usize::from(digit - b'0'));
        Ok((end + 1, length))
    }

    /// Returns the start of the first message after `from`: at the start of a line or after a
    /// separator, at a field like BeginString. If `from` is inside a data field that contains a
    /// message, it mistakes that for one.
    pub(super) fn start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        for at in memchr2_iter(b'\n', SEPARATOR, bytes.get(from..)?) {
            let next = from + at + 1;
            if bytes[from + at] == b'\n' || bytes[next..].starts_with(self.begin) {
                return Some(next);
            }
        }
        None
    }

    /// Returns the end of the message, or fragment of one, at the start of `bytes`; `None` if more
    /// bytes are needed, unless these are the last (`is_last`).
    #[inline]
    pub(super) fn extent(
        &self,
        bytes: &[u8],
        is_last: bool,
        message_bytes_max: usize,
    ) -> Option<usize> {
        if let Ok(envelope) = self.find(bytes) {
            return Some(envelope.end);
        }
        let is_short = match self.body(bytes) {
            Ok((body, length)) => {
                let end = body + length + self.check.len() + 4;
                end > bytes.len() && end <= message_bytes_max
            }
            Err(_) => bytes.len() < HEAD_BYTES_MAX,
        };
        if is_short && !is_last { None } else { self.broken_extent(bytes, is_last) }
    }

    /// Returns the end of a fragment without a valid envelope: after its CheckSum, at the end of
    /// its line, or before another message.
    fn broken_extent(&self, bytes: &[u8], is_last: bool) -> Option<usize> {
        let (begin, is_open) = (self.begin, self.is_open(bytes));
        for at in memchr3_iter(b'\n', SEPARATOR, begin[0], bytes) {
            let rest = &bytes[at..];
            if rest[0] == b'\n' {
                return Some(at);
            }
            if is_open {
                continue;
            }
            if at > 0 && rest.strip_prefix(begin).is_some_and(|rest| rest.starts_with(b"FIX")) {
                return Some(at);
            }
            if rest[0] == SEPARATOR && rest[1..].starts_with(self.check) {
                let stop = memchr2(SEPARATOR, b'\n', &rest[1..]).map(|stop| at + 1 + stop);
                return match stop {
                    Some(stop) => Some(stop + usize::from(bytes[stop] == SEPARATOR)),
                    None => is_last.then_some(bytes.len()),
                };
            }
        }
        is_last.then_some(bytes.len())
    }
}

/// Returns the sum of all bytes, modulo 256.
#[inline]
fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, &byte| sum.wrapping_add(byte))
}
