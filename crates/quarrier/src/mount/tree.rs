//! The tree: names, attributes and bytes.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use quarrier_core::panics;
use quarrier_core::source::{Source, read_full_at};
use quarrier_remote::Counters;

use super::held::Held;
use super::nodes::{Content, Node, Nodes, Planter};
use super::unread::{Unread, UnreadRanges};
use super::{Fault, file_name};
use crate::Error;
use crate::source::{Named, Opened};

/// The folder of the files of file systems.
const FILES: &str = "files";

/// The inode of the root.
pub const ROOT: u64 = 1;
/// The inode of the file with the bytes of the source.
pub const FILE: u64 = 2;

/// The type of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A folder.
    Folder,
    /// A regular file.
    File,
}

/// The attributes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its number, [`ROOT`] for the root.
    pub inode: u64,
    /// Its type.
    pub kind: NodeKind,
    /// Its size in bytes; 0 for a folder.
    pub size: u64,
    /// When it was last modified: the time of the source's file, or of the mount if unknown.
    pub modified: SystemTime,
}

/// A name in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child<'t> {
    /// Its inode.
    pub inode: u64,
    /// Its type.
    pub kind: NodeKind,
    /// Its name.
    pub name: &'t OsStr,
}

/// Messages about the file systems of a source, a line each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// Skipped partitions and the like.
    pub notices: Vec<String>,
    /// Damaged entries, which are missing from the tree.
    pub damages: Vec<String>,
}

/// The tree that a mount shows: a folder with one file, which has the decoded bytes of a source, and if
/// requested the files of its file systems. Many threads may read it.
///
/// ```
/// use std::sync::Arc;
/// use quarrier::mount::{Fault, FILE, ROOT, Tree};
/// use quarrier::{Environment, OpenOptions, Opener, Sources};
///
/// # let file = std::env::temp_dir().join(format!("quarrier-tree-{}.raw", std::process::id()));
/// # std::fs::write(&file, "stone")?;
/// # let name = file.clone().into_os_string();
/// let stop = Arc::default();
/// let opener = Opener::new(OpenOptions::default(), &Environment::of_process(), &stop);
/// let named = Sources::only(name)?;
/// let tree = Tree::new(&named, opener.open(&named)?, &stop)?;
/// assert_eq!(tree.attributes(FILE)?.size, 5);
/// assert_eq!(tree.lookup(ROOT, "missing".as_ref()), Err(Fault::NotFound));
/// let mut bytes = [0; 8];
/// assert_eq!(tree.read(FILE, 1, &mut bytes)?, 4);
/// assert_eq!(&bytes[..4], b"tone");
/// # std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tree {
    held: Held,
    nodes: Nodes,
    mounted: SystemTime,
    stop: Arc<AtomicBool>,
    unread: Unread,
    read_bytes: AtomicU64,
}

impl Tree {
    /// Creates the tree of an open source. Reads that fail after `stop` became true do not count as unread.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a stream.
    pub fn new(named: &Named, opened: Opened, stop: &Arc<AtomicBool>) -> Result<Tree, Error> {
        let mounted = SystemTime::now();
        let modified = modified(named).unwrap_or(mounted);
        let nodes = Nodes::new(file_name(named), modified, mounted);
        let (unread, read_bytes) = (Unread::default(), AtomicU64::new(0));
        let (held, stop) = (Held::new(opened)?, Arc::clone(stop));
        Ok(Tree { held, nodes, mounted, stop, unread, read_bytes })
    }

    /// Adds the allocated files of the source's file systems, in the folder `files`; if there are several
    /// file systems, each has a folder `#N` there, for the partition N. Names are made harmless as for an
    /// extraction, and a link becomes a file that contains its target.
    ///
    /// # Errors
    /// [`Error::Files`] if there is no file system, or it cannot be read; [`Error::Unsupported`] if the
    /// names do not fit in memory; [`Error::Stopped`] if it was stopped.
    pub fn with_files(mut self) -> Result<(Tree, Listed), Error> {
        let (source, stop) = (self.held.source(), &*self.stop);
        let systems = quarrier_files::find(source)?;
        let mut listed = Listed { notices: systems.notices(), damages: Vec::new() };
        let mut planter = Planter::new(self.nodes, self.mounted);
        let files = planter.folder(ROOT, FILES);
        for system in &systems.systems {
            let top = match systems.are_several() {
                true => planter.folder(files, &format!("#{}", system.partition)),
                false => files,
            };
            let done = system.list(source, quarrier_files::Reach::Allocated, stop, &mut |entry| {
                planter.entry(source, top, entry);
                if planter.is_full() { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
            });
            match done {
                Ok(damages) => listed.damages.extend(damages.describe()),
                Err(_) if stop.load(Ordering::Relaxed) => {
                    return Err(Error::Stopped { name: source.name().to_string(), offset: 0 });
                }
                Err(quarrier_files::Error::Taken(_)) => {
                    let name = source.name().to_string();
                    let reason = "has more files than fit in memory; mount it without --files";
                    return Err(Error::Unsupported { name, reason: reason.to_string() });
                }
                Err(error) if systems.are_several() => listed.damages.push(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        self.nodes = planter.finish();
        Ok((self, listed))
    }

    /// The name of the source, for messages.
    pub fn source_name(&self) -> &str {
        self.held.source().name()
    }

    /// The name of the file with the bytes of the source.
    pub fn file_name(&self) -> &OsStr {
        self.nodes.name(FILE)
    }

    /// The size of the source in bytes.
    pub fn length(&self) -> u64 {
        self.held.source().length()
    }

    /// The cost of reads so far, for a remote source.
    pub fn counters(&self) -> Option<Counters> {
        self.held.counters()
    }

    /// The number of bytes that reads returned.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// The ranges that could not be read so far.
    pub fn unread(&self) -> UnreadRanges {
        self.unread.ranges()
    }

    /// Whether the bytes of the files cannot change, so that a reader may cache them without limit.
    pub fn is_fixed(&self) -> bool {
        self.held.is_fixed()
    }

    fn node(&self, inode: u64) -> Result<&Node, Fault> {
        self.nodes.get(inode).ok_or(Fault::NotFound)
    }

    /// The attributes of a node.
    ///
    /// # Errors
    /// [`Fault::NotFound`] if there is none.
    pub fn attributes(&self, inode: u64) -> Result<Attributes, Fault> {
        let node = self.node(inode)?;
        let (kind, size) = match &node.content {
            Content::Folder(_) => (NodeKind::Folder, 0),
            Content::Source => (NodeKind::File, self.length()),
            Content::File(file) => (NodeKind::File, file.size()),
            Content::Lost(size, _) => (NodeKind::File, *size),
        };
        Ok(Attributes { inode, kind, size, modified: node.modified })
    }

    /// The inode of the folder that a node is in; the root is in itself.
    pub fn parent(&self, inode: u64) -> u64 {
        self.nodes.get(inode).map_or(ROOT, |node| node.parent)
    }

    /// The attributes of the node with this name in a folder.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::NotAFolder`].
    pub fn lookup(&self, folder: u64, name: &OsStr) -> Result<Attributes, Fault> {
        self.node(folder)?;
        self.nodes.children(folder).ok_or(Fault::NotAFolder)?;
        self.attributes(self.nodes.child(folder, name).ok_or(Fault::NotFound)?)
    }

    /// The nodes in a folder, always in the same order.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::NotAFolder`].
    pub fn children(&self, folder: u64) -> Result<impl Iterator<Item = Child<'_>>, Fault> {
        self.node(folder)?;
        let children = self.nodes.children(folder).ok_or(Fault::NotAFolder)?;
        Ok(children.iter().map(|&inode| {
            let kind = match self.nodes.children(inode) {
                Some(_) => NodeKind::Folder,
                None => NodeKind::File,
            };
            Child { inode, kind, name: self.nodes.name(inode) }
        }))
    }

    /// Reads the bytes of a file from `offset` on into `buffer`, and returns their number. It is less than
    /// the length of `buffer` only at the end of the file.
    ///
    /// # Errors
    /// [`Fault::Unreadable`] if a byte cannot be read; the bytes in `buffer` are then undefined.
    /// [`Fault::IsAFolder`], [`Fault::NotFound`].
    pub fn read(&self, inode: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Fault> {
        let range = self.range(inode, offset, buffer.len())?;
        // At most the length of the buffer.
        let buffer = &mut buffer[..(range.end - range.start) as usize];
        let (count, content) = (buffer.len(), &self.node(inode)?.content);
        if count == 0 {
            return Ok(0);
        }
        // A panic is a defect of a decoder, and must not end the mount.
        let read = panics::caught(|| self.read_all(content, offset, buffer));
        let read = read.unwrap_or_else(|panicked| Err(io::Error::other(panicked)));
        match read {
            Ok(()) => {
                self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
                if inode == FILE {
                    self.unread.succeeded(range);
                }
                Ok(count)
            }
            Err(error) => {
                self.note_failure(inode, range, &error);
                Err(Fault::Unreadable)
            }
        }
    }

    fn read_all(&self, content: &Content, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let source = self.held.source();
        match content {
            Content::Source => read_all(source, offset, buffer),
            Content::File(file) => file.read_at(source, offset, buffer),
            Content::Lost(_, reason) => Err(io::Error::other(reason.clone())),
            Content::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// Notes a failed read, unless it failed because of the stop.
    fn note_failure(&self, inode: u64, range: Range<u64>, error: &io::Error) {
        if self.stop.load(Ordering::Relaxed) {
            return;
        }
        match inode {
            FILE => self.unread.failed(range, || error.to_string()),
            _ => self.unread.file_failed(&self.nodes.path(inode), &error.to_string()),
        }
    }

    /// The part of a file from `offset` on, with at most `length_max` bytes.
    fn range(&self, inode: u64, offset: u64, length_max: usize) -> Result<Range<u64>, Fault> {
        let Attributes { kind, size, .. } = self.attributes(inode)?;
        if kind == NodeKind::Folder {
            return Err(Fault::IsAFolder);
        }
        let start = offset.min(size);
        Ok(start..start.saturating_add(length_max as u64).min(size))
    }

    /// The offset of the first stored byte at or after `offset`; the bytes between them are zero.
    ///
    /// # Errors
    /// [`Fault::PastEnd`] if no stored byte follows, [`Fault::Unreadable`], [`Fault::IsAFolder`],
    /// [`Fault::NotFound`].
    pub fn next_data(&self, inode: u64, offset: u64) -> Result<u64, Fault> {
        match self.stored(inode, offset)? {
            Some(data) => Ok(data.start),
            None => Err(Fault::PastEnd),
        }
    }

    /// The offset of the first byte at or after `offset` that lies in a hole, or the size of the file.
    ///
    /// # Errors
    /// [`Fault::PastEnd`] if `offset` is not in the file, [`Fault::Unreadable`], [`Fault::IsAFolder`],
    /// [`Fault::NotFound`].
    pub fn next_hole(&self, inode: u64, offset: u64) -> Result<u64, Fault> {
        let size = self.range(inode, 0, usize::MAX)?.end;
        if offset >= size {
            return Err(Fault::PastEnd);
        }
        let mut end = offset;
        // Adjacent ranges of data may be returned one by one.
        while let Some(data) = self.stored(inode, end)?.filter(|data| data.start == end) {
            end = data.end;
        }
        Ok(end)
    }

    /// The first range of stored data at or after `offset`. Files of file systems have no known holes.
    fn stored(&self, inode: u64, offset: u64) -> Result<Option<Range<u64>>, Fault> {
        let size = self.range(inode, 0, usize::MAX)?.end;
        let data = match inode {
            FILE => self.held.source().next_data(offset).map_err(|_| Fault::Unreadable)?,
            _ => Some(offset..size),
        };
        let within = data.map(|data| data.start.max(offset)..data.end.min(size));
        Ok(within.filter(|data| !data.is_empty()))
    }
}

/// Fills `buffer`. A short read would show as zeros in the kernel's cache, so it is an error.
fn read_all(source: &dyn Source, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    match read_full_at(source, offset, buffer)? {
        count if count == buffer.len() => Ok(()),
        count => {
            let error = Error::Source(quarrier_core::Error::Shrank {
                source_name: source.name().to_string(),
                opened_bytes: source.length(),
                ended_at: offset + count as u64,
            });
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, error.to_string()))
        }
    }
}

/// The latest modification time of a source's files; `None` for a URL or a device.
fn modified(named: &Named) -> Option<SystemTime> {
    let files = named.paths().into_iter().filter_map(|path| std::fs::metadata(path).ok());
    files.filter(Metadata::is_file).filter_map(|file| file.modified().ok()).max()
}
