//! MP4, QuickTime and the formats built on them: boxes in boxes.
//!
//! ISO/IEC 14496-12; Apple, *QuickTime File Format Specification*.

mod boxes;
mod movie;
mod sample;

use std::ops::Range;

use super::{Format, Kind, Signature, Verdict};
use crate::mend::{Alien, MendContext, Rest, without_gaps};
use crate::mend::{Broken, text_sectors};
use crate::view::{Extent, SECTOR_BYTES, TAKE_BYTES_MAX, View};

use boxes::Atom;

/// Films and sound in boxes. They have no checksums: the validator checks the chain of boxes, that
/// all samples of the movie box are in boxes of data, and that samples of H.264 and H.265 consist
/// of units.
pub struct Mp4;

const MP4: Kind = Kind::new("mp4");
const M4A: Kind = Kind::new("m4a");
const MOV: Kind = Kind::new("mov");
const GP3: Kind = Kind::new("3gp");
const CR3: Kind = Kind::new("cr3");

/// Maximum number of boxes of data to remember; fragmented films have more, but no tables that need
/// them.
const DATA_MAX: usize = 4096;

/// Minimum number of sectors of text that reveal foreign data; encoders write less about
/// themselves.
const TEXT_SECTORS_MIN: u64 = 4;

/// Brands of pictures, which belong to another format.
const PICTURES: [&[u8; 4]; 10] =
    [b"mif1", b"msf1", b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"avif", b"avis"];

impl Format for Mp4 {
    fn kinds(&self) -> &[Kind] {
        &[MP4, M4A, MOV, GP3, CR3]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "00 00 00 ?? 66 74 79 70", at: 0 },
            Signature { hex: "6D 6F 6F 76 00 00 00 6C 6D 76 68 64", at: 4 },
            Signature { hex: "00 00 00 08 77 69 64 65 ?? ?? ?? ?? 6D 64 61 74", at: 0 },
            Signature { hex: "?? ?? ?? ?? 6D 64 61 74", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(kind) = kind_of(view) else { return Verdict::Not };
        let chain = match chain(view) {
            Ok(chain) => chain,
            // A single box may occur by chance; everything beyond it must be right.
            Err(fault) if fault.is_first => return Verdict::Not,
            Err(fault) => {
                let sure = if fault.sure > 32 { fault.sure } else { 0 };
                return Verdict::broken(view, kind, sure, fault.at, fault.why);
            }
        };
        let Some(movie) = chain.movie else {
            return Verdict::broken(view, kind, 0, chain.end, "no movie box");
        };
        if let Err(fault) = movie::check(view, movie, &chain.data) {
            if fault.sure == 0 && !view.is_at(4, b"ftyp") {
                // The file begins earlier.
                return Verdict::Not;
            }
            return Verdict::broken(view, kind, fault.sure, fault.at, fault.why);
        }
        match text_in(view, &chain.data) {
            None => Verdict::Whole { length: chain.end, kind },
            Some(at) => Verdict::broken(view, kind, 0, at, "text in place of samples"),
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        let end = broken.at;
        let alien = Alien { zeros: true, noise: false };
        without_gaps(view, context, end, alien, self)
    }
}

impl Rest for Mp4 {
    fn check(&self, view: &mut View<'_>) -> Option<u64> {
        Verdict::length(self.validate(view))
    }
}

/// The boxes at the top level.
struct Chain {
    end: u64,
    movie: Option<Range<u64>>,
    data: Vec<Range<u64>>,
}

/// The place where the chain breaks.
struct Fault {
    sure: u64,
    at: u64,
    why: &'static str,
    /// Whether it follows at most one box, or the chain has no boxes of data.
    is_first: bool,
}

/// Reads the boxes at the top level, up to the first bytes that are not a box.
fn chain(view: &mut View<'_>) -> Result<Chain, Fault> {
    let mut chain = Chain { end: 0, movie: None, data: Vec::new() };
    let mut has_data = false;
    let has_brand = view.is_at(4, b"ftyp");
    let mut count = 0;
    // Everything before the last box has been read.
    let mut sure = 0;
    loop {
        let at = chain.end;
        let is_whole = chain.movie.is_some() && has_data;
        let is_first = count < 2 || chain.data.is_empty() && !has_brand;
        let fault = |at, why| Fault { sure, at, why, is_first };
        let atom = Atom::read(view, at, u64::MAX).filter(|atom| is_known(&atom.name));
        // Another file may follow directly.
        let is_of_this = |atom: &Atom| atom.name != *b"ftyp" || at == 0;
        let Some(atom) = atom.filter(is_of_this) else {
            return if is_whole { Ok(chain) } else { Err(fault(at, "no box begins here")) };
        };
        if atom.body.end == u64::MAX {
            let sure = at;
            let why = "nothing shows where the last box ends";
            return Err(Fault { sure, at, why, is_first });
        }
        if atom.body.end > view.length() {
            return Err(fault(view.length(), "truncated"));
        }
        match &atom.name {
            b"moov" if chain.movie.is_some() => return Ok(chain),
            b"moov" => chain.movie = Some(atom.body.clone()),
            b"mdat" => {
                has_data |= !atom.body.is_empty();
                if chain.data.len() < DATA_MAX {
                    chain.data.push(atom.body.clone());
                }
            }
            _ => {}
        }
        count += 1;
        sure = atom.body.start;
        chain.end = atom.body.end;
    }
}

/// Finds text in `data` that is longer than encoders write: a sign of foreign bytes between
/// fragments.
fn text_in(view: &mut View<'_>, data: &[Range<u64>]) -> Option<u64> {
    for range in data {
        let mut at = range.start.next_multiple_of(SECTOR_BYTES);
        while at + SECTOR_BYTES <= range.end {
            let bytes = (range.end - at).min(TAKE_BYTES_MAX as u64) as usize;
            let block = view.take(at, bytes - bytes % SECTOR_BYTES as usize)?;
            if let Some(sector) = text_sectors(block, TEXT_SECTORS_MIN) {
                return Some(at + sector);
            }
            at += block.len() as u64;
        }
    }
    None
}

/// Whether files have boxes of this name at the top level.
fn is_known(name: &[u8; 4]) -> bool {
    const KNOWN: [&[u8; 4]; 22] = [
        b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"uuid", b"moof", b"mfra", b"sidx",
        b"ssix", b"styp", b"prft", b"emsg", b"pdin", b"meta", b"pnot", b"udta", b"junk", b"PICT",
        b"bloc", b"meco",
    ];
    KNOWN.contains(&name)
}

/// Returns the type by the brand; `None` for pictures and for unknown brands.
fn kind_of(view: &mut View<'_>) -> Option<Kind> {
    if !view.is_at(4, b"ftyp") {
        return Some(MOV);
    }
    let bytes = view.u32_be(0)?;
    let brand = view.array::<4>(8)?;
    if !(12..=1024).contains(&bytes) || !brand.iter().all(|letter| (0x20..0x7F).contains(letter)) {
        return None;
    }
    match &brand {
        brand if PICTURES.contains(&brand) => None,
        b"qt  " => Some(MOV),
        b"M4A " | b"M4B " | b"M4P " => Some(M4A),
        b"crx " => Some(CR3),
        [b'3', b'g', ..] => Some(GP3),
        _ => Some(MP4),
    }
}
