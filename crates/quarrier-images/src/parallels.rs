//! Expanding Parallels disks (`.hds`): a table with the location of each cluster.

use std::io;
use std::sync::Arc;

use quarrier_core::Result;
use quarrier_core::source::Source;

use crate::bytes::{u32_le, u64_le};
use crate::disk::{Disk, Layout, Place, Run, SECTOR_BYTES};
use crate::fault::{damaged, invalid, structure};
use crate::tables::Tables;

const HEADER_BYTES: u64 = 64;
const CLUSTER_SECTORS_MAX: u64 = 1 << 17;

/// The locations of an image's clusters.
pub(crate) struct Parallels {
    tables: Tables,
    clusters: u64,
    cluster_bytes: u64,
    /// The unit of table entries.
    unit_bytes: u64,
    file_bytes: u64,
}

/// Opens an image.
pub(crate) fn open(file: &Arc<dyn Source>) -> Result<Disk<Parallels>> {
    let header = structure(&**file, 0, HEADER_BYTES, "the header")?;
    let sectors_each = u64::from(u32_le(&header, 28));
    let clusters = u64::from(u32_le(&header, 32));
    // The first version stores the sector count in 32 bits, followed by undefined bytes.
    let is_large = header.starts_with(b"WithouFreSpacExt");
    let sectors = if is_large { u64_le(&header, 36) } else { u64::from(u32_le(&header, 36)) };
    let length = sectors.checked_mul(SECTOR_BYTES).filter(|&length| length <= i64::MAX as u64);
    let is_cluster = (1..=CLUSTER_SECTORS_MAX).contains(&sectors_each);
    let Some(length) = length.filter(|_| u32_le(&header, 16) == 2 && is_cluster) else {
        return Err(damaged(&**file, 16, "the header has impossible values"));
    };
    let cluster_bytes = sectors_each * SECTOR_BYTES;
    if length.div_ceil(cluster_bytes) > clusters {
        return Err(damaged(&**file, 32, "the table of clusters is shorter than the disk"));
    }
    if HEADER_BYTES + clusters * 4 > file.length() {
        return Err(damaged(&**file, 64, "the table of clusters lies beyond the end of the file"));
    }
    let layout = Parallels {
        tables: Tables::new(Arc::clone(file)),
        clusters,
        cluster_bytes,
        unit_bytes: if is_large { cluster_bytes } else { SECTOR_BYTES },
        file_bytes: file.length(),
    };
    Ok(Disk::stored(file.name(), length, layout, vec![Arc::clone(file)]))
}

impl Layout for Parallels {
    fn run(&self, offset: u64) -> io::Result<Run> {
        let (index, within) = (offset / self.cluster_bytes, offset % self.cluster_bytes);
        let entries = self.tables.entries(HEADER_BYTES + index * 4, 4)?;
        let left = (self.clusters - index) as usize;
        let mut places = entries
            .chunks_exact(4)
            .take(left)
            .map(|entry| u64::from(u32_le(entry, 0)) * self.unit_bytes);
        let first = places.next().unwrap_or(0);
        if first >= self.file_bytes {
            return Err(invalid(format!("cluster {index} lies beyond the end, at byte {first}")));
        }
        let step = if first == 0 { 0 } else { self.cluster_bytes };
        let mut next = first;
        let more = places.take_while(|&place| {
            next += step;
            place == next
        });
        let bytes = (1 + more.count() as u64) * self.cluster_bytes - within;
        let place = match first {
            0 => Place::Zeros,
            at => Place::Stored { file: 0, at: at + within },
        };
        Ok(Run { bytes, place })
    }
}
