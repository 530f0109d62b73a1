//! Search: every occurrence of patterns in sources.
//!
//! ```text
//!  Search ──start(first place: its sample)──→ Running ──search(place)──→ chunks with findings
//!                 compiled set, devices                └──→ Searched: the run, what it cost
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

use quarrier_core::pipeline::Access;
use quarrier_gpu::DeviceChoice;
use quarrier_search::{EngineName, Options, Pattern, parse_file_until};

use crate::{Error, Machine, Place, Result, read_instructions};

/// A request: what to search for, where, and by what means. Unset options are chosen for the source and
/// the machine.
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

/// How the pipeline of a run is set up. 0, or None: as the plan for source and machine says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Planning {
    /// Threads that work.
    pub workers: usize,
    /// Threads that only read.
    pub readers: usize,
    /// Buffers or windows that exist at once.
    pub buffers: usize,
    /// Bytes that a buffer owns.
    pub buffer_bytes: usize,
    /// How bytes reach memory.
    pub access: Option<Access>,
    /// Whether local files were opened to be read past the page cache.
    pub direct: bool,
}

impl Search {
    /// A search for `patterns` in whole sources.
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
    /// [`Error::Search`] where a pattern is wrong.
    pub fn features(mut self, features: &[&'static Feature]) -> Result<Self> {
        for feature in features {
            self.judges.resize(self.patterns.len(), None);
            self.patterns.push(feature.pattern()?);
            self.judges.push(Some(feature.judge));
        }
        Ok(self)
    }

    /// How patterns are read: case, UTF-16, the longest match of a regex.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The engine for literals and hex patterns.
    pub fn engine(mut self, engine: EngineName) -> Self {
        self.engine = engine;
        self
    }

    /// Where the search runs. By default the CPU; [`DeviceChoice::Auto`] takes a device where the machine's
    /// profile says that it is faster.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.device = device;
        self
    }

    /// Only findings at multiples of `bytes`, at least 1.
    pub fn aligned(mut self, bytes: u64) -> Self {
        self.aligned_bytes = bytes.max(1);
        self
    }

    /// Bytes around findings that the watcher wants to see in its chunks.
    pub fn context(mut self, bytes: usize) -> Self {
        self.context_bytes = bytes;
        self
    }

    /// Ends the search after this many findings, in all sources together.
    pub fn findings_max(mut self, findings: u64) -> Self {
        self.findings_max = findings;
        self
    }

    /// Only the bytes at these offsets, as if they were the whole source.
    pub fn range(mut self, range: Range<u64>) -> Self {
        self.range = range;
        self
    }

    /// Only findings that start here count. They are those of the whole range all the same, which
    /// makes a difference to regexes.
    pub fn starts(mut self, starts: Range<u64>) -> Self {
        self.starts = starts;
        self
    }

    /// Only the bytes that no allocated file of the source has, each range of them as if it were the whole
    /// source; see [`Unallocated`](crate::files::Unallocated).
    pub fn unallocated(mut self, unallocated: bool) -> Self {
        self.unallocated = unallocated;
        self
    }

    /// Lists of matches: those that are left out, and those that alone count.
    pub fn lists(mut self, lists: MatchLists) -> Self {
        self.lists = lists;
        self
    }

    /// How the pipeline is set up.
    pub fn planning(mut self, planning: Planning) -> Self {
        self.planning = planning;
        self
    }

    /// The same search for some of its patterns, by index.
    pub fn only(&self, places: &[usize]) -> Self {
        let patterns = places.iter().map(|&place| self.patterns[place].clone()).collect();
        let of_place = |&place: &usize| self.judges.get(place).copied().flatten();
        let judges = match self.judges.is_empty() {
            true => Vec::new(),
            false => places.iter().map(of_place).collect(),
        };
        Search { patterns, judges, ..self.clone() }
    }

    /// The patterns, in their order.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The offsets at which findings are searched for, where the source has them: of regexes and words
    /// those before [`starts`](Self::starts) too, since they decide where one matches. The bytes around
    /// them are read as far as they decide.
    pub fn span(&self) -> Range<u64> {
        let looks_back = self.patterns.iter().any(Pattern::looks_back);
        let start = match looks_back {
            true => self.range.start,
            false => self.range.start.max(self.starts.start),
        };
        start..self.range.end.min(self.starts.end).max(start)
    }

    /// Compiles the set with a sample of the first place, if that is local and no engine was requested.
    ///
    /// # Errors
    /// [`Error::Search`] for patterns, an engine or a device that cannot serve, and soon after `stop`
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

/// The patterns of a file of at most [`INSTRUCTION_BYTES_MAX`](crate::INSTRUCTION_BYTES_MAX) bytes,
/// one a line; `-` is standard input.
///
/// # Errors
/// [`Error::Request`] that names the file, and the line where one is wrong; [`Error::Stopped`] soon
/// after `stop` becomes true.
pub fn read_patterns(path: &Path, stop: &AtomicBool) -> Result<Vec<Pattern>> {
    let bytes = read_instructions(path, "patterns", stop)?;
    let name = || path.display().to_string();
    parse_file_until(&bytes, stop).map_err(|error| match error {
        quarrier_search::Error::Stopped => {
            Error::Stopped { name: name(), offset: bytes.len() as u64 }
        }
        error => Error::Request(format!("{}: {error}", name())),
    })
}
