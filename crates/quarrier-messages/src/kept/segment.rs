//! Presents one segment as a log.
//!
//! ```text
//!  segment ─→ those after it, if a chain goes on there ─→ a made-up head of the next one
//!             found by the beginning of their names       its mark is in the name of a copied segment, and
//!                                                         otherwise in the folder
//! ```
//!
//! A segment that others follow is as long as its batches. With the head of the next one after it, its end is judged
//! like that of any segment in the middle of a log: what is missing there is damage, and that nothing follows is not.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;

use quarrier_core::source::Source;

use super::copy::copied_marks;
use crate::log::disk::{Access, Disk, DiskFile, RealDisk};
use crate::log::segment::{Before, HEAD_BYTES, Head, MAGIC, mark_of, name};

/// The extension of segments.
const ENDING: &str = ".qlog";
/// The block of a made-up head.
const BLOCK_BYTES: u32 = 512;

/// Returns whether a file or an object is a segment of a log by its name, without folders, whatever it has.
pub fn is_segment_name(name: &str) -> bool {
    name.ends_with(ENDING)
}

/// Returns whether bytes begin like a segment of a log; eight are enough.
pub fn is_segment_head(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// A segment of a log, or of the copy of one, in a file or an object.
#[derive(Clone)]
pub struct SegmentObject {
    name: String,
    place: Place,
}

/// The folder of a segment, where others are found if they are needed to read it.
pub trait SegmentFolder {
    /// Returns the names, without folders, that begin with `beginning` and may be those of segments, in any order;
    /// none if the folder cannot be listed because it is no folder.
    ///
    /// # Errors
    /// The reason, as for all methods here.
    fn names(&self, beginning: &str) -> io::Result<Vec<String>>;

    /// Opens the segment of this name.
    ///
    /// # Errors
    /// The reason.
    fn open(&self, name: &str) -> io::Result<SegmentObject>;
}

impl SegmentObject {
    /// Makes the segment in `source`. `name` is that of its file or object, without folders: if it is the name of a
    /// copied segment, it says which mark follows.
    pub fn new(name: impl Into<String>, source: Arc<dyn Source>) -> Self {
        SegmentObject { name: name.into(), place: Place::Object(source) }
    }

    /// Makes the segment in the file at `path`.
    ///
    /// # Errors
    /// The operating system's error.
    pub(super) fn of_file(path: &Path) -> io::Result<Self> {
        let name = path.file_name().and_then(OsStr::to_str).ok_or(io::ErrorKind::InvalidInput)?;
        let disk = Arc::new(RealDisk::open(folder_of(path))?);
        let place = Place::File(disk, name.to_string(), path.display().to_string());
        Ok(SegmentObject { name: name.to_string(), place })
    }

    /// Returns its path or the name of its source.
    pub(super) fn path(&self) -> String {
        self.place.path()
    }
}

/// The folder of a file.
pub(super) struct FolderOf<'p>(pub(super) &'p Path);

impl SegmentFolder for FolderOf<'_> {
    fn names(&self, beginning: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder_of(self.0))? {
            let name = entry?.file_name().into_string().ok();
            let is_wanted = |name: &String| name.starts_with(beginning) && is_segment_name(name);
            names.extend(name.filter(is_wanted));
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<SegmentObject> {
        SegmentObject::of_file(&self.0.with_file_name(name))
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The bytes of a segment.
#[derive(Clone)]
enum Place {
    /// A file of a folder, by its name, with its path for display.
    File(Arc<RealDisk>, String, String),
    Object(Arc<dyn Source>),
}

impl Place {
    fn open(&self) -> io::Result<Box<dyn DiskFile>> {
        match self {
            Place::File(disk, file, _) => disk.open(file, Access::Read),
            Place::Object(source) => Ok(Box::new(ObjectFile(Arc::clone(source)))),
        }
    }

    fn path(&self) -> String {
        match self {
            Place::File(_, _, path) => path.clone(),
            Place::Object(source) => source.name().to_string(),
        }
    }
}

/// A segment that exists.
#[derive(Clone)]
struct Part {
    /// The mark of its first message.
    mark: u64,
    head: Option<Head>,
    length: u64,
    /// The mark after its last message, if its name says so.
    next: Option<u64>,
    place: Place,
}

impl Part {
    fn of(SegmentObject { name, place }: SegmentObject) -> io::Result<Part> {
        let mut head = vec![0; HEAD_BYTES as usize];
        let file = place.open()?;
        let mut filled = 0;
        while filled < head.len() {
            match file.read_at(filled as u64, &mut head[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        let head = Head::from_bytes(&head[..filled]).map(|(head, _)| head);
        let copied = copied_marks(&name);
        let named = copied.as_ref().map(|marks| marks.start).or_else(|| mark_of(&name));
        let mark = head.map(|head| head.first_mark).or(named).unwrap_or(1);
        let next = copied.map(|marks| marks.end).filter(|next| *next > mark);
        Ok(Part { mark, head, length: file.length()?, next, place })
    }

    /// Returns the first mark of the next segment, and where this one ends, if something says so.
    fn end(&self, folder: &dyn SegmentFolder) -> io::Result<Option<(u64, Before)>> {
        let Some(head) = self.head else { return Ok(None) };
        if let Some(next) = self.next {
            return Ok(Some((next, Before { salt: head.salt, end: self.length })));
        }
        // Only a segment that others follow is shorter.
        if self.length >= head.segment_bytes {
            return Ok(None);
        }
        let names = folder.names("")?.into_iter();
        let later = names.filter_map(|name| Some((mark_of(&name)?, name)));
        let next = later.filter(|(mark, _)| *mark > self.mark).min();
        let Some((mark, name)) = next else { return Ok(None) };
        let next = Part::of(folder.open(&name)?)?;
        let before = next.head.and_then(|head| head.before);
        Ok(before.filter(|before| before.salt == head.salt).map(|before| (mark, before)))
    }
}

/// A log that begins with one segment, whatever its file is called and whatever else the real folder has.
#[derive(Clone)]
pub(super) struct Segments {
    /// The segment, and those after it that were added.
    parts: Vec<Part>,
    /// The name and the head of the segment after them.
    end: Option<(String, Arc<[u8]>)>,
}

impl Segments {
    /// Begins with a segment of a folder.
    ///
    /// # Errors
    /// If its head cannot be read.
    pub(super) fn of(first: SegmentObject, folder: &dyn SegmentFolder) -> io::Result<Self> {
        let mut segments = Segments { parts: vec![Part::of(first)?], end: None };
        segments.end(folder)?;
        Ok(segments)
    }

    /// Makes the head of the segment after the last one, if something says its mark.
    fn end(&mut self, folder: &dyn SegmentFolder) -> io::Result<()> {
        let end = self.parts.last().map(|last| last.end(folder)).transpose()?.flatten();
        self.end = end.map(|(mark, before)| {
            let made = Head {
                block_bytes: BLOCK_BYTES,
                salt: 1,
                first_mark: mark,
                made_us: 0,
                segment_bytes: HEAD_BYTES,
                before: Some(before),
            };
            (name(mark), made.to_bytes().as_slice().into())
        });
        Ok(())
    }

    /// Returns the first mark of the segment.
    pub(super) fn mark(&self) -> u64 {
        self.parts.first().map_or(1, |first| first.mark)
    }

    /// Returns the first mark of the segment after the first one, if it is known.
    pub(super) fn next_mark(&self) -> Option<u64> {
        let made_up = || self.end.as_ref().and_then(|(name, _)| mark_of(name));
        self.parts.get(1).map(|part| part.mark).or_else(made_up)
    }

    /// Returns whether a segment is known to follow the last one.
    pub(super) fn is_followed(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the number of segments.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Adds the segment that begins with a mark. Returns false if there is none.
    ///
    /// # Errors
    /// If the folder cannot be listed, or its head cannot be read.
    pub(super) fn add(&mut self, mark: u64, folder: &dyn SegmentFolder) -> io::Result<bool> {
        let names = folder.names(&beginning(mark))?;
        let Some(name) = names.iter().min() else { return Ok(false) };
        let part = Part::of(folder.open(name)?)?;
        let is_after = self.parts.last().is_none_or(|last| last.mark < mark);
        if part.mark != mark || !is_after {
            return Ok(false);
        }
        self.parts.push(part);
        self.end(folder)?;
        Ok(true)
    }
}

/// Returns how the names of segments begin that begin with a mark.
fn beginning(mark: u64) -> String {
    format!("{mark:016x}")
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for Segments {
    fn names(&self) -> io::Result<Vec<String>> {
        let parts = self.parts.iter().map(|part| name(part.mark));
        Ok(parts.chain(self.end.iter().map(|(name, _)| name.clone())).collect())
    }

    fn create(&self, _name: &str, _bytes: u64) -> io::Result<Box<dyn DiskFile>> {
        refused()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        if access == Access::Write {
            return refused();
        }
        if let Some(part) = self.parts.iter().find(|part| self::name(part.mark) == name) {
            return part.place.open();
        }
        match &self.end {
            Some((end, head)) if end == name => Ok(Box::new(MadeUp(Arc::clone(head)))),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        refused()
    }

    fn sync_folder(&self) -> io::Result<()> {
        refused()
    }

    fn path(&self, name: &str) -> String {
        let named = self.parts.iter().find(|part| self::name(part.mark) == name);
        named.or(self.parts.last()).map_or_else(String::new, |part| part.place.path())
    }

    fn now_us(&self) -> i64 {
        0
    }

    fn random(&self) -> io::Result<u64> {
        refused()
    }
}

/// A source as a file of a log.
struct ObjectFile(Arc<dyn Source>);

/// The head of a segment as a file of a log.
struct MadeUp(Arc<[u8]>);

/// The methods of a file that nobody writes.
macro_rules! read_only {
    () => {
        fn block_bytes(&self) -> u64 {
            u64::from(BLOCK_BYTES)
        }

        fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<usize> {
            refused()
        }

        fn allocate(&self, _bytes: u64) -> io::Result<()> {
            refused()
        }

        fn truncate(&self, _bytes: u64) -> io::Result<()> {
            refused()
        }

        fn sync(&self) -> io::Result<()> {
            refused()
        }
    };
}

impl DiskFile for ObjectFile {
    read_only!();

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.length())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match offset < self.0.length() {
            true => self.0.read_at(offset, buffer),
            false => Ok(0),
        }
    }
}

impl DiskFile for MadeUp {
    read_only!();

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|from| self.0.get(from..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}
