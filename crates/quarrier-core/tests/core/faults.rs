//! Sources that misbehave, each in one way.
//!
//! None of them has windows or a descriptor, so every kind of access must read them.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quarrier_core::source::Source;

const EINTR: i32 = 4;
const EIO: i32 = 5;
const ENODEV: i32 = 19;

/// Copies the bytes at `offset`, as many as fit.
fn copy_at(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> usize {
    let from = usize::try_from(offset).unwrap().min(bytes.len());
    let count = buffer.len().min(bytes.len() - from);
    buffer[..count].copy_from_slice(&bytes[from..from + count]);
    count
}

/// A disk with bad sectors: any read that touches one fails with EIO.
pub(crate) struct FailingSource {
    bytes: Vec<u8>,
    sector_bytes: usize,
    bad_sectors: Vec<u64>,
}

impl FailingSource {
    pub(crate) fn new(bytes: Vec<u8>, sector_bytes: usize, bad_sectors: &[u64]) -> Self {
        FailingSource { bytes, sector_bytes, bad_sectors: bad_sectors.to_vec() }
    }
}

impl Source for FailingSource {
    fn name(&self) -> &str {
        "failing"
    }
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let sector = self.sector_bytes as u64;
        let asked = offset..offset + buffer.len() as u64;
        let is_bad = |&bad: &u64| bad * sector < asked.end && asked.start < (bad + 1) * sector;
        if self.bad_sectors.iter().any(is_bad) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        Ok(copy_at(&self.bytes, offset, buffer))
    }
    fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }
}

/// A device that is unplugged after some reads: from then on every read fails with ENODEV.
pub(crate) struct GoneSource {
    bytes: Vec<u8>,
    reads_left: AtomicU64,
    kind: Option<io::ErrorKind>,
}

impl GoneSource {
    pub(crate) fn new(bytes: Vec<u8>, after_reads: u64) -> Self {
        GoneSource { bytes, reads_left: AtomicU64::new(after_reads), kind: None }
    }

    /// Makes a source other than a file of the system, which reports its disappearance by the kind
    /// of its error.
    pub(crate) fn saying(self, kind: io::ErrorKind) -> Self {
        GoneSource { kind: Some(kind), ..self }
    }
}

impl Source for GoneSource {
    fn name(&self) -> &str {
        "gone"
    }
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let less_one = |left: u64| left.checked_sub(1);
        if self.reads_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less_one).is_err() {
            return Err(match self.kind {
                Some(kind) => kind.into(),
                None => io::Error::from_raw_os_error(ENODEV),
            });
        }
        Ok(copy_at(&self.bytes, offset, buffer))
    }
}

/// Returns at most `bytes_max` bytes a read, as pipes and network file systems do.
pub(crate) struct ShortReadSource {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl ShortReadSource {
    pub(crate) fn new(bytes: Vec<u8>, bytes_max: usize) -> Self {
        ShortReadSource { bytes, bytes_max }
    }
}

impl Source for ShortReadSource {
    fn name(&self) -> &str {
        "short reads"
    }
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.bytes_max);
        Ok(copy_at(&self.bytes, offset, &mut buffer[..count]))
    }
}

/// Reads slowly: `delay` returns how long the read at an offset takes.
pub(crate) struct SlowSource<D> {
    bytes: Vec<u8>,
    delay: D,
}

impl<D: Fn(u64) -> Duration + Send + Sync> SlowSource<D> {
    pub(crate) fn new(bytes: Vec<u8>, delay: D) -> Self {
        SlowSource { bytes, delay }
    }
}

impl<D: Fn(u64) -> Duration + Send + Sync> Source for SlowSource<D> {
    fn name(&self) -> &str {
        "slow"
    }
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::thread::sleep((self.delay)(offset));
        Ok(copy_at(&self.bytes, offset, buffer))
    }
}

/// Ends before the length that it had when it was opened.
pub(crate) struct ShrinkingSource {
    bytes: Vec<u8>,
    opened_bytes: u64,
}

impl ShrinkingSource {
    pub(crate) fn new(mut bytes: Vec<u8>, ends_at: usize) -> Self {
        let opened_bytes = bytes.len() as u64;
        bytes.truncate(ends_at);
        ShrinkingSource { bytes, opened_bytes }
    }
}

impl Source for ShrinkingSource {
    fn name(&self) -> &str {
        "shrinking"
    }
    fn length(&self) -> u64 {
        self.opened_bytes
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(copy_at(&self.bytes, offset, buffer))
    }
}

/// Data in some extents and holes elsewhere; counts the bytes read.
pub(crate) struct SparseSource {
    bytes: Vec<u8>,
    extents: Vec<Range<u64>>,
    fetched_bytes: AtomicU64,
}

impl SparseSource {
    /// Keeps the part of `bytes` within `extents`, which are sorted and disjoint.
    pub(crate) fn new(mut bytes: Vec<u8>, extents: &[Range<u64>]) -> Self {
        let mut hole_start = 0;
        for extent in extents {
            bytes[hole_start..extent.start as usize].fill(0);
            hole_start = extent.end as usize;
        }
        bytes[hole_start..].fill(0);
        SparseSource { bytes, extents: extents.to_vec(), fetched_bytes: AtomicU64::new(0) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.fetched_bytes.load(Ordering::SeqCst)
    }
}

impl Source for SparseSource {
    fn name(&self) -> &str {
        "sparse"
    }
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = copy_at(&self.bytes, offset, buffer);
        self.fetched_bytes.fetch_add(count as u64, Ordering::SeqCst);
        Ok(count)
    }
    fn next_data(&self, offset: u64) -> io::Result<Option<Range<u64>>> {
        let extent = self.extents.iter().find(|extent| extent.end > offset);
        Ok(extent.map(|extent| extent.start.max(offset)..extent.end))
    }
}

/// Is interrupted by a signal (EINTR) at every second read.
pub(crate) struct InterruptedSource {
    bytes: Vec<u8>,
    reads: AtomicU64,
}

impl InterruptedSource {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        InterruptedSource { bytes, reads: AtomicU64::new(0) }
    }
}

impl Source for InterruptedSource {
    fn name(&self) -> &str {
        "interrupted"
    }
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.reads.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return Err(io::Error::from_raw_os_error(EINTR));
        }
        Ok(copy_at(&self.bytes, offset, buffer))
    }
}
