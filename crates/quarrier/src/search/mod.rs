//! Search: finds every occurrence of patterns in sources.
//!
//! ```text
//!  Search ──start(first place: its sample)──→ Running ──search(place)──→ chunks with findings
//!                 compiled set, devices                └──→ Searched: the run and its cost
//! ```

mod ahead;
mod device;
mod digest;
mod features;
mod histogram;
mod lists;
mod matched;
mod part;
mod running;

pub use ahead::{Ahead, AheadLoad, SmallFiles};
pub use features::Feature;
pub use histogram::{Frequency, HISTOGRAM_BYTES_MAX, Histogram};
pub use lists::{MatchList, MatchLists, read_matches};
pub use matched::{MATCH_BYTES_MAX, copy_match};
pub use part::Part;
pub use running::{Running, Searched, Watch};

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use quarrier_core::name;
use quarrier_core::pipeline::Access;
use quarrier_gpu::DeviceChoice;
use quarrier_search::{EngineName, Options, Pattern, parse_file_until};

use crate::source::Packed;
use crate::{Error, Machine, Place, Result, read_instructions};

/// A request: the patterns to search for, the bytes to search, and the means. Unset options are chosen
/// for the source and the machine.
///
/// ```
/// use std::ops::ControlFlow;
/// use quarrier::{Machine, Place, Search};
/// use quarrier_core::pipeline::Chunk;
/// use quarrier_core::source::Memory;
/// use quarrier_search::{Finding, Pattern};
///
/// let image = Memory::new("image", b"an invoice, another invoice".to_vec());
/// let place = Place::Local(&image);
/// let search = Search::new(vec![Pattern::literal("invoice")?]);
/// let machine = Machine::unknown();
/// let stop = false.into();
/// let mut running = search.start(&machine, Some(&place), &stop)?;
/// let mut offsets = Vec::new();
/// let mut take = |_: &Chunk<'_>, findings: &[Finding]| {
///     offsets.extend(findings.iter().map(|finding| finding.offset));
///     ControlFlow::Continue(())
/// };
/// running.search(place, &stop, &mut take)?;
/// assert_eq!(offsets, [3, 20]);
/// # Ok::<(), quarrier::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Search {
    patterns: Vec<Pattern>,
    /// The validator of each pattern's findings, if any pattern has one.
    judges: Vec<Option<features::Judge>>,
    options: Options,
    engine: EngineName,
    device: DeviceChoice,
    aligned_bytes: u64,
    context_bytes: usize,
    findings_max: u64,
    range: Range<u64>,
    starts: Range<u64>,
    unallocated: bool,
    lists: MatchLists,
    planning: Planning,
}

/// The setup of a run's pipeline. 0 and `None` mean automatic: planned for the source and the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planning {
    /// The number of worker threads.
    pub workers: usize,
    /// The number of threads that only read.
    pub readers: usize,
    /// The number of buffers or windows that exist at once.
    pub buffers: usize,
    /// The number of bytes that a buffer owns.
    pub buffer_bytes: usize,
    /// How bytes reach memory.
    pub access: Option<Access>,
    /// Whether local files were opened to bypass the page cache.
    pub direct: bool,
}

impl Search {
    /// Creates a search for `patterns` in whole sources.
    pub fn new(patterns: Vec<Pattern>) -> Self {
        Search {
            patterns,
            judges: Vec::new(),
            options: Options::default(),
            engine: EngineName::Auto,
            device: DeviceChoice::Cpu,
            aligned_bytes: 1,
            context_bytes: 0,
            findings_max: u64::MAX,
            range: 0..u64::MAX,
            starts: 0..u64::MAX,
            unallocated: false,
            lists: MatchLists::default(),
            planning: Planning::default(),
        }
    }

    /// Replaces all patterns, including those of features.
    pub fn with_patterns(mut self, patterns: Vec<Pattern>) -> Self {
        self.patterns = patterns;
        self.judges.clear();
        self
    }

    /// Adds built-in scanners to the patterns. Only their valid findings count.
    ///
    /// # Errors
    /// [`Error::Search`] for an invalid pattern.
    pub fn features(mut self, features: &[&'static Feature]) -> Result<Self> {
        for feature in features {
            self.judges.resize(self.patterns.len(), None);
            self.patterns.push(feature.pattern()?);
            self.judges.push(Some(feature.judge));
        }
        Ok(self)
    }

    /// Sets how patterns are matched: case, UTF-16, the maximum length of a regex match.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the engine for literals and hex patterns.
    pub fn engine(mut self, engine: EngineName) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the device. The default is the CPU; [`DeviceChoice::Auto`] uses a device if the machine's
    /// profile says that it is faster.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.device = device;
        self
    }

    /// Reports only findings at multiples of `bytes`, which must be at least 1.
    pub fn aligned(mut self, bytes: u64) -> Self {
        self.aligned_bytes = bytes.max(1);
        self
    }

    /// Sets the number of bytes around findings that the watcher sees in its chunks.
    pub fn context(mut self, bytes: usize) -> Self {
        self.context_bytes = bytes;
        self
    }

    /// Ends the search after this many findings, in all sources together.
    pub fn findings_max(mut self, findings: u64) -> Self {
        self.findings_max = findings;
        self
    }

    /// Searches only the bytes at these offsets, as if they were the whole source.
    pub fn range(mut self, range: Range<u64>) -> Self {
        self.range = range;
        self
    }

    /// Counts only findings that start in this range. They are still findings of the whole source,
    /// which makes a difference to regexes.
    pub fn starts(mut self, starts: Range<u64>) -> Self {
        self.starts = starts;
        self
    }

    /// Searches only the bytes outside of allocated files, each range as if it were the whole source; see
    /// [`Unallocated`](crate::files::Unallocated).
    pub fn unallocated(mut self, unallocated: bool) -> Self {
        self.unallocated = unallocated;
        self
    }

    /// Sets the stop list and the alert list of matches.
    pub fn lists(mut self, lists: MatchLists) -> Self {
        self.lists = lists;
        self
    }

    /// Configures the pipeline.
    pub fn planning(mut self, planning: Planning) -> Self {
        self.planning = planning;
        self
    }

    /// The same search, limited to some of its patterns, by index.
    pub fn only(&self, places: &[usize]) -> Self {
        let patterns = places.iter().map(|&place| self.patterns[place].clone()).collect();
        let of_place = |&place: &usize| self.judges.get(place).copied().flatten();
        let judges = match self.judges.is_empty() {
            true => Vec::new(),
            false => places.iter().map(of_place).collect(),
        };
        Search { patterns, judges, ..self.clone() }
    }

    /// The patterns, in order.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The offsets at which findings are searched for, as far as the source extends. For regexes and
    /// words they include offsets before [`starts`](Self::starts), which decide where a match begins. A
    /// search also reads the bytes around them that its patterns need.
    pub fn span(&self) -> Range<u64> {
        let looks_back = self.patterns.iter().any(Pattern::looks_back);
        let start = match looks_back {
            true => self.range.start,
            false => self.range.start.max(self.starts.start),
        };
        start..self.range.end.min(self.starts.end).max(start)
    }

    /// How compressed files that allow only sequential reading must be opened for it.
    pub fn packed(&self) -> Packed {
        match self.unallocated || self.span() != (0..u64::MAX) {
            true => Packed::Unpacked,
            false => Packed::InOrder,
        }
    }

    /// Compiles the set, with a sample of the first place if that is local and no engine was requested.
    ///
    /// # Errors
    /// [`Error::Search`] for patterns, an engine or a device that cannot be used, and soon after `stop`
    /// becomes true.
    pub fn start<'s>(
        &'s self,
        machine: &'s Machine,
        first: Option<&Place<'_>>,
        stop: &AtomicBool,
    ) -> Result<Running<'s>> {
        Running::start(self, machine, first, stop)
    }
}

/// Reads the patterns of a file of at most [`INSTRUCTION_BYTES_MAX`](crate::INSTRUCTION_BYTES_MAX)
/// bytes, one a line; `-` is standard input.
///
/// # Errors
/// [`Error::Request`], with the name of the file and the line of an invalid pattern; [`Error::Stopped`]
/// soon after `stop` becomes true.
pub fn read_patterns(path: &Path, stop: &AtomicBool) -> Result<Vec<Pattern>> {
    let bytes = read_instructions(path, "patterns", stop)?;
    let name = || name::of_path(path);
    parse_file_until(&bytes, stop).map_err(|error| match error {
        quarrier_search::Error::Stopped => {
            Error::Stopped { name: name(), offset: bytes.len() as u64 }
        }
        error => Error::Request(format!("{}: {error}", name())),
    })
}
