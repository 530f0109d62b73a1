//! The headers of Mach-O programs.

use super::{Fields, Patch};

/// The offset of the size of all load commands.
const COMMAND_BYTES: usize = 20;

/// Returns what to correct: the size of the load commands of a file that ends before them.
pub(super) fn correct(bytes: &[u8]) -> Vec<Patch> {
    let patch = || {
        let header = Header::of(bytes)?;
        let left = u32::try_from(bytes.len().checked_sub(header.bytes)?).ok()?;
        let new = if header.is_big { left.to_be_bytes() } else { left.to_le_bytes() };
        (left < header.command_bytes).then_some((COMMAND_BYTES, new))
    };
    patch().into_iter().collect()
}

/// Sets the field that shows a corrected number.
pub(super) fn show(bytes: &[u8], fields: &mut Fields) {
    if let (Some(size), Some(header)) = (fields.get_mut("sizeofcmds"), Header::of(bytes)) {
        *size = header.command_bytes.into();
    }
}

struct Header {
    bytes: usize,
    is_big: bool,
    command_bytes: u32,
}

impl Header {
    /// Reads the header of a file for one processor.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (length, is_big) = match bytes.first_chunk()? {
            [0xFE, 0xED, 0xFA, 0xCE] => (28, true),
            [0xFE, 0xED, 0xFA, 0xCF] => (32, true),
            [0xCE, 0xFA, 0xED, 0xFE] => (28, false),
            [0xCF, 0xFA, 0xED, 0xFE] => (32, false),
            _ => return None,
        };
        let size = *bytes.get(COMMAND_BYTES..)?.first_chunk()?;
        let command_bytes =
            if is_big { u32::from_be_bytes(size) } else { u32::from_le_bytes(size) };
        Some(Header { bytes: length, is_big, command_bytes })
    }
}
