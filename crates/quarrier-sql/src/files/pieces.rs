//! Messages that do not fit in memory. They are loaded in pieces, and each piece is written to
//! temporary Parquet files, which queries read like any other.
//!
//! ```text
//!  source ─→ piece ─→ piece ─→ …        types of all pieces ─→ one schema ─→ table
//!              └─→ one file while the types are the same    └─→ if no type holds all values
//!                                                               unchanged: load again, with wider types
//! ```

use std::fmt;
use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::SpillFile;
use datafusion::execution::disk_manager::DiskManager;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use quarrier_messages::{Field, Kind, Places, Table, Views};

use super::parquet::Parquet;
use crate::{Error, Result};

/// Rows per row group, and per batch that is written.
const GROUP_ROWS: usize = 16 << 10;

/// Digits that hold any 64-bit integer.
const WHOLE_DIGITS: u8 = 19;

/// Maximum number of digits of exact numbers.
const DIGITS_MAX: u8 = 38;

/// A column of all pieces, with the type that its values have in them.
struct Column {
    name: Box<str>,
    kind: Kind,
    data_type: DataType,
    /// Whether the values of all pieces can be read as this type.
    is_common: bool,
}

/// The pieces of a source, in temporary files.
pub(super) struct Pieces {
    disk: Arc<DiskManager>,
    columns: Vec<Column>,
    files: Vec<Arc<dyn SpillFile>>,
    writer: Option<(SchemaRef, ArrowWriter<File>)>,
}

impl Pieces {
    /// No pieces yet.
    pub(super) fn new(disk: &Arc<DiskManager>) -> Self {
        Pieces { disk: Arc::clone(disk), columns: Vec::new(), files: Vec::new(), writer: None }
    }

    pub(super) fn are_none(&self) -> bool {
        self.files.is_empty()
    }

    /// Appends the rows.
    pub(super) fn add(&mut self, table: Table) -> Result<()> {
        let views = Views::new(Arc::new(table));
        self.learn(&views);
        let schema = Arc::clone(views.schema());
        if self.writer.as_ref().is_none_or(|(known, _)| *known != schema) {
            self.close()?;
            self.writer = Some((Arc::clone(&schema), self.file(&schema)?));
        }
        let Some((_, writer)) = &mut self.writer else { return Ok(()) };
        let table = views.table();
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        for segment in 0..table.segments() {
            let rows = table.segment_rows(segment);
            for start in (0..rows).step_by(GROUP_ROWS) {
                let places = Places::Range(start..(start + GROUP_ROWS).min(rows));
                let batch = views.batch(&schema, &columns, segment, &places);
                writer.write(&batch.map_err(failed)?).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Creates a file for rows of this schema.
    fn file(&mut self, schema: &SchemaRef) -> Result<ArrowWriter<File>> {
        let file = self.disk.create_tmp_file("loading messages")?;
        let path = file.path().ok_or_else(|| failed("it has no path"))?;
        let open = File::options().write(true).open(path).map_err(failed)?;
        self.files.push(file);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        ArrowWriter::try_new(open, Arc::clone(schema), Some(properties)).map_err(failed)
    }

    fn close(&mut self) -> Result<()> {
        match self.writer.take() {
            Some((_, writer)) => writer.close().map(drop).map_err(failed),
            None => Ok(()),
        }
    }

    fn learn(&mut self, views: &Views) {
        let kinds = views.table().schema().fields.iter();
        for (field, arrow) in kinds.zip(views.schema().fields()) {
            let data_type = arrow.data_type();
            match self.columns.iter_mut().find(|column| column.name == field.name) {
                Some(column) => column.join(field.kind, data_type),
                None => self.columns.push(Column {
                    name: field.name.clone(),
                    kind: field.kind,
                    data_type: data_type.clone(),
                    is_common: true,
                }),
            }
        }
    }

    /// The types with which the source must be loaded again, because no type holds the values of
    /// all pieces.
    pub(super) fn wider(&self) -> Option<quarrier_messages::Schema> {
        let field = |column: &Column| Field { name: column.name.clone(), kind: column.kind };
        let is_wider = self.columns.iter().any(|column| !column.is_common);
        is_wider
            .then(|| quarrier_messages::Schema { fields: self.columns.iter().map(field).collect() })
    }

    /// A table of all rows. Errors call it `name`.
    pub(super) fn table(self, name: &str) -> Result<Arc<dyn TableProvider>> {
        let field = |column: &Column| {
            datafusion::arrow::datatypes::Field::new(&*column.name, column.data_type.clone(), true)
        };
        let schema = Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()));
        self.table_of(schema, name)
    }

    /// Like [`table`](Self::table), with columns of a table of which this is a part. `None` if it is not.
    pub(super) fn part(
        self,
        schema: &SchemaRef,
        name: &str,
    ) -> Option<Result<Arc<dyn TableProvider>>> {
        let is_held = |field: &datafusion::arrow::datatypes::FieldRef| {
            let mut columns = self.columns.iter();
            let own = columns.find(|column| *column.name == **field.name());
            own.is_some_and(|own| match (&own.data_type, field.data_type()) {
                (DataType::Decimal128(own, scale), DataType::Decimal128(digits, of)) => {
                    scale == of && own <= digits
                }
                (own, declared) => own == declared,
            })
        };
        let is_part = schema.fields().iter().all(is_held);
        is_part.then(|| self.table_of(Arc::clone(schema), name))
    }

    fn table_of(mut self, schema: SchemaRef, name: &str) -> Result<Arc<dyn TableProvider>> {
        self.close()?;
        let url = |file: &Arc<dyn SpillFile>| {
            let path = file.path().ok_or_else(|| failed("it has no path"))?;
            let path = std::fs::canonicalize(path).map_err(failed)?;
            let url = url::Url::from_file_path(path).map_err(|()| failed("is not a path"))?;
            Ok(ListingTableUrl::try_new(url, None)?)
        };
        let urls = self.files.iter().map(url).collect::<Result<Vec<_>>>()?;
        let options =
            ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .with_schema(schema);
        let table = Arc::new(ListingTable::try_new(config)?);
        Ok(Arc::new(Parquet::new(table, name.to_string(), self.files)))
    }
}

impl Column {
    /// Widens the type to hold the values of another piece.
    fn join(&mut self, kind: Kind, data_type: &DataType) {
        if *data_type == self.data_type || *data_type == DataType::Null {
            return;
        }
        if self.data_type == DataType::Null {
            (self.kind, self.data_type) = (kind, data_type.clone());
            return;
        }
        if let Some((precision, scale)) = exact(&self.data_type, data_type) {
            self.data_type = DataType::Decimal128(precision, scale as i8);
            self.kind = Kind::Decimal { scale };
            return;
        }
        self.is_common = false;
        self.kind = wider(self.kind, kind);
    }
}

/// Precision and scale of exact numbers that hold the values of both types.
fn exact(one: &DataType, other: &DataType) -> Option<(u8, u8)> {
    let digits = |data_type: &DataType| match *data_type {
        DataType::Int64 => Some((WHOLE_DIGITS, 0)),
        DataType::Decimal128(precision, scale) => Some((precision, u8::try_from(scale).ok()?)),
        _ => None,
    };
    let (one, other) = (digits(one)?, digits(other)?);
    let scale = one.1.max(other.1);
    let whole = one.0.saturating_sub(one.1).max(other.0.saturating_sub(other.1));
    (whole + scale <= DIGITS_MAX).then_some((whole + scale, scale))
}

/// The higher-ranked of two types. The type that holds the values of both may be wider still, which
/// the next load finds.
fn wider(one: Kind, other: Kind) -> Kind {
    let rank = |kind: Kind| match kind {
        Kind::Null => 0,
        Kind::Boolean => 1,
        Kind::Integer => 2,
        Kind::Decimal { scale } => 3 + u32::from(scale),
        Kind::Float => 100,
        Kind::Date => 101,
        Kind::Timestamp => 102,
        Kind::Text => 103,
    };
    if rank(other) > rank(one) { other } else { one }
}

fn failed(error: impl fmt::Display) -> Error {
    let said = error.to_string();
    let said = said.split(" (os error").next().unwrap_or(&said);
    Error::Setup { reason: format!("a temporary file for a table: {said}") }
}
