//! JPEG: markers, and the entropy-coded data of every scan, decoded as far as necessary to know
//! that they belong to a picture.
//!
//! ITU-T T.81 (1992). The validator decodes baseline, extended and progressive pictures with
//! Huffman codes; for arithmetic and lossless ones it only follows the markers. Further pictures in
//! the first one's index are parts of the file.

mod bits;
mod blocks;
mod entropy;
mod frame;
mod huffman;
mod mpf;
mod reader;
mod seam;

pub(crate) use reader::Reader;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{self, Broken, MendContext, Reading, Step};
use crate::view::{Extent, View};

/// JPEG. It has no checksum: the validator checks that the codes of every scan are valid, and that
/// they fill the picture's blocks.
pub struct Jpg;

const JPG: Kind = Kind::new("jpg");

impl Format for Jpg {
    fn kinds(&self) -> &[Kind] {
        &[JPG]
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "FF D8 FF", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut reader = Reader::new();
        match reader.read_to(view, u64::MAX) {
            Step::Whole { length } => {
                let end = reader.index.map_or(length, |at| mpf::end_of_all(view, at, length));
                if view.is_starved() {
                    return Verdict::broken(view, JPG, length, length, "a second picture not read");
                }
                Verdict::Whole { length: end, kind: JPG }
            }
            Step::Broken { at } if reader.is_likely() => Verdict::Broken {
                kind: JPG,
                // Before the picture's header, anything may be between markers.
                sure: if reader.frame.is_some() { reader.sure.min(at) } else { 0 },
                at,
                reason: reader.reason.to_string(),
            },
            _ => Verdict::Not,
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        mend::in_order(view, context, broken, Box::new(Reader::of_fragments()))
    }
}
