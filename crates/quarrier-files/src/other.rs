//! Recognizes contents other than the supported file systems.

use crate::error::Result;
use crate::part::{BOOT_BYTES, Part};

/// An offset in the partition, the magic number there, and its meaning.
type Mark = (usize, &'static [u8], &'static str);

/// Magic numbers checked before any file system: remains of an earlier volume of another type may
/// follow them.
const FIRST: [Mark; 6] = [
    (0, b"LUKS\xBA\xBE", "LUKS"),
    (3, b"-FVE-FS-", "BitLocker"),
    (3, b"ReFS\0\0\0\0", "ReFS"),
    (0, b"LABELONE", "LVM"),
    (512, b"LABELONE", "LVM"),
    (1024, b"LABELONE", "LVM"),
];

/// Magic numbers checked if no supported file system was found.
const LAST: [Mark; 6] = [
    (4086, b"SWAPSPACE2", "swap"),
    (4086, b"SWAP-SPACE", "swap"),
    (1024, b"BD", "HFS"),
    (1024, b"\x10\x20\xF5\xF2", "F2FS"),
    (4096, b"\xFC\x4E\x2B\xA9", "Linux RAID"),
    (0, b"hsqs", "SquashFS"),
];

/// The contents by the magic numbers that are checked first.
pub(crate) fn first(boot: &[u8; BOOT_BYTES]) -> Option<&'static str> {
    let stands = |(at, mark, _): &&Mark| boot[*at..].starts_with(mark);
    FIRST.iter().find(stands).map(|(_, _, name)| *name)
}

/// The contents of `part` by the magic numbers that are checked last.
pub(crate) fn last(part: &Part<'_>) -> Result<Option<&'static str>> {
    for (at, mark, name) in LAST {
        let mut there = [0; 10];
        let there = &mut there[..mark.len()];
        if part.length() >= (at + mark.len()) as u64 {
            part.read(at as u64, there, "the magic number of a file system")?;
            if there == mark {
                return Ok(Some(name));
            }
        }
    }
    Ok(None)
}
