//! Local headers, which precede each member.

use crate::view::View;

/// Flags of a member.
pub(super) const ENCRYPTED: u16 = 1;
/// Sizes and checksum follow the member's data.
pub(super) const DESCRIBED_AFTER: u16 = 8;

pub(super) const STORED: u16 = 0;
pub(super) const DEFLATED: u16 = 8;
/// Methods that are unpacked for members, and not verified.
pub(super) const BZIP2: u16 = 12;
pub(super) const LZMA: u16 = 14;
pub(super) const ZSTD: u16 = 93;
pub(super) const XZ: u16 = 95;

/// The fixed part of a local header, in bytes.
pub(super) const HEADER_BYTES: u64 = 30;

/// Maximum plausible length of a name in bytes.
const NAME_BYTES_MAX: u16 = 4096;

/// The contents of a local header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Local {
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    pub(super) packed: u64,
    pub(super) unpacked: u64,
    pub(super) name_bytes: u16,
    /// The offset of the data in the file.
    pub(super) data_at: u64,
}

impl Local {
    /// Reads the header at `at`, if there is a plausible one.
    pub(super) fn read(view: &mut View<'_>, at: u64) -> Option<Local> {
        let header = view.array::<{ HEADER_BYTES as usize }>(at)?;
        let u16_at = |place: usize| u16::from_le_bytes([header[place], header[place + 1]]);
        let u32_at = |place: usize| u32::from(u16_at(place)) | u32::from(u16_at(place + 2)) << 16;
        let (version, method) = (u16_at(4), u16_at(8));
        let (name_bytes, extra_bytes) = (u16_at(26), u16_at(28));
        if header[..4] != *b"PK\x03\x04"
            || version & 0xFF > 100
            || !is_method(method)
            || name_bytes == 0
            || name_bytes > NAME_BYTES_MAX
        {
            return None;
        }
        let name_at = at.checked_add(HEADER_BYTES)?;
        let extra_at = name_at + u64::from(name_bytes);
        if view.take(name_at, name_bytes.into())?.iter().any(|byte| *byte < 0x20) {
            return None;
        }
        let mut local = Local {
            flags: u16_at(6),
            method,
            crc: u32_at(14),
            packed: u32_at(18).into(),
            unpacked: u32_at(22).into(),
            name_bytes,
            data_at: extra_at + u64::from(extra_bytes),
        };
        if local.packed == 0xFFFF_FFFF || local.unpacked == 0xFFFF_FFFF {
            let extra = view.take(extra_at, extra_bytes.into())?;
            (local.unpacked, local.packed) = wide_sizes(extra, local.unpacked, local.packed)?;
        }
        Some(local)
    }

    /// Whether only the descriptor after the member states its length.
    pub(super) fn is_open(&self) -> bool {
        self.flags & DESCRIBED_AFTER != 0 && self.packed == 0
    }

    /// Whether its bytes can be read and verified.
    pub(super) fn is_readable(&self) -> bool {
        self.flags & ENCRYPTED == 0 && matches!(self.method, STORED | DEFLATED)
    }
}

/// Whether this compression method is assigned.
fn is_method(method: u16) -> bool {
    matches!(method, 0..=10 | 12 | 14 | 16 | 18..=20 | 93..=99)
}

/// Replaces the sizes that do not fit in the header by those in the extra field for archives beyond
/// 4 GiB.
pub(super) fn wide_sizes(extra: &[u8], unpacked: u64, packed: u64) -> Option<(u64, u64)> {
    let mut values = extra_field(extra, 1)?.chunks_exact(8);
    let mut wide = |narrow: u64| match narrow {
        0xFFFF_FFFF => {
            values.next().and_then(|value| value.try_into().ok()).map(u64::from_le_bytes)
        }
        _ => Some(narrow),
    };
    Some((wide(unpacked)?, wide(packed)?))
}

/// Returns the content of the extra field with this number.
pub(super) fn extra_field(mut extra: &[u8], wanted: u16) -> Option<&[u8]> {
    while let [id_0, id_1, length_0, length_1, rest @ ..] = extra {
        let length = usize::from(u16::from_le_bytes([*length_0, *length_1]));
        if u16::from_le_bytes([*id_0, *id_1]) == wanted {
            return rest.get(..length);
        }
        extra = rest.get(length..)?;
    }
    None
}
