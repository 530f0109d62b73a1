//! RTF: groups in braces.
//!
//! *Rich Text Format (RTF) Specification*, 1.9.1.

use super::text::{is_text, may_begin};
use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// RTF. It has no checksum: the validator checks the braces, and that all bytes are text unless a
/// control allows others.
pub struct Rtf;

const RTF: Kind = Kind::new("rtf");

impl Format for Rtf {
    fn kinds(&self) -> &[Kind] {
        &[RTF]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "7B 5C 72 74 66 31", at: 0 }]
    }

    fn is_weak(&self) -> bool {
        true
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let is_head = view.is_at(0, b"{\\rtf");
        if !is_head
            || !may_begin(view)
            || !matches!(view.byte(6), Some(b'\\' | b'{' | b' ' | b'\r' | b'\n'))
        {
            return Verdict::Not;
        }
        match last_brace(view) {
            Ok(end) => {
                let line = match view.array::<2>(end) {
                    Some([b'\r', b'\n']) => 2,
                    _ => u64::from(matches!(view.byte(end), Some(b'\n' | b'\r'))),
                };
                Verdict::Whole { length: end + line, kind: RTF }
            }
            Err((at, reason)) => Verdict::broken(view, RTF, 6, at.max(6), reason),
        }
    }
}

/// Returns the end of the brace that closes the first one.
fn last_brace(view: &mut View<'_>) -> Result<u64, (u64, &'static str)> {
    let (mut at, mut depth) = (0u64, 0u64);
    loop {
        let bytes = view.run(at, 64 << 10);
        if bytes.is_empty() {
            return Err((at, "truncated"));
        }
        let mut skip = None;
        for (index, byte) in bytes.iter().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                b'\\' => skip = Some(index),
                byte if !is_text(*byte) => {
                    return Err((at + index as u64, "bytes that are not text"));
                }
                _ => {}
            }
            if depth == 0 {
                return Ok(at + index as u64 + 1);
            }
            if skip.is_some() {
                break;
            }
        }
        at = match skip {
            Some(index) => after_word(view, at + index as u64),
            None => at + bytes.len() as u64,
        };
    }
}

/// Returns the end of the control that begins at `at` with a backslash, and of the raw bytes of
/// `\bin`.
fn after_word(view: &mut View<'_>, at: u64) -> u64 {
    if !view.is_at(at, b"\\bin") {
        return at + 2;
    }
    let mut place = at + 4;
    let mut count = 0u64;
    while let Some(digit @ b'0'..=b'9') = view.byte(place) {
        count = count.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        place += 1;
    }
    if place == at + 4 { at + 2 } else { place.saturating_add(1).saturating_add(count) }
}
