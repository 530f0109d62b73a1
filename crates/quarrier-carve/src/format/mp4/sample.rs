//! Checks of a sample without decoding it.

use std::ops::Range;

use crate::view::{TAKE_BYTES_MAX, View};

/// The check for samples of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// H.264 and H.265: the sample consists of units, each after a length of this many bytes.
    Units(u64),
    /// A JPEG picture.
    Picture,
    /// Apple's Road Pizza: a mark, and the length of the sample.
    Pizza,
    /// No check is possible.
    Nothing,
}

impl Check {
    /// Chooses the check by the description of samples in `body`.
    pub(super) fn of(view: &mut View<'_>, body: Range<u64>) -> Check {
        let bytes = (body.end - body.start).min(TAKE_BYTES_MAX as u64) as usize;
        let Some(body) = view.take(body.start, bytes) else { return Check::Nothing };
        let count = body.get(4..8);
        let Some(codec) = body.get(12..16).filter(|_| count == Some(&[0, 0, 0, 1])) else {
            return Check::Nothing;
        };
        // The configuration and the byte in it with the size of units' lengths.
        let (config, at) = match codec {
            b"avc1" | b"avc3" => (b"avcC", 8),
            b"hvc1" | b"hev1" => (b"hvcC", 25),
            b"jpeg" => return Check::Picture,
            b"rpza" => return Check::Pizza,
            _ => return Check::Nothing,
        };
        let place = memchr::memmem::find(body, config);
        match place.and_then(|place| body.get(place + at)) {
            Some(byte) if byte & 3 != 2 => Check::Units(u64::from(byte & 3) + 1),
            _ => Check::Nothing,
        }
    }

    pub(super) fn is_right(self, view: &mut View<'_>, sample: Range<u64>) -> bool {
        match self {
            Check::Nothing => true,
            Check::Picture => view.is_at(sample.start, &[0xFF, 0xD8, 0xFF]),
            Check::Pizza => {
                let mark = view.u32_be(sample.start).map(u64::from);
                mark == Some(0xE100_0000 | (sample.end - sample.start))
            }
            Check::Units(length_bytes) => are_units(view, sample, length_bytes),
        }
    }
}

fn are_units(view: &mut View<'_>, sample: Range<u64>, length_bytes: u64) -> bool {
    let mut at = sample.start;
    while at < sample.end {
        let Some(length) = view.take(at, length_bytes as usize) else { return false };
        let bytes = length.iter().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte));
        if bytes == 0 || at + length_bytes + bytes > sample.end {
            return false;
        }
        // The first bit of a unit is zero.
        if view.byte(at + length_bytes).is_none_or(|byte| byte & 0x80 != 0) {
            return false;
        }
        at += length_bytes + bytes;
    }
    true
}
