//! Files inside files: compressed files, and members of archives.
//!
//! A carved archive is unpacked member by member, and validators see each member. Recognised
//! members are passed on with their path, such as `zip!word/media/image1.png`. Names are data for
//! the report; never use them as paths of a file system. Each level of nesting has only one member
//! in memory; tapes (tar) are read as a stream. Nested archives are followed to a bounded depth,
//! and together may yield only a bounded number of bytes, which also limits the cost of a zip bomb.
//!
//! [`members`] passes on every member instead, of any type.

mod archive;
mod member;
mod packed;
mod reader;
mod seven_zip;
mod tape;

pub use member::{TakeMembers, Unpacked, archive_kind, members};

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::{Memory, Source};

use crate::format::tar::header::{BLOCK_BYTES, is_header};
use crate::format::zip::Listed;
use crate::format::{self, Format, Kind};
use crate::unpack::{OVER_LIMIT, UNKNOWN};
use crate::view::{Extent, View};

use reader::Reader;

/// Limits of unpacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum depth of nested archives: with 1, only the members of the outermost are examined.
    pub depth_max: usize,
    /// Maximum size of a member in bytes; larger ones are skipped. Each level of nesting uses up to
    /// this much memory.
    pub member_bytes_max: u64,
    /// The maximum size of all members of all levels together, in bytes.
    pub unpacked_bytes_max: u64,
    /// The maximum size of all members together, as a multiple of the length of the archive; 64 MiB are
    /// always allowed.
    pub ratio_max: u64,
    /// Maximum number of members of all levels together.
    pub members_max: u64,
    /// Maximum size in bytes of the dictionary of a decoder for the outermost archive; each level of
    /// nesting allows half as much. Data that need more are skipped.
    pub decoder_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            depth_max: 4,
            member_bytes_max: 64 << 20,
            unpacked_bytes_max: 16 << 30,
            ratio_max: 100,
            members_max: 1 << 20,
            decoder_bytes_max: 64 << 20,
        }
    }
}

/// A member of an archive.
#[derive(Debug)]
pub struct Member<'i> {
    /// The type of the outermost archive and the names of the members on the way, joined by `!`.
    /// Control characters and bytes that are not text are escaped. Never use it as a path of a file
    /// system.
    pub path: &'i str,
    /// The contents of the member.
    pub content: Content<'i>,
}

/// The contents of a member.
#[derive(Debug)]
pub enum Content<'i> {
    /// A file with a known end.
    File {
        /// The type and extension of the file.
        kind: Kind,
        /// All bytes of the file.
        bytes: &'i [u8],
        /// The part that its validator did not read, or empty.
        not_read: &'i str,
    },
    /// A member that was skipped.
    Skipped {
        /// The reason in a few words.
        reason: &'i str,
    },
}

/// Number of bytes to unpack regardless of the ratio.
const RATIO_FREE_BYTES: u64 = 64 << 20;
/// Maximum number of bytes of a name to show.
const NAME_BYTES_MAX: usize = 1024;
/// The bytes of skipped content between checks of the limits.
const SKIP_BYTES: u64 = 1 << 20;
/// Why members are skipped.
const UNREADABLE: &str = "cannot be unpacked";
const TOO_MUCH: &str = "archive unpacks to more than the limit";
/// The `stop` flag of walks that cannot be interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);

/// Whether [`walk`] unpacks files of this type.
pub fn is_archive(kind: &str) -> bool {
    matches!(kind, "7z" | "tar") || packed::is_packed(kind) || is_zip(kind)
}

fn is_zip(kind: &str) -> bool {
    format::zip::Zip.kinds().iter().any(|one| one.name == kind)
}

/// Unpacks the archive of type `kind` that `view` shows, and passes each file in it to `take`, in the
/// order of the archive; the files of a nested archive follow it. Does nothing for other types (see
/// [`is_archive`]).
pub fn walk(kind: &str, view: &mut View<'_>, limits: &Limits, take: &mut dyn FnMut(Member<'_>)) {
    let mut walker = Walker::new(limits, view.length(), Receiver::Recognised(take), &NEVER);
    walker.path = kind.to_string();
    walker.archive(kind, view, None, 1);
}

/// Receives the results of a walk.
enum Receiver<'w> {
    /// The files that a validator recognises.
    Recognised(&'w mut dyn FnMut(Member<'_>)),
    /// Every member.
    All(&'w mut dyn TakeMembers),
}

/// The state of a walk through an archive.
struct Walker<'w> {
    limits: Limits,
    left_bytes: u64,
    left_members: u64,
    /// Total size of the members in memory that enclose the current one, in bytes.
    held_bytes: u64,
    path: String,
    receiver: Receiver<'w>,
    /// Whether the receiver has ended the walk.
    is_ended: bool,
    stop: &'w AtomicBool,
}

impl<'w> Walker<'w> {
    /// Makes a walker for an archive of `length` bytes.
    fn new(limits: &Limits, length: u64, receiver: Receiver<'w>, stop: &'w AtomicBool) -> Self {
        let by_ratio = length.saturating_mul(limits.ratio_max).max(RATIO_FREE_BYTES);
        Walker {
            limits: *limits,
            left_bytes: limits.unpacked_bytes_max.min(by_ratio),
            left_members: limits.members_max,
            held_bytes: 0,
            path: String::new(),
            receiver,
            is_ended: false,
            stop,
        }
    }

    /// Walks an archive. If the outermost archive contains its bytes verbatim, they begin at `base`
    /// there.
    fn archive(&mut self, kind: &str, view: &mut View<'_>, base: Option<u64>, depth: usize) {
        let stop = self.stop;
        match kind {
            "tar" => tape::walk(self, &mut Reader::all(view, stop), base, depth),
            "7z" => seven_zip::walk(self, view, base, depth),
            _ if packed::is_packed(kind) => packed::walk(self, kind, view, depth),
            _ if is_zip(kind) => archive::walk(self, view, base, depth),
            _ => {}
        }
    }

    /// Returns whether the limits allow more.
    fn has_room(&self) -> bool {
        self.left_bytes > 0 && self.left_members > 0
    }

    /// Returns whether to continue.
    fn may_continue(&self) -> bool {
        self.has_room() && !self.is_ended && !self.stop.load(Ordering::Relaxed)
    }

    /// Handles a member whose bytes `reader` yields. If the outermost archive contains them
    /// verbatim, they begin at `place` there. Returns whether to continue.
    fn member(
        &mut self,
        name: &[u8],
        reader: &mut dyn Read,
        place: Option<u64>,
        depth: usize,
    ) -> bool {
        let before = self.enter(name);
        self.content(reader, place, depth);
        if !self.has_room() {
            self.skip(TOO_MUCH);
        }
        self.path.truncate(before);
        self.may_continue()
    }

    /// As [`member`](Self::member), for a member listed in a directory, which states whether it is
    /// empty.
    fn listed(
        &mut self,
        listed: &Listed<'_>,
        reader: &mut dyn Read,
        place: Option<u64>,
        depth: usize,
    ) -> bool {
        let is_folder = listed.unpacked == 0 && listed.name.ends_with(b"/");
        match self.receiver {
            // No validator recognises an empty file.
            Receiver::Recognised(_) if listed.unpacked == 0 => true,
            Receiver::All(_) if is_folder => true,
            _ => self.member(listed.name, reader, place, depth),
        }
    }

    /// Handles a member whose bytes cannot be read. Returns whether to continue.
    fn unread(&mut self, name: &[u8], reason: &'static str) -> bool {
        if matches!(self.receiver, Receiver::Recognised(_)) {
            return true;
        }
        let before = self.enter(name);
        self.damaged(reason);
        self.path.truncate(before);
        self.may_continue()
    }

    /// Reports damage to the archive at the current path, if the receiver takes every member.
    fn damaged(&mut self, reason: &'static str) {
        if matches!(self.receiver, Receiver::All(_)) && !self.stop.load(Ordering::Relaxed) {
            self.skip(reason);
        }
    }

    /// Counts a member and appends its name to the path. Returns the length of the path before.
    fn enter(&mut self, name: &[u8]) -> usize {
        self.left_members = self.left_members.saturating_sub(1);
        self.append(name)
    }

    /// Appends the name of a member to the path. Returns the length of the path before.
    fn append(&mut self, name: &[u8]) -> usize {
        let before = self.path.len();
        self.path.push('!');
        push_name(&mut self.path, name);
        before
    }

    /// Unpacks `bytes` bytes that are not examined, and counts them. Ends early if a limit does not
    /// allow more. Returns false if they are not there.
    fn pass(&mut self, reader: &mut dyn Read, mut bytes: u64) -> bool {
        while bytes > 0 && self.may_continue() {
            let most = bytes.min(SKIP_BYTES);
            let Ok(count) = io::copy(&mut (&mut *reader).take(most), &mut io::sink()) else {
                return false;
            };
            self.left_bytes = self.left_bytes.saturating_sub(count);
            bytes -= count;
            if count < most {
                return false;
            }
        }
        true
    }

    /// Returns the maximum size of a decoder's dictionary at this depth.
    fn decoder_bytes_max(&self, depth: usize) -> u64 {
        let halvings = u32::try_from(depth.saturating_sub(1)).unwrap_or(u32::MAX);
        self.limits.decoder_bytes_max.checked_shr(halvings).unwrap_or(0)
    }

    fn content(&mut self, reader: &mut dyn Read, place: Option<u64>, depth: usize) {
        let mut bytes = Vec::new();
        if let Err(reason) = self.fill(reader, &mut bytes, BLOCK_BYTES as u64) {
            return self.skip(reason);
        }
        if is_header(&bytes) {
            match depth < self.limits.depth_max {
                true => tape::walk(self, &mut bytes.chain(reader), place, depth + 1),
                false => self.skip("archives nested too deep"),
            }
            return;
        }
        let member_bytes_max = self.limits.member_bytes_max.saturating_sub(self.held_bytes);
        let most = member_bytes_max.min(self.left_bytes.saturating_add(bytes.len() as u64));
        if let Err(reason) = self.fill(reader, &mut bytes, most.saturating_add(1)) {
            return self.skip(reason);
        }
        let length = bytes.len() as u64;
        if length > member_bytes_max {
            return self.skip("larger than the limit for a member");
        }
        match self.receiver {
            Receiver::Recognised(_) => self.recognised(&bytes, depth),
            // The limit for all members cut it off, which the caller reports.
            Receiver::All(_) if length > most => {}
            Receiver::All(_) => self.whole(Arc::new(bytes), place, depth),
        }
    }

    /// Passes on the file at the start of a member's bytes, if a validator recognises it.
    fn recognised(&mut self, bytes: &[u8], depth: usize) {
        let Some((kind, length, not_read)) = recognised(bytes) else { return };
        let (bytes, not_read) = (&bytes[..length], &*not_read);
        let content = Content::File { kind, bytes, not_read };
        if let Receiver::Recognised(take) = &mut self.receiver {
            take(Member { path: &self.path, content });
        }
        if is_archive(kind.name) {
            self.nested(kind.name, bytes, None, depth);
        }
    }

    /// Passes on all bytes of a member.
    fn whole(&mut self, bytes: Arc<Vec<u8>>, place: Option<u64>, depth: usize) {
        if let Receiver::All(take) = &mut self.receiver {
            self.is_ended |= !take.member(&self.path, &bytes, place);
        }
        if let Some(kind) = archive_kind(&bytes)
            && self.may_continue()
        {
            self.held_bytes += bytes.len() as u64;
            self.nested(kind, &bytes, place, depth);
            self.held_bytes -= bytes.len() as u64;
        }
    }

    /// Walks an archive in an archive.
    fn nested(&mut self, kind: &str, bytes: &[u8], place: Option<u64>, depth: usize) {
        if depth >= self.limits.depth_max {
            return self.skip("archives nested too deep");
        }
        let source = Memory::new("member", bytes);
        let extent = Extent { offset: 0, length: bytes.len() as u64 };
        self.archive(kind, &mut View::of(&source, &[extent]), place, depth + 1);
    }

    /// Reads from `reader` up to `most` bytes, or to its end.
    ///
    /// # Errors
    /// The reason, if it fails.
    fn fill(
        &mut self,
        reader: &mut dyn Read,
        bytes: &mut Vec<u8>,
        most: u64,
    ) -> Result<(), &'static str> {
        let had = bytes.len() as u64;
        let result = reader.take(most.saturating_sub(had)).read_to_end(bytes);
        self.left_bytes = self.left_bytes.saturating_sub(bytes.len() as u64 - had);
        match result {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::OutOfMemory => Err(OVER_LIMIT),
            Err(error) if error.kind() == ErrorKind::Unsupported => Err(UNKNOWN),
            Err(_) => Err(UNREADABLE),
        }
    }

    /// Reports that the rest of the member `name` of the archive at `path` was not examined.
    fn skip_at(&mut self, name: &[u8], reason: &'static str) {
        let before = self.append(name);
        self.skip(reason);
        self.path.truncate(before);
    }

    /// Reports that the member at `path` was not examined.
    fn skip(&mut self, reason: &'static str) {
        match &mut self.receiver {
            Receiver::Recognised(take) => {
                take(Member { path: &self.path, content: Content::Skipped { reason } });
            }
            Receiver::All(take) => take.skipped(&self.path, reason),
        }
    }
}

/// Asks the validators for a file at the start of `bytes`: its type, its length, the unread part.
fn recognised(bytes: &[u8]) -> Option<(Kind, usize, String)> {
    let source = Memory::new("member", bytes);
    let mut view = View::new(&source);
    for format in format::ALL {
        if !format.signatures().iter().any(|signature| signature.matches(bytes)) {
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

/// Appends a name as text on one line.
fn push_name(path: &mut String, name: &[u8]) {
    for sign in String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]).chars() {
        match sign.is_control() {
            true => path.extend(sign.escape_default()),
            false => path.push(sign),
        }
    }
}
