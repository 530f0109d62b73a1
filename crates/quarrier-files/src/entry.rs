//! Entries of file systems: names, times, and the locations of their bytes.

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
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

/// Whether an entry is still allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The file system still has the entry.
    Allocated,
    /// Deleted; traces of the entry remain.
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

/// Times of an entry, in nanoseconds since 1970 in UTC; `None` where the file system stores none. FAT
/// stores local times without a zone; they are taken as UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The last modification of the content.
    pub modified: Option<i64>,
    /// The last read access.
    pub accessed: Option<i64>,
    /// The time of the last metadata change.
    pub changed: Option<i64>,
    /// The creation.
    pub created: Option<i64>,
}

/// The mode and the owner of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// Type and permissions, as Unix has them in `st_mode`; `None` if the file system stores none. FAT,
    /// exFAT and NTFS have attributes instead, from which permissions are made as sleuthkit does.
    pub mode: Option<u16>,
    /// The number of the owner; 0 if the file system stores none.
    pub user: u32,
    /// The number of the group; 0 if the file system stores none.
    pub group: u32,
}

impl Access {
    /// The permissions that sleuthkit shows for DOS attributes: a hidden file cannot be written, and one
    /// that is read-only cannot even be read.
    pub(crate) fn of_attributes(attributes: u32) -> Self {
        const READ_ONLY: u32 = 1;
        const HIDDEN: u32 = 2;
        let unless = |flag: u32, mode: u16| if attributes & flag == 0 { mode } else { 0 };
        let mode = 0o111 | unless(READ_ONLY, 0o444) | unless(HIDDEN, 0o222);
        Access { mode: Some(mode), ..Access::default() }
    }
}

/// A contiguous range of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Start in the source, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// A contiguous range of a file, usually whole clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Start in the source, in bytes; `None` for a hole, which reads as zeros.
    pub place: Option<u64>,
    /// Length in bytes.
    pub length: u64,
}

/// The compression of a piece of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not compressed.
    Plain,
    /// A zlib stream.
    Zlib,
    /// A zlib stream, or uncompressed bytes after a marker byte whose low nibble is 15.
    ZlibOrPlain,
    /// LZVN, or uncompressed bytes after LZVN's end marker, the byte 6.
    LzvnOrPlain,
    /// An LZFSE stream, or uncompressed bytes after a marker byte other than `b`.
    LzfseOrPlain,
    /// A frame of Zstandard.
    Zstd,
    /// LZO1X segments with their lengths; no length field crosses a 4 KiB sector boundary.
    Lzo,
}

/// A separately compressed piece of a file. Gaps between pieces read as zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedPiece {
    /// Offset in the file.
    pub start: u64,
    /// Bytes of the file that it holds.
    pub length: u64,
    /// Offset of its first compressed byte in the concatenated runs.
    pub packed_at: u64,
    /// Number of compressed bytes.
    pub packed_bytes: u64,
    /// Unpacked bytes to skip before the first byte of the file.
    pub skipped: u32,
    /// Maximum unpacked size in bytes.
    pub unpacked_bytes: u32,
    /// How it is compressed.
    pub packing: Packing,
}

/// The locations of a file's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The runs in file order. The last may extend past the end of the file; the excess is slack.
    pub runs: Vec<Run>,
    /// The bytes themselves, if they are stored inside the metadata.
    pub inline: Option<Box<[u8]>>,
    /// Only this many bytes were ever written; the rest reads as zeros.
    pub written: Option<u64>,
    /// The LZNT1 compression unit in bytes. Units are compressed independently; the holes of a unit are
    /// the clusters that compression saved.
    pub packed_unit: Option<u32>,
    /// The pieces of a file compressed in pieces, in file order; otherwise empty. The runs then hold
    /// the compressed bytes of the pieces back to back.
    pub pieces: Vec<PackedPiece>,
    /// Clusters that are allocated but were never written: they read as zeros, whatever they contain.
    pub reserved: Vec<Extent>,
    /// The reason why the bytes cannot be read, if so.
    pub lost: Option<&'static str>,
}

/// A file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path from the root of its file system: `/Users/Public/a.jpg`. A slash inside a name and a
    /// byte that is not UTF-8 are written `\xNN`.
    pub path: String,
    /// The inode number, or the record number in the NTFS master file table. FAT, exFAT and ISO 9660
    /// have neither; there it is derived from the position of the directory entry.
    pub inode: u64,
    /// The type of the entry.
    pub kind: Kind,
    /// Whether it is deleted.
    pub state: State,
    /// Size of the file in bytes.
    pub size: u64,
    /// Its times.
    pub times: Times,
    /// Its mode and owner.
    pub access: Access,
    /// The locations of its bytes.
    pub content: Content,
}

impl Entry {
    /// The extents of its bytes in the source, in file order, without holes and slack. For compressed
    /// files, the extents of the compressed bytes.
    pub fn extents(&self) -> Vec<Extent> {
        let mut extents = Vec::new();
        self.push_extents(&mut extents);
        extents
    }

    /// Appends the [`extents`](Self::extents).
    pub fn push_extents(&self, extents: &mut Vec<Extent>) {
        let from = extents.len();
        self.split(&mut |extent, is_slack| {
            if !is_slack {
                push(extents, from, extent);
            }
        });
    }

    /// The slack of its clusters: bytes past the end of the file, and bytes that were never written.
    pub fn slack(&self) -> Vec<Extent> {
        let mut slack = Vec::new();
        self.split(&mut |extent, is_slack| {
            if is_slack {
                push(&mut slack, 0, extent);
            }
        });
        slack.extend_from_slice(&self.content.reserved);
        slack
    }

    /// Passes the parts of the runs, in order, and whether each is slack.
    fn split(&self, take: &mut dyn FnMut(Extent, bool)) {
        let mut left = if self.content.is_packed() { u64::MAX } else { self.size };
        for run in &self.content.runs {
            let length = run.length.min(left);
            left -= length;
            let Some(offset) = run.place else { continue };
            take(Extent { offset, length }, false);
            let (offset, length) = (offset.saturating_add(length), run.length - length);
            take(Extent { offset, length }, true);
        }
    }
}

/// Appends an extent, or extends the last one from index `from` on if contiguous with it.
fn push(extents: &mut Vec<Extent>, from: usize, extent: Extent) {
    match extents[from..].last_mut() {
        _ if extent.length == 0 => {}
        Some(last) if last.offset.checked_add(last.length) == Some(extent.offset) => {
            last.length += extent.length;
        }
        _ => extents.push(extent),
    }
}

impl Content {
    /// Whether the runs hold compressed bytes.
    pub fn is_packed(&self) -> bool {
        self.packed_unit.is_some() || !self.pieces.is_empty()
    }

    /// Appends clusters, or extends the last run if contiguous with it.
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

    /// Content that cannot be read, with the reason.
    pub(crate) fn lost(why: &'static str) -> Self {
        Content { lost: Some(why), ..Content::default() }
    }
}
