//! Loads sources into a table, in parallel.
//!
//! ```text
//!  Source ─→ claims ─→ worker: bytes ─→ Reader ─→ Batch ─→ segments ┐
//!            ranges     a few at a       frames,   rows,            ├─→ Table
//!            of bytes   time             parses    packs, rejects ──┘
//! ```
//!
//! A claim has about as many bytes as fill a segment. A message belongs to the claim in which it
//! starts, so the table has the messages in the order of the source, whichever worker parsed them.

mod batch;
mod bytes;
mod claims;
mod columnar;
mod compressed;
mod cut;
mod detect;
mod format;
mod keep;
mod reject;
mod run;
mod stream;
mod times;

pub use columnar::{ArrowFile, ColumnReader, Columns, guarded, is_panic_caught, open_arrow_file};
pub use compressed::{reader as decompressed, stream as decompressed_stream};
pub(crate) use cut::{Block, Cutter};
pub use format::{Format, FormatReader, Opening};
pub use reject::Reject;
pub(crate) use stream::Stream;

use std::collections::HashSet;
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::parallel::planned_workers;
use quarrier_core::source::Source;

use crate::build::Refused;
use crate::{Error, HiddenColumns, Kind, Limits, Packing, Result, Schema, Table};
use batch::Batch;
use run::Take;

/// Options for loading messages.
///
/// ```
/// use quarrier_core::source::Memory;
/// use quarrier_messages::{Format, Load, Value};
///
/// let log = Memory::new("log", "{\"qty\":7,\"side\":\"B\"}\n{\"qty\":8}\nno message\n");
/// let loaded = Load::new(Format::Json).run(&[&log])?;
/// assert_eq!(loaded.table.rows(), 2);
/// assert_eq!(loaded.table.value(1, 0), Value::Integer(8));
/// assert_eq!(loaded.rejects[0].line, 3);
/// # Ok::<(), quarrier_messages::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Load<'c> {
    format: Format,
    /// 0: one per CPU.
    workers: usize,
    limits: Limits,
    packing: Packing,
    schema: Option<Schema>,
    range: Option<Range<u64>>,
    keeps_bytes: bool,
    hidden: HiddenColumns,
    stop: Option<&'c AtomicBool>,
    parquet: Option<&'c dyn ColumnReader>,
}

/// The result of a load.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The messages, in the order of the sources.
    pub table: Table,
    /// Rejected messages, in order, at most [`Limits::rejects_max`].
    pub rejects: Vec<Reject>,
    /// Number of rejected messages.
    pub rejected: u64,
    /// Fields without a column, because the table has too many.
    pub refused: Refused,
    /// Number of parsed bytes, after decompression.
    pub bytes: u64,
    /// Number of lines that start there.
    pub lines: u64,
}

impl<'c> Load<'c> {
    /// Makes options for messages of `format`: one worker per core, and columns inferred from the
    /// messages.
    pub fn new(format: Format) -> Self {
        let limits = Limits::default();
        Load {
            format,
            workers: 0,
            limits,
            packing: Packing::default(),
            schema: None,
            range: None,
            keeps_bytes: false,
            hidden: HiddenColumns::default(),
            stop: None,
            parquet: None,
        }
    }

    /// Sets the number of workers; 0: one per CPU, the default.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Returns the number of workers. Counting the CPUs reads files, which takes longer than parsing a few
    /// messages.
    fn planned_workers(&self) -> usize {
        planned_workers(self.workers)
    }

    /// Sets limits for messages.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets limits for the packing of the table.
    #[doc(hidden)]
    #[must_use]
    pub fn packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// Loads only the columns of `schema`, with its types, or wider ones where values require them.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Loads only the messages that start in `range` of each source, so that processes can share a source:
    /// consecutive ranges have each message once, and columns of the types that
    /// [`Description`](crate::Description)s of all ranges give them. [`Reject::line`] then counts lines from the
    /// start of the range, and offsets remain those of the source. Sources that are compressed, or whose
    /// messages are [not in lines](Format::is_in_lines), can only be loaded whole.
    #[must_use]
    pub fn range(mut self, range: Range<u64>) -> Self {
        self.range = Some(range);
        self
    }

    /// Keeps each message's original bytes, excluding the end of the line, in a column of strings
    /// named [`MESSAGE_COLUMN`](crate::MESSAGE_COLUMN) after the columns of the messages. They are
    /// UTF-8, like all messages that parse. Takes their length and 4 bytes per message, and
    /// replaces a field with the same name. Loading Arrow and Parquet, which have no such bytes,
    /// then fails.
    #[must_use]
    pub fn keep_bytes(mut self, keeps_bytes: bool) -> Self {
        self.keeps_bytes = keeps_bytes;
        self
    }

    /// Adds hidden columns, which [`Table::hidden`] returns: the positions of messages and their
    /// bytes, for statements that name them. They take up to 8 bytes per number, and the length of
    /// each message, and replace fields with the same names. Arrow and Parquet have only the line:
    /// the number of the row in its source.
    #[must_use]
    pub fn hidden(mut self, hidden: HiddenColumns) -> Self {
        self.hidden = hidden;
        self
    }

    /// Returns the columns to add to the messages' fields.
    fn kept(&self) -> HiddenColumns {
        self.hidden | HiddenColumns { message: self.keeps_bytes, ..HiddenColumns::default() }
    }

    /// Ends the load soon after `stop` becomes true, with [`Error::Cancelled`].
    #[must_use]
    pub fn cancel(mut self, stop: &'c AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Reads Parquet with `reader`, such as that of the crate `quarrier-parquet`. Without a reader,
    /// Parquet is refused.
    #[must_use]
    pub fn parquet(mut self, reader: &'c dyn ColumnReader) -> Self {
        self.parquet = Some(reader);
        self
    }

    /// Loads sources into one table, in their order. Decompresses sources in gzip or Zstandard
    /// format.
    ///
    /// # Errors
    /// If a source cannot be read, its compressed bytes are damaged, or the load is cancelled.
    ///
    /// # Panics
    /// If a worker panics.
    pub fn run(&self, sources: &[&dyn Source]) -> Result<Loaded> {
        self.pieces(sources, usize::MAX, &mut |_| Ok(()))
    }

    /// Like [`run`](Self::run), but whenever the loaded messages take more than about `bytes_max`
    /// of memory, passes them to `take` and continues without them. Returns the rest, and the
    /// number of all bytes. In each piece, a column has the type that the piece's own messages
    /// need.
    ///
    /// # Errors
    /// The errors of `run`, and the errors of `take`.
    ///
    /// # Panics
    /// If a worker panics.
    pub fn run_in_pieces(
        &self,
        sources: &[&dyn Source],
        bytes_max: usize,
        take: &mut dyn FnMut(Loaded) -> Result<()>,
    ) -> Result<Loaded> {
        self.within(bytes_max).pieces(sources, bytes_max, take)
    }

    fn pieces(
        &self,
        sources: &[&dyn Source],
        bytes_max: usize,
        take: &mut Take<'_>,
    ) -> Result<Loaded> {
        if self.format.is_columnar() {
            return self.columns(sources, bytes_max, take);
        }
        let mut crew = run::Crew::new(self, bytes_max);
        for source in sources {
            let whole = 0..source.length();
            let range = self.range.clone().unwrap_or(whole.clone());
            match compressed::reader(*source)? {
                None if self.format.is_in_lines() => {
                    let start = range.start.min(whole.end);
                    crew.source(*source, start..range.end.clamp(start, whole.end), take)?;
                }
                _ if range != whole => return Err(only_whole(*source)),
                None if crew.is_found_anywhere() => crew.source(*source, whole, take)?,
                Some(mut reader) => crew.stream(source.name(), &mut reader, take)?,
                None => crew.stream(source.name(), &mut compressed::in_order(*source), take)?,
            }
        }
        crew.done()
    }

    /// Returns the same options, with dictionaries small enough for a limit on memory.
    fn within(&self, bytes_max: usize) -> Self {
        let mut load = self.clone();
        load.packing.dictionary_bytes = load.packing.dictionary_bytes.min(bytes_max / 8);
        load
    }

    /// Loads a stream, such as standard input; decompresses it as [`run`](Self::run) does.
    ///
    /// # Errors
    /// If the stream cannot be read, or the load is cancelled; cancelling does not interrupt a read
    /// that waits for bytes. Arrow and Parquet are read into memory first, and refused beyond
    /// [`Limits::columnar_stream_bytes_max`].
    ///
    /// # Panics
    /// If a worker panics.
    pub fn run_stream(&self, name: &str, stream: &mut (dyn Read + Send)) -> Result<Loaded> {
        self.stream_pieces(name, stream, usize::MAX, &mut |_| Ok(()))
    }

    /// Like [`run_stream`](Self::run_stream), in pieces as with
    /// [`run_in_pieces`](Self::run_in_pieces).
    ///
    /// # Errors
    /// The errors of `run_stream`, and the errors of `take`.
    ///
    /// # Panics
    /// If a worker panics.
    pub fn run_stream_in_pieces(
        &self,
        name: &str,
        stream: &mut (dyn Read + Send),
        bytes_max: usize,
        take: &mut dyn FnMut(Loaded) -> Result<()>,
    ) -> Result<Loaded> {
        self.within(bytes_max).stream_pieces(name, stream, bytes_max, take)
    }

    fn stream_pieces(
        &self,
        name: &str,
        stream: &mut (dyn Read + Send),
        bytes_max: usize,
        take: &mut Take<'_>,
    ) -> Result<Loaded> {
        if self.format.is_columnar() {
            let whole = columnar::whole(name, stream, &self.limits)?;
            return self.columns(&[&whole], bytes_max, take);
        }
        let mut crew = run::Crew::new(self, bytes_max);
        let never = AtomicBool::new(false);
        let plain = compressed::stream(name, Box::new(stream), self.stop.unwrap_or(&never));
        crew.stream(name, &mut plain?, take)?;
        crew.done()
    }

    /// Assembles the messages of all workers into one table.
    fn assembled(
        &self,
        mut batches: Vec<Batch>,
        opening: &Opening,
        (names, lines): (&[Box<str>], &run::Lines),
    ) -> Result<Loaded> {
        let untimed = self.untimed(&batches);
        if !untimed.is_empty() {
            batches.iter_mut().for_each(|batch| batch.write_again(&untimed));
        }
        self.check()?;
        let mut loaded = Loaded::default();
        let mut parts = Vec::new();
        for batch in batches {
            let (part, rejects, refused) = batch.into_parts(lines);
            parts.push(part);
            rejects.hand_over(names, lines, &mut loaded);
            loaded.refused.add(refused);
        }
        loaded.rejects.sort_by_key(|reject| reject.place());
        loaded.rejects.truncate(self.limits.rejects_max);
        loaded.table = match &self.schema {
            Some(schema) if !self.kept().is_none() => {
                let schema = keep::with_columns(schema, self.kept());
                Table::assemble_packed(parts, self.planned_workers(), Some(&schema), self.packing)
            }
            schema => {
                let (workers, packing) = (self.planned_workers(), self.packing);
                match Table::assemble_packed(parts, workers, schema.as_ref(), packing) {
                    table if table.rows() == 0 && schema.is_none() => {
                        Table::empty(opening.header(&self.limits))
                    }
                    table => table,
                }
            }
        };
        let visible = HiddenColumns { message: self.keeps_bytes, ..HiddenColumns::default() };
        loaded.table = loaded.table.hiding(self.hidden.without(visible));
        Ok(loaded)
    }

    /// Returns an error if the load was cancelled.
    fn check(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    /// Returns the fields in which some strings are times and others are not, or whose requested
    /// type is another.
    fn untimed(&self, batches: &[Batch]) -> HashSet<Box<str>> {
        let known: Vec<_> = batches.iter().map(Batch::times).collect();
        let is_other = |name: &str| {
            let wanted = self.schema.iter().flat_map(|schema| &schema.fields);
            let mut wanted = wanted.filter(|field| &*field.name == name);
            wanted.any(|field| !matches!(field.kind, Kind::Null | Kind::Date | Kind::Timestamp))
                || known.iter().any(|fields| fields.others.contains(name))
        };
        let timed = known.iter().flat_map(|fields| &fields.timed);
        timed.filter(|name| is_other(name)).map(|&name| name.into()).collect()
    }

    fn batch(&self) -> Batch {
        let kept = self.kept();
        let schema = self.schema.as_ref().map(|schema| {
            let fields = schema.fields.iter().filter(|field| !kept.has(&field.name));
            Schema { fields: fields.cloned().collect() }
        });
        Batch::new(&self.limits, self.packing, schema.as_ref(), kept)
    }
}

/// The error for a range of a source that can only be loaded whole.
fn only_whole(source: &dyn Source) -> Error {
    let reason = "its messages can only be found from its start".to_string();
    Error::Columns { source_name: source.name().to_string(), reason }
}
