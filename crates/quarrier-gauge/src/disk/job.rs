//! Jobs on the trial file.

use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};

use super::content::SECTOR_BYTES;
use super::room::TrialFile;

/// Maximum memory for the buffers of one measurement, in bytes.
const BUFFERS_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of requests that one thread keeps in flight.
const DEPTH_MAX: usize = 1024;

/// The order of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In order; each thread has a part of the file.
    Sequential,
    /// Each block once, in random order, and again; each thread has a part of the file.
    Random,
}

impl Order {
    /// The value of a reading's parameter.
    pub(super) fn name(self) -> &'static str {
        match self {
            Order::Sequential => "sequential",
            Order::Random => "random",
        }
    }
}

/// The operation on a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Reads it and compares it with the written bytes.
    Read,
    /// Writes it. Through the page cache, each block is written at most once, and is on disk
    /// (`fdatasync`) before the time ends. Some of the last blocks are read back and compared,
    /// outside the measured time.
    Write,
}

/// The cache between the disk and the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// None: `O_DIRECT`, through io_uring.
    Direct,
    /// The page cache, emptied of this file before each run of reads.
    Cold,
    /// The page cache, which holds the file.
    Warm,
}

/// One way of using a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The order of the blocks.
    pub order: Order,
    /// The operation on each block.
    pub action: Action,
    /// The cache between the disk and the buffers.
    pub cache: Cache,
    /// The size of a block in bytes.
    pub block_bytes: usize,
    /// Requests that each thread keeps in flight; more than one only with [`Cache::Direct`].
    pub depth: usize,
    /// The number of threads.
    pub threads: usize,
    /// `None`: the next request starts when one ends (closed loop), and the value is a rate.
    /// Otherwise this many requests fall due per second, whether or not earlier ones have ended,
    /// and the value is the median time since a request fell due, so that it includes waiting.
    pub offered_per_second: Option<f64>,
}

impl Job {
    /// Creates a job that reads blocks of `block_bytes` in a closed loop: one thread, one request at a
    /// time, direct.
    pub fn read(order: Order, block_bytes: usize) -> Job {
        Job {
            order,
            action: Action::Read,
            cache: Cache::Direct,
            block_bytes,
            depth: 1,
            threads: 1,
            offered_per_second: None,
        }
    }

    /// Creates a job that writes, otherwise like [`Job::read`].
    pub fn write(order: Order, block_bytes: usize) -> Job {
        Job { action: Action::Write, ..Job::read(order, block_bytes) }
    }

    /// Returns an error for a job that cannot be measured.
    pub(super) fn verify(&self, file: &TrialFile) -> Result<()> {
        let refuse = |text: String| Err(Error::BadRequest(text));
        if self.block_bytes == 0 || self.threads == 0 || self.depth == 0 {
            return refuse("block size, threads and depth must be at least 1".to_owned());
        }
        if self.block_bytes > SECTOR_BYTES && !self.block_bytes.is_multiple_of(SECTOR_BYTES) {
            return refuse(format!(
                "blocks of {} bytes: above {SECTOR_BYTES}, use a multiple of it",
                self.block_bytes
            ));
        }
        if self.cache != Cache::Direct && (self.depth > 1 || self.offered_per_second.is_some()) {
            return refuse("a depth above 1 needs direct requests; use threads".to_owned());
        }
        if self.cache == Cache::Direct && self.block_bytes < SECTOR_BYTES {
            return refuse(format!("direct blocks must have {SECTOR_BYTES} bytes or more"));
        }
        if self.offered_per_second.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) {
            return refuse(
                "the offered rate must be above 0 and at most 10^8 requests a second".to_owned(),
            );
        }
        let under_way = (self.block_bytes as u64)
            .saturating_mul(self.threads as u64)
            .saturating_mul(self.depth as u64);
        if self.depth > DEPTH_MAX || under_way > BUFFERS_BYTES_MAX {
            return refuse(format!(
                "{under_way} bytes in flight: at most {BUFFERS_BYTES_MAX}, and {DEPTH_MAX} requests"
            ));
        }
        if under_way > file.bytes() {
            return refuse(format!(
                "the trial file has {} bytes, and {under_way} are read or written at a time: make \
                 it larger",
                file.bytes()
            ));
        }
        Ok(())
    }

    /// Makes the subject of the reading.
    pub(super) fn subject(&self) -> Subject {
        let unit = match (self.offered_per_second, self.order) {
            (Some(_), _) => Unit::Seconds,
            (None, Order::Sequential) => Unit::BytesPerSecond,
            (None, Order::Random) => Unit::OpPerSecond,
        };
        let name = match (self.order, self.action, self.offered_per_second) {
            (Order::Sequential, Action::Read, None) => "sequential read",
            (Order::Sequential, Action::Write, None) => "sequential write",
            (Order::Random, Action::Read, None) => "random read",
            (Order::Random, Action::Write, None) => "random write",
            (Order::Sequential, Action::Read, _) => "sequential read latency",
            (Order::Sequential, Action::Write, _) => "sequential write latency",
            (Order::Random, Action::Read, _) => "random read latency",
            (Order::Random, Action::Write, _) => "random write latency",
        };
        let parameters = Parameters::new()
            .with("block_bytes", self.block_bytes)
            .with("access", self.order.name())
            .with("depth", self.depth)
            .with("threads", self.threads)
            .with("cache", self.cache_name());
        let parameters = match self.offered_per_second {
            None => parameters.with("load", "closed loop"),
            Some(rate) => parameters.with("load", "offered").with("offered_per_second", rate),
        };
        Subject::new(Area::Disk, name, parameters, unit)
    }

    /// Writes through the page cache are neither cold nor warm.
    fn cache_name(&self) -> &'static str {
        match (self.cache, self.action) {
            (Cache::Direct, _) => "direct",
            (_, Action::Write) => "buffered",
            (Cache::Cold, Action::Read) => "cold",
            (Cache::Warm, Action::Read) => "warm",
        }
    }
}

impl Cache {
    /// Parses the parameter's value; writes are `buffered` or `direct`.
    pub fn of(name: &str) -> Option<Cache> {
        match name {
            "direct" => Some(Cache::Direct),
            "cold" | "buffered" => Some(Cache::Cold),
            "warm" => Some(Cache::Warm),
            _ => None,
        }
    }
}
