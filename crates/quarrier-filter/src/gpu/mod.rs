//! Conditions over packed columns that lie in a device's memory.
//!
//! ```text
//!  Table ─→ shard: lanes and validity, as the segments have them ─┐
//!  Expr ─→ predicate: one graph ─→ program: nodes and tests ──────┼─→ kernel ─→ counts, rows
//!                                  ranges: tests of a segment ────┘
//! ```
//!
//! The kernel evaluates sets of a column's values, combined by AND, OR and NOT: all comparisons,
//! BETWEEN, IN and IS NULL of columns with constants, and look-ups in a dictionary. Calculations,
//! functions and strings outside of dictionaries are refused.

mod program;
mod ranges;
mod shard;

use std::time::Duration;

use quarrier_gpu::kernels::{FILTER, FILTER_SIZES, SEGMENT_WORDS, filter_constants};
use quarrier_gpu::{Device, Job, Kernel, Kind, Queue};
use quarrier_messages::Table;

use crate::error::{Error, Result};
use crate::expr::Expr;
use program::Program;
use shard::Shard;

/// The size of a buffer: every device supports it.
const SHARD_BYTES_MAX: usize = 96 << 20;
/// Work items of a group; each takes this many words of 32 rows of a tile.
const GPU_ITEMS: u32 = 128;
const GPU_ITEM_WORDS: u32 = 4;
/// Consecutive words for a CPU to process, so that their lanes stay in its cache.
const CPU_TILE_WORDS: u32 = 128;

/// A table's packed columns in the memory of a device, and the conditions' kernel.
///
/// ```
/// use quarrier_filter::{ResidentTable, sql};
/// use quarrier_messages::{Format, Load};
///
/// let lines = r#"{"price": 1.5, "qty": 7} {"price": 2.25} {"price": 9, "qty": 100}"#;
/// let lines = lines.replace("} {", "}\n{");
/// let table = Load::new(Format::Json).run_stream("orders", &mut lines.as_bytes())?.table;
/// let conditions = ["price < 5", "qty BETWEEN 1 AND 50 OR qty IS NULL"];
/// let conditions = conditions.map(|text| sql::condition(text, table.schema()));
/// let conditions = conditions.into_iter().collect::<Result<Vec<_>, _>>()?;
/// if let Some(device) = quarrier_gpu::find().first() {
///     let mut resident = ResidentTable::new(&table, device)?;
///     assert_eq!(resident.counts(&conditions)?, [2, 2]);
///     assert_eq!(resident.rows(&conditions)?, [[0, 1], [0, 1]]);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ResidentTable {
    table: Table,
    device: Device,
    queue: Queue,
    shards: Vec<Shard>,
    kernel_time: Duration,
}

impl ResidentTable {
    /// Copies the columns to the device, once: their size in memory, with runs expanded to lanes.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if they do not fit.
    pub fn new(table: &Table, device: &Device) -> Result<Self> {
        Self::in_parts(table, device, SHARD_BYTES_MAX)
    }

    /// Copies the columns as [`new`](Self::new) does, for a device whose buffers are small: joins
    /// segments up to `part_bytes` bytes, with a buffer and a launch for each part.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new).
    pub fn in_parts(table: &Table, device: &Device, part_bytes: usize) -> Result<Self> {
        let mut queue = device.queue()?;
        let shards = shard::all(table, part_bytes, device, &mut queue)?;
        let (table, device) = (table.clone(), device.clone());
        Ok(ResidentTable { table, device, queue, shards, kernel_time: Duration::ZERO })
    }

    /// Returns the bytes of lanes and validity on the device.
    pub fn nbytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.data.bytes()).sum()
    }

    /// Returns the time that kernels ran for the last answers, by the device's clock.
    pub fn kernel_time(&self) -> Duration {
        self.kernel_time
    }

    /// Returns the number of rows for which each condition is true. Takes one pass for all
    /// conditions, or several if they have more than 256 tests in all.
    ///
    /// # Errors
    ///
    /// [`Error::NotOnDevice`] for the first condition that the kernel does not support;
    /// [`Error::Device`] if the device fails.
    pub fn counts(&mut self, conditions: &[Expr]) -> Result<Vec<u64>> {
        let mut counts = vec![0; conditions.len()];
        self.each(conditions, false, &mut |condition, count, _, _| counts[condition] += count)?;
        Ok(counts)
    }

    /// Returns the rows for which each condition is true, in ascending order.
    ///
    /// # Errors
    ///
    /// The errors of [`counts`](Self::counts).
    pub fn rows(&mut self, conditions: &[Expr]) -> Result<Vec<Vec<u64>>> {
        let table = self.table.clone();
        let mut rows = vec![Vec::new(); conditions.len()];
        self.each(conditions, true, &mut |condition, _, shard, words| {
            for (segment, words) in shard.segments.clone().zip(words.chunks_exact(SEGMENT_BYTES)) {
                let end = table.segment_start(segment + 1);
                let of_segment = set_bits(words).map(|bit| table.segment_start(segment) + bit);
                // The bits after the last row are undefined.
                rows[condition].extend(of_segment.take_while(|&row| row < end));
            }
        })?;
        Ok(rows)
    }

    /// Runs all conditions over all shards.
    fn each(&mut self, conditions: &[Expr], wants_rows: bool, take: Take<'_>) -> Result<()> {
        self.kernel_time = Duration::ZERO;
        let nodes_max = FILTER_SIZES[FILTER_SIZES.len() - 1] as usize;
        for (first, program) in program::all(&self.table, conditions, nodes_max)? {
            let kernel = self.kernel(&program)?;
            for shard in &self.shards {
                let launch = Launch { table: &self.table, kernel: &kernel, program: &program };
                let ran = launch.run(&self.device, &mut self.queue, shard, wants_rows)?;
                self.kernel_time += ran.kernel;
                let bytes = shard.segments.len() * SEGMENT_BYTES;
                for (at, count) in ran.counts.iter().enumerate() {
                    let words = ran.selected.get(at * bytes..(at + 1) * bytes);
                    take(first + at, u64::from(*count), shard, words.unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    /// Returns the kernel for this number of nodes; it is compiled once for each size.
    fn kernel(&self, program: &Program) -> Result<Kernel> {
        let fits = |size: &&u32| program.nodes.len().max(program.roots.len()) <= **size as usize;
        let size = FILTER_SIZES.iter().find(fits).unwrap_or(&FILTER_SIZES[0]);
        let kernels = self.device.compile(&FILTER, &filter_constants(*size))?;
        kernels.into_iter().next().ok_or_else(|| {
            Error::Device(quarrier_gpu::Error::Arguments("no filter kernel".to_string()))
        })
    }
}

/// Receives a condition's index and its result in a shard: the number of rows, and a bit for each, if
/// requested.
type Take<'t> = &'t mut dyn FnMut(usize, u64, &Shard, &[u8]);

/// Bytes of a segment's bits.
const SEGMENT_BYTES: usize = 4 * SEGMENT_WORDS as usize;

/// Yields the indexes of the bits that are set in words of 32.
fn set_bits(words: &[u8]) -> impl Iterator<Item = u64> {
    words.chunks_exact(4).zip(0u64..).flat_map(|(word, at)| {
        let mut left = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(32 * at + u64::from(bit))
        })
    })
}

/// Returns numbers in the device's format; at least one, since no buffer is empty.
fn bytes_of(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut bytes: Vec<u8> = numbers.into_iter().flat_map(u32::to_ne_bytes).collect();
    bytes.resize(bytes.len().max(16), 0);
    bytes
}

/// A program over one shard.
struct Launch<'l> {
    table: &'l Table,
    kernel: &'l Kernel,
    program: &'l Program,
}

/// The result of a launch.
struct LaunchResult {
    counts: Vec<u32>,
    /// For each condition, a bit for each row of the shard; empty if they are not wanted.
    selected: Vec<u8>,
    kernel: Duration,
}

impl Launch<'_> {
    fn run(
        &self,
        device: &Device,
        queue: &mut Queue,
        shard: &Shard,
        wants_rows: bool,
    ) -> Result<LaunchResult> {
        let program = self.program;
        let (tests, ranges) = ranges::of(self.table, shard.segments.clone(), &program.tests)?;
        let written = [
            ("tests", tests),
            ("ranges", ranges),
            ("nodes", bytes_of(program.nodes.iter().flatten().copied())),
            ("operands", bytes_of(program.operands.iter().copied())),
            ("roots", bytes_of(program.roots.iter().copied())),
        ];
        let buffers = written.iter().map(|(_, bytes)| Ok(device.buffer(bytes.len())?));
        let buffers = buffers.collect::<Result<Vec<_>>>()?;
        let (roots, segments) = (program.roots.len(), shard.segments.len());
        let mut counted = vec![0; 4 * roots];
        let mut selected = vec![0; if wants_rows { roots * segments * SEGMENT_BYTES } else { 0 }];
        let counts = device.buffer(counted.len())?;
        let rows = device.buffer(selected.len().max(4))?;
        let shape = Shape::of(device, segments as u32);
        let mut arguments = self
            .kernel
            .bind()
            .buffer("data", &shard.data)?
            .buffer("places", &shard.places)?
            .buffer("segment_rows", &shard.segment_rows)?
            .buffer("counts", &counts)?
            .buffer("selected", &rows)?
            .number("segment_count", segments as u32)?
            .number("column_count", self.table.columns().len() as u32)?
            .number("test_count", program.tests.len() as u32)?
            .number("node_count", program.nodes.len() as u32)?
            .number("root_count", roots as u32)?
            .number("wants_rows", wants_rows.into())?
            .number("tile_words", shape.tile_words)?;
        let mut job = Job::new();
        for ((name, bytes), buffer) in written.iter().zip(&buffers) {
            arguments = arguments.buffer(name, buffer)?;
            job.write(buffer, bytes);
        }
        job.zero(&counts, counted.len());
        // SAFETY: `places` has an entry for each of these segments and columns, whose lanes are in
        // `data`. Nodes refer only to tests, operands and nodes of this program, and roots to its
        // nodes. `tests` has an entry for each segment and test, which refers to `ranges`. `counts`
        // has a word for each condition, and `selected` a bit for each row of it, unless
        // `wants_rows` is 0. So all accesses are within the buffers.
        unsafe { job.launch(self.kernel, arguments, shape.groups, shape.items) };
        job.read(&counts, &mut counted);
        if wants_rows {
            job.read(&rows, &mut selected);
        }
        let kernel = queue.run(job)?.kernel.busy;
        let count = |bytes: &[u8]| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Ok(LaunchResult { counts: counted.chunks_exact(4).map(count).collect(), selected, kernel })
    }
}

/// How to divide the work among groups.
struct Shape {
    groups: u32,
    items: u32,
    tile_words: u32,
}

impl Shape {
    fn of(device: &Device, segments: u32) -> Self {
        let facts = device.facts();
        let (items, tile_words, groups_max) = match facts.kind {
            Kind::Cpu => (1, CPU_TILE_WORDS, 4 * facts.units),
            _ => {
                let items = GPU_ITEMS.min(facts.items_max);
                (items, GPU_ITEM_WORDS * items, 8 * facts.units)
            }
        };
        let groups = (segments * SEGMENT_WORDS).div_ceil(tile_words).clamp(1, groups_max);
        Shape { groups, items, tile_words }
    }
}
