//! Message files, loaded into packed columns; each source becomes a table.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::prelude::SessionContext;
use quarrier::tables::DetectedSource;
use quarrier::{DataFolder, Named, Opened as Source, Sources, Tables as Request};
use quarrier_core::region::give_back_freed_memory;
use quarrier_messages::{Description, Field, Format, Kind, Schema};

use super::pieces::Pieces;
use super::spread::{UnitMessages, description_batch};
use super::{FileRejects, Loaded, Opening, Rounded};
use crate::net::blocking;
use crate::{Error, Messages, Result};

pub(super) type Opened = (Arc<dyn TableProvider>, Loaded);

/// The range of all messages of a source, whatever its length.
const WHOLE: Range<u64> = 0..u64::MAX;

/// How often a source is read until the types of its columns are known.
const PASSES_MAX: usize = 8;

/// Loads a source of any kind, which may be open already, in a given or detected format. Also returns its
/// name. Messages that do not fit in memory go to temporary files.
pub(super) async fn load(
    context: &SessionContext,
    (named, shown, opened): (Named, String, Option<Source>),
    format: Option<Format>,
    opening: Opening,
) -> Result<(String, Opened)> {
    let disk = Arc::clone(&context.runtime_env().disk_manager);
    let name = shown.clone();
    let reading = Reading { named, shown, format, opening, disk, part: None };
    let loaded = blocking(move || reading.table(opened)).await;
    loaded.map_err(|error| ended(&name, error))
}

fn ended(name: &str, error: Error) -> Error {
    match error {
        Error::Internal(panicked) => Error::table(name, format!("{panicked} ended its load")),
        error => error,
    }
}

/// The messages of a unit.
pub(super) struct UnitSource<'u> {
    pub(super) named: &'u Named,
    /// The name in errors.
    pub(super) shown: &'u str,
    pub(super) range: &'u Range<u64>,
    pub(super) messages: &'u UnitMessages,
}

/// Loads the messages of a unit into a table with these columns.
pub(super) async fn load_unit(
    context: &SessionContext,
    unit: UnitSource<'_>,
    columns: SchemaRef,
    opening: &Opening,
) -> Result<Arc<dyn TableProvider>> {
    let name = unit.shown.to_string();
    let reading = unit.reading(context, Some(columns), opening)?;
    let loaded = blocking(move || reading.table(None)).await;
    Ok(loaded.map_err(|error| ended(&name, error))?.1.0)
}

/// Describes the messages of a unit.
pub(super) async fn describe_unit(
    context: &SessionContext,
    unit: UnitSource<'_>,
    opening: &Opening,
) -> Result<RecordBatch> {
    let name = unit.shown.to_string();
    let reading = unit.reading(context, None, opening)?;
    let described = blocking(move || reading.description()).await;
    described.map_err(|error| ended(&name, error))
}

impl UnitSource<'_> {
    fn reading(
        self,
        context: &SessionContext,
        columns: Option<SchemaRef>,
        opening: &Opening,
    ) -> Result<Reading> {
        let format = match &self.messages.format {
            Some(format) => {
                Format::named(format).map_err(|error| Error::text(error.to_string()))?
            }
            None => None,
        };
        Ok(Reading {
            named: self.named.clone(),
            shown: self.shown.to_string(),
            format,
            opening: Opening { hidden: self.messages.hidden, ..opening.clone() },
            disk: Arc::clone(&context.runtime_env().disk_manager),
            part: Some(UnitPart { range: self.range.clone(), columns }),
        })
    }
}

/// Loads sources of any formats into one table, which must fit in memory.
pub(super) async fn load_all(sources: Sources, name: &str, opening: Opening) -> Result<Opened> {
    let shown = name.to_string();
    let load = move || {
        let request = Request::new()
            .workers(opening.workers)
            .limits(opening.limits.clone())
            .hidden(opening.hidden);
        let loaded = request.load_all(&sources, &opening.opener, &opening.stop);
        let mut loaded = loaded.map_err(|error| {
            if opening.stop.load(Ordering::Relaxed) {
                return Error::Cancelled;
            }
            Error::table(&shown, error.to_string())
        })?;
        let mut met = Loaded::default();
        meet(&mut met, &mut loaded);
        met.bytes = loaded.bytes;
        met.damages = std::mem::take(&mut loaded.damages);
        met.notices = std::mem::take(&mut loaded.notices);
        met.memory_bytes = loaded.table.nbytes();
        met.hidden = loaded.table.hidden();
        let table: Arc<dyn TableProvider> = Arc::new(Messages::new(Arc::new(loaded.table)));
        Ok((table, met))
    };
    blocking(load).await
}

/// Loads a table with declared columns from a data folder. It must fit in memory.
pub(super) async fn declared(
    kept: &Arc<DataFolder>,
    name: &str,
    opening: Opening,
) -> Result<Opened> {
    let (kept, name) = (Arc::clone(kept), name.to_string());
    let load = move || {
        let table = kept.table(&name, opening.workers, &opening.stop).map_err(|error| {
            if opening.stop.load(Ordering::Relaxed) {
                return Error::Cancelled;
            }
            Error::table(&name, error.to_string())
        })?;
        let memory_bytes = table.nbytes();
        let table: Arc<dyn TableProvider> = Arc::new(Messages::new(table));
        Ok((table, Loaded { memory_bytes, ..Loaded::default() }))
    };
    blocking(load).await
}

/// A source to be loaded.
struct Reading {
    named: Named,
    shown: String,
    format: Option<Format>,
    opening: Opening,
    disk: Arc<DiskManager>,
    part: Option<UnitPart>,
}

/// A unit of a source.
struct UnitPart {
    range: Range<u64>,
    /// The columns of the source, if they are known.
    columns: Option<SchemaRef>,
}

/// The outcome of one read of a source.
enum Pass {
    /// The whole source was loaded.
    Done(Opened),
    /// Nothing was loaded, since columns have values of wider types.
    Wider(Schema),
}

impl Reading {
    /// Loads all messages of a source that may be open already. Returns its name, too.
    fn table(&self, mut opened: Option<Source>) -> Result<(String, Opened)> {
        let mut schema = self.columns().map(|columns| self.schema_of(columns)).transpose()?;
        for _ in 0..PASSES_MAX {
            let request = self.request();
            let mut detected = self.detect(&request, opened.take())?;
            match self.pass(&request, &mut detected, schema.as_ref())? {
                Pass::Done(opened) => return Ok((detected.name().to_string(), opened)),
                Pass::Wider(_) if self.columns().is_some() => return Err(self.changed()),
                Pass::Wider(wider) => schema = Some(wider),
            }
            if !self.named.is_seekable() {
                let reason = "it does not fit in memory, and columns have values of several types; \
                              save it as a file, and query that";
                return Err(Error::table(&self.shown, reason));
            }
        }
        Err(Error::table(&self.shown, "changed while it was read"))
    }

    fn request(&self) -> Request<'static> {
        Request::new()
            .format(self.format.clone())
            .workers(self.opening.workers)
            .limits(self.opening.limits.clone())
            .hidden(self.opening.hidden)
            .range(self.part.as_ref().map(|part| part.range.clone()).filter(|it| *it != WHOLE))
            .parquet(Some(&quarrier_parquet::Reader))
    }

    fn detect(
        &self,
        request: &Request<'_>,
        opened: Option<Source>,
    ) -> Result<DetectedSource<'static>> {
        let source = match opened {
            Some(source) => Ok(source),
            None => self.opening.opener.open_messages(&self.named),
        };
        let detected = source.and_then(|source| request.detect(source, &self.opening.stop));
        detected.map_err(|error| self.failed(&error))
    }

    /// The columns that the source must have, if they are known.
    fn columns(&self) -> Option<&SchemaRef> {
        self.part.as_ref()?.columns.as_ref()
    }

    /// The types of known columns.
    fn schema_of(&self, columns: &SchemaRef) -> Result<Schema> {
        let fields = columns.fields().iter().map(|field| {
            let kind = kind_of(field.data_type()).ok_or_else(|| self.changed())?;
            Ok(Field { name: field.name().as_str().into(), kind })
        });
        Ok(Schema { fields: fields.collect::<Result<_>>()? })
    }

    fn changed(&self) -> Error {
        Error::table(&self.shown, "has other columns now; run the statement again")
    }

    /// Describes all messages.
    fn description(&self) -> Result<RecordBatch> {
        let (request, stop) = (self.request(), &self.opening.stop);
        let mut detected = self.detect(&request, None)?;
        let bytes_max = self.opening.room.left().unwrap_or(usize::MAX);
        let (mut all, mut description) =
            (quarrier::tables::Loaded::default(), Description::default());
        let mut add = |piece: &mut quarrier::tables::Loaded| {
            description.join(&piece.table.description());
            all.rejects.append(&mut piece.rejects);
            all.rejected += piece.rejected;
            all.refused.add(std::mem::take(&mut piece.refused));
        };
        let rest =
            request.load_in_pieces(&mut detected, stop, (bytes_max, None), &mut |mut piece| {
                add(&mut piece);
                Ok(())
            });
        let mut rest = rest.map_err(|error| self.failed(&error))?;
        add(&mut rest);
        (all.bytes, all.lines) = (rest.bytes, rest.lines);
        (all.damages, all.notices) = (rest.damages, rest.notices);
        all.rejects.truncate(self.opening.limits.rejects_max);
        let start = self.part.as_ref().map_or(0, |part| part.range.start);
        Ok(description_batch(start, &description, (detected.name(), &all))?)
    }

    fn pass(
        &self,
        request: &Request<'_>,
        detected: &mut DetectedSource<'_>,
        schema: Option<&Schema>,
    ) -> Result<Pass> {
        let stop = &self.opening.stop;
        let bytes_max = self.opening.room.left().unwrap_or(usize::MAX);
        let mut pieces = Pieces::new(&self.disk);
        let mut met = Loaded::default();
        let mut failed = None;
        let rest = request.load_in_pieces(detected, stop, (bytes_max, schema), &mut |mut piece| {
            meet(&mut met, &mut piece);
            pieces.add(piece.table).map_err(|error| {
                let stopped = quarrier::Error::Request(error.to_string());
                failed = Some(error);
                stopped
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let mut rest = rest.map_err(|error| self.failed(&error))?;
        meet(&mut met, &mut rest);
        met.bytes = rest.bytes;
        met.damages = std::mem::take(&mut rest.damages);
        met.notices = std::mem::take(&mut rest.notices);
        if pieces.are_none() {
            met.memory_bytes = rest.table.nbytes();
            met.hidden = rest.table.hidden();
            let table = match self.columns() {
                Some(columns) => Messages::of_part(&rest.table, columns),
                None => Some(Messages::new(Arc::new(rest.table))),
            };
            return Ok(Pass::Done((Arc::new(table.ok_or_else(|| self.changed())?), met)));
        }
        met.hidden = met.hidden | rest.table.hidden();
        pieces.add(rest.table)?;
        give_back_freed_memory();
        if let Some(wider) = pieces.wider() {
            return Ok(Pass::Wider(wider));
        }
        let table = match self.columns() {
            Some(columns) => pieces.part(columns, &self.shown).ok_or_else(|| self.changed())?,
            None => pieces.table(&self.shown),
        };
        Ok(Pass::Done((table?, met)))
    }

    fn failed(&self, error: &quarrier::Error) -> Error {
        failed(&self.shown, error, &self.opening)
    }
}

/// The type of the messages' columns that have this type in Arrow.
fn kind_of(data_type: &DataType) -> Option<Kind> {
    Some(match data_type {
        DataType::Null => Kind::Null,
        DataType::Boolean => Kind::Boolean,
        DataType::Int64 => Kind::Integer,
        DataType::Decimal128(_, scale) => Kind::Decimal { scale: u8::try_from(*scale).ok()? },
        DataType::Float64 => Kind::Float,
        DataType::Date32 => Kind::Date,
        DataType::Timestamp(..) => Kind::Timestamp,
        DataType::Utf8View => Kind::Text,
        _ => return None,
    })
}

/// The error of a source that cannot be opened or read.
pub(super) fn failed(name: &str, error: &quarrier::Error, opening: &Opening) -> Error {
    if opening.stop.load(Ordering::Relaxed) {
        return Error::Cancelled;
    }
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or(&said);
    Error::table(name, said)
}

/// Adds the problems of a piece of a source, but not its size.
fn meet(met: &mut Loaded, piece: &mut quarrier::tables::Loaded) {
    let rounded = piece.rounded().map(|(column, count)| Rounded { column: column.into(), count });
    let mut rejects_by_file = Vec::new();
    match (met.rejects_by_file.first_mut(), piece.rejects.first()) {
        (Some(before), _) => before.count += piece.rejected,
        (None, Some(first)) if piece.rejected > 0 => rejects_by_file.push(FileRejects {
            source: first.source.as_ref().into(),
            count: piece.rejected,
            line: first.line,
            reason: first.fault.to_string(),
        }),
        _ => {}
    }
    met.add(Loaded {
        rounded: rounded.collect(),
        rejects_by_file,
        rejects: std::mem::take(&mut piece.rejects),
        fields_left_out: piece.refused.count,
        hidden: piece.table.hidden(),
        has_replaced: piece.refused.names.iter().any(|name| piece.table.hidden().has(name)),
        ..Loaded::default()
    });
}
