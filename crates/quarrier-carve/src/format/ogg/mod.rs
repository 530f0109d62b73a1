//! Ogg: the pages of one or more streams, each with its checksum and a number.
//!
//! RFC 3533.

mod pages;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Broken, MendContext, Reading, Step, in_order};
use crate::view::{Extent, View};

use pages::Pages;

/// Vorbis, Opus, FLAC, Speex and Theora in Ogg. The validator verifies every page by its checksum
/// and number; the file ends when all its streams have ended.
pub struct Ogg;

const OGG: Kind = Kind::new("ogg");
const OPUS: Kind = Kind::new("opus");
const OGV: Kind = Kind::new("ogv");

impl Format for Ogg {
    fn kinds(&self) -> &[Kind] {
        &[OGG, OPUS, OGV]
    }

    fn signatures(&self) -> &[Signature] {
        // A page that begins a stream; other pages are inside a file.
        &[Signature { hex: "4F 67 67 53 00 02", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let mut pages = Pages::default();
        let step = pages.read_to(view, u64::MAX);
        if pages.at == 0 {
            return Verdict::Not;
        }
        let kind = kind_of(view, pages.at);
        match step {
            Step::Whole { length } => Verdict::Whole { length, kind },
            Step::Broken { at } => Verdict::broken(view, kind, pages.at, at, pages.fault),
            Step::Going => Verdict::broken(view, kind, pages.at, pages.at, "truncated"),
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        in_order(view, context, broken, Box::new(Pages::default()))
    }
}

/// Returns the type by the pages that begin streams, which come first.
fn kind_of(view: &mut View<'_>, end: u64) -> Kind {
    let mut kind = OGG;
    let mut at = 0;
    while at < end {
        let Some(header) = view.array::<28>(at) else { break };
        if header[5] & 2 == 0 {
            break;
        }
        let packet = at + 27 + u64::from(header[26]);
        match view.array::<8>(packet) {
            Some([0x80, b't', b'h', b'e', b'o', b'r', b'a', _]) => return OGV,
            Some([b'O', b'p', b'u', b's', b'H', b'e', b'a', b'd']) => kind = OPUS,
            _ => {}
        }
        at = packet + u64::from(header[27]);
    }
    kind
}
