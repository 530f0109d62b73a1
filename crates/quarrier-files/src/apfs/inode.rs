//! The records of a file or folder in a volume's tree: inode, names, attributes and extents.

use super::container::{Container, Tree};
use crate::decmpfs;
use crate::entry::{Access, Content, Kind, Times};
use crate::error::{Result, known};
use crate::part::{Part, u16_at, u32_at, u64_at};
use crate::walk::Walk;

const INODE: u8 = 3;
const ATTRIBUTE: u8 = 4;
const EXTENT: u8 = 8;
const NAME: u8 = 9;
const INODE_BYTES: usize = 92;
/// The type of the extended field that describes the data stream.
const STREAM: u8 = 8;
/// The type of the extended field with the name.
const NAME_FIELD: u8 = 4;
const FIELDS_MAX: usize = 64;
/// The attribute's bytes are in a stream rather than in its record.
const IN_STREAM: u16 = 1;
const LINK: &[u8] = b"com.apple.fs.symlink\0";
const RESOURCE: &[u8] = b"com.apple.ResourceFork\0";
const BEYOND: &str = "its blocks lie beyond the end of the container";

/// The object number and record type in a key.
fn head(key: &[u8]) -> (u64, u8) {
    let first = u64_at(key, 0);
    (first & ((1 << 60) - 1), (first >> 60) as u8)
}

/// A predicate for keys that sort before the records of type `kind` of inode `number`.
fn before(number: u64, kind: u8) -> impl Fn(&[u8]) -> bool {
    move |key: &[u8]| head(key) < (number, kind)
}

/// The number in the key of an inode; `None` for other keys.
pub(super) fn is_inode(key: &[u8]) -> Option<u64> {
    let (number, kind) = head(key);
    (kind == INODE).then_some(number)
}

/// The file-system tree of a volume.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files {
    pub(super) tree: Tree,
    /// Whether keys of names contain a hash beside the length.
    pub(super) has_hashes: bool,
    /// Whether the volume is sealed: its extents are then in another tree.
    pub(super) is_sealed: bool,
}

/// A file or folder.
pub(super) struct Inode {
    pub(super) kind: Kind,
    pub(super) size: u64,
    pub(super) times: Times,
    pub(super) access: Access,
    pub(super) content: Content,
    /// The resource fork: its length and bytes.
    pub(super) resource: Option<(u64, Content)>,
}

/// An extended attribute: its bytes and their offset in the part, or the number and length of its
/// stream.
enum Attribute {
    Here(Vec<u8>, u64),
    Stream(u64, u64),
}

fn attribute(value: &[u8], place: u64) -> Option<Attribute> {
    let bytes = value.get(4..)?;
    if u16_at(value, 0) & IN_STREAM != 0 {
        return (bytes.len() >= 16).then(|| Attribute::Stream(u64_at(bytes, 0), u64_at(bytes, 8)));
    }
    let bytes = bytes.get(..usize::from(u16_at(value, 2)))?;
    Some(Attribute::Here(bytes.to_vec(), place + 4))
}

/// Reads an inode by number; `None` if none exists.
pub(super) fn inode(
    part: &Part<'_>,
    container: &mut Container<'_, '_>,
    files: Files,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<Option<Inode>> {
    let mut found = None;
    let (mut packing, mut link, mut resource) = (None, None, None);
    container.range(files.tree, &before(number, INODE), walk, &mut |key, value, place| {
        let (object, kind) = head(key);
        if object != number || kind > ATTRIBUTE {
            return false;
        }
        let name = key.get(10..).unwrap_or_default();
        let wanted = match kind {
            INODE => {
                found = Some(value.to_vec());
                return true;
            }
            _ if name == LINK => &mut link,
            _ if name == RESOURCE => &mut resource,
            _ if name.strip_suffix(b"\0") == Some(decmpfs::ATTRIBUTE.as_bytes()) => &mut packing,
            _ => return true,
        };
        *wanted = attribute(value, place);
        true
    })?;
    let Some(record) = found.filter(|record| record.len() >= INODE_BYTES) else {
        return Ok(None);
    };
    let kind = match u16_at(&record, 80) >> 12 {
        8 => Kind::File,
        4 => Kind::Folder,
        10 => Kind::Link,
        _ => Kind::Other,
    };
    let time = |at: usize| Some(u64_at(&record, at).cast_signed()).filter(|time| *time != 0);
    let times =
        Times { created: time(16), modified: time(24), changed: time(32), accessed: time(40) };
    let access = Access {
        mode: Some(u16_at(&record, 80)),
        user: u32_at(&record, 72),
        group: u32_at(&record, 76),
    };
    let mut stream = |number: u64, bytes: u64, walk: &mut Walk<'_>| {
        extents(part, container, files, number, bytes, walk)
    };
    let resource = match resource {
        Some(Attribute::Stream(number, bytes)) => Some((bytes, stream(number, bytes, walk)?)),
        Some(Attribute::Here(bytes, place)) => Some((bytes.len() as u64, here(part, bytes, place))),
        None => None,
    };
    let is_packed = kind == Kind::File && u32_at(&record, 68) & u32::from(decmpfs::PACKED) != 0;
    if let Some(attribute) = packing.filter(|_| is_packed) {
        let (bytes, place) = match attribute {
            Attribute::Here(bytes, place) => (bytes, Some(part.place(place))),
            Attribute::Stream(..) => (Vec::new(), None),
        };
        let mut fork = || {
            let (bytes, content) = resource.clone().unwrap_or_default();
            Ok((content, bytes))
        };
        if let Some((size, content)) = decmpfs::content(part, &bytes, place, &mut fork)? {
            return Ok(Some(Inode { kind, size, times, access, content, resource: None }));
        }
    }
    let (size, content) = match (kind, link) {
        (Kind::Link, Some(Attribute::Here(mut bytes, place))) => {
            if bytes.last() == Some(&0) {
                bytes.pop();
            }
            (bytes.len() as u64, here(part, bytes, place))
        }
        (Kind::File, _) => {
            let size = stream_bytes(&record).unwrap_or(0);
            (size, stream(u64_at(&record, 8), size, walk)?)
        }
        _ => (0, Content::default()),
    };
    Ok(Some(Inode { kind, size, times, access, content, resource }))
}

/// The record of an inode.
fn record(
    container: &mut Container<'_, '_>,
    files: Files,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<Option<Vec<u8>>> {
    let mut found = None;
    container.range(files.tree, &before(number, INODE), walk, &mut |key, value, _| {
        if head(key) == (number, INODE) {
            found = Some(value.to_vec());
        }
        false
    })?;
    Ok(found)
}

/// Whether a tree has an inode; true if that cannot be decided.
///
/// # Errors
/// If the walk was stopped or takes too long.
pub(super) fn lives(
    container: &mut Container<'_, '_>,
    files: Files,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<bool> {
    Ok(known(record(container, files, number, walk))?.is_none_or(|found| found.is_some()))
}

/// The folder that an inode was in, and its name there.
///
/// # Errors
/// As [`Container::range`].
pub(super) fn origin(
    container: &mut Container<'_, '_>,
    files: Files,
    number: u64,
    walk: &mut Walk<'_>,
) -> Result<Option<(u64, Vec<u8>)>> {
    let Some(record) = record(container, files, number, walk)? else { return Ok(None) };
    let name = field(&record, NAME_FIELD).and_then(|name| name.split(|byte| *byte == 0).next());
    let name = name.filter(|name| !name.is_empty());
    Ok(name.map(|name| (u64_at(&record, 0), name.to_vec())))
}

/// Content that is stored inside a record.
fn here(part: &Part<'_>, bytes: Vec<u8>, place: u64) -> Content {
    let mut content = Content::default();
    content.push(Some(part.place(place)), bytes.len() as u64);
    content.inline = Some(bytes.into_boxed_slice());
    content
}

/// The file size from the data stream field of an inode.
fn stream_bytes(record: &[u8]) -> Option<u64> {
    field(record, STREAM)?.get(..8).map(|bytes| u64_at(bytes, 0))
}

/// An extended field of an inode, by type.
fn field(record: &[u8], kind: u8) -> Option<&[u8]> {
    let fields = record.get(INODE_BYTES..)?;
    let count = usize::from(u16_at(fields, 0)).min(FIELDS_MAX);
    let mut at = 4 + count * 4;
    for field in fields.get(4..)?.chunks_exact(4).take(count) {
        let bytes = usize::from(u16_at(field, 2));
        if field[0] == kind {
            return fields.get(at..at + bytes);
        }
        at += bytes.next_multiple_of(8);
    }
    None
}

/// The extents of a stream.
fn extents(
    part: &Part<'_>,
    container: &mut Container<'_, '_>,
    files: Files,
    number: u64,
    bytes: u64,
    walk: &mut Walk<'_>,
) -> Result<Content> {
    if bytes == 0 {
        return Ok(Content::default());
    }
    if files.is_sealed {
        return Ok(Content::lost("its extents are those of a sealed volume"));
    }
    let (block_bytes, end) = {
        let superblock = container.superblock();
        (superblock.block_bytes, superblock.blocks * superblock.block_bytes)
    };
    let mut content = Content::default();
    let mut next = 0u64;
    container.range(files.tree, &before(number, EXTENT), walk, &mut |key, value, _| {
        if head(key) != (number, EXTENT) || content.lost.is_some() {
            return false;
        }
        let start = u64_at(key, 8);
        let (length, block) = (u64_at(value, 0) & ((1 << 56) - 1), u64_at(value, 8));
        let Some(hole) = start.checked_sub(next) else {
            content.lost = Some("its extents overlap");
            return false;
        };
        content.push(None, hole);
        let place = match block {
            0 => None,
            block => {
                let at = block.checked_mul(block_bytes);
                let fits = |at: &u64| at.checked_add(length).is_some_and(|to| to <= end);
                let at = at.filter(fits);
                if at.is_none() {
                    content.lost = Some(BEYOND);
                }
                at.map(|at| part.place(at))
            }
        };
        content.push(place, length);
        next = start.saturating_add(length);
        true
    })?;
    Ok(content)
}

/// A name in a folder, and the inode number it refers to.
pub(super) struct Name {
    pub(super) name: Vec<u8>,
    pub(super) number: u64,
}

/// The names in the folder `number`. Names before a damaged node are still found.
pub(super) fn names(
    container: &mut Container<'_, '_>,
    files: Files,
    number: u64,
    walk: &mut Walk<'_>,
    found: &mut Vec<Name>,
) -> Result<()> {
    container.range(files.tree, &before(number, NAME), walk, &mut |key, value, _| {
        if head(key) != (number, NAME) {
            return false;
        }
        let (bytes, from) = match files.has_hashes {
            true => (u32_at(key, 8) as usize & 0x3FF, 12),
            false => (usize::from(u16_at(key, 8)), 10),
        };
        if let Some(name) = key.get(from..from + bytes).filter(|_| value.len() >= 8) {
            let name = name.strip_suffix(b"\0").unwrap_or(name).to_vec();
            found.push(Name { name, number: u64_at(value, 0) });
        }
        true
    })
}
