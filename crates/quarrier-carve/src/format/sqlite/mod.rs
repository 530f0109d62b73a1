//! SQLite: pages of one size, and trees of them.
//!
//! *Database File Format* of SQLite. A file has as many pages as its header states.

mod tree;

use std::ops::Range;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Broken, MendContext, Whole, pairs};
use crate::view::{Extent, View};
use tree::{Header, walk};

/// SQLite. It has no checksum: the validator checks all trees, the order of their rows, and the
/// list of free pages.
pub struct Sqlite;

const SQLITE: Kind = Kind::new("sqlite");

impl Format for Sqlite {
    fn kinds(&self) -> &[Kind] {
        &[SQLITE]
    }

    fn signatures(&self) -> &[Signature] {
        // "SQLite format 3".
        &[Signature { hex: "53 51 4C 69 74 65 20 66 6F 72 6D 61 74 20 33 00", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(header) = Header::read(view) else { return Verdict::Not };
        match header.check(view) {
            Ok(length) => Verdict::Whole { length, kind: SQLITE },
            Err(at) => {
                let at = at.max(100);
                let reason = if at >= view.length() { "truncated" } else { "an invalid page" };
                Verdict::broken(view, SQLITE, 100, at, reason)
            }
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let header = Header::read(view)?;
        pairs(view, context, broken.at, &header)
    }
}

impl Whole for Header {
    fn check(&self, view: &mut View<'_>) -> Result<u64, u64> {
        let walked = walk(view, self);
        let pages = if self.pages > 0 { self.pages } else { walked.last };
        let length = pages * self.page_bytes;
        if walked.wrong > 0 {
            Err(walked.first_wrong)
        } else if length > view.length() || view.is_starved() || walked.right == 0 {
            Err(view.length())
        } else {
            Ok(length)
        }
    }

    fn left_within(&self, _: &mut View<'_>, _: u64, places: Range<u64>) -> Range<u64> {
        places
    }
}
