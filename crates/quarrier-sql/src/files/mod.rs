//! Files as tables.

mod messages;
mod parquet;
mod told;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datafusion::catalog::TableProvider;
use datafusion::catalog::view::ViewTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::prelude::SessionContext;
use quarrier::source::is_remote;
use quarrier::{Environment, OpenOptions, Opener};
use quarrier_messages::{Format, Limits, Reject};

use crate::rewrite::Told;
use crate::{Error, Result};

/// The name of the column that says which file of several a row is of.
pub(crate) const FILENAME: &str = "filename";

/// How files are opened.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) workers: usize,
    pub(crate) limits: Limits,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) environment: Environment,
}

impl Opening {
    /// Opens sources of any kind.
    fn opener(&self) -> Opener {
        Opener::new(OpenOptions::default(), &self.environment, &self.stop)
    }
}

/// What was met while files were loaded.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// Messages left out, as many as are kept.
    pub rejects: Vec<Reject>,
    /// How many were left out of each file that has such, in the order of loading.
    pub left_out: Vec<LeftOut>,
    /// Fields that have no column, because there are too many.
    pub fields_left_out: u64,
    /// Columns of floats with values that had more digits than floats have.
    pub rounded: Vec<Rounded>,
    /// Bytes that were parsed.
    pub bytes: u64,
    /// Bytes of memory that the columns take.
    pub memory_bytes: usize,
}

/// Values that lost digits because they became floats; shown as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rounded {
    /// The column.
    pub column: Box<str>,
    /// How many of its values did.
    pub count: u64,
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rounded { column, count } = self;
        let values = if *count == 1 { "value" } else { "values" };
        write!(
            f,
            "{count} {values} of column {column} lost digits: the column has floating numbers or \
             needs more than 38 digits, so exact numbers are kept as floats"
        )
    }
}

/// Messages that were left out of one file; shown as a sentence.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeftOut {
    /// The file.
    pub source: Arc<str>,
    /// How many were left out.
    pub count: u64,
    /// The line of the first, from 1.
    pub line: u64,
    /// Why the first was.
    pub reason: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { source, count, line, reason } = self;
        let messages = if *count == 1 { "message was" } else { "messages were" };
        write!(f, "{source}: {count} {messages} left out, the first at line {line}: {reason}")
    }
}

impl Loaded {
    pub(crate) fn add(&mut self, other: Loaded) {
        self.rejects.extend(other.rejects);
        self.left_out.extend(other.left_out);
        self.fields_left_out += other.fields_left_out;
        for rounded in other.rounded {
            match self.rounded.iter_mut().find(|known| known.column == rounded.column) {
                Some(known) => known.count += rounded.count,
                None => self.rounded.push(rounded),
            }
        }
        self.bytes += other.bytes;
        self.memory_bytes += other.memory_bytes;
    }
}

/// Opens what `name` is: a URL, a file, or all that match a glob, with a column for the file's name.
///
/// # Errors
/// Where there is no such file, or one that cannot be read.
pub(crate) async fn open(
    context: &SessionContext,
    name: &str,
    opening: &Opening,
) -> Result<(Arc<dyn TableProvider>, Loaded)> {
    if is_remote(name) {
        let (tables, all) = messages::load_remote(name, opening.clone()).await?;
        return Ok((together(name, tables)?, all));
    }
    let mut all = Loaded::default();
    let mut tables = Vec::new();
    for path in paths(name)? {
        let (table, loaded) = open_one(context, &path, opening).await?;
        all.add(loaded);
        tables.push((path.display().to_string(), table));
    }
    Ok((together(name, tables)?, all))
}

/// Loads messages whose format is told, from a source of any kind, or from several.
///
/// # Errors
/// Where there is no such format or source, or one that cannot be read.
pub(crate) async fn open_told(
    told: Told,
    opening: &Opening,
) -> Result<(Arc<dyn TableProvider>, Loaded)> {
    let name = told.source.clone();
    let (tables, all) = told::load(told, opening.clone()).await?;
    Ok((together(&name, tables)?, all))
}

/// One table of all, with a column for their names where they are several.
fn together(
    name: &str,
    mut tables: Vec<(String, Arc<dyn TableProvider>)>,
) -> Result<Arc<dyn TableProvider>> {
    if tables.len() == 1
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

/// The files that a name stands for.
fn paths(name: &str) -> Result<Vec<PathBuf>> {
    let path = Path::new(name);
    if name == "-" || path.exists() || !name.contains(['*', '?', '[']) {
        return Ok(vec![path.to_path_buf()]);
    }
    let found = glob::glob(name)
        .map_err(|error| Error::table(name, format!("is no file, and no glob either: {error}")))?;
    let files: Vec<PathBuf> = found.filter_map(|path| path.ok()).filter(|p| p.is_file()).collect();
    if files.is_empty() {
        return Err(Error::table(name, "no such file, and no file matches it as a glob"));
    }
    Ok(files)
}

async fn open_one(
    context: &SessionContext,
    path: &Path,
    opening: &Opening,
) -> Result<(Arc<dyn TableProvider>, Loaded)> {
    let name = path.display().to_string();
    if name == "-" {
        return messages::load_stream(opening.clone()).await;
    }
    let meta = std::fs::metadata(path).map_err(|error| Error::table(&name, plainly(&error)))?;
    if meta.is_dir() {
        let reason = format!("is a folder; name its files, as '{name}/*.ndjson'");
        return Err(Error::table(&name, reason));
    }
    if is_parquet(path) {
        return Ok((parquet::table(context, path).await?, Loaded::default()));
    }
    messages::load(path, opening.clone()).await
}

/// Whether it begins as Parquet does, whatever its ending says.
fn is_parquet(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && matches!(Format::told_by("", &head), Some(Format::Parquet))
}

/// What the system says, without its number.
fn plainly(error: &std::io::Error) -> String {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or(&said);
    format!("cannot open: {said}")
}
