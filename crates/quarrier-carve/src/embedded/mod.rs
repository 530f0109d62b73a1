//! Files inside files: compressed members of archives.
//!
//! A carved archive is unpacked member by member, and validators see each member. Recognised
//! members are passed on with the way to them, `zip!word/media/image1.png`. Names are data for the
//! report; nobody may use them as paths. Only one member at a time is in memory; tapes (tar) are
//! read as a stream. Archives in archives are followed to a bounded depth, and all of them together
//! may yield only a bounded number of bytes, so that a bomb costs no more than that.

mod archive;
mod reader;
mod tape;

use std::io::Read;

use flate2::bufread::MultiGzDecoder;
use quarrier_core::source::{Memory, Source};

use crate::format::tar::header::{BLOCK_BYTES, is_header};
use crate::format::{self, Format, Kind};
use crate::view::{Extent, View};

use reader::Reader;

/// Limits of unpacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The depth of nested archives: with 1 only the members of the outermost are examined.
    pub depth_max: usize,
    /// Larger members are skipped, in bytes. Each level of nesting uses this much memory.
    pub member_bytes_max: u64,
    /// The maximum size of all members of all levels together, in bytes.
    pub unpacked_bytes_max: u64,
    /// The maximum size of all members together, as a multiple of the length of the archive; 64 MiB are
    /// always allowed.
    pub ratio_max: u64,
    /// The most members of all levels together.
    pub members_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            depth_max: 4,
            member_bytes_max: 64 << 20,
            unpacked_bytes_max: 16 << 30,
            ratio_max: 100,
            members_max: 1 << 20,
        }
    }
}

/// A member of an archive.
#[derive(Debug)]
pub struct Inside<'i> {
    /// The type of the outermost archive and the names that lead from there, joined by `!`. Control
    /// characters and bytes that are no text are escaped. Never use it as a path of a file system.
    pub path: &'i str,
    /// Its contents.
    pub content: Content<'i>,
}

/// The contents of a member.
#[derive(Debug)]
pub enum Content<'i> {
    /// A file with a known end.
    File {
        /// Its type and extension.
        kind: Kind,
        /// All of its bytes.
        bytes: &'i [u8],
        /// The part that its validator did not read, or empty.
        not_read: &'i str,
    },
    /// Something that was skipped.
    Skipped {
        /// The reason, in a few words.
        reason: &'i str,
    },
}

/// These bytes are unpacked whatever the ratio.
const RATIO_FREE_BYTES: u64 = 64 << 20;
/// The most bytes of a name that are shown.
const NAME_BYTES_MAX: usize = 1024;

/// Whether files of this type are unpacked.
pub fn is_archive(kind: &str) -> bool {
    matches!(kind, "gz" | "tar") || is_zip(kind)
}

fn is_zip(kind: &str) -> bool {
    format::zip::Zip.kinds().iter().any(|one| one.name == kind)
}

/// Unpacks the archive of type `kind` that `view` shows, and passes each file in it to `take`, in the
/// order of the archive; the files of a nested archive follow it. Does nothing for other types (see
/// [`is_archive`]).
pub fn walk(kind: &str, view: &mut View<'_>, limits: &Limits, take: &mut dyn FnMut(Inside<'_>)) {
    let by_ratio = view.length().saturating_mul(limits.ratio_max).max(RATIO_FREE_BYTES);
    let mut walker = Walker {
        limits: *limits,
        left_bytes: limits.unpacked_bytes_max.min(by_ratio),
        left_members: limits.members_max,
        path: kind.to_string(),
        take,
    };
    walker.archive(kind, view, 1);
}

/// The state of the way through an archive.
struct Walker<'w> {
    limits: Limits,
    left_bytes: u64,
    left_members: u64,
    path: String,
    take: &'w mut dyn FnMut(Inside<'_>),
}

impl Walker<'_> {
    fn archive(&mut self, kind: &str, view: &mut View<'_>, depth: usize) {
        match kind {
            "tar" => tape::walk(self, &mut Reader::all(view), depth),
            "gz" => {
                let name = gz_name(view);
                let mut reader = MultiGzDecoder::new(Reader::all(view));
                self.member(&name, &mut reader, depth);
            }
            _ if is_zip(kind) => archive::walk(self, view, depth),
            _ => {}
        }
    }

    /// Returns whether the limits allow more.
    fn may_go_on(&self) -> bool {
        self.left_bytes > 0 && self.left_members > 0
    }

    /// Handles a member whose bytes `reader` gives. Returns whether to continue.
    fn member(&mut self, name: &[u8], reader: &mut dyn Read, depth: usize) -> bool {
        let before = self.path.len();
        self.path.push('!');
        push_name(&mut self.path, name);
        self.left_members = self.left_members.saturating_sub(1);
        self.content(reader, depth);
        if !self.may_go_on() {
            self.skip("archive unpacks to more than the limit");
        }
        self.path.truncate(before);
        self.may_go_on()
    }

    /// Counts bytes that were unpacked and not examined. Returns whether to continue.
    fn pass(&mut self, bytes: u64) -> bool {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        self.may_go_on()
    }

    fn content(&mut self, reader: &mut dyn Read, depth: usize) {
        let mut bytes = Vec::new();
        if !self.fill(reader, &mut bytes, BLOCK_BYTES as u64) {
            return self.skip("cannot be unpacked");
        }
        if is_header(&bytes) {
            match depth < self.limits.depth_max {
                true => tape::walk(self, &mut bytes.chain(reader), depth + 1),
                false => self.skip("archives nested too deep"),
            }
            return;
        }
        let most = self.limits.member_bytes_max.min(self.left_bytes);
        if !self.fill(reader, &mut bytes, most.saturating_add(1)) {
            return self.skip("cannot be unpacked");
        }
        if bytes.len() as u64 > self.limits.member_bytes_max {
            return self.skip("larger than the limit for a member");
        }
        let Some((kind, length, not_read)) = recognised(&bytes) else { return };
        let (bytes, not_read) = (&bytes[..length], &*not_read);
        let content = Content::File { kind, bytes, not_read };
        (self.take)(Inside { path: &self.path, content });
        if is_archive(kind.name) {
            if depth >= self.limits.depth_max {
                return self.skip("archives nested too deep");
            }
            let source = Memory::new("member", bytes);
            let extent = Extent { offset: 0, length: length as u64 };
            self.archive(kind.name, &mut View::of(&source, &[extent]), depth + 1);
        }
    }

    /// Reads from `reader` until there are `most` bytes or no more. Returns whether that was
    /// possible.
    fn fill(&mut self, reader: &mut dyn Read, bytes: &mut Vec<u8>, most: u64) -> bool {
        let had = bytes.len() as u64;
        let result = reader.take(most.saturating_sub(had)).read_to_end(bytes);
        self.left_bytes = self.left_bytes.saturating_sub(bytes.len() as u64 - had);
        result.is_ok()
    }

    /// Reports that the member at `path` was not examined.
    fn skip(&mut self, reason: &str) {
        (self.take)(Inside { path: &self.path, content: Content::Skipped { reason } });
    }
}

/// Asks the validators for a file at the start of `bytes`: its type, its length, the unread part.
fn recognised(bytes: &[u8]) -> Option<(Kind, usize, String)> {
    let source = Memory::new("member", bytes);
    let mut view = View::new(&source);
    for format in format::ALL {
        if !format.signatures().iter().any(|signature| signature.stands_in(bytes)) {
            continue;
        }
        view.look_at(&[Extent { offset: 0, length: source.length() }], u64::MAX);
        if let Some((length, kind, not_read)) = format.validate(&mut view).end() {
            let length = usize::try_from(length).ok().filter(|length| *length <= bytes.len())?;
            return Some((kind, length, not_read.to_string()));
        }
    }
    None
}

/// Returns the original name in a gzip file's header.
fn gz_name(view: &mut View<'_>) -> Vec<u8> {
    let named = view.byte(3).is_some_and(|flags| flags & (4 | 8) == 8);
    let end = if named { view.find(10..10 + NAME_BYTES_MAX as u64, &[0]) } else { None };
    end.and_then(|end| view.take(10, (end - 10) as usize))
        .map_or_else(|| b"content".to_vec(), <[u8]>::to_vec)
}

/// Appends a name as text that fits on a line.
fn push_name(path: &mut String, name: &[u8]) {
    for sign in String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]).chars() {
        match sign.is_control() {
            true => path.extend(sign.escape_default()),
            false => path.push(sign),
        }
    }
}
