//! The end marks of a PDF, and the cross-references from there back to its beginning.

use std::ops::Range;

use super::object::{after_comments, object_near, some};
use super::section::section;
use super::syntax::{is_space, number};
use crate::view::View;

/// Maximum number of sections of a cross-reference.
const SECTIONS_MAX: usize = 1024;

/// `startxref`, a number, `%%EOF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// The place of the word `startxref`.
    pub(super) place: u64,
    /// The stated place of the cross-reference's section.
    pub(super) stated: u64,
    /// The end of `%%EOF` and its line break.
    pub(super) end: u64,
}

impl Ending {
    /// Finds the first one in `range`.
    pub(super) fn find(view: &mut View<'_>, range: Range<u64>) -> Option<Ending> {
        let mut from = range.start;
        loop {
            let place = view.find(from..range.end, b"startxref")?;
            if let Some(ending) = Self::at(view, place) {
                return Some(ending);
            }
            from = place + 9;
        }
    }

    fn at(view: &mut View<'_>, place: u64) -> Option<Ending> {
        let bytes = some(view, place, 64);
        let after_space = |at: usize| {
            let rest = bytes.get(at..)?;
            Some(at + rest.iter().take_while(|byte| is_space(**byte)).count())
        };
        let (stated, end) = number(bytes, after_space(9)?)?;
        let mark = after_space(end)?;
        if !bytes[mark..].starts_with(b"%%EOF") {
            return None;
        }
        let end = place + mark as u64 + 5;
        // One line break belongs to the file; some writers write two equal ones.
        let line = match some(view, end, 4) {
            [b'\r', b'\n', b'\r', b'\n'] => 4,
            [b'\r', b'\n', ..] | [b'\n', b'\n', ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            _ => 0,
        };
        Some(Ending { place, stated, end: end + line })
    }
}

/// Whether all sections of the cross-reference and the objects are at their stated places, with one
/// section right before `ending`.
pub(super) fn chain(view: &mut View<'_>, ending: &Ending) -> bool {
    let mut seen: Vec<u64> = Vec::new();
    let mut next = vec![ending.stated];
    let mut is_closed = false;
    let (mut right, mut wrong) = (0u64, 0u64);
    while let Some(stated) = next.pop() {
        if seen.contains(&stated) {
            continue;
        }
        seen.push(stated);
        if stated >= ending.place || seen.len() > SECTIONS_MAX {
            return false;
        }
        let Ok(section) = section(view, stated) else { return false };
        is_closed |= after_comments(view, section.end) == ending.place;
        for entry in &section.entries {
            let is_right = entry.offset < ending.place
                && object_near(view, entry.offset, entry.number).is_some();
            right += u64::from(is_right);
            wrong += u64::from(!is_right);
        }
        next.extend(section.others);
    }
    is_closed && right > 0 && wrong <= right / 8
}
