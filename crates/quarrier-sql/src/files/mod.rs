//! Files as tables.

mod messages;
mod parquet;
mod pieces;
mod remote;
mod room;
mod spread;

pub(crate) use room::Room;
pub use spread::{
    Spread, SpreadFragment, SpreadSource, Spreading, TakeRows, UnitContent, UnitExec, UnitMessages,
    UnitScan,
};
pub(crate) use spread::{SpreadExec, within};

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::prelude::SessionContext;
use quarrier::source::shown;
use quarrier::{DataFolder, Named, Opened, Opener, Sources};
use quarrier_core::name;
use quarrier_messages::{Format, HiddenColumns, Limits, Reject};

use self::messages::UnitSource;
use self::parquet::damaged;
use self::spread::{Described, KnownRows, MessagesFile, Shared, SpreadFile, SpreadTable};
use crate::rewrite::TypedMessages;
use crate::{Error, Result};

/// The name of the column that holds the source of each row, in a table of several files.
pub(crate) const FILENAME: &str = "filename";

/// Options for opening files.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) workers: usize,
    /// Accounts for the memory of tables.
    pub(crate) room: Arc<Room>,
    pub(crate) limits: Limits,
    /// Columns in addition to the messages' fields.
    pub(crate) hidden: HiddenColumns,
    pub(crate) stop: Arc<AtomicBool>,
    /// Opens sources of any kind, by one client for all remote ones.
    pub(crate) opener: Arc<Opener>,
    /// The cluster that reads files, if there is one.
    pub(crate) spread: Option<Spreading>,
}

/// Rejects and other problems of loaded files.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// Rejected messages, up to the limit.
    pub rejects: Vec<Reject>,
    /// The number of rejects of each file that has any, in the order of loading.
    pub rejects_by_file: Vec<FileRejects>,
    /// Number of field values without a column, because there are too many columns.
    pub fields_left_out: u64,
    /// Columns of floats that hold values with more digits than a float has.
    pub rounded: Vec<Rounded>,
    /// Damaged places in logs, which were skipped; one line each.
    pub damages: Vec<String>,
    /// Notices of images, and those about logs apart from damage; a line each.
    pub notices: Vec<String>,
    /// Bytes that were parsed.
    pub bytes: u64,
    /// Bytes of memory that the columns take.
    pub memory_bytes: usize,
    /// The hidden columns of the table.
    pub(crate) hidden: HiddenColumns,
    /// Whether hidden columns replace fields of messages.
    pub(crate) has_replaced: bool,
}

/// Values that lost digits because they became floats; displays as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rounded {
    /// The column's name.
    pub column: Box<str>,
    /// The number of values that lost digits.
    pub count: u64,
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rounded { column, count } = self;
        let values = if *count == 1 { "value" } else { "values" };
        write!(
            f,
            "{count} {values} of column {column} lost digits: the column has floating-point numbers \
             or needs more than 38 digits, so exact numbers are kept as floats"
        )
    }
}

/// The rejects of one file; displays as a sentence.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileRejects {
    /// The file.
    pub source: Arc<str>,
    /// The number of rejects.
    pub count: u64,
    /// The line of the first reject, from 1.
    pub line: u64,
    /// The reason of the first reject.
    pub reason: String,
}

impl fmt::Display for FileRejects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileRejects { source, count, line, reason } = self;
        let messages = if *count == 1 { "message was" } else { "messages were" };
        write!(f, "{source}: {count} {messages} left out, the first at line {line}: {reason}")
    }
}

impl Loaded {
    pub(crate) fn add(&mut self, other: Loaded) {
        self.rejects.extend(other.rejects);
        self.rejects_by_file.extend(other.rejects_by_file);
        self.fields_left_out += other.fields_left_out;
        for rounded in other.rounded {
            match self.rounded.iter_mut().find(|known| known.column == rounded.column) {
                Some(known) => known.count += rounded.count,
                None => self.rounded.push(rounded),
            }
        }
        self.damages.extend(other.damages);
        self.notices.extend(other.notices);
        self.bytes += other.bytes;
        self.memory_bytes += other.memory_bytes;
        self.hidden = self.hidden | other.hidden;
        self.has_replaced |= other.has_replaced;
    }
}

/// Opens a source of any kind, or all sources that match a glob, with a column for their names.
///
/// # Errors
/// There is no such source, or one cannot be read.
pub(crate) async fn open(
    context: &SessionContext,
    name: &str,
    opening: &Opening,
) -> Result<(Arc<dyn TableProvider>, Loaded)> {
    let mut found = Vec::new();
    let sources = Sources::of([name]);
    let sources = sources.listed(&opening.opener);
    for named in sources.iter() {
        let mut opened = None;
        match named {
            // Only a load numbers the rows.
            _ if opening.hidden.line => {}
            // Only files are probed, since the first bytes of a pipe can be read only once.
            Named::Path(path) if named.is_seekable() && is_parquet(path) => {
                let table = parquet::table(context, path).await?;
                found.push(Part::of_columns(name::of_path(path), table, named));
                continue;
            }
            // Workers of a cluster read it, so that this process need not.
            Named::Url(_) if opening.spread.is_some() && is_segment(named) => {}
            Named::Url(url) => match remote::open(named, shown(url), opening).await? {
                remote::Found::Table(table) => {
                    found.push(Part::of_columns(shown(url), table, named));
                    continue;
                }
                remote::Found::Source(source) => opened = Some(source),
            },
            _ => {}
        }
        let source = Source { named, name, opened, format: None };
        found.push(find(context, source, opening).await?);
    }
    let (parts, all) = described(context, found, opening).await?;
    Ok((together(name, sources.are_found(), parts, opening)?, all))
}

/// The table of a unit, which may have rows outside of its range.
///
/// # Errors
/// It cannot be read.
pub(crate) async fn unit_of(
    context: &SessionContext,
    (named, shown): (&Named, &str),
    (range, scan): (&Range<u64>, &UnitScan),
    opening: &Opening,
) -> Result<Arc<dyn TableProvider>> {
    let unit = |messages| UnitSource { named, shown, range, messages };
    match &scan.content {
        UnitContent::RowGroups => parquet_of(context, named, opening).await,
        UnitContent::Messages(of) => {
            messages::load_unit(context, unit(of), Arc::clone(&scan.table), opening).await
        }
        UnitContent::Description(of) => {
            let batch = messages::describe_unit(context, unit(of), opening).await?;
            Ok(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))
        }
    }
}

/// The table of one Parquet file.
///
/// # Errors
/// It cannot be read, or is no Parquet file.
async fn parquet_of(
    context: &SessionContext,
    named: &Named,
    opening: &Opening,
) -> Result<Arc<dyn TableProvider>> {
    match named {
        Named::Path(path) if is_parquet(path) => parquet::table(context, path).await,
        Named::Url(url) => match remote::open(named, shown(url), opening).await? {
            remote::Found::Table(table) => Ok(table),
            remote::Found::Source(_) => Err(Error::table(&shown(url), "is no Parquet file now")),
        },
        _ => {
            let name = named.name().unwrap_or_default();
            Err(Error::table(&name::of_path(name), "is no Parquet file now"))
        }
    }
}

/// One of the tables that a name refers to.
struct Part {
    name: String,
    table: Arc<dyn TableProvider>,
    /// The file, if workers of a cluster can read its units.
    file: Option<SpreadFile>,
}

/// What a source turned out to be.
enum Found {
    Part(Part, Loaded),
    /// Messages that workers of a cluster describe and read.
    Messages(MessagesFile),
}

/// Opens a table of a data folder.
///
/// # Errors
/// The table cannot be read.
pub(crate) async fn open_kept(
    context: &SessionContext,
    (kept, name): (&Arc<DataFolder>, &str),
    opening: &Opening,
) -> Result<(Arc<dyn TableProvider>, Loaded)> {
    let fail = |error: quarrier::Error| Error::table(name, error.to_string());
    if kept.definition(name).map_err(fail)?.is_some() {
        return messages::declared(kept, name, opening.clone()).await;
    }
    let sources = kept.sources([name]).map_err(fail)?;
    let only = sources.iter().next().filter(|_| sources.len() == 1).cloned();
    match only {
        Some(named) => {
            let named = (named, name.to_string(), None);
            Ok(messages::load(context, named, None, opening.clone()).await?.1)
        }
        // The table has messages of several formats, or none.
        None => messages::load_all(sources, name, opening.clone()).await,
    }
}

/// Loads messages of a named format from a source of any kind, or from all that match a glob.
///
/// # Errors
/// There is no such format or source, or one cannot be read.
pub(crate) async fn open_typed(
    context: &SessionContext,
    typed: TypedMessages,
    opening: &Opening,
) -> Result<(Arc<dyn TableProvider>, Loaded)> {
    let format = Format::named(&typed.format);
    let format = format.map_err(|error| Error::text(format!("messages(…): {error}")))?;
    let mut found = Vec::new();
    let sources = Sources::of([&typed.source]);
    let sources = sources.listed(&opening.opener);
    for named in sources.iter() {
        let source = Source { named, name: &typed.source, opened: None, format: format.clone() };
        found.push(find(context, source, opening).await?);
    }
    let (parts, all) = described(context, found, opening).await?;
    Ok((together(&typed.source, sources.are_found(), parts, opening)?, all))
}

/// One of the sources that a name refers to.
struct Source<'s> {
    named: &'s Named,
    name: &'s str,
    /// The source, if it is open already.
    opened: Option<Opened>,
    /// The format of its messages; `None` to detect it.
    format: Option<Format>,
}

/// Loads a source, unless workers of a cluster can read its messages.
async fn find(
    context: &SessionContext,
    Source { named, name, opened, format }: Source<'_>,
    opening: &Opening,
) -> Result<Found> {
    let name = match named {
        Named::Path(path) => name::of_path(path),
        Named::Url(url) => shown(url),
        _ => shown(name),
    };
    let file = MessagesFile::new(named.clone(), name, format);
    let Some(spread) = &opening.spread else {
        return load(context, file, opened, opening).await;
    };
    match spread::shared(&file, opening).await? {
        Shared::Here => load(context, file, opened, opening).await,
        Shared::Spread(source) => Ok(Found::Messages(file.with_source(source))),
        Shared::Not => load_here(context, spread, file, opening).await,
    }
}

/// Loads a source, which may be open already.
async fn load(
    context: &SessionContext,
    file: MessagesFile,
    opened: Option<Opened>,
    opening: &Opening,
) -> Result<Found> {
    let MessagesFile { named, shown, format, .. } = file;
    let (name, (table, met)) =
        messages::load(context, (named, shown, opened), format, opening.clone()).await?;
    Ok(Found::Part(Part { name, table, file: None }, met))
}

/// Loads a source that workers of a cluster cannot read, with a notice, or refuses it.
async fn load_here(
    context: &SessionContext,
    spread: &Spreading,
    file: MessagesFile,
    opening: &Opening,
) -> Result<Found> {
    let notice = spread.not_spread(&file.shown).map_err(Error::text)?;
    let mut found = load(context, file, None, opening).await?;
    if let Found::Part(_, met) = &mut found {
        met.notices.insert(0, notice);
    }
    Ok(found)
}

/// The parts, and their problems. Workers of a cluster describe the messages that they are to read.
async fn described(
    context: &SessionContext,
    found: Vec<Found>,
    opening: &Opening,
) -> Result<(Vec<Part>, Loaded)> {
    let files = found.iter().filter_map(|found| match found {
        Found::Messages(file) => Some(file.clone()),
        Found::Part(..) => None,
    });
    let files: Vec<MessagesFile> = files.collect();
    let mut known = match &opening.spread {
        Some(spread) if !files.is_empty() => spread::describe(spread, files, opening).await?,
        _ => Vec::new(),
    }
    .into_iter();
    let (mut parts, mut all) = (Vec::new(), Loaded::default());
    for found in found {
        let found = match (found, &opening.spread) {
            (Found::Messages(file), Some(spread)) => match known.next() {
                Some(Described::Known(part, met)) => {
                    let name = file.shown;
                    Found::Part(Part::of_file(name, *part, spread), *met)
                }
                _ => load_here(context, spread, file, opening).await?,
            },
            (found, _) => found,
        };
        if let Found::Part(part, met) = found {
            parts.push(part);
            all.add(met);
        }
    }
    Ok((parts, all))
}

/// Combines tables into one, with a column for their names unless `name` is a single source.
fn together(
    name: &str,
    are_found: bool,
    mut parts: Vec<Part>,
    opening: &Opening,
) -> Result<Arc<dyn TableProvider>> {
    let is_single = parts.len() == 1 && !are_found;
    if let Some(spread) = &opening.spread {
        if !is_single && let Some(table) = spread_together(spread, &parts) {
            return Ok(Arc::new(table));
        }
        parts.iter_mut().for_each(|part| part.spread(spread));
    }
    if is_single && let Some(only) = parts.pop() {
        return Ok(only.table);
    }
    let mut union: Option<LogicalPlanBuilder> = None;
    for part in parts {
        let part = with_name(&part.name, part.table)?;
        union = Some(match union {
            Some(before) => before.union_by_name(part.build()?)?,
            None => part,
        });
    }
    match union {
        Some(union) => Ok(Arc::new(ViewTable::new(union.build()?, None))),
        None => Err(Error::table(name, "no file matches it")),
    }
}

/// The files as one table of a cluster. `None` if they are not all files with the same columns.
fn spread_together(spread: &Spreading, parts: &[Part]) -> Option<SpreadTable> {
    let files = parts.iter().map(|part| part.file.clone()).collect::<Option<_>>()?;
    SpreadTable::several(spread, files)
}

impl Part {
    /// A Parquet file.
    fn of_columns(name: String, table: Arc<dyn TableProvider>, named: &Named) -> Found {
        let file = SpreadFile {
            source: SpreadSource { named: named.clone(), is_cut: true, version: None },
            content: UnitContent::RowGroups,
            schema: table.schema(),
            rows: KnownRows::Of(Arc::clone(&table)),
        };
        Found::Part(Part { name, table, file: Some(file) }, Loaded::default())
    }

    /// A file that only workers of a cluster read.
    fn of_file(name: String, file: SpreadFile, spread: &Spreading) -> Self {
        let table = Arc::new(SpreadTable::single(spread, file.clone()));
        Part { name, table, file: Some(file) }
    }

    /// Lets the workers of a cluster read the table, if they can.
    fn spread(&mut self, spread: &Spreading) {
        if let Some(file) = &self.file {
            self.table = Arc::new(SpreadTable::single(spread, file.clone()));
        }
    }
}

fn with_name(name: &str, table: Arc<dyn TableProvider>) -> Result<LogicalPlanBuilder> {
    let schema = table.schema();
    let scan = LogicalPlanBuilder::scan(
        datafusion::common::TableReference::bare(name),
        provider_as_source(table),
        None,
    )?;
    let columns = schema.fields().iter().filter(|field| field.name() != FILENAME);
    let columns = columns.map(|field| {
        let column = datafusion::common::Column::new_unqualified(field.name());
        datafusion::logical_expr::Expr::Column(column)
    });
    let name = datafusion::common::ScalarValue::Utf8View(Some(name.to_string()));
    let outputs: Vec<_> = columns.chain([lit(name).alias(FILENAME)]).collect();
    Ok(scan.project(outputs)?)
}

/// Whether a source is a segment of a log by its name.
fn is_segment(named: &Named) -> bool {
    named.name().is_some_and(|name| quarrier::source::is_segment(&name.to_string_lossy()))
}

/// Whether a file begins with the magic number of Parquet, whatever its extension.
fn is_parquet(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && matches!(Format::detect("", &head), Some(Format::Parquet))
}
