//! Lists the members of an archive, for unpacking.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::sync::atomic::AtomicBool;

use super::fields::WRONG;
use super::files::{self, Files, Named, Role};
use super::header::{self, Folder, Streams};
use super::{folder, is_header, plain_header, second_header};
use crate::crc32::Crc32;
use crate::unpack::{Failed, Shared};
use crate::view::View;

/// The reasons for members that cannot be read.
const DAMAGED: &str = "cannot be unpacked";
const DAMAGED_BEFORE: &str = "the data before it, from which it was compressed, cannot be unpacked";
const MISSING: &str = "its bytes are not in the archive";
/// The name of a member without one.
const NAMELESS: &[u8] = b"content";

/// The members of an archive.
#[derive(Debug)]
pub(crate) struct Listing {
    streams: Streams,
    files: Files,
    /// The end of all packed data.
    end: u64,
}

/// A member of an archive.
pub(crate) struct Listed<'m, 'r> {
    pub(crate) name: &'m [u8],
    pub(crate) content: Content<'m, 'r>,
}

/// The contents of a member.
pub(crate) enum Content<'m, 'r> {
    Empty,
    /// To be read to its end, unless it fails: the next member follows it.
    Bytes(&'m mut Member<'r>),
    /// They cannot be read, for this reason.
    Unread(&'static str),
}

/// Reads the header of the archive in `view`, with at most `memory_bytes_max` bytes of memory for
/// the dictionaries of decoders.
///
/// # Errors
/// If the header is damaged, or cannot be read here.
pub(crate) fn list(view: &mut View<'_>, memory_bytes_max: u64) -> Result<Listing, Failed> {
    let (range, crc) = second_header(view).ok_or(WRONG)?;
    if !is_header(view, &range, crc) {
        return Err(WRONG);
    }
    let end = range.start;
    let header = plain_header(view, range, memory_bytes_max)?;
    let mut fields = &header[..];
    let streams = header::main(&mut fields)?;
    let files = files::read(&mut fields)?;
    Ok(Listing { streams, files, end })
}

impl Listing {
    /// Passes each file to `take`, in the order of the archive, until `take` returns false. Reading
    /// fails soon after `stop` becomes true.
    pub(crate) fn each(
        &self,
        view: &mut View<'_>,
        memory_bytes_max: u64,
        stop: &AtomicBool,
        take: &mut dyn FnMut(Listed<'_, '_>) -> bool,
    ) {
        let mut walk = Walk { names: &mut self.files.iter(), take, is_ended: false };
        for folder in &self.streams.folders {
            if !self.folder(view, folder, memory_bytes_max, stop, &mut walk) {
                return;
            }
        }
        while let Some(Named { name, .. }) = walk.next_with_bytes() {
            if !walk.pass(&name, Content::Unread(MISSING)) {
                return;
            }
        }
    }

    /// Passes on the files of a folder. Returns whether to continue.
    fn folder(
        &self,
        view: &mut View<'_>,
        folder: &Folder,
        memory_bytes_max: u64,
        stop: &AtomicBool,
        walk: &mut Walk<'_>,
    ) -> bool {
        let packed = folder::check(folder, memory_bytes_max)
            .and_then(|()| self.streams.packed(folder, self.end));
        let ranges = packed.as_deref().unwrap_or(&[]);
        let places: Vec<_> = ranges.iter().map(|_| Cell::new(0)).collect();
        let shared = Shared::until(view, stop);
        let wired = folder::Wired { folder, packed: ranges, places: &places, shared: &shared };
        let mut reader =
            match packed.as_ref().map_err(|failed| *failed).and_then(|_| wired.reader()) {
                Ok(reader) => Ok(reader),
                Err(Failed::NotRead(reason)) => Err(reason),
                Err(Failed::Wrong(_)) => Err(DAMAGED),
            };
        let mut place = folder::stored_at(folder, ranges);
        for &(bytes, stated) in &folder.files {
            let named = walk.next_with_bytes();
            if walk.is_ended {
                return false;
            }
            let name = named.map(|named| named.name).unwrap_or_default();
            let mut is_failed = false;
            let goes_on = match &mut reader {
                Err(reason) => walk.pass(&name, Content::Unread(*reason)),
                Ok(reader) => {
                    let mut member = Member::new(&mut **reader, bytes, stated, place);
                    let goes_on = walk.pass(&name, Content::Bytes(&mut member));
                    is_failed = member.is_failed || member.left > 0;
                    goes_on
                }
            };
            if !goes_on {
                return false;
            }
            if is_failed {
                reader = Err(DAMAGED_BEFORE);
            }
            place = place.and_then(|place| place.checked_add(bytes));
        }
        true
    }
}

/// The rest of the list of files, and the receiver.
struct Walk<'o> {
    names: &'o mut dyn Iterator<Item = Named>,
    take: &'o mut dyn FnMut(Listed<'_, '_>) -> bool,
    is_ended: bool,
}

impl Walk<'_> {
    /// Passes on the files without bytes up to the next one with bytes. Returns that.
    fn next_with_bytes(&mut self) -> Option<Named> {
        loop {
            let named = self.names.next()?;
            let goes_on = match named.role {
                Role::Bytes => return Some(named),
                Role::None => true,
                Role::Empty => self.pass(&named.name, Content::Empty),
            };
            if !goes_on {
                return None;
            }
        }
    }

    /// Passes on a file. Returns whether to continue.
    fn pass(&mut self, name: &[u8], content: Content<'_, '_>) -> bool {
        let name = if name.is_empty() { NAMELESS } else { name };
        self.is_ended = !(self.take)(Listed { name, content });
        !self.is_ended
    }
}

/// Reads the bytes of a member, and compares them with their checksum at the end.
pub(crate) struct Member<'r> {
    reader: &'r mut dyn Read,
    left: u64,
    crc: Crc32,
    stated: Option<u32>,
    place: Option<u64>,
    is_failed: bool,
}

impl<'r> Member<'r> {
    fn new(reader: &'r mut dyn Read, left: u64, stated: Option<u32>, place: Option<u64>) -> Self {
        Member { reader, left, crc: Crc32::new(), stated, place, is_failed: false }
    }

    /// Returns the number of bytes that were not read yet.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.left
    }

    /// Returns whether the decoder failed, so that no more bytes follow.
    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// Returns where the bytes begin in the archive, if they are not compressed.
    pub(crate) fn place(&self) -> Option<u64> {
        self.place
    }
}

impl Read for Member<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let is_right = self.stated.is_none_or(|stated| stated == self.crc.value());
            return if is_right { Ok(0) } else { Err(ErrorKind::InvalidData.into()) };
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let result = match self.reader.read(&mut buffer[..most]) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            result => result,
        };
        match &result {
            Ok(count) => {
                self.crc.update(&buffer[..*count]);
                self.left -= *count as u64;
            }
            Err(error) => self.is_failed |= error.kind() != ErrorKind::Interrupted,
        }
        result
    }
}
