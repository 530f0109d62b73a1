//! Mail: single messages and mailboxes.
//!
//! RFC 5322 and 2045, and *mbox*.

use super::text::{after_space, may_begin, no_text};
use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Mail. It has no end mark: a message ends with its text, and that end must be visible.
pub struct Mail;

const EML: Kind = Kind::new("eml");
const MBOX: Kind = Kind::new("mbox");
const LINE_BYTES_MAX: usize = 2048;
const LINES_MAX: usize = 1000;

impl Format for Mail {
    fn kinds(&self) -> &[Kind] {
        &[EML, MBOX]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            // "Return-Path: <", "Received: from", "Received: by", "Delivered-To: ",
            // "MIME-Version: 1.0", "Message-ID: <", "Message-Id: <".
            Signature { hex: "52 65 74 75 72 6E 2D 50 61 74 68 3A 20 3C", at: 0 },
            Signature { hex: "52 65 63 65 69 76 65 64 3A 20 66 72 6F 6D", at: 0 },
            Signature { hex: "52 65 63 65 69 76 65 64 3A 20 62 79 20", at: 0 },
            Signature { hex: "44 65 6C 69 76 65 72 65 64 2D 54 6F 3A 20", at: 0 },
            Signature { hex: "4D 49 4D 45 2D 56 65 72 73 69 6F 6E 3A 20 31 2E 30", at: 0 },
            Signature { hex: "4D 65 73 73 61 67 65 2D 49 ?4 3A 20 3C", at: 0 },
            // "From - ", "From MAILER-DAEMON".
            Signature { hex: "46 72 6F 6D 20 2D 20", at: 0 },
            Signature { hex: "46 72 6F 6D 20 4D 41 49 4C 45 52 2D 44 41 45 4D 4F 4E", at: 0 },
        ]
    }

    fn is_weak(&self) -> bool {
        true
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        if !may_begin(view) {
            return Verdict::Not;
        }
        let is_box = view.is_at(0, b"From ");
        let start = if is_box { line(view, 0).map_or(0, |line| line.1) } else { 0 };
        let Some(head) = head(view, start) else { return Verdict::Not };
        let kind = if is_box { MBOX } else { EML };
        if let (false, Some(boundary)) = (is_box, head.boundary) {
            let last = [b"\n--", &boundary[..], b"--"].concat();
            let place = view.find(head.end - 1..u64::MAX, &last);
            return match place.map(|place| place + last.len() as u64) {
                Some(end) if no_text(view, head.end, end).is_none() => {
                    Verdict::Whole { length: after_space(view, end), kind }
                }
                Some(_) | None => Verdict::broken(view, kind, 0, head.end, "parts without an end"),
            };
        }
        let length = view.length();
        match no_text(view, head.end, length) {
            Some(end) if view.is_starved() || end == head.end => {
                Verdict::broken(view, kind, 0, end, "only a header")
            }
            // The rest of the sector is empty.
            Some(end) if view.byte(end) == Some(0) => Verdict::Whole { length: end, kind },
            Some(end) => Verdict::broken(view, kind, 0, end, "bytes that are not text"),
            None => Verdict::Whole { length, kind },
        }
    }
}

struct Head {
    /// The end of the empty line after the header.
    end: u64,
    boundary: Option<Vec<u8>>,
}

/// Returns the line that begins at `at`, without its line break, and the place after it.
fn line(view: &mut View<'_>, at: u64) -> Option<(Vec<u8>, u64)> {
    let most = view.length().saturating_sub(at).min(LINE_BYTES_MAX as u64) as usize;
    let bytes = view.take(at, most)?;
    let length = memchr::memchr(b'\n', bytes)?;
    let line = bytes[..length].strip_suffix(b"\r").unwrap_or(&bytes[..length]);
    Some((line.to_vec(), at + length as u64 + 1))
}

/// Reads the header that begins at `at`, if it is that of a message.
fn head(view: &mut View<'_>, mut at: u64) -> Option<Head> {
    let (mut has_sender, mut has_date) = (false, false);
    let mut boundary = None;
    for count in 0..LINES_MAX {
        let (line, next) = line(view, at)?;
        at = next;
        if line.is_empty() {
            return (count > 2 && has_sender && has_date).then_some(Head { end: at, boundary });
        }
        if line[0] != b' ' && line[0] != b'\t' {
            let colon = memchr::memchr(b':', &line)?;
            let is_name =
                |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte == b'_';
            if colon == 0 || !line[..colon].iter().all(is_name) {
                return None;
            }
            has_sender |= line[..colon].eq_ignore_ascii_case(b"from");
            has_date |= line[..colon].eq_ignore_ascii_case(b"date");
        }
        let place = memchr::memmem::find(&line.to_ascii_lowercase(), b"boundary=");
        if let (None, Some(place)) = (&boundary, place) {
            let value = line[place + 9..].split(|byte| *byte == b';').next()?;
            let value = value.trim_ascii();
            let value = value.strip_prefix(b"\"").unwrap_or(value);
            let value = value.strip_suffix(b"\"").unwrap_or(value);
            boundary = (!value.is_empty()).then(|| value.to_vec());
        }
    }
    None
}
