//! Any bytes as files of every format: the verdict must be consistent, and fragments must be
//! complete.

use std::sync::atomic::AtomicBool;

use quarrier_carve::format::{ALL, seven_zip::SevenZip, xz::Xz};
use quarrier_carve::mend::{Claims, Effort, MendContext};
use quarrier_carve::{Broken, Extent, Format, Signature, Verdict as FileVerdict, View};
use quarrier_core::source::Memory;

use crate::{Target, Verdict, packed};

/// See the module.
pub const TARGET: Target = Target { name: "carve", run, once: &[], seeds: SEEDS, words: WORDS };

/// The number of bytes that a validator may read of one input.
const FUEL_BYTES: u64 = 1 << 20;

const SEEDS: &[&[u8]] = &[
    b"GIF89a\x02\0\x02\0\x80\0\0\0\0\0\xFF\xFF\xFF\x21\xFE\x05hello\0\
      \x2C\0\0\0\0\x02\0\x02\0\0\x02\x02\x84\x51\0\x3B",
    b"\xFF\xD8\xFF\xDB\0\x43\0\
      \x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\
      \x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\
      \x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\
      \x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\
      \xFF\xC2\0\x0B\x08\0\x10\0\x10\x01\x01\x11\0\
      \xFF\xC4\0\x15\0\0\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\
      \xFF\xC4\0\x16\x10\0\x02\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x11\xF0\
      \xFF\xDA\0\x08\x01\x01\0\0\0\x01\x12\x34\x55\
      \xFF\xDA\0\x08\x01\x01\0\x01\x3F\x01\x4A\x77\x31\x7F\xFF\xD9",
    b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x02\0\0\0\x01\0\x18\0\0\0\0\0\
      \x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0abcdef\0\0ghijkl\0\0",
    b"II*\0\x08\0\0\0\x04\0\0\x01\x04\0\x01\0\0\0\x02\0\0\0\x01\x01\x04\0\x01\0\0\0\x02\0\0\0\
      \x11\x01\x04\0\x01\0\0\0\x3E\0\0\0\x17\x01\x04\0\x01\0\0\0\x04\0\0\0\0\0\0\0abcd",
    b"RIFF\x18\0\0\0WEBPVP8L\x0B\0\0\0\x2F\0\0\0\0abcdef\0",
    b"\0\0\0\x14ftypavif\0\0\0\0mif1\0\0\0\x0Cmeta\0\0\0\0\0\0\0\x09mdat!",
    b"<?xml version='1.0'?><svg><g a='>'/></svg>\n",
    b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    // Header and data of a 7z: one stored file. Then one with LZMA.
    b"\0\x1D\x04\x06\0\x01\x09\x04\0\x07\x0B\x01\0\x01\x01\0\x0C\x04\x0A\x01\x65\xE3\x1D\x24\
      \0\x08\0\0\x05\x01\0abcd",
    b"\0\x25\x04\x06\0\x01\x09\x09\0\x07\x0B\x01\0\x01\x23\x03\x01\x01\x05\x5D\0\x10\0\0\
      \x0C\x04\x0A\x01\0\0\0\0\0\x08\0\0\x05\x01\0\0\x30\x98\x88\x98\x46\x7E\x1E\xB2",
    // The block of an xz: stored by LZMA2, after a filter.
    b"\x04\x08\x04\x01\0\x03abcd\0",
    b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\nxref\n0 1\n0000000000 65535 f \n\
      trailer <</Size 1>>\nstartxref\n30\n%%EOF\n",
];

const WORDS: &[&[u8]] = &[
    b"\0\0\0\0",
    b"\0\0\0\0\0\0\0\0",
    b"\xFF\xFF\xFF\xFF",
    b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
    b"\x7F\xFF\xFF\xFF",
    b"\xFF\xFF\xFF\x7F",
    b"\x80\0\0\0\0\0\0\0",
    b"\x01\0\0\0",
    b"\0\0\0\x01",
    b"\xFF\xD9",
    b"\xFF\xDA\0\x08\x01\x01\0\0\0\x01",
    b"\xFF\xDD\0\x04\0\x01",
    b"IEND",
    b"IDAT",
    b"mdat",
    b"moov",
    b"LIST",
    b"data",
    b"%%EOF",
    b"startxref",
    b"PK\x03\x04",
    b"PK\x01\x02",
    b"</svg>",
];

/// Validates the bytes unchanged, with each signature of each format in its place, and as packed
/// data.
pub fn run(bytes: &[u8]) -> Verdict {
    let mut said = false;
    for format in ALL {
        said |= judge(*format, bytes);
        for signature in format.signatures() {
            said |= judge(*format, &signed(bytes, signature));
        }
    }
    // Headers of packed data have checksums, which no mutation keeps valid.
    said |= packed::xz(bytes).is_some_and(|file| judge(&Xz, &file));
    said |= packed::seven_zip(bytes).is_some_and(|file| judge(&SevenZip, &file));
    if said { Verdict::Checked } else { Verdict::Skipped }
}

/// Returns the bytes with a signature in its place; bytes of any value stay unchanged.
fn signed(bytes: &[u8], signature: &Signature) -> Vec<u8> {
    let mut signed = bytes.to_vec();
    // A signature far from the start would be too expensive to build for each input.
    let at = usize::try_from(signature.at).unwrap_or(usize::MAX).min(1 << 16);
    for (index, digits) in signature.hex.split_whitespace().enumerate() {
        if signed.len() <= at + index {
            signed.resize(at + index + 1, 0);
        }
        let byte = &mut signed[at + index];
        for (shift, digit) in [4, 0].into_iter().zip(digits.chars()) {
            if let Some(digit) = digit.to_digit(16) {
                *byte = *byte & !(15 << shift) | (digit as u8) << shift;
            }
        }
    }
    signed
}

/// Whether a validator accepts the bytes as one whole file.
pub(crate) fn is_whole(format: &dyn Format, bytes: &[u8]) -> bool {
    let length = bytes.len() as u64;
    let source = Memory::new("input", bytes);
    let mut view = View::new(&source);
    view.look_at(&[Extent { offset: 0, length }], FUEL_BYTES);
    matches!(format.validate(&mut view), FileVerdict::Whole { length: whole, .. } if whole == length)
}

/// Whether a validator accepts the bytes as anything. Its verdict must be possible.
pub(crate) fn judge(format: &dyn Format, bytes: &[u8]) -> bool {
    let length = bytes.len() as u64;
    let source = Memory::new("input", bytes);
    let all = [Extent { offset: 0, length }];
    let mut view = View::new(&source);
    view.look_at(&all, FUEL_BYTES);
    match format.validate(&mut view) {
        FileVerdict::Not => return false,
        FileVerdict::Whole { length: whole, kind }
        | FileVerdict::Unread { length: whole, kind, .. } => {
            assert!(whole > 0 && whole <= length, "{} of {whole} in {length}", kind.name);
            assert!(format.kinds().contains(&kind), "{}", kind.name);
        }
        FileVerdict::Broken { kind, sure, at, reason } => {
            assert!(sure <= at && at <= length, "{}: {sure}, {at} of {length}", kind.name);
            assert!(format.kinds().contains(&kind) && !reason.is_empty(), "{}", kind.name);
            mend(format, &mut view, &Broken { sure, at }, &all);
        }
    }
    true
}

/// Searches for fragments in blocks of 16 bytes; any found must lie in the source.
fn mend(format: &dyn Format, view: &mut View<'_>, broken: &Broken, all: &[Extent; 1]) {
    let mut effort = Effort::NORMAL;
    effort.fuel_bytes = 1 << 16;
    let claims = Claims::default();
    let ranges = [0..all[0].length];
    let stop = AtomicBool::new(false);
    view.look_at(all, FUEL_BYTES);
    let context = MendContext::new(16, &claims, effort, &ranges, &stop);
    for extent in format.mend(view, broken, &context).into_iter().flatten() {
        assert!(extent.end() <= all[0].length, "{extent:?}");
    }
}
