//! The stream's header, and the header of each frame.

use crc_fast::{CrcAlgorithm, checksum};

use crate::view::View;

/// The maximum size of a frame header.
pub(super) const FRAME_HEADER_BYTES_MAX: usize = 16;

/// The metadata block with which every file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stream {
    /// The size of the shortest frame in bytes; 0 if unknown.
    pub(super) frame_bytes_min: u64,
    pub(super) channels: u32,
    pub(super) sample_bits: u32,
    /// Samples per channel; 0 if unknown.
    pub(super) samples: u64,
}

impl Stream {
    /// The size of the block without its header.
    pub(super) const BYTES: usize = 34;

    pub(super) fn read(view: &mut View<'_>, at: u64) -> Option<Stream> {
        let block = view.array::<{ Stream::BYTES }>(at)?;
        let frames = u32::from_be_bytes([0, block[4], block[5], block[6]]);
        let packed = u64::from_be_bytes(block[10..18].try_into().ok()?);
        let rate_hz = packed >> 44;
        let stream = Stream {
            frame_bytes_min: u64::from(frames),
            channels: (packed >> 41 & 7) as u32 + 1,
            sample_bits: (packed >> 36 & 31) as u32 + 1,
            samples: packed & 0xF_FFFF_FFFF,
        };
        let block_samples_min = u16::from_be_bytes([block[0], block[1]]);
        let block_samples_max = u16::from_be_bytes([block[2], block[3]]);
        let is_plausible = block_samples_min >= 1
            && block_samples_min <= block_samples_max
            && rate_hz > 0
            && stream.sample_bits >= 4;
        is_plausible.then_some(stream)
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    /// The size of the header.
    pub(super) bytes: usize,
    /// Whether `number` counts samples, not frames.
    pub(super) is_variable: bool,
    pub(super) number: u64,
    /// Samples per channel.
    pub(super) samples: u32,
    /// The coding of the channels.
    pub(super) channels: Channels,
    pub(super) sample_bits: u32,
}

/// The coding of a frame's channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channels {
    /// This many independent channels.
    Apart(u32),
    /// Two channels. The one with this number is a difference, whose samples have one more bit.
    Difference(u32),
}

impl Channels {
    pub(super) fn count(self) -> u32 {
        match self {
            Channels::Apart(count) => count,
            Channels::Difference(_) => 2,
        }
    }
}

impl Frame {
    /// Parses the header at the start of `bytes`, if it is a frame of `stream` with a correct
    /// checksum.
    pub(super) fn parse(bytes: &[u8], stream: &Stream) -> Option<Frame> {
        let [0xFF, sync @ (0xF8 | 0xF9), sizes, layout, ..] = *bytes else { return None };
        if layout & 1 != 0 || sizes & 0xF == 0xF {
            return None;
        }
        let channels = match layout >> 4 {
            count @ 0..=7 => Channels::Apart(u32::from(count) + 1),
            8 | 10 => Channels::Difference(1),
            9 => Channels::Difference(0),
            _ => return None,
        };
        let sample_bits = match layout >> 1 & 7 {
            0 => stream.sample_bits,
            index @ (1 | 2 | 4 | 5 | 6 | 7) => [0, 8, 12, 0, 16, 20, 24, 32][usize::from(index)],
            _ => return None,
        };
        if sample_bits != stream.sample_bits || channels.count() != stream.channels {
            return None;
        }
        let (number, number_bytes) = coded(bytes.get(4..)?)?;
        let mut at = 4 + number_bytes;
        let samples = match sizes >> 4 {
            0 => return None,
            1 => 192,
            index @ 2..=5 => 576 << (index - 2),
            6 => {
                at += 1;
                u32::from(*bytes.get(at - 1)?) + 1
            }
            7 => {
                at += 2;
                u32::from(u16::from_be_bytes([*bytes.get(at - 2)?, *bytes.get(at - 1)?])) + 1
            }
            index => 256 << (index - 8),
        };
        at += match sizes & 0xF {
            12 => 1,
            13 | 14 => 2,
            _ => 0,
        };
        let crc = *bytes.get(at)?;
        let is_right = crc8(&bytes[..at]) == crc;
        let is_variable = sync == 0xF9;
        is_right.then_some(Frame {
            bytes: at + 1,
            is_variable,
            number,
            samples,
            channels,
            sample_bits,
        })
    }

    /// Returns an upper bound for the size of a frame with this header, plus the header of the next one.
    pub(super) fn bytes_max(&self) -> u64 {
        let channels = u64::from(self.channels.count());
        let sample_bits = channels * u64::from(self.sample_bits) + 1;
        u64::from(self.samples) * sample_bits / 8 + channels * 1024 + 64
    }
}

/// Decodes a number of up to 36 bits, which is encoded as UTF-8 encodes characters. Returns it and its size.
fn coded(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let ones = first.leading_ones() as usize;
    let (mut number, count) = match ones {
        0 => return Some((u64::from(first), 1)),
        1 | 8 => return None,
        7 => (0, 7),
        _ => (u64::from(first & (0x7F >> ones)), ones),
    };
    for byte in bytes.get(1..count)? {
        if byte >> 6 != 2 {
            return None;
        }
        number = number << 6 | u64::from(byte & 0x3F);
    }
    Some((number, count))
}

/// Returns the checksum of a header. It works bit by bit, since headers are short.
fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc, _| if crc & 0x80 != 0 { crc << 1 ^ 7 } else { crc << 1 })
    })
}

/// Returns the checksum of a frame.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    checksum(CrcAlgorithm::Crc16Umts, bytes) as u16
}
