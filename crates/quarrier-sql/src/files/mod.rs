//! Files as tables.

mod messages;
mod parquet;
mod pieces;
mod remote;
mod room;

pub(crate) use room::Room;

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
                tables.push((path.display().to_string(), table));
                continue;
            }
            Named::Url(url) => match remote::open(named, shown(url), opening).await? {
                remote::Found::Table(table) => {
                    tables.push((shown(url), table));
                    continue;
                }
                remote::Found::Source(source) => opened = Some(source),
            },
            _ => {}
        }
        let source = Source { named, name, opened };
        tables.push(load(context, source, None, opening, &mut all).await?);
    }
    Ok((together(name, sources.are_found(), tables)?, all))
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
    Ok((together(&typed.source, sources.are_found(), tables)?, all))
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
) -> Result<(String, Arc<dyn TableProvider>)> {
    let name = match named {
        Named::Path(path) => path.display().to_string(),
        Named::Url(url) => shown(url),
        _ => shown(name),
    };
    let opening = opening.clone();
    let (name, (table, met)) =
        messages::load(context, (named.clone(), name, opened), format, opening).await?;
    all.add(met);
    Ok((name, table))
}

/// Combines tables into one, with a column for their names unless `name` is a single source.
fn together(
    name: &str,
    are_found: bool,
    mut tables: Vec<(String, Arc<dyn TableProvider>)>,
) -> Result<Arc<dyn TableProvider>> {
    if tables.len() == 1
        && !are_found
        && let Some((_, only)) = tables.pop()
    {
        return Ok(only);
    }
    let mut union: Option<LogicalPlanBuilder> = None;
    for (name, table) in tables {
        let part = with_name(&name, table)?;
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
