//! QCOW2, versions 2 and 3: QEMU disks.
//!
//! ```text
//!  offset ─→ L1 (in the file) ─→ L2, a cluster of entries ─→ a cluster: stored, packed, zeros, the parent's
//! ```
//!
//! *QEMU, docs/interop/qcow2.rst*. Clusters that only snapshots use are not in the active tables.

mod header;

use std::io;
use std::sync::{Arc, Mutex};

use quarrier_core::Result;
use quarrier_core::source::{Source, read_full_at};
use quarrier_core::sync::lock;

use crate::around::Around;
use crate::bytes::u64_be;
use crate::disk::{Disk, Layout, Place, Run};
use crate::fault::{invalid, refused};
use crate::tables::Tables;
use crate::unpack::Unpacker;
use header::{Compression, Header};

const OFFSET: u64 = 0x00FF_FFFF_FFFF_FE00;
const IS_PACKED: u64 = 1 << 62;
const IS_ZERO: u64 = 1;
/// Subclusters of a cluster, with extended L2 entries.
const SUBCLUSTERS: u64 = 32;

/// Opens an image and its chain of backing files.
pub(crate) fn open(file: &Arc<dyn Source>, around: &Around<'_>) -> Result<Disk<Qcow2>> {
    let header = Header::read(&**file)?;
    let parent = match &header.backing {
        None => None,
        Some(backing) if backing.name.contains(':') => {
            let name = crate::around::shown(&backing.name);
            let reason = format!(
                "is based on '{name}', which is not a file; write the whole disk with \
                 qemu-img convert -O raw, and search that"
            );
            return Err(refused(&**file, reason));
        }
        // A backing file declared as raw is not probed: a guest may have written bytes that look like
        // an image.
        Some(backing) if backing.format.as_deref() == Some("raw") => {
            Some(around.file(&**file, &backing.name, "backing file")?)
        }
        Some(backing) => Some(around.parent(&**file, &backing.name, "backing file")?),
    };
    let tables = Tables::new(Arc::clone(file));
    let (name, length, cluster_bytes) =
        (file.name().to_string(), header.length, header.cluster_bytes());
    let layout = Qcow2 { file: Arc::clone(file), header, tables, unpackers: Mutex::default() };
    let files = vec![Arc::clone(file)];
    let disk = match layout.may_be_packed() {
        true => Disk::packed(&name, length, layout, files, cluster_bytes as usize),
        false => Disk::stored(&name, length, layout, files),
    };
    Ok(disk.over(parent))
}

/// The locations of an image's clusters.
pub(crate) struct Qcow2 {
    file: Arc<dyn Source>,
    header: Header,
    tables: Tables,
    /// At most one per concurrent reader. 73-
    unpackers: Mutex<Vec<Unpacker>>,
}

/// Decodes an entry for a cluster, or for several that follow each other.
impl Qcow2 {
    /// Whether one of the first clusters is compressed: tools compress either all clusters or none.
    fn may_be_packed(&self) -> bool {
        const LOOKED_AT: usize = 256;
        let mut offset = 0;
        for _ in 0..LOOKED_AT {
            let Some(run) = (offset < self.header.length).then(|| self.run(offset)) else { break };
            match run {
                Ok(Run { place: Place::Packed { .. }, .. }) => return true,
                Ok(run) => offset += run.bytes,
                Err(_) => break,
            }
        }
        false
    }

    /// The number of bytes from `offset` on without an L2 table; if 0, the offset of the table.
    fn without_table(&self, offset: u64) -> io::Result<(u64, u64)> {
        let covered = self.header.covered_by_table();
        let mut index = offset / covered;
        let last = self.header.l1_entries;
        let mut end = offset;
        while index < last {
            let entries = self.tables.entries(self.header.l1_at + index * 8, 8)?;
            for entry in entries.chunks_exact(8).take((last - index) as usize) {
                let table = u64_be(entry, 0) & OFFSET;
                if table != 0 {
                    return Ok((end - offset, table));
                }
                index += 1;
                end = (index * covered).min(self.header.length);
            }
        }
        Ok((end - offset, 0))
    }

    /// The run at `offset`, whose L2 table is at `table`.
    fn in_table(&self, offset: u64, table: u64) -> io::Result<Run> {
        let header = &self.header;
        let (cluster_bytes, entry_bytes) = (header.cluster_bytes(), header.entry_bytes());
        if !table.is_multiple_of(cluster_bytes) {
            return Err(invalid(format!("a table begins inside a cluster, at byte {table}")));
        }
        let index = offset % header.covered_by_table() / cluster_bytes;
        let within = offset % cluster_bytes;
        let at = table + index * entry_bytes;
        let entries = self.tables.entries(at, entry_bytes as usize)?;
        let left = (header.covered_by_table() / cluster_bytes - index) as usize;
        let mut entries = entries.chunks_exact(entry_bytes as usize).take(left);
        let first = entries.next().unwrap_or_default();
        let mut run = self.cluster(first, offset, within)?;
        if run.bytes < cluster_bytes - within {
            return Ok(run);
        }
        for entry in entries {
            let next_at = offset + run.bytes;
            match self.cluster(entry, next_at, 0) {
                Ok(next) if next.bytes == cluster_bytes && follows(&run, &next) => {
                    run.bytes += next.bytes
                }
                _ => break,
            }
        }
        Ok(run)
    }

    /// The location given by an L2 entry, from byte `within` of its cluster on, which is `offset` of
    /// the disk.
    fn cluster(&self, entry: &[u8], offset: u64, within: u64) -> io::Result<Run> {
        let header = &self.header;
        let cluster_bytes = header.cluster_bytes();
        let (word, bitmap) = (u64_be(entry, 0), u64_be(entry, 8));
        if word & IS_PACKED != 0 {
            let place = Place::Packed {
                key: word & !(3 << 62),
                start: offset - within,
                bytes: cluster_bytes as usize,
            };
            return Ok(Run { bytes: cluster_bytes - within, place });
        }
        let at = word & OFFSET;
        if !at.is_multiple_of(cluster_bytes) {
            return Err(invalid(format!("a cluster begins inside another, at byte {at}")));
        }
        if header.has_subclusters {
            return Ok(subclusters(at, bitmap, within, cluster_bytes));
        }
        let place = match at {
            _ if header.version >= 3 && word & IS_ZERO != 0 => Place::Zeros,
            0 => Place::Parent,
            at => Place::Stored { file: 0, at: at + within },
        };
        Ok(Run { bytes: cluster_bytes - within, place })
    }
}

/// The run of subclusters in the same state, from the bitmap of an extended L2 entry: allocation bits,
/// then 32 bits higher the zero bits.
fn subclusters(at: u64, bitmap: u64, within: u64, cluster_bytes: u64) -> Run {
    let part_bytes = cluster_bytes / SUBCLUSTERS;
    let kind = |part: u64| (bitmap >> part & 1, bitmap >> (part + SUBCLUSTERS) & 1);
    let first = within / part_bytes;
    let same = (first..SUBCLUSTERS).take_while(|&part| kind(part) == kind(first)).count() as u64;
    let place = match kind(first) {
        (_, 1) => Place::Zeros,
        (1, _) if at != 0 => Place::Stored { file: 0, at: at + within },
        _ => Place::Parent,
    };
    Run { bytes: (first + same) * part_bytes - within, place }
}

/// Whether `next` continues `run`, so that both can be merged.
fn follows(run: &Run, next: &Run) -> bool {
    match (run.place, next.place) {
        (Place::Stored { at, .. }, Place::Stored { at: next, .. }) => at + run.bytes == next,
        (Place::Packed { .. }, _) => false,
        (one, other) => one == other,
    }
}

impl Layout for Qcow2 {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (bytes, table) = self.without_table(offset)?;
        match bytes {
            0 if table == 0 => Err(invalid("the L1 table is shorter than the disk")),
            0 => self.in_table(offset, table),
            bytes => Ok(Run { bytes, place: Place::Parent }),
        }
    }

    fn unpack(&self, key: u64, block: &mut [u8]) -> io::Result<()> {
        let place_bits = 62 - (self.header.cluster_bits - 8);
        let at = key & ((1 << place_bits) - 1);
        let sectors = (key >> place_bits) + 1;
        let bytes = sectors * 512 - (at & 511);
        // The file may end within the last sector.
        let bytes = bytes.min(self.file.length().saturating_sub(at));
        let mut packed = vec![0; bytes as usize];
        let read = read_full_at(&*self.file, at, &mut packed)?;
        packed.truncate(read);
        let mut unpacker = lock(&self.unpackers).pop().unwrap_or_default();
        let done = match self.header.compression {
            Compression::Deflate => unpacker.deflate(&packed, block),
            Compression::Zstd => unpacker.zstd(&packed, block),
        };
        lock(&self.unpackers).push(unpacker);
        done.map_err(|error| {
            invalid(format!("a cluster is damaged (byte {at} of {}): {error}", self.file.name()))
        })
    }
}
