//! Reads members to their end and verifies them.

use super::local::{DEFLATED, DESCRIBED_AFTER, ENCRYPTED, Local, STORED};
use crate::crc32::Crc32;
use crate::inflate::{Failed, Inflater};
use crate::unpack::{ENCRYPTED as NOT_DECRYPTED, UNKNOWN};
use crate::view::View;

/// The reason for a member that would take too long.
const TOO_LONG: &str = "members that unpack to a hundred times their size were not read";
/// A member with more uncompressed bytes than this, and more than [`RATIO_MAX`] times its
/// compressed size, is not read: its lengths are trusted.
const UNPACKED_BYTES_MAX: u64 = 256 << 20;
const RATIO_MAX: u64 = 100;
/// Maximum compression ratio of deflate.
const DEFLATE_RATIO_MAX: u64 = 1032;
/// Maximum distance in bytes within which to look for the end of a member that cannot be read.
const SEARCH_BYTES_MAX: u64 = 64 << 20;

/// A member that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// The offset of its header in the file.
    pub(super) at: u64,
    /// The start of the next member.
    pub(super) end: u64,
    pub(super) crc: u32,
    pub(super) packed: u64,
    pub(super) unpacked: u64,
    /// The part that was not read, or `None` if its checksum was verified.
    pub(super) not_read: Option<&'static str>,
}

/// The place where a member breaks, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) at: u64,
    pub(super) why: &'static str,
}

fn wrong<T>(at: u64, why: &'static str) -> Result<T, Wrong> {
    Err(Wrong { at, why })
}

/// Reads the member whose header `local` is at `at`.
pub(super) fn read(
    view: &mut View<'_>,
    inflater: &mut Option<Inflater>,
    at: u64,
    local: &Local,
) -> Result<Member, Wrong> {
    let unread = Member {
        at,
        end: local.data_at,
        crc: local.crc,
        packed: local.packed,
        unpacked: local.unpacked,
        not_read: Some(why_not(local)),
    };
    let Some(declared) = local.data_at.checked_add(local.packed) else {
        return wrong(at, "a member too long");
    };
    let is_bomb = local.method == DEFLATED
        && !local.is_open()
        && local.unpacked > UNPACKED_BYTES_MAX
        && local.unpacked / RATIO_MAX > local.packed
        && local.unpacked / DEFLATE_RATIO_MAX <= local.packed;
    let read = match local.method {
        _ if !local.is_readable() || is_bomb => skipped(view, local, declared, unread)?,
        DEFLATED => inflated(view, inflater, local, declared, unread)?,
        STORED if local.is_open() => searched(view, local, unread)?,
        _ => stored(view, declared, unread)?,
    };
    let described = local.flags & DESCRIBED_AFTER != 0;
    let has_sizes = !described || local.crc != 0 || local.packed != 0;
    if has_sizes
        && read.not_read.is_none()
        && (read.crc != local.crc || read.unpacked != local.unpacked)
    {
        return wrong(read.end, "CRC of a member");
    }
    match described {
        true => after_descriptor(view, read),
        false => Ok(read),
    }
}

/// Returns why a member is not read.
fn why_not(local: &Local) -> &'static str {
    match local.flags & ENCRYPTED != 0 {
        true => NOT_DECRYPTED,
        false if local.is_readable() => TOO_LONG,
        false => UNKNOWN,
    }
}

/// Skips the bytes of a member.
fn skipped(
    view: &mut View<'_>,
    local: &Local,
    declared: u64,
    member: Member,
) -> Result<Member, Wrong> {
    if local.is_open() {
        return searched(view, local, member);
    }
    match declared <= view.length() {
        true => Ok(Member { end: declared, ..member }),
        false => wrong(view.length(), "truncated"),
    }
}

fn stored(view: &mut View<'_>, declared: u64, member: Member) -> Result<Member, Wrong> {
    let mut crc = Crc32::new();
    let count = view.each(member.end..declared, |piece| crc.update(piece));
    if count != member.packed {
        return wrong(member.end + count, "truncated");
    }
    Ok(Member { end: declared, crc: crc.value(), unpacked: count, not_read: None, ..member })
}

fn inflated(
    view: &mut View<'_>,
    inflater: &mut Option<Inflater>,
    local: &Local,
    declared: u64,
    member: Member,
) -> Result<Member, Wrong> {
    let inflater = inflater.get_or_insert_with(Inflater::new);
    let end = if local.is_open() { u64::MAX } else { declared };
    let most = if local.is_open() { u64::MAX } else { local.unpacked };
    let mut crc = Crc32::new();
    let mut unpacked = 0;
    let result = inflater.all(view, member.end..end, &mut |bytes| {
        crc.update(bytes);
        unpacked += bytes.len() as u64;
        unpacked <= most
    });
    let at = match result {
        Ok(at) => at,
        Err(Failed::At(at)) => return wrong(at, "deflated data"),
        Err(Failed::Stopped) => return wrong(declared, "a member longer than stated"),
    };
    if at < declared {
        return wrong(at, "deflated data end early");
    }
    let packed = at - member.end;
    Ok(Member { end: at, crc: crc.value(), packed, unpacked, not_read: None, ..member })
}

/// Finds the end of a member that only its descriptor marks, and that cannot be read.
fn searched(view: &mut View<'_>, local: &Local, member: Member) -> Result<Member, Wrong> {
    let from = member.end;
    let until = view.length().min(from.saturating_add(SEARCH_BYTES_MAX));
    let mut at = from;
    while let Some(place) = view.find(at..until, b"PK\x07\x08") {
        let packed = place - from;
        let narrow = view.u32_le(place + 8).map(u64::from);
        let wide = view.u64_le(place + 8);
        if narrow == Some(packed) || wide == Some(packed) {
            let unpacked = match narrow == Some(packed) {
                true => view.u32_le(place + 12).map(u64::from),
                false => view.u64_le(place + 16),
            };
            let crc = view.u32_le(place + 4);
            if let (Some(crc), Some(unpacked)) = (crc, unpacked) {
                let found = Member { crc, packed, unpacked, ..member };
                if local.method != STORED || !local.is_readable() {
                    return Ok(Member { end: place, ..found });
                }
                let read = stored(view, place, found)?;
                if read.crc == crc {
                    return Ok(read);
                }
            }
        }
        at = place + 1;
    }
    wrong(at.min(view.length()), "a member without an end")
}

/// Reads the descriptor after a member: with or without a signature, with sizes of 4 or 8 bytes.
fn after_descriptor(view: &mut View<'_>, member: Member) -> Result<Member, Wrong> {
    let at = member.end;
    let signed = view.is_at(at, b"PK\x07\x08");
    for skip in if signed { [4, 0] } else { [0, 0] } {
        if view.u32_le(at + skip) != Some(member.crc) {
            continue;
        }
        let sizes = at + skip + 4;
        let wide = (view.u64_le(sizes), view.u64_le(sizes + 8));
        let narrow = (view.u32_le(sizes).map(u64::from), view.u32_le(sizes + 4).map(u64::from));
        let given = (Some(member.packed), Some(member.unpacked));
        if wide == given {
            return Ok(Member { end: sizes + 16, ..member });
        }
        if narrow == given {
            return Ok(Member { end: sizes + 8, ..member });
        }
    }
    wrong(at.min(view.length()), "the bytes after a member")
}
