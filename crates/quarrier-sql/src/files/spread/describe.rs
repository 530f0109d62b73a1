//! Finds the columns of messages that other processes are to read: they describe each unit, and this process
//! joins the descriptions in the order of the units, so that columns have the types that they would have if one
//! process loaded the source.
//!
//! The description of a unit has a row for the unit, then one for each of its columns, then one for each of its
//! rejects, damaged places and notices. `numbers` are:
//!
//! ```text
//!  unit    start of its range, rows, lines, bytes, rejects, fields without a column
//!  column  type, decimals, whether it has bounds, least, greatest value, values that lost digits, if floats
//!  reject  line in the unit, offset, place of the fault in the message
//!  damage  whether the name of the source is to be put before the text
//!  notice  as damage
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use datafusion::arrow::array::builder::{
    BinaryBuilder, Decimal128Builder, ListBuilder, StringBuilder, UInt8Builder,
};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, Schema, SchemaRef, UInt8Type};
use datafusion::common::Result as Planned;
use datafusion::common::Statistics;
use quarrier::source::Version;
use quarrier::tables::Sharing;
use quarrier::{Named, Opened, Tables, tables};
use quarrier_core::sync::StopOnDrop;
use quarrier_core::threads;
use quarrier_messages::{
    ColumnDescription, Description, Fault, Format, HiddenColumns, Kind, Limits, Reject,
};

use super::super::{FileRejects, Loaded, Opening, Rounded};
use super::{
    KnownRows, SpreadExec, SpreadFile, SpreadFragment, SpreadSource, Spreading, UnitContent,
    UnitMessages, UnitScan,
};
use crate::net::blocking;
use crate::{Error, Result};

const UNIT: u8 = 0;
const COLUMN: u8 = 1;
const REJECT: u8 = 2;
const DAMAGE: u8 = 3;
const NOTICE: u8 = 4;

/// The digits of every number.
const DIGITS: u8 = 38;

const DAMAGED: &str = "a worker sent a damaged description";

/// How often a running job looks whether it is still needed.
const PERIOD: Duration = Duration::from_millis(50);

/// A source of messages.
#[derive(Debug, Clone)]
pub(in crate::files) struct MessagesFile {
    pub(in crate::files) named: Named,
    /// The name in errors and in rows.
    pub(in crate::files) shown: String,
    /// The format; `None` to detect it.
    pub(in crate::files) format: Option<Format>,
    source: Option<SpreadSource>,
}

/// Whether workers of a cluster can read a source.
pub(in crate::files) enum Shared {
    Spread(SpreadSource),
    /// It has nothing to share, or cannot be opened.
    Here,
    /// They cannot.
    Not,
}

/// What was found about a source.
pub(in crate::files) enum Described {
    Known(Box<SpreadFile>, Box<Loaded>),
    /// It has too many columns, of which each worker would leave out others.
    TooWide,
}

impl MessagesFile {
    pub(in crate::files) fn new(named: Named, shown: String, format: Option<Format>) -> Self {
        MessagesFile { named, shown, format, source: None }
    }

    /// The file with the source of its units.
    pub(in crate::files) fn with_source(self, source: SpreadSource) -> Self {
        MessagesFile { source: Some(source), ..self }
    }

    fn messages(&self, hidden: HiddenColumns) -> UnitMessages {
        let format = self.format.as_ref().map(|format| format.name().to_string());
        UnitMessages { format, hidden }
    }
}

/// Finds out whether workers can read a source.
pub(in crate::files) async fn shared(file: &MessagesFile, opening: &Opening) -> Result<Shared> {
    let (file, opening) = (file.clone(), opening.clone());
    blocking(move || {
        let is_plain =
            matches!(file.named, Named::Path(_) | Named::Url(_) | Named::Partition { .. });
        // Only a load of the whole source knows the number of a line, and workers have the usual limits.
        let is_plain = is_plain && !opening.hidden.line && opening.limits == Limits::default();
        let is_missing = match &file.named {
            Named::Path(path) => std::fs::metadata(path).is_err(),
            Named::Missing(_) | Named::Unlisted(_) | Named::Refused { .. } => true,
            _ => false,
        };
        if is_missing {
            // The load reports why.
            return Ok(Shared::Here);
        }
        let is_seekable = matches!(file.named, Named::Url(_)) || file.named.is_seekable();
        if !is_plain || !is_seekable {
            return Ok(Shared::Not);
        }
        match opening.opener.open_segment(&file.named) {
            // Only workers read its messages.
            Ok(Some(segment)) => return Ok(whole(file.named, &segment)),
            Ok(None) => {}
            Err(_) => return Ok(Shared::Here),
        }
        let Ok(opened) = opening.opener.open_messages(&file.named) else {
            // The load reports why.
            return Ok(Shared::Here);
        };
        let Ok(version) = Version::of(&file.named, &opened) else { return Ok(Shared::Not) };
        if version.length == 0 {
            return Ok(Shared::Here);
        }
        let detected = Tables::new().format(file.format).detect(opened, &opening.stop);
        let sharing = detected.and_then(|detected| detected.sharing());
        let Ok(sharing) = sharing else { return Ok(Shared::Here) };
        Ok(match sharing {
            None => Shared::Not,
            Some(sharing) => Shared::Spread(SpreadSource {
                named: file.named,
                is_cut: sharing == Sharing::Ranges,
                version: Some(version),
            }),
        })
    })
    .await
}

/// A source that is one unit.
fn whole(named: Named, opened: &Opened) -> Shared {
    match Version::of(&named, opened) {
        Ok(version) if version.length == 0 => Shared::Here,
        Ok(version) => {
            Shared::Spread(SpreadSource { named, is_cut: false, version: Some(version) })
        }
        Err(_) => Shared::Not,
    }
}

/// Lets workers describe messages, and returns what they found of each source.
pub(in crate::files) async fn describe(
    spreading: &Spreading,
    files: Vec<MessagesFile>,
    opening: &Opening,
) -> Result<Vec<Described>> {
    let Some(first) = files.first() else { return Ok(Vec::new()) };
    let schema = description_schema();
    let scan = UnitScan {
        content: UnitContent::Description(first.messages(opening.hidden)),
        columns: (0..schema.fields().len()).collect(),
        table: schema,
        has_name: false,
        limit: None,
    };
    let sources = files.iter().filter_map(|file| file.source.clone()).collect();
    let unknown = Statistics::new_unknown(&scan.rows());
    let exec = SpreadExec::new(Arc::clone(&spreading.on), sources, scan, unknown);
    let exec = exec.ok_or_else(|| Error::text("a plan cannot be sent to workers"))?;
    let sources = joined(spreading, exec.into_fragment(), opening).await?;
    if sources.len() != files.len() {
        return Err(Error::text(DAMAGED));
    }
    let described = files.into_iter().zip(sources);
    Ok(described.map(|(file, found)| found.described(file, opening)).collect())
}

/// Runs the job, and joins the descriptions of the units of each source.
async fn joined(
    spreading: &Spreading,
    fragment: SpreadFragment,
    opening: &Opening,
) -> Result<Vec<FoundSource>> {
    // Dropping the future ends the job, too.
    let stopping = StopOnDrop::default();
    let (on, stop) = (Arc::clone(&spreading.on), stopping.flag());
    let (stopped, rejects_max) = (Arc::clone(&opening.stop), opening.limits.rejects_max);
    blocking(move || {
        let mut sources = Sources { all: Vec::new(), rejects_max };
        let run = || {
            let mut is_damaged = false;
            let ran = on.run(&fragment, &stop, &mut |batch| match sources.add(&batch) {
                Some(()) => ControlFlow::Continue(()),
                None => {
                    is_damaged = true;
                    ControlFlow::Break(())
                }
            });
            match is_damaged {
                true => Err(DAMAGED.to_string()),
                false => ran,
            }
        };
        let ran = watched(run, || {
            if stopped.load(Ordering::Relaxed) {
                stop.store(true, Ordering::Relaxed);
            }
        });
        match ran {
            _ if stopped.load(Ordering::Relaxed) => Err(Error::Cancelled),
            Ok(()) => Ok(sources.all),
            Err(reason) => Err(Error::text(reason)),
        }
    })
    .await
}

/// Runs `work` on another thread, and calls `look` from time to time.
fn watched(
    work: impl FnOnce() -> std::result::Result<(), String> + Send,
    look: impl Fn(),
) -> std::result::Result<(), String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let run = move || {
            // The receiver is there until this has ended.
            let _ = sender.send(work());
        };
        threads::in_scope(scope, "describe", run)
            .map_err(|error| format!("no thread to work in: {error}"))?;
        loop {
            match receiver.recv_timeout(PERIOD) {
                Ok(ran) => return ran,
                Err(RecvTimeoutError::Timeout) => look(),
                Err(RecvTimeoutError::Disconnected) => return Err("a thread ended early".into()),
            }
        }
    })
}

/// What all units so far have of a source.
#[derive(Default)]
struct FoundSource {
    description: Description,
    lines: u64,
    bytes: u64,
    rejected: u64,
    fields_left_out: u64,
    rejects: Vec<FoundReject>,
    damages: Vec<FoundLine>,
    notices: Vec<FoundLine>,
    /// The columns of the unit whose rows are being read.
    unit: Description,
    /// The lines of the units before it.
    lines_before: u64,
}

/// A line about a source, and whether its name is to be put before it: workers find it by another.
type FoundLine = (String, bool);

fn line(text: &str, numbers: &[i128]) -> Option<FoundLine> {
    let [is_after_name] = *numbers else { return None };
    Some((text.to_string(), is_after_name != 0))
}

struct FoundReject {
    line: u64,
    offset: u64,
    fault: Fault,
    bytes: Box<[u8]>,
}

struct Sources {
    all: Vec<FoundSource>,
    rejects_max: usize,
}

impl Sources {
    /// Adds rows of descriptions, in the order of the units; `None` if they are damaged.
    fn add(&mut self, batch: &RecordBatch) -> Option<()> {
        let [what, text, bytes, numbers] = batch.columns() else { return None };
        let what = what.as_primitive_opt::<UInt8Type>()?;
        let (text, bytes) = (text.as_string_opt::<i32>()?, bytes.as_binary_opt::<i32>()?);
        let numbers = numbers.as_list_opt::<i32>()?;
        for row in 0..batch.num_rows() {
            let list = numbers.value(row);
            let numbers: &[i128] = list.as_primitive_opt::<Decimal128Type>()?.values();
            match what.value(row) {
                UNIT => self.begin(numbers)?,
                COLUMN => self.all.last_mut()?.column(text.value(row), numbers)?,
                REJECT => {
                    let reject = (text.value(row), bytes.value(row));
                    self.all.last_mut()?.reject(reject, numbers, self.rejects_max)?;
                }
                DAMAGE => self.all.last_mut()?.damages.push(line(text.value(row), numbers)?),
                NOTICE => self.all.last_mut()?.notices.push(line(text.value(row), numbers)?),
                _ => return None,
            }
        }
        Some(())
    }

    fn begin(&mut self, numbers: &[i128]) -> Option<()> {
        let [start, rows, lines, bytes, rejected, left_out] = *numbers else { return None };
        let number = |number: i128| u64::try_from(number).ok();
        if start == 0 {
            self.all.iter_mut().for_each(FoundSource::end_unit);
            self.all.push(FoundSource::default());
        }
        let source = self.all.last_mut()?;
        source.end_unit();
        source.unit.rows = number(rows)?;
        source.lines_before = source.lines;
        source.lines = source.lines.checked_add(number(lines)?)?;
        source.bytes = source.bytes.checked_add(number(bytes)?)?;
        source.rejected = source.rejected.checked_add(number(rejected)?)?;
        source.fields_left_out = source.fields_left_out.checked_add(number(left_out)?)?;
        Some(())
    }
}

impl FoundSource {
    fn end_unit(&mut self) {
        self.description.join(&std::mem::take(&mut self.unit));
    }

    fn column(&mut self, name: &str, numbers: &[i128]) -> Option<()> {
        let [kind, decimals, has_bounds, least, greatest, rounded, as_floats] = *numbers else {
            return None;
        };
        self.unit.columns.push(ColumnDescription {
            name: name.into(),
            kind: kind_of(kind, u8::try_from(decimals).ok()?)?,
            bounds: (has_bounds != 0).then_some((least, greatest)),
            rounded: u64::try_from(rounded).ok()?,
            rounded_as_floats: u64::try_from(as_floats).ok()?,
        });
        Some(())
    }

    fn reject(&mut self, (what, bytes): (&str, &[u8]), numbers: &[i128], max: usize) -> Option<()> {
        let [line, offset, at] = *numbers else { return None };
        if self.rejects.len() < max {
            self.rejects.push(FoundReject {
                line: self.lines_before.checked_add(u64::try_from(line).ok()?)?,
                offset: u64::try_from(offset).ok()?,
                fault: Fault::reported(usize::try_from(at).ok()?, what),
                bytes: bytes.into(),
            });
        }
        Some(())
    }

    fn described(mut self, file: MessagesFile, opening: &Opening) -> Described {
        self.end_unit();
        let is_wide = self.description.columns.len() > opening.limits.columns_max;
        let Some(source) = file.source.clone().filter(|_| !is_wide && self.fields_left_out == 0)
        else {
            return Described::TooWide;
        };
        let (schema, arrow) = self.description.schemas(opening.hidden);
        let hidden = schema.fields.iter().filter(|field| opening.hidden.has(&field.name));
        let hidden = hidden.map(|field| HiddenColumns::of_name(&field.name));
        let hidden = hidden.fold(HiddenColumns::default(), std::ops::BitOr::bitor);
        let rounded = self.description.columns.iter().filter(|column| column.rounded > 0);
        let rounded = rounded
            .map(|column| Rounded { column: column.name.clone(), count: column.rounded })
            .collect();
        let rejects: Vec<Reject> = self
            .rejects
            .into_iter()
            .map(|it| Reject::new(&file.shown, (it.line, it.offset), it.fault, &it.bytes))
            .collect();
        let by_file = rejects.first().map(|first| FileRejects {
            source: first.source.as_ref().into(),
            count: self.rejected,
            line: first.line,
            reason: first.fault.to_string(),
        });
        let named = |(line, is_after_name): FoundLine| match is_after_name {
            true => format!("{}{line}", file.shown),
            false => line,
        };
        let met = Loaded {
            rejects_by_file: by_file.into_iter().collect(),
            rejects,
            rounded,
            damages: self.damages.into_iter().map(named).collect(),
            notices: self.notices.into_iter().map(named).collect(),
            bytes: self.bytes,
            hidden,
            ..Loaded::default()
        };
        let file = SpreadFile {
            source,
            content: UnitContent::Messages(file.messages(opening.hidden)),
            schema: arrow,
            rows: KnownRows::Count(self.description.rows),
        };
        Described::Known(Box::new(file), Box::new(met))
    }
}

fn kind_of(number: i128, scale: u8) -> Option<Kind> {
    KINDS.get(usize::try_from(number).ok()?).map(|kind| match kind {
        Kind::Decimal { .. } => Kind::Decimal { scale },
        kind => *kind,
    })
}

/// The types, by their numbers.
const KINDS: [Kind; 8] = [
    Kind::Null,
    Kind::Boolean,
    Kind::Integer,
    Kind::Decimal { scale: 0 },
    Kind::Float,
    Kind::Date,
    Kind::Timestamp,
    Kind::Text,
];

fn numbers_of(kind: Kind) -> (i128, i128) {
    let scale = match kind {
        Kind::Decimal { scale } => scale,
        _ => 0,
    };
    let is_like = |known: &Kind| std::mem::discriminant(known) == std::mem::discriminant(&kind);
    (KINDS.iter().position(is_like).unwrap_or_default() as i128, scale.into())
}

fn number_type() -> DataType {
    DataType::Decimal128(DIGITS, 0)
}

fn description_schema() -> SchemaRef {
    let numbers = DataType::List(Arc::new(Field::new("item", number_type(), true)));
    Arc::new(Schema::new(vec![
        Field::new("what", DataType::UInt8, false),
        Field::new("text", DataType::Utf8, false),
        Field::new("bytes", DataType::Binary, false),
        Field::new("numbers", numbers, false),
    ]))
}

/// The rows that describe a unit of the source that this process calls `name`.
pub(in crate::files) fn description_batch(
    start: u64,
    description: &Description,
    (name, loaded): (&str, &tables::Loaded),
) -> Planned<RecordBatch> {
    let mut rows = Rows::new();
    let unit = [start, description.rows, loaded.lines, loaded.bytes, loaded.rejected];
    let unit = unit.into_iter().chain([loaded.refused.count]).map(i128::from);
    rows.add(UNIT, ("", &[]), unit);
    for column in &description.columns {
        let (kind, scale) = numbers_of(column.kind);
        let (least, greatest) = column.bounds.unwrap_or_default();
        let rounded = [column.rounded, column.rounded_as_floats].map(i128::from);
        let numbers = [kind, scale, i128::from(column.bounds.is_some()), least, greatest];
        rows.add(COLUMN, (&column.name, &[]), numbers.into_iter().chain(rounded));
    }
    for Reject { line, offset, fault, bytes, .. } in &loaded.rejects {
        let numbers = [i128::from(*line), i128::from(*offset), fault.at as i128];
        rows.add(REJECT, (fault.what, bytes), numbers.into_iter());
    }
    for (what, lines) in [(DAMAGE, &loaded.damages), (NOTICE, &loaded.notices)] {
        for line in lines {
            let rest = line.strip_prefix(name);
            let is_after_name = i128::from(rest.is_some());
            rows.add(what, (rest.unwrap_or(line), &[]), [is_after_name].into_iter());
        }
    }
    rows.finish()
}

struct Rows {
    what: UInt8Builder,
    text: StringBuilder,
    bytes: BinaryBuilder,
    numbers: ListBuilder<Decimal128Builder>,
}

impl Rows {
    fn new() -> Self {
        let numbers = Decimal128Builder::new().with_data_type(number_type());
        Rows {
            what: UInt8Builder::new(),
            text: StringBuilder::new(),
            bytes: BinaryBuilder::new(),
            numbers: ListBuilder::new(numbers),
        }
    }

    fn add(&mut self, what: u8, (text, bytes): (&str, &[u8]), numbers: impl Iterator<Item = i128>) {
        self.what.append_value(what);
        self.text.append_value(text);
        self.bytes.append_value(bytes);
        numbers.for_each(|number| self.numbers.values().append_value(number));
        self.numbers.append(true);
    }

    fn finish(mut self) -> Planned<RecordBatch> {
        let columns: Vec<Arc<dyn Array>> = vec![
            Arc::new(self.what.finish()),
            Arc::new(self.text.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.numbers.finish()),
        ];
        Ok(RecordBatch::try_new(description_schema(), columns)?)
    }
}
