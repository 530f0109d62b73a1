//! One partition of a source: `disk.img#2`.

use std::io;
use std::ops::Range;

use quarrier_core::region::Region;
use quarrier_core::source::Source;
use quarrier_files::partitions;

use crate::{Error, Result};

/// The bytes of a partition, with offsets from its start.
pub(super) struct PartitionSource<S> {
    name: String,
    disk: S,
    span: Range<u64>,
}

impl<S: Source> PartitionSource<S> {
    /// Opens the partition `number` of a disk, counted from 1 in the order of offsets.
    ///
    /// # Errors
    /// [`Error::Files`] if the partition table cannot be read; [`Error::Unsupported`] if the disk has
    /// no such partition.
    pub(super) fn open(disk: S, number: u32) -> Result<Self> {
        let found = partitions::find(&disk)?.partitions;
        let Some(partition) = found.iter().find(|partition| partition.number == number) else {
            let reason = match found.len() {
                0 => format!("has no partition table, so there is no #{number}"),
                count => format!("has {count} partitions, so there is no #{number}"),
            };
            return Err(Error::Unsupported { name: disk.name().to_string(), reason });
        };
        let name = format!("{}#{number}", disk.name());
        Ok(PartitionSource { name, span: partition.span.clone(), disk })
    }
}

impl<S: Source> Source for PartitionSource<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.span.end - self.span.start
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length().saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        if count == 0 {
            return Ok(0);
        }
        self.disk.read_at(self.span.start + offset, &mut buffer[..count])
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        if offset >= self.length() {
            return Ok(None);
        }
        let Some(data) = self.disk.next_data(self.span.start + offset)? else { return Ok(None) };
        let Range { start, end } = self.span;
        let (from, to) = (data.start.max(start + offset), data.end.min(end));
        Ok((from < to).then(|| from - start..to - start))
    }

    fn readable_end(&self) -> u64 {
        let Range { start, end } = self.span;
        self.disk.readable_end().clamp(start, end) - start
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        let start = self.span.start;
        (range.end <= self.length())
            .then(|| self.disk.window(start + range.start..start + range.end))?
    }

    fn next_window(&self, range: Range<u64>, bytes_min: u64) -> Option<Range<u64>> {
        let start = self.span.start;
        let end = range.end.min(self.length());
        let window = (range.start < end)
            .then(|| self.disk.next_window(start + range.start..start + end, bytes_min))??;
        Some(window.start - start..window.end - start)
    }

    fn is_resident(&self) -> bool {
        self.disk.is_resident()
    }

    fn is_packed(&self) -> bool {
        self.disk.is_packed()
    }

    fn sector_bytes(&self) -> usize {
        self.disk.sector_bytes()
    }
}
