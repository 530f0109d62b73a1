//! Passes on every member of an archive, of any type.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{Limits, Receiver, Walker};
use crate::format::tar::header::is_header;
use crate::format::zst;
use crate::view::View;

/// Receives the members of an archive. A path is `!` and a name for each enclosing archive; control
/// characters are escaped. Never use one as a path of a file system.
pub trait TakeMembers {
    /// Takes a member with all of its bytes. `place` is their offset in the outermost archive if
    /// that contains them verbatim. Returns whether to continue.
    fn member(&mut self, path: &str, bytes: &Arc<Vec<u8>>, place: Option<u64>) -> bool;

    /// Reports that a member was not examined, or that an archive (the outermost one for an empty
    /// path) was not walked to its end, and why.
    fn skipped(&mut self, path: &str, reason: &'static str);
}

/// The cost of a walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// The total size of all members of all levels, in bytes.
    pub bytes: u64,
    /// The number of members.
    pub members: u64,
}

/// Detects the type of an archive that [`members`] unpacks, or of a file that holds one compressed
/// file, by the first bytes; 512 bytes suffice.
pub fn archive_kind(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'P', b'K', 3, 4, ..] => Some("zip"),
        [0x1F, 0x8B, 8, ..] => Some("gz"),
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        [b'B', b'Z', b'h', b'1'..=b'9', block @ ..] if is_block(block) => Some("bz2"),
        [b'7', b'z', 0xBC, 0xAF, 0x27, 0x1C, ..] => Some("7z"),
        _ if zst::is_start(head) => Some("zst"),
        _ if is_header(head) => Some("tar"),
        _ => None,
    }
}

/// Whether a block of bzip2 begins here, or the end of an empty file.
fn is_block(bytes: &[u8]) -> bool {
    bytes.starts_with(b"1AY&SY") || bytes.starts_with(&[0x17, 0x72, 0x45, 0x38, 0x50, 0x90])
}

/// Unpacks the archive of type `kind` that `view` shows, and passes every member to `take`, in the
/// order of the archive; the members of a nested archive follow it. A tape (tar) within an archive
/// is read as a stream, so it is not a member itself. The members in memory at a time, which are
/// nested in each other, have at most `limits.member_bytes_max` bytes together. The content of a
/// compressed file is a member, called `content` if the file has no name for it. Does nothing for
/// other types (see [`archive_kind`]), and ends soon after `stop` becomes true.
pub fn members(
    kind: &str,
    view: &mut View<'_>,
    limits: &Limits,
    stop: &AtomicBool,
    take: &mut dyn TakeMembers,
) -> Unpacked {
    let mut walker = Walker::new(limits, view.length(), Receiver::All(take), stop);
    let (bytes, members) = (walker.left_bytes, walker.left_members);
    walker.archive(kind, view, Some(0), 1);
    Unpacked { bytes: bytes - walker.left_bytes, members: members - walker.left_members }
}
