//! Plans a run: uses the settings of the user, and chooses the rest.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::{AccessRate, Need, Rates};
use crate::error::{Error, Result};
use crate::parallel::available_workers;
use crate::region::{AlignedBuffer, AsData, PAGE_BYTES, Region};
use crate::source::Source;

/// How bytes reach memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Windows onto the page cache, or slices of memory, without a copy. Bytes that others may
    /// change are shown only with [`Pipeline::show_changing`].
    Window,
    /// Workers read with `pread` into their own buffers.
    Read,
    /// Readers fill buffers while workers work on others.
    Queue,
    /// One reader keeps many reads in flight through io_uring.
    Uring,
}

impl Access {
    /// Returns the name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Access::Window => "window",
            Access::Read => "read",
            Access::Queue => "queue",
            Access::Uring => "uring",
        }
    }
}

/// Allocates buffers: takes a size in bytes and returns a buffer of at least that size.
pub(super) type Memory<'a> = &'a (dyn Fn(usize) -> Option<AlignedBuffer> + Sync);

/// A run to start: a source and settings. The plan chooses settings left unset.
#[derive(Clone)]
pub struct Pipeline<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) workers: Option<usize>,
    pub(super) readers: Option<usize>,
    pub(super) buffers: Option<usize>,
    pub(super) buffer_bytes: Option<usize>,
    pub(super) access: Option<Access>,
    pub(super) promise: Option<AsData>,
    pub(super) range: Range<u64>,
    pub(super) ranges: Option<&'a [Range<u64>]>,
    pub(super) owned: Option<Range<u64>>,
    pub(super) rates: Option<Rates>,
    pub(super) stop: Option<&'a AtomicBool>,
    pub(super) memory: Option<Memory<'a>>,
}

/// The components of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How bytes reach memory.
    pub access: Access,
    /// Threads that only read.
    pub readers: usize,
    /// Threads that run the kernel.
    pub workers: usize,
    /// Maximum number of buffers or windows.
    pub buffers: usize,
    /// Maximum number of owned positions per chunk.
    pub buffer_bytes: usize,
    /// The reason for this access.
    pub reason: &'static str,
    /// The measured rate that determined readers and buffers, and where it was measured.
    pub by: Option<(AccessRate, String)>,
}

/// The maximum number of bytes that a buffer owns, so that indexes within a chunk fit 32 bits.
const BUFFER_BYTES_MAX: usize = 1 << 30;
/// The maximum number of buffers or windows.
const BUFFERS_MAX: usize = 4096;
/// The largest window: large enough that the cost of mapping is negligible, and small enough that a
/// few of them fit on any machine. (1 GiB in the page cache, 2 threads, Zen 4: windows of 1 MiB 16
/// GB/s, 4 MiB 30, 16 MiB 32, the whole file mapped at once 31.)
const WINDOW_BYTES: usize = 16 << 20;
/// The default size of a read buffer: the fastest of 64 KiB to 64 MiB for page-cached files.
const BUFFER_BYTES: usize = 1 << 20;

/// The reason for copying data that is in memory already.
const CHANGING: &str = "others may change the source while it is read";

impl<'a> Pipeline<'a> {
    /// Creates a run over the whole of `source`.
    pub fn new(source: &'a dyn Source) -> Self {
        Pipeline {
            source,
            workers: None,
            readers: None,
            buffers: None,
            buffer_bytes: None,
            access: None,
            promise: None,
            range: 0..source.length(),
            ranges: None,
            owned: None,
            rates: None,
            stop: None,
            memory: None,
        }
    }

    /// Sets the number of threads that run the kernel; 0: one per CPU, the default.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = (workers > 0).then_some(workers);
        self
    }

    /// Sets the number of threads that only read ([`Access::Queue`]); 0: planned.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = (readers > 0).then_some(readers);
        self
    }

    /// Sets the maximum number of buffers or windows; 0: planned.
    #[must_use]
    pub fn buffers(mut self, buffers: usize) -> Self {
        self.buffers = (buffers > 0).then_some(buffers);
        self
    }

    /// Sets the maximum number of positions that a chunk owns, in bytes; 0: planned.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = (bytes > 0).then_some(bytes);
        self
    }

    /// Sets how bytes reach memory.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    /// Lets kernel and sink see, in place, bytes that others may change: pages of a file, an array
    /// of another thread. Both must tolerate changes, see [`AsData`]. By default they see copies.
    #[must_use]
    pub fn show_changing(mut self, promise: AsData) -> Self {
        self.promise = Some(promise);
        self
    }

    /// Searches `range` as if it were the whole source.
    #[must_use]
    pub fn range(mut self, range: Range<u64>) -> Self {
        self.range = range;
        self
    }

    /// Searches only `ranges`, which must be sorted and disjoint, each as if it were a whole
    /// source. Results come in the order of the source.
    #[must_use]
    pub fn ranges(mut self, ranges: &'a [Range<u64>]) -> Self {
        self.ranges = Some(ranges);
        self
    }

    /// Works only on the positions in `owned`. Kernel and sink still see the bytes around them, as
    /// far as the searched range has them.
    #[must_use]
    pub fn owning(mut self, owned: Range<u64>) -> Self {
        self.owned = Some(owned);
        self
    }

    /// Sets the measured rates of the source. A run that must fetch its bytes uses the best of
    /// these combinations, unless readers, buffers or sizes are set.
    #[must_use]
    pub fn rates(mut self, rates: Rates) -> Self {
        self.rates = Some(rates);
        self
    }

    /// Ends the run early when the flag becomes true, keeping the results until then.
    #[must_use]
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Takes buffers from `memory`, which receives a size in bytes, or from the pipeline itself if
    /// `memory` returns `None`. Windows need no buffers.
    #[must_use]
    pub fn memory(mut self, memory: &'a (dyn Fn(usize) -> Option<AlignedBuffer> + Sync)) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Returns the plan for a run with this need.
    ///
    /// # Errors
    /// [`Error::BadPlan`] if a setting cannot be met.
    pub fn plan(&self, need: Need) -> Result<Plan> {
        let workers = self.workers.unwrap_or_else(available_workers);
        if workers > 4096 {
            return Err(Error::BadPlan(format!("{workers} workers are too many; 4096 at most")));
        }
        let owned_bytes = |range: &Range<u64>| {
            let owned = self.owned_within(range);
            owned.end.saturating_sub(owned.start)
        };
        let length = match self.ranges {
            Some(ranges) => ranges.iter().map(owned_bytes).sum(),
            None => owned_bytes(&self.range),
        };
        let resident = self.source.is_resident();
        let (access, reason) = match self.access {
            Some(Access::Window) if !self.may_show() => (Access::Read, CHANGING),
            Some(access) => (access, "requested"),
            None if self.readers.is_some() => (Access::Queue, "readers were requested"),
            None if resident && !self.may_show() => (Access::Read, CHANGING),
            None if resident => (Access::Window, "the source is in memory or page cache"),
            None if self.source.is_packed() => {
                (Access::Read, "the source must be decompressed, which each worker does for itself")
            }
            None => (Access::Queue, "the source must be fetched, so readers run ahead"),
        };
        let by = self.asked(access);
        let in_flight = by.as_ref().map(|(asked, _)| asked.with_room());
        let readers = match access {
            Access::Queue => self.readers.or(in_flight).unwrap_or(2),
            Access::Uring => 1,
            Access::Window | Access::Read => 0,
        };
        if readers > 4096 {
            return Err(Error::BadPlan(format!("{readers} readers are too many; 4096 at most")));
        }
        let default_bytes = match access {
            Access::Window => WINDOW_BYTES,
            _ => by.as_ref().map_or(BUFFER_BYTES, |(asked, _)| asked.block_bytes),
        };
        // Divide even a small source among the workers.
        let share = (length / (16 * workers as u64)).min(default_bytes as u64) as usize;
        let share = (share & !(64 * 1024 - 1)).max(64 * 1024);
        let buffer_bytes = self.buffer_bytes.unwrap_or(share);
        if buffer_bytes > BUFFER_BYTES_MAX {
            return Err(Error::BadPlan(format!(
                "a buffer of {buffer_bytes} bytes is too large; {BUFFER_BYTES_MAX} at most"
            )));
        }
        if need.before_bytes.saturating_add(need.after_bytes) > BUFFER_BYTES_MAX {
            return Err(Error::BadPlan(format!(
                "{} bytes before and {} after a position are too much context; {BUFFER_BYTES_MAX} \
                 at most together",
                need.before_bytes, need.after_bytes
            )));
        }
        let chosen = match access {
            Access::Window | Access::Read => workers + 2,
            Access::Queue => workers + 2 * readers + 2,
            Access::Uring => workers + in_flight.unwrap_or(16),
        };
        // Fewer buffers than workers are fine: workers without one wait.
        let fit = match access {
            Access::Window => BUFFERS_MAX as u64,
            _ => (memory_bytes() / 2 / buffer_bytes as u64).clamp(2, BUFFERS_MAX as u64),
        };
        let buffers = self.buffers.unwrap_or(chosen.min(fit as usize));
        if buffers > BUFFERS_MAX {
            return Err(Error::BadPlan(format!(
                "{buffers} buffers are too many; {BUFFERS_MAX} at most"
            )));
        }
        let together = buffers as u64 * buffer_bytes as u64;
        if access != Access::Window && together > memory_bytes() / 2 {
            return Err(Error::BadPlan(format!(
                "{buffers} buffers of {buffer_bytes} bytes are more than half of the memory; \
                 request fewer or smaller ones"
            )));
        }
        Ok(Plan { access, readers, workers, buffers, buffer_bytes, reason, by })
    }

    /// The owned positions within a part of the range.
    pub(super) fn owned_within(&self, part: &Range<u64>) -> Range<u64> {
        match &self.owned {
            None => part.clone(),
            Some(owned) => {
                let start = owned.start.max(part.start).min(part.end);
                start..owned.end.min(part.end).max(start)
            }
        }
    }

    /// Whether windows of the source may be shown, if it has any.
    fn may_show(&self) -> bool {
        let first = || self.source.window(0..self.source.length().min(1));
        let is_changing = || matches!(first(), Some(Ok(Region::Changing(_) | Region::Window(_))));
        self.promise.is_some() || !is_changing()
    }

    /// Returns the fastest measured combination, if the run issues reads.
    fn asked(&self, access: Access) -> Option<(AccessRate, String)> {
        if !matches!(access, Access::Queue | Access::Uring) {
            return None;
        }
        let rates = self.rates.as_ref()?;
        Some((rates.best()?, rates.of.clone()))
    }
}

/// Returns the machine's memory in bytes.
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit).max(1))
}

impl std::fmt::Display for Plan {
    /// Writes one line: the components of the run, and why.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let access = self.access.name();
        write!(f, "{access} ({}), {} workers, ", self.reason, self.workers)?;
        if self.readers > 0 {
            write!(f, "{} readers, ", self.readers)?;
        }
        write!(f, "{} buffers of {} KiB", self.buffers, self.buffer_bytes / 1024)?;
        if let Some((asked, of)) = &self.by {
            let AccessRate { block_bytes, in_flight, bytes_per_second } = asked;
            let rate = bytes_per_second / 1e6;
            let kib = block_bytes / 1024;
            write!(f, ": {of} gave {rate:.0} MB/s with {in_flight} requests of {kib} KiB at once")?;
        }
        Ok(())
    }
}

impl Plan {
    /// Returns the size of a buffer: the owned bytes and their context, as far as a source of
    /// `length` bytes has them, in whole pages.
    pub(super) fn capacity_bytes(&self, need: Need, length: u64) -> usize {
        let wanted = self.buffer_bytes + need.before_bytes + need.after_bytes;
        let present = usize::try_from(length).unwrap_or(usize::MAX);
        (wanted.min(present) + 2 * PAGE_BYTES).next_multiple_of(PAGE_BYTES)
    }
}
