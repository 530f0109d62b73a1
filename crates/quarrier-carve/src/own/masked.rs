//! Byte patterns with a mask.

use std::ops::Range;

use quarrier_core::hex::parse_masked;

use crate::view::{TAKE_BYTES_MAX, View};

/// Maximum length of a pattern in bytes.
pub(super) const BYTES_MAX: usize = 1024;

/// Bytes with a mask: only bits that are set in it count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Masked {
    /// The value and mask of each byte.
    bytes: Vec<(u8, u8)>,
}

impl Masked {
    /// Makes a pattern of exactly these bytes.
    pub fn exact(bytes: &[u8]) -> Self {
        Masked { bytes: bytes.iter().map(|byte| (*byte, 0xFF)).collect() }
    }

    /// Parses hexadecimal, with `??` for any byte, `?A` and `A?` for half a byte.
    ///
    /// # Errors
    /// A message that says why it is invalid.
    pub fn hex(text: &str) -> std::result::Result<Self, String> {
        parse_masked(text).map(|bytes| Masked { bytes }).map_err(|error| error.to_string())
    }

    /// Adds a byte.
    pub(super) fn push(&mut self, value: u8, mask: u8) {
        self.bytes.push((value & mask, mask));
    }

    /// Makes letters match in either case.
    #[must_use]
    pub fn in_any_case(mut self) -> Self {
        for (value, mask) in &mut self.bytes {
            if *mask == 0xFF && value.is_ascii_alphabetic() {
                *mask = 0xDF;
                *value &= 0xDF;
            }
        }
        self
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of bytes with at least half of their bits fixed.
    pub(super) fn given(&self) -> usize {
        self.bytes.iter().filter(|(_, mask)| *mask != 0).count()
    }

    /// Whether `bytes` begin with the pattern.
    pub fn begins(&self, bytes: &[u8]) -> bool {
        let is_right = |((value, mask), byte): (&(u8, u8), &u8)| byte & mask == *value;
        bytes.len() >= self.bytes.len() && self.bytes.iter().zip(bytes).all(is_right)
    }

    /// Returns the patterns to search for: hexadecimal, one for each way to write the first letters
    /// if their case is free; and the number of wildcard bytes before them.
    pub(super) fn searched(&self) -> (Vec<String>, u64) {
        let skip = self.bytes.iter().take_while(|(_, mask)| *mask == 0).count();
        let wildcards = self.bytes.iter().rev().take_while(|(_, mask)| *mask == 0).count();
        let bytes = self.bytes.get(skip..self.bytes.len() - wildcards).unwrap_or_default();
        let mut patterns = vec![String::new()];
        for (value, mask) in bytes {
            let ways = match mask {
                0xDF if patterns.len() < 8 => {
                    vec![format!("{value:02X}"), format!("{:02X}", value | 0x20)]
                }
                0xDF => vec![format!("?{:X}", value & 0xF)],
                0xFF => vec![format!("{value:02X}")],
                0xF0 => vec![format!("{:X}?", value >> 4)],
                0x0F => vec![format!("?{value:X}")],
                _ => vec!["??".to_string()],
            };
            let longer = |text: &String| -> Vec<String> {
                ways.iter().map(|way| format!("{text} {way}").trim().to_string()).collect()
            };
            patterns = patterns.iter().flat_map(longer).collect();
        }
        (patterns, skip as u64)
    }

    /// Returns its first or its last place in `range`.
    pub(super) fn find(
        &self,
        view: &mut View<'_>,
        range: Range<u64>,
        is_last: bool,
    ) -> Option<u64> {
        let length = self.bytes.len();
        let end = range.end.min(view.length());
        let mut found = None;
        let mut at = range.start;
        while length > 0 && at.checked_add(length as u64)? <= end {
            let bytes = view.take(at, (end - at).min(TAKE_BYTES_MAX as u64) as usize)?;
            let place = self.place_in(bytes, is_last).map(|place| at + place as u64);
            found = place.or(found);
            if found.is_some() && !is_last {
                break;
            }
            at += (bytes.len() - (length - 1)) as u64;
        }
        found
    }

    fn place_in(&self, bytes: &[u8], is_last: bool) -> Option<usize> {
        let is_here = |place: &usize| self.begins(&bytes[*place..]);
        let last = (bytes.len() + 1).checked_sub(self.bytes.len())?;
        // Search for the first byte without wildcards, if there is one.
        match self.bytes.iter().position(|(_, mask)| *mask == 0xFF) {
            None if is_last => (0..last).rev().find(is_here),
            None => (0..last).find(is_here),
            Some(index) => {
                let places = memchr::memchr_iter(self.bytes[index].0, &bytes[index..]);
                let mut places = places.filter(|place| *place < last);
                if is_last { places.rev().find(is_here) } else { places.find(is_here) }
            }
        }
    }
}
