//! VMDK: VMware disks, in one file or many.
//!
//! ```text
//!  descriptor (a text, or inside the first extent) ─→ extents, end to end: flat │ sparse │ zeros
//!       └→ the parent                                      grain directory ─→ table ─→ grain
//! ```
//!
//! *VMware, Virtual Disk Format 5.0*.

mod descriptor;
mod sparse;

use std::io;
use std::sync::Arc;

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};

use crate::around::{Around, shown};
use crate::disk::{Disk, Layout, Place, Run, SECTOR_BYTES};
use crate::fault::{damaged, invalid, refused};
use descriptor::{Descriptor, Extent, Storage};
use sparse::Sparse;

/// Maximum extents of a disk; servers split disks every 2 GiB.
pub(crate) const EXTENTS_MAX: usize = 40_000;

/// Opens an image by its descriptor or its single file, with its other files.
pub(crate) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Disk<Vmdk>> {
    let mut head = [0; 4];
    let read = read_full_at(&**file, 0, &mut head)
        .map_err(|error| quarrier_core::Error::io(file.name(), "read at byte 0", error))?;
    let disk = match &head[..read] {
        b"KDMV" | b"COWD" => {
            let (sparse, descriptor) = sparse::open(file, 0)?;
            let Some(descriptor) = descriptor else {
                return Err(refused(
                    &**file,
                    "is one part of a disk; name the small file that lists the parts (DISK.vmdk)",
                ));
            };
            single(file, sparse, &descriptor, around)?
        }
        _ => {
            let descriptor = Descriptor::read(&**file, 0, file.length())?;
            joined(file, &descriptor, around)?
        }
    };
    Ok(disk)
}

/// Opens a disk of a single sparse file, which contains its descriptor.
fn single(
    file: &Arc<dyn Source>,
    sparse: Sparse,
    descriptor: &Descriptor,
    around: &Around<'_>,
) -> Result<Disk<Vmdk>> {
    if descriptor.extents.len() > 1 {
        let reason = "has a descriptor that lists several files, none of which matches it";
        return Err(refused(&**file, reason));
    }
    let length = sparse.length;
    let part = Part { start: 0, end: length, content: Content::Sparse(Box::new(sparse)) };
    finish(file, length, vec![part], vec![Arc::clone(file)], descriptor, around)
}

/// Opens a disk that consists of the extents of a descriptor.
fn joined(
    file: &Arc<dyn Source>,
    descriptor: &Descriptor,
    around: &Around<'_>,
) -> Result<Disk<Vmdk>> {
    let (mut parts, mut files) = (Vec::new(), Vec::<Arc<dyn Source>>::new());
    let mut start = 0u64;
    for extent in &descriptor.extents {
        let bytes = extent.sectors.checked_mul(SECTOR_BYTES);
        let end = bytes.and_then(|bytes| start.checked_add(bytes));
        let Some(end) = end.filter(|&end| end <= i64::MAX as u64) else {
            return Err(damaged(&**file, 0, "the total length of its extents is too large"));
        };
        let content = content(file, extent, &mut files, around)?;
        parts.push(Part { start, end, content });
        start = end;
    }
    if parts.is_empty() {
        return Err(damaged(&**file, 0, "the descriptor names no extents"));
    }
    finish(file, start, parts, files, descriptor, around)
}

/// Opens the file of an extent, unless another extent already did.
fn content(
    file: &Arc<dyn Source>,
    extent: &Extent,
    files: &mut Vec<Arc<dyn Source>>,
    around: &Around<'_>,
) -> Result<Content> {
    let (name, storage) = match (&extent.name, extent.storage) {
        (_, Storage::Zeros) => return Ok(Content::Zeros),
        (None, _) => return Err(damaged(&**file, 0, "an extent of the descriptor has no file")),
        (Some(name), storage) => (name, storage),
    };
    let opened = around.file(&**file, name, "extent")?;
    let known = files.iter().position(|other| other.name() == opened.name());
    let index = known.unwrap_or_else(|| {
        files.push(Arc::clone(&opened));
        files.len() - 1
    });
    match storage {
        Storage::Sparse => {
            let (sparse, _) = sparse::open(&opened, index)?;
            if sparse.length < extent.sectors.saturating_mul(SECTOR_BYTES) {
                return Err(damaged(&*opened, 0, "it is shorter than its descriptor states"));
            }
            Ok(Content::Sparse(Box::new(sparse)))
        }
        _ => {
            let at = extent.offset.checked_mul(SECTOR_BYTES);
            let at = at.ok_or_else(|| damaged(&**file, 0, "an extent has an impossible offset"))?;
            Ok(Content::Flat { file: index, at })
        }
    }
}

fn finish(
    file: &Arc<dyn Source>,
    length: u64,
    parts: Vec<Part>,
    files: Vec<Arc<dyn Source>>,
    descriptor: &Descriptor,
    around: &Around<'_>,
) -> Result<Disk<Vmdk>> {
    let parent = match descriptor.parent_id {
        None => None,
        Some(id) => Some(parent(file, id, descriptor, around)?),
    };
    let packed = parts.iter().filter_map(|part| match &part.content {
        Content::Sparse(sparse) if sparse.is_packed => Some(sparse.grain_bytes as usize),
        _ => None,
    });
    let packed = packed.max();
    let layout = Vmdk { parts };
    let disk = match packed {
        Some(block_bytes) => Disk::packed(file.name(), length, layout, files, block_bytes),
        None => Disk::stored(file.name(), length, layout, files),
    };
    Ok(disk.over(parent))
}

/// Opens the parent, and checks that it was not modified since.
fn parent(
    file: &Arc<dyn Source>,
    id: u32,
    descriptor: &Descriptor,
    around: &Around<'_>,
) -> Result<Arc<dyn Source>> {
    let Some(name) = &descriptor.parent_name else {
        return Err(refused(&**file, "is based on another disk, and does not name it"));
    };
    let parent = around.file(&**file, name, "parent")?;
    let found = descriptor_of(&parent)?.map(|descriptor| descriptor.id);
    if found.is_some_and(|found| found != id) {
        let reason = format!(
            "is based on another disk than {}, or one that was modified since (its CID is {:08x}, and \
             must be {id:08x}); put the one that it was made for beside it",
            shown(parent.name()),
            found.unwrap_or_default()
        );
        return Err(refused(&**file, reason));
    }
    around.disk(&**file, parent)
}

/// The descriptor of an image, if it has one.
fn descriptor_of(file: &Arc<dyn Source>) -> Result<Option<Descriptor>> {
    let mut head = [0; 4];
    match read_full_at(&**file, 0, &mut head).map(|read| &head[..read]) {
        Ok(b"KDMV" | b"COWD") => sparse::open(file, 0).map(|(_, descriptor)| descriptor),
        Ok(b"# Di") => Descriptor::read(&**file, 0, file.length()).map(Some),
        _ => Ok(None),
    }
}

/// The locations of an image's extents.
pub(crate) struct Vmdk {
    /// End to end, starting at 0.
    parts: Vec<Part>,
}

struct Part {
    start: u64,
    end: u64,
    content: Content,
}

enum Content {
    Zeros,
    Flat { file: usize, at: u64 },
    Sparse(Box<Sparse>),
}

impl Vmdk {
    fn part(&self, offset: u64) -> io::Result<(usize, &Part)> {
        let index = self.parts.partition_point(|part| part.end <= offset);
        let part = self.parts.get(index);
        part.map(|part| (index, part)).ok_or_else(|| invalid("it is after the last extent"))
    }
}

impl Layout for Vmdk {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (_, part) = self.part(offset)?;
        let (within, left) = (offset - part.start, part.end - offset);
        let mut run = match &part.content {
            Content::Zeros => Run { bytes: left, place: Place::Zeros },
            Content::Flat { file, at } => {
                let at =
                    at.checked_add(within).ok_or_else(|| invalid("its offset is impossible"))?;
                Run { bytes: left, place: Place::Stored { file: *file, at } }
            }
            Content::Sparse(sparse) => sparse.run(within)?,
        };
        run.bytes = run.bytes.min(left);
        if let Place::Packed { key, start, .. } = &mut run.place {
            // Key by the offset on the disk: offsets in the extent files are not unique.
            *start += part.start;
            *key = *start;
        }
        Ok(run)
    }

    fn unpack(&self, key: u64, block: &mut [u8]) -> io::Result<()> {
        let (_, part) = self.part(key)?;
        match &part.content {
            Content::Sparse(sparse) => sparse.unpack(key - part.start, block),
            Content::Zeros | Content::Flat { .. } => Err(invalid("nothing is compressed there")),
        }
    }
}
