//! PDF: objects in any order, and a cross-reference to them.
//!
//! ISO 32000-1, 7.5. A file ends after the `%%EOF` of the last section of its cross-reference.
//! Offsets written by hand, by scripts or through text filters are off by some bytes. Readers
//! tolerate that, and so can the validator, since fragments are shifted by whole blocks.

mod chain;
mod mend;
mod object;
mod packed;
mod seam;
mod section;
mod sfnt;
mod syntax;
mod type1;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Broken, MendContext};
use crate::view::{Extent, View};
use chain::{Ending, chain};
use object::{after_comments, object_at, walk};

/// PDF. The validator checks the cross-reference with all earlier sections, and that the objects
/// are at the places that it states.
pub struct Pdf;

const PDF: Kind = Kind::new("pdf");
/// How far after the last object in the chain to search for an end mark.
const SEARCH_BYTES: u64 = 4 << 20;
/// How far after the header the first object of a PDF may begin, in bytes.
const FIRST_BYTES: u64 = 64 << 10;
/// Maximum number of end marks to try, and of updates of a file.
const ENDS_MAX: usize = 1024;
/// Maximum number of end marks to try for mending a file.
const MENDED_ENDS_MAX: usize = 16;

impl Format for Pdf {
    fn kinds(&self) -> &[Kind] {
        &[PDF]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "25 50 44 46 2D 3? 2E 3?", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let walked = walk(view, 8);
        if walked.heads.is_empty() && !begins_before_another(view) {
            return Verdict::Not;
        }
        let (mut sure, mut at, mut trouble) = (walked.sure, walked.at, walked.at);
        let mut search_end = at.saturating_add(SEARCH_BYTES);
        let mut whole = None;
        let mut follows = Follows::Nothing;
        for _ in 0..ENDS_MAX {
            let Some(ending) = Ending::find(view, at..search_end) else { break };
            let is_good = chain(view, &ending);
            if is_good {
                whole = Some(ending.end);
                follows = what_follows(view, ending.end);
                if follows == Follows::Nothing {
                    break;
                }
                sure = sure.max(ending.end);
            }
            at = walk(view, ending.end).at;
            if is_good {
                trouble = at;
                search_end = at.saturating_add(SEARCH_BYTES);
            }
        }
        let reason = match whole {
            Some(length) if follows != Follows::Update => {
                return Verdict::Whole { length, kind: PDF };
            }
            Some(_) => "an update without an end",
            None => "no cross-reference that fits",
        };
        // It has not even one object.
        if walked.heads.is_empty() {
            return Verdict::Not;
        }
        let trouble = walked.doubt.unwrap_or(trouble).min(trouble);
        Verdict::broken(view, PDF, sure, trouble.max(sure), reason)
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        mend::mend(self, view, broken, context)
    }
}

/// Whether an object begins before another file does. Without an object after the header, the
/// search for an end would cover megabytes, which is too expensive for a mere header.
fn begins_before_another(view: &mut View<'_>) -> bool {
    let end = view.find(8..8 + FIRST_BYTES, b"%PDF-").unwrap_or(8 + FIRST_BYTES);
    view.find(8..end, b"obj").is_some()
}

/// The bytes directly after an end mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// They do not belong to a PDF.
    Nothing,
    /// The header of a PDF: some writers put one before an update, but mostly another file begins.
    Head,
    /// An update begins.
    Update,
}

fn what_follows(view: &mut View<'_>, end: u64) -> Follows {
    let next = after_comments(view, end);
    if object_at(view, next).is_none() && !view.is_at(next, b"xref") {
        Follows::Nothing
    } else if view.is_at(end, b"%PDF-") {
        Follows::Head
    } else {
        Follows::Update
    }
}
