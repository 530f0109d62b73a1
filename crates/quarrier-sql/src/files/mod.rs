//! Files as tables.

mod messages;
mod parquet;
mod pieces;
mod remote;
mod room;
mod spread;

pub(crate) use room::Room;
pub use spread::{Spread, SpreadFragment, Spreading, TakeRows, UnitExec, UnitScan};
pub(crate) use spread::{SpreadExec, within};

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::prelude::SessionContext;
use quarrier::source::shown;
use quarrier::{DataFolder, Named, Opened, Opener, Sources};
use quarrier_messages::{Format, HiddenColumns, Limits, Reject};

use self::parquet::damaged;
use self::spread::SpreadTable;
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
    let mut all = Loaded::default();
    let mut tables = Vec::new();
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
                tables.push(Part {
                    name: path.display().to_string(),
                    table,
                    file: Some(named.clone()),
                });
                continue;
            }
            Named::Url(url) => match remote::open(named, shown(url), opening).await? {
                remote::Found::Table(table) => {
                    tables.push(Part { name: shown(url), table, file: Some(named.clone()) });
                    continue;
                }
                remote::Found::Source(source) => opened = Some(source),
            },
            _ => {}
        }
        let source = Source { named, name, opened };
        tables.push(load(context, source, None, opening, &mut all).await?);
    }
    Ok((together(name, sources.are_found(), tables, opening)?, all))
}

/// The table of one Parquet file.
///
/// # Errors
/// It cannot be read, or is no Parquet file.
pub(crate) async fn parquet_of(
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
            Err(Error::table(&name.to_string_lossy(), "is no Parquet file now"))
        }
    }
}

/// One of the tables that a name refers to.
struct Part {
    name: String,
    table: Arc<dyn TableProvider>,
    /// The file, if workers of a cluster can read its units.
    file: Option<Named>,
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
    let mut all = Loaded::default();
    let mut tables = Vec::new();
    let sources = Sources::of([&typed.source]);
    let sources = sources.listed(&opening.opener);
    for named in sources.iter() {
        let source = Source { named, name: &typed.source, opened: None };
        tables.push(load(context, source, format.clone(), opening, &mut all).await?);
    }
    Ok((together(&typed.source, sources.are_found(), tables, opening)?, all))
}

/// One of the sources that a name refers to.
struct Source<'s> {
    named: &'s Named,
    name: &'s str,
    /// The source, if it is open already.
    opened: Option<Opened>,
}

/// Loads a source, and adds its problems to `all`.
async fn load(
    context: &SessionContext,
    Source { named, name, opened }: Source<'_>,
    format: Option<Format>,
    opening: &Opening,
    all: &mut Loaded,
) -> Result<Part> {
    let name = match named {
        Named::Path(path) => path.display().to_string(),
        Named::Url(url) => shown(url),
        _ => shown(name),
    };
    // A missing file is reported as without a cluster.
    let is_missing = match named {
        Named::Path(path) => std::fs::metadata(path).is_err(),
        Named::Missing(_) | Named::Unlisted(_) | Named::Refused { .. } => true,
        _ => false,
    };
    if let Some(spread) = opening.spread.as_ref().filter(|_| !is_missing) {
        all.notices.push(spread.not_spread(&name).map_err(Error::text)?);
    }
    let opening = opening.clone();
    let (name, (table, met)) =
        messages::load(context, (named.clone(), name, opened), format, opening).await?;
    all.add(met);
    Ok(Part { name, table, file: None })
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
    let file = |part: &Part| Some((part.file.clone()?, Arc::clone(&part.table)));
    SpreadTable::several(spread, parts.iter().map(file).collect::<Option<_>>()?)
}

impl Part {
    /// Lets the workers of a cluster read the table, if they can.
    fn spread(&mut self, spread: &Spreading) {
        if let Some(file) = &self.file {
            let file = (file.clone(), Arc::clone(&self.table));
            self.table = Arc::new(SpreadTable::single(spread, file));
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

/// Whether a file begins with the magic number of Parquet, whatever its extension.
fn is_parquet(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && matches!(Format::detect("", &head), Some(Format::Parquet))
}
