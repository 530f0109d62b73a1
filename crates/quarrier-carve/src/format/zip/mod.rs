//! Zip archives, and the documents and programs that are zip archives.
//!
//! PKWARE, *APPNOTE.TXT – .ZIP File Format Specification*, 6.3.10. Members follow one another, each
//! after a local header. The central directory lists each of them with its offset, and the end
//! record has the offset of the directory.

mod directory;
mod kinds;
mod listing;
mod local;
mod member;
mod mend;

use quarrier_core::source::read_full_at;

use super::{Format, Kind, Signature, Verdict};
use crate::inflate::Inflater;
use crate::mend::{Broken, MendContext};
use crate::view::{Extent, View};

use directory::{End, Entry};
use kinds::{KINDS, MemberNameInfo};
pub(crate) use listing::{Listed, Packing, members};
use local::{HEADER_BYTES, Local};
use member::Member;

/// Maximum number of members to follow: 24 MiB of memory.
const MEMBERS_MAX: usize = 1 << 20;
/// Maximum distance in bytes before a candidate within which to look for a header.
const BEFORE_BYTES: u64 = 32 << 10;
/// The cost of that search in bytes of fuel: much less than that of decoding as many bytes.
const BEFORE_FUEL: u64 = BEFORE_BYTES / 8;

/// Zip and formats based on it. Every member that is stored or deflated and not encrypted is read,
/// and its checksum verified; with other members the verdict says that they were not read. The
/// directory must agree with the members.
pub struct Zip;

impl Format for Zip {
    fn kinds(&self) -> &[Kind] {
        &KINDS
    }

    fn signatures(&self) -> &[Signature] {
        &[Signature { hex: "50 4B 03 04", at: 0 }]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        if Local::read(view, 0).is_none() {
            return Verdict::Not;
        }
        view.spend(BEFORE_FUEL);
        if is_after_a_member(view) {
            return Verdict::Not;
        }
        let walk = Walk::through(view);
        let broken = |at: u64, reason: &str| Verdict::Broken {
            kind: walk.names.kind(),
            sure: walk.sure.min(at),
            at,
            reason: reason.to_string(),
        };
        if let Some(wrong) = walk.wrong {
            return broken(wrong.at.min(view.length()), wrong.why);
        }
        match walk.directory(view) {
            Ok(end) if end.end <= view.length() => {
                Verdict::ended(end.end, walk.names.kind(), walk.not_read.unwrap_or(""))
            }
            Ok(_) => broken(view.length(), "truncated"),
            Err(DirectoryFault::Another) => Verdict::Not,
            Err(DirectoryFault::At(at, why)) => broken(at.min(view.length()), why),
        }
    }

    fn mend(
        &self,
        view: &mut View<'_>,
        broken: &Broken,
        context: &MendContext<'_>,
    ) -> Option<Vec<Extent>> {
        mend::mend(view, broken, context)
    }
}

/// The members read, from the first one on.
#[derive(Default)]
struct Walk {
    /// The offset, end and checksum of each member, in order.
    members: Vec<(u64, u64, u32)>,
    names: MemberNameInfo,
    /// All bytes before this one were verified.
    sure: u64,
    /// The end of the members.
    at: u64,
    /// The unread part of the first member that could not be read completely.
    not_read: Option<&'static str>,
    wrong: Option<member::Wrong>,
}

/// Why a central directory does not end an archive.
enum DirectoryFault {
    /// The directory belongs to an archive that begins elsewhere.
    Another,
    At(u64, &'static str),
}

impl Walk {
    /// Reads members until there are no more.
    fn through(view: &mut View<'_>) -> Walk {
        let mut walk = Walk::default();
        let mut inflater: Option<Inflater> = None;
        while let Some(local) = Local::read(view, walk.at) {
            if walk.members.len() == MEMBERS_MAX {
                walk.wrong = Some(member::Wrong { at: walk.at, why: "too many members" });
                break;
            }
            let name_at = walk.at + HEADER_BYTES;
            walk.names.see(view, name_at, local.name_bytes, local.data_at);
            match member::read(view, &mut inflater, walk.at, &local) {
                Ok(Member { at, end, crc, not_read, .. }) => {
                    walk.members.push((at, end, crc));
                    walk.at = end;
                    walk.not_read = walk.not_read.or(not_read);
                    if walk.not_read.is_none() {
                        walk.sure = end;
                    }
                }
                Err(wrong) => {
                    walk.wrong = Some(wrong);
                    break;
                }
            }
        }
        walk
    }

    /// Reads the directory after the members, and compares it with them.
    fn directory(&self, view: &mut View<'_>) -> Result<End, DirectoryFault> {
        let start = after_signing_block(view, self.at).unwrap_or(self.at);
        let mut at = start;
        if view.is_at(at, b"PK\x06\x08") {
            at = at.saturating_add(8 + u64::from(view.u32_le(at + 4).unwrap_or(0)));
        }
        let start = if at > start { at } else { start };
        let mut entries = 0u64;
        let mut strays = false;
        let mut is_named = vec![false; self.members.len()];
        while let Some(entry) = Entry::read(view, at) {
            let found = self.members.binary_search_by_key(&entry.offset, |(at, ..)| *at);
            strays |= !found.is_ok_and(|index| {
                let is_twice = std::mem::replace(&mut is_named[index], true);
                !is_twice && self.members[index].2 == entry.crc
            });
            at = entry.end;
            entries += 1;
        }
        if view.is_at(at, b"PK\x05\x05") {
            at = at.saturating_add(6 + u64::from(view.u16_le(at + 4).unwrap_or(0)));
        }
        let Some(end) = End::read(view, at) else {
            let why = if entries == 0 { "no member begins here" } else { "directory" };
            return Err(DirectoryFault::At(at, why));
        };
        if end.offset != start && end.size <= at - start {
            return Err(DirectoryFault::Another);
        }
        if strays || end.size != at - start || end.entries & 0xFFFF != entries & 0xFFFF {
            return Err(DirectoryFault::At(at, "the directory does not fit the members"));
        }
        Ok(end)
    }
}

/// Returns the end of the signing block that Android packages have before their directory.
fn after_signing_block(view: &mut View<'_>, at: u64) -> Option<u64> {
    let bytes = view.u64_le(at)?;
    let end = at.checked_add(8)?.checked_add(bytes)?;
    view.is_at(end.checked_sub(16)?, b"APK Sig Block 42").then_some(end)
}

/// Whether a member ends right before the candidate, which is then in the middle of an archive.
fn is_after_a_member(view: &View<'_>) -> bool {
    let Some(offset) = view.offset_of(0) else { return false };
    let from = offset.saturating_sub(BEFORE_BYTES);
    let mut bytes = vec![0; (offset - from) as usize];
    if !read_full_at(view.source(), from, &mut bytes).is_ok_and(|count| count == bytes.len()) {
        return false;
    }
    let described = |back: usize| {
        bytes.len().checked_sub(back).is_some_and(|at| bytes[at..].starts_with(b"PK\x07\x08"))
    };
    if described(16) || described(24) {
        return true;
    }
    let Some(place) = memchr::memmem::rfind(&bytes, b"PK\x03\x04") else { return false };
    let header = &bytes[place..];
    let Some(sizes) = header.get(18..30) else { return false };
    let number = |at: usize| usize::from(u16::from_le_bytes([sizes[at], sizes[at + 1]]));
    let packed = number(0) | number(2) << 16;
    packed + number(8) + number(10) + HEADER_BYTES as usize == header.len()
}
