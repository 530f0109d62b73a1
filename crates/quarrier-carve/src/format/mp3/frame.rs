//! Headers of MPEG audio frames of layer III.

use crate::view::View;

/// Bytes of a header.
pub(super) const HEADER_BYTES: u64 = 4;

const KBIT_1: [u32; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const KBIT_2: [u32; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const RATE_HZ: [u32; 3] = [44_100, 48_000, 32_000];

/// The contents of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The size of the whole frame.
    pub(super) bytes: u64,
    /// Bits that are equal in all frames of a file.
    pub(super) stream: u32,
    is_1: bool,
    is_mono: bool,
    is_checked: bool,
}

/// MPEG version, layer, sampling rate.
const STREAM_MASK: u32 = 0xFFFE_0C00;

impl Frame {
    /// Reads the frame whose header begins at `at`.
    pub(super) fn read(view: &mut View<'_>, at: u64) -> Option<Frame> {
        Frame::parse(view.u32_be(at)?)
    }

    pub(super) fn parse(header: u32) -> Option<Frame> {
        let version = header >> 19 & 3;
        let kbit_index = (header >> 12 & 15) as usize;
        let rate_index = (header >> 10 & 3) as usize;
        // Layer III; emphasis 2 is reserved.
        let is_layer_3 = header >> 21 == 0x7FF && version != 1 && header >> 17 & 3 == 1;
        if !is_layer_3 || header & 3 == 2 || !(1..15).contains(&kbit_index) || rate_index == 3 {
            return None;
        }
        let is_1 = version == 3;
        let (kbit, shift) = match version {
            3 => (KBIT_1[kbit_index], 0),
            2 => (KBIT_2[kbit_index], 1),
            _ => (KBIT_2[kbit_index], 2),
        };
        let rate_hz = RATE_HZ[rate_index] >> shift;
        let bits_a_sample = if is_1 { 144_000 } else { 72_000 };
        Some(Frame {
            bytes: u64::from(bits_a_sample * kbit / rate_hz + (header >> 9 & 1)),
            stream: header & STREAM_MASK,
            is_1,
            is_mono: header >> 6 & 3 == 3,
            is_checked: header >> 16 & 1 == 0,
        })
    }

    /// The offset of its main data from its start.
    pub(super) fn main_data_at(&self) -> u64 {
        HEADER_BYTES + 2 * u64::from(self.is_checked) + self.side_bytes()
    }

    /// The offset from the frame's start at which encoders note the length of the file: within the
    /// main data, as if the frame had no checksum.
    pub(super) fn note_at(&self) -> u64 {
        HEADER_BYTES + self.side_bytes()
    }

    fn side_bytes(&self) -> u64 {
        match (self.is_1, self.is_mono) {
            (true, false) => 32,
            (true, true) | (false, false) => 17,
            (false, true) => 9,
        }
    }

    /// Returns the number of bytes of main data that the frame at `at` has in earlier frames.
    pub(super) fn borrowed_bytes(&self, view: &mut View<'_>, at: u64) -> Option<u64> {
        let side = at + self.main_data_at() - self.side_bytes();
        let bits = view.u16_be(side)?;
        Some(u64::from(if self.is_1 { bits >> 7 } else { bits >> 8 }))
    }

    /// Returns the end of the main data within the frame at `at`; the bytes after it are unused, or
    /// belong to the next frame.
    pub(super) fn main_data_end(&self, view: &mut View<'_>, at: u64) -> Option<u64> {
        let borrowed = self.borrowed_bytes(view, at)?;
        let side = at + self.main_data_at() - self.side_bytes();
        let channels = if self.is_mono { 1 } else { 2 };
        // Bits before the first part, bits per part, and the number of parts: MPEG 1 has two
        // granules.
        let (first, part, parts) = match (self.is_1, self.is_mono) {
            (true, true) => (18, 59, 2 * channels),
            (true, false) => (20, 59, 2 * channels),
            (false, true) => (9, 63, channels),
            (false, false) => (10, 63, channels),
        };
        let mut bits = 0;
        for index in 0..parts {
            // Each part begins with its length, in 12 bits.
            let bit = first + part * index;
            let three = view.array::<3>(side + bit / 8)?;
            let word = u32::from_be_bytes([0, three[0], three[1], three[2]]);
            bits += u64::from(word >> (12 - bit % 8) & 0xFFF);
        }
        Some(at + self.main_data_at() + bits.div_ceil(8).saturating_sub(borrowed))
    }

    /// Whether a frame of the same stream ends with `before`.
    pub(super) fn is_follower(&self, before: &[u8]) -> bool {
        (24..=1441.min(before.len())).any(|bytes| {
            let header = &before[before.len() - bytes..][..4];
            let header = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
            header & STREAM_MASK == self.stream
                && Frame::parse(header).is_some_and(|frame| frame.bytes == bytes as u64)
        })
    }
}
