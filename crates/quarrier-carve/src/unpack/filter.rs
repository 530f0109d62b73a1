//! LZMA2, and the filters before it, which make code and tables compress better.

use std::io::Read;

use lzma_rust2::Lzma2Reader;
use lzma_rust2::filter::bcj::BcjReader;
use lzma_rust2::filter::delta::DeltaReader;

use super::{DICTIONARY_BYTES_MAX, Failed, TOO_LARGE};

/// A filter, whose output has the length of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Differences of bytes at this distance.
    Delta(usize),
    /// Addresses in code, relative to an offset.
    Code(Code, usize),
}

/// Processors whose code is filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    X86,
    PowerPc,
    Ia64,
    Arm,
    ArmThumb,
    Sparc,
    Arm64,
    RiscV,
}

impl Filter {
    /// Returns the filter with this number in xz and newer versions of 7-Zip.
    pub(crate) fn numbered(number: u64, properties: &[u8]) -> Option<Filter> {
        let code = match number {
            3 => {
                let distance = usize::from(*properties.first()?) + 1;
                return (properties.len() == 1).then_some(Filter::Delta(distance));
            }
            4 => Code::X86,
            5 => Code::PowerPc,
            6 => Code::Ia64,
            7 => Code::Arm,
            8 => Code::ArmThumb,
            9 => Code::Sparc,
            10 => Code::Arm64,
            11 => Code::RiscV,
            _ => return None,
        };
        let offset = match properties {
            [] => 0,
            bytes => u32::from_le_bytes(bytes.try_into().ok()?) as usize,
        };
        Some(Filter::Code(code, offset))
    }

    /// Reads `packed` and undoes the filter.
    pub(crate) fn undo<'r>(self, packed: Box<dyn Read + 'r>) -> Box<dyn Read + 'r> {
        let (code, from) = match self {
            Filter::Delta(distance) => return Box::new(DeltaReader::new(packed, distance)),
            Filter::Code(code, from) => (code, from),
        };
        Box::new(match code {
            Code::X86 => BcjReader::new_x86(packed, from),
            Code::PowerPc => BcjReader::new_ppc(packed, from),
            Code::Ia64 => BcjReader::new_ia64(packed, from),
            Code::Arm => BcjReader::new_arm(packed, from),
            Code::ArmThumb => BcjReader::new_arm_thumb(packed, from),
            Code::Sparc => BcjReader::new_sparc(packed, from),
            Code::Arm64 => BcjReader::new_arm64(packed, from),
            Code::RiscV => BcjReader::new_riscv(packed, from),
        })
    }
}

/// Decompresses LZMA2 with these `properties` to `bytes` bytes.
///
/// # Errors
/// If its dictionary is too large, or its size is invalid.
pub(crate) fn lzma2<'r>(
    packed: Box<dyn Read + 'r>,
    properties: &[u8],
    bytes: u64,
) -> Result<Box<dyn Read + 'r>, Failed> {
    let size = lzma2_dictionary(properties).ok_or(Failed::Wrong("properties of packed data"))?;
    Ok(Box::new(Lzma2Reader::new(packed, dictionary(size, bytes)?, None)))
}

/// Returns the dictionary size of LZMA2 with these `properties`, in bytes.
pub(crate) fn lzma2_dictionary(properties: &[u8]) -> Option<u64> {
    match properties {
        [40] => Some(u32::MAX.into()),
        [bits @ 0..40] => Some(u64::from(2 | bits & 1) << (bits / 2 + 11)),
        _ => None,
    }
}

/// Returns the dictionary size for `bytes` bytes of output, for a coder with a dictionary of
/// `stated` bytes: a dictionary larger than the output is useless.
///
/// # Errors
/// If the size is above the limit.
pub(crate) fn dictionary(stated: u64, bytes: u64) -> Result<u32, Failed> {
    const LEAST: u64 = 4096;
    match stated.min(bytes).max(LEAST) {
        size @ ..=DICTIONARY_BYTES_MAX => Ok(size as u32),
        _ => Err(Failed::NotRead(TOO_LARGE)),
    }
}
