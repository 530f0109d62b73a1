//! Entries of file systems: names, times, and the places of their bytes.

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file with bytes of its own.
    File,
    /// A folder.
    Folder,
    /// A symbolic link or a junction; its bytes are its target.
    Link,
    /// A device, a pipe, a socket.
    Other,
}

impl Kind {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Folder => "folder",
            Kind::Link => "link",
            Kind::Other => "other",
        }
    }
}

/// Whether a file system still has an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has.
    Allocated,
    /// It is deleted; traces of it are left.
    Deleted,
}

impl State {
    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            State::Allocated => "allocated",
            State::Deleted => "deleted",
        }
    }
}

/// Times of an entry, in nanoseconds since 1970 in UTC; `None` if the file system has none. FAT has
/// local times without a zone, which are taken as UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// When its bytes changed.
    pub modified: Option<i64>,
    /// When its bytes were read.
    pub accessed: Option<i64>,
    /// The time of the last metadata change.
    pub changed: Option<i64>,
    /// When it was made.
    pub created: Option<i64>,
}

/// Bytes of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Where they begin in the source, in bytes.
    pub offset: u64,
    /// How many there are.
    pub length: u64,
}

/// Contiguous bytes of a file, usually whole clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Where they begin in the source, in bytes; None: a hole, which reads as zeros.
    pub place: Option<u64>,
    /// How many there are.
    pub length: u64,
}

/// How a piece of a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// It is not.
    Plain,
    /// A zlib stream.
    Zlib,
    /// A zlib stream, or, after a byte whose lower half is 15, the bytes as they are.
    ZlibOrPlain,
    /// A frame of Zstandard.
    Zstd,
    /// Segments of LZO1X with their lengths, no length across the border of two sectors of 4 KiB.
    Lzo,
}

/// A piece of a file that is packed alone. Between two pieces a file has zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedPiece {
    /// Its first byte in the file.
    pub start: u64,
    /// How many bytes of the file it holds.
    pub length: u64,
    /// The place of its first packed byte, counted through the runs.
    pub packed_at: u64,
    /// How many packed bytes it has.
    pub packed_bytes: u64,
    /// How many bytes it unpacks to before its first one in the file.
    pub skipped: u32,
    /// How many bytes it unpacks to at most.
    pub unpacked_bytes: u32,
    /// How it is packed.
    pub packing: Packing,
}

/// The places of a file's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The runs in the order of the file. The last may extend beyond the end of the file: the rest is
    /// slack.
    pub runs: Vec<Run>,
    /// The bytes themselves, if they are stored beside the name.
    pub inline: Option<Box<[u8]>>,
    /// Only this many bytes were ever written; later ones read as zeros.
    pub written: Option<u64>,
    /// With LZNT1: the bytes of a unit, each of which is packed alone. Holes are the part of a unit
    /// that packing saved.
    pub packed_unit: Option<u32>,
    /// The pieces of a file that was packed piece by piece, in the order of the file; empty for all
    /// others. The runs then have the packed bytes, one piece after the other.
    pub pieces: Vec<PackedPiece>,
    /// Clusters that it has and never wrote to: they read as zeros, whatever they hold.
    pub reserved: Vec<Extent>,
    /// Why the bytes cannot be read, if they cannot.
    pub lost: Option<&'static str>,
}

/// A file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The way to it from the root of its file system: `/Users/Public/a.jpg`. A slash inside of a
    /// name, and a byte that is not UTF-8, is written `\xNN`.
    pub path: String,
    /// Its number: that of the inode or of the record in the master file table; of FAT, exFAT and
    /// ISO 9660, which have none, the place of its entry.
    pub inode: u64,
    /// The type of the entry.
    pub kind: Kind,
    /// Whether it is deleted.
    pub state: State,
    /// Bytes of the file.
    pub size: u64,
    /// Its times.
    pub times: Times,
    /// The places of its bytes.
    pub content: Content,
}

impl Entry {
    /// The places of its bytes in the source, in the order of the file, without holes and slack. For
    /// packed files, the places of the packed bytes.
    pub fn extents(&self) -> Vec<Extent> {
        self.split().0
    }

    /// Which bytes of its clusters are not its own: those beyond its end, and those that it never wrote.
    pub fn slack(&self) -> Vec<Extent> {
        let mut slack = self.split().1;
        slack.extend_from_slice(&self.content.reserved);
        slack
    }

    fn split(&self) -> (Vec<Extent>, Vec<Extent>) {
        let (mut own, mut slack): (Vec<Extent>, Vec<Extent>) = (Vec::new(), Vec::new());
        let mut left = if self.content.is_packed() { u64::MAX } else { self.size };
        for run in &self.content.runs {
            let length = run.length.min(left);
            left -= length;
            let Some(offset) = run.place else { continue };
            push(&mut own, Extent { offset, length });
            let (offset, length) = (offset.saturating_add(length), run.length - length);
            push(&mut slack, Extent { offset, length });
        }
        (own, slack)
    }
}

/// Appends an extent, to the last one where it goes on there.
fn push(extents: &mut Vec<Extent>, extent: Extent) {
    match extents.last_mut() {
        _ if extent.length == 0 => {}
        Some(last) if last.offset.checked_add(last.length) == Some(extent.offset) => {
            last.length += extent.length;
        }
        _ => extents.push(extent),
    }
}

impl Content {
    /// Whether the runs have packed bytes.
    pub fn is_packed(&self) -> bool {
        self.packed_unit.is_some() || !self.pieces.is_empty()
    }

    /// Appends clusters, to the last run where they go on there.
    pub(crate) fn push(&mut self, place: Option<u64>, length: u64) {
        match self.runs.last_mut() {
            _ if length == 0 => {}
            Some(Run { place: Some(last), length: bytes })
                if place.is_some() && last.checked_add(*bytes) == place =>
            {
                *bytes = bytes.saturating_add(length);
            }
            Some(Run { place: None, length: bytes }) if place.is_none() => {
                *bytes = bytes.saturating_add(length);
            }
            _ => self.runs.push(Run { place, length }),
        }
    }

    /// Content that cannot be read, and why.
    pub(crate) fn lost(why: &'static str) -> Self {
        Content { lost: Some(why), ..Content::default() }
    }
}
