//! HEIC, HEIF and AVIF: boxes of the ISO base media file format, with the brand of a picture.
//!
//! ISO/IEC 14496-12 and 23008-12.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// HEIF pictures. They have no checksum: the validator checks the chain of boxes, and that items
/// are inside it.
pub struct Heif;

const HEIF: Kind = Kind::new("heif");
const HEIC: Kind = Kind::new("heic");
const AVIF: Kind = Kind::new("avif");
/// Maximum number of boxes, and of items, to read.
const BOXES_MAX: u32 = 4096;

impl Format for Heif {
    fn kinds(&self) -> &[Kind] {
        &[HEIF, HEIC, AVIF]
    }

    fn signatures(&self) -> &[Signature] {
        const BRANDS: [&str; 10] = [
            "66 74 79 70 6D 69 66 31", // mif1
            "66 74 79 70 6D 69 66 32", // mif2
            "66 74 79 70 6D 73 66 31", // msf1
            "66 74 79 70 68 65 69 63", // heic
            "66 74 79 70 68 65 69 78", // heix
            "66 74 79 70 68 65 69 6D", // heim
            "66 74 79 70 68 65 69 73", // heis
            "66 74 79 70 68 65 76 63", // hevc
            "66 74 79 70 61 76 69 66", // avif
            "66 74 79 70 61 76 69 73", // avis
        ];
        const SIGNATURES: [Signature; BRANDS.len()] = {
            let mut all = [Signature { hex: "", at: 4 }; BRANDS.len()];
            let mut index = 0;
            while index < BRANDS.len() {
                all[index].hex = BRANDS[index];
                index += 1;
            }
            all
        };
        &SIGNATURES
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some(kind) = kind(view) else { return Verdict::Not };
        let end = view.length();
        let (mut at, mut boxes) = (0, 0);
        let (mut meta, mut data, mut items_end) = (false, false, 0);
        while at < end && boxes < BOXES_MAX {
            let Some(one) = Box::read(view, at) else { break };
            if boxes > 0 && !is_known(one.name) {
                break;
            }
            if one.end > end {
                let reason = "truncated".to_string();
                return Verdict::Broken { kind, sure: 0, at: end, reason };
            }
            match &one.name {
                b"meta" => {
                    meta = true;
                    items_end = match items(view, at, &one) {
                        Ok(items_end) => items_end,
                        Err(place) => {
                            let reason = "items outside of the file".to_string();
                            return Verdict::Broken { kind, sure: 0, at: place.min(end), reason };
                        }
                    };
                }
                b"moov" => meta = true,
                b"mdat" => data = true,
                _ => {}
            }
            at = one.end;
            boxes += 1;
        }
        if boxes < 2 {
            return Verdict::Not;
        }
        if !meta || (!data && items_end == 0) || items_end > at {
            let reason = "a box is missing".to_string();
            return Verdict::Broken { kind, sure: 0, at: at.min(end), reason };
        }
        Verdict::Whole { length: at, kind }
    }
}

/// A box's name, and the start and end of its contents.
struct Box {
    name: [u8; 4],
    body: u64,
    end: u64,
}

impl Box {
    fn read(view: &mut View<'_>, at: u64) -> Option<Box> {
        let [s0, s1, s2, s3, a, b, c, d] = view.array::<8>(at)?;
        let name = [a, b, c, d];
        let (body, bytes) = match u32::from_be_bytes([s0, s1, s2, s3]) {
            // The box extends to the end of the file, which is unknown.
            0 => return None,
            1 => (at + 16, view.u64_be(at + 8)?),
            bytes => (at + 8, u64::from(bytes)),
        };
        let end = at.checked_add(bytes)?;
        (end >= body).then_some(Box { name, body, end })
    }
}

fn is_known(name: [u8; 4]) -> bool {
    let names: [&[u8; 4]; 10] =
        [b"meta", b"mdat", b"moov", b"free", b"skip", b"uuid", b"wide", b"pdin", b"mfra", b"moof"];
    names.contains(&&name)
}

/// The type according to the brands.
fn kind(view: &mut View<'_>) -> Option<Kind> {
    let first = Box::read(view, 0)?;
    let bytes = first.end - first.body;
    if &first.name != b"ftyp" || !(8..=256).contains(&bytes) || bytes % 4 != 0 {
        return None;
    }
    let brands = view.take(first.body, bytes as usize)?;
    let has = |brand: &[u8; 4]| brands.chunks(4).any(|one| one == brand);
    Some(match () {
        () if has(b"avif") || has(b"avis") => AVIF,
        () if has(b"heic") || has(b"heix") || has(b"hevc") || has(b"heim") || has(b"heis") => HEIC,
        () => HEIF,
    })
}

/// Returns the end of the last item in the file according to `iloc`, or 0 if all items are in the
/// box itself. `Err` with the place at which the box is invalid.
fn items(view: &mut View<'_>, at: u64, meta: &Box) -> Result<u64, u64> {
    let mut place = meta.body + 4;
    for _ in 0..BOXES_MAX {
        if place >= meta.end {
            break;
        }
        let one = Box::read(view, place).filter(|one| one.end <= meta.end).ok_or(place)?;
        if &one.name == b"iloc" {
            return locations(view, &one).ok_or(one.body);
        }
        place = one.end;
    }
    Err(at)
}

fn locations(view: &mut View<'_>, iloc: &Box) -> Option<u64> {
    let [version, _, _, _, sizes, more] = view.array::<6>(iloc.body)?;
    let (offset_bytes, length_bytes) = (sizes >> 4, sizes & 15);
    let (base_bytes, index_bytes) = (more >> 4, if version > 0 { more & 15 } else { 0 });
    let mut at = iloc.body + 6;
    let wide = if version < 2 { 2 } else { 4 };
    let count = number(view, &mut at, wide)?;
    let mut last = 0;
    for _ in 0..count.min(u64::from(BOXES_MAX)) {
        at += u64::from(wide);
        let method = if version > 0 { number(view, &mut at, 2)? & 15 } else { 0 };
        at += 2;
        let base = number(view, &mut at, base_bytes)?;
        for _ in 0..number(view, &mut at, 2)?.min(u64::from(BOXES_MAX)) {
            at += u64::from(index_bytes);
            let offset = number(view, &mut at, offset_bytes)?;
            let length = number(view, &mut at, length_bytes)?;
            if method == 0 {
                last = last.max(base.checked_add(offset)?.checked_add(length)?);
            }
        }
        if at > iloc.end {
            return None;
        }
    }
    Some(last)
}

/// Reads a number of 0, 2, 4 or 8 bytes.
fn number(view: &mut View<'_>, at: &mut u64, bytes: u8) -> Option<u64> {
    let number = match bytes {
        0 => 0,
        2 => u64::from(view.u16_be(*at)?),
        4 => u64::from(view.u32_be(*at)?),
        8 => view.u64_be(*at)?,
        _ => return None,
    };
    *at += u64::from(bytes);
    Some(number)
}
