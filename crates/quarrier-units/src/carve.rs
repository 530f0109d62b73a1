//! Stores the rows of carved files. A unit of carving is a whole source, because fragments of a file may be
//! anywhere in it.

use std::io;
use std::sync::{Arc, LazyLock};

use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use quarrier::Carve;
use quarrier_carve::folder::Row;
use quarrier_core::hex;
use quarrier_core::source::Source;
use quarrier_messages::open_arrow_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::object::sealed::{SealedWriter, is_summed, meta_of, to_io};
use crate::results::Results;
use crate::source::SourceUnits;
use crate::unit::{Unit, name_of};

/// The version of objects; a new version carves everything again.
const FORMAT: u32 = 1;

/// Maximum number of rows in a batch.
const BATCH_ROWS: usize = 16 * 1024;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// A string that is JSON.
    Json,
}

/// The columns: those of `quarrier carve --format arrow` with all options. Values may be missing from
/// `container` on.
const COLUMNS: [(&str, Kind); 18] = [
    ("source", Kind::Text),
    ("type", Kind::Text),
    ("offset", Kind::Number),
    ("length", Kind::Number),
    ("extents", Kind::Json),
    ("status", Kind::Text),
    ("reason", Kind::Text),
    ("sha256", Kind::Text),
    ("path", Kind::Text),
    ("container", Kind::Text),
    ("file", Kind::Text),
    ("inode", Kind::Number),
    ("state", Kind::Text),
    ("modified", Kind::Text),
    ("known", Kind::Json),
    ("md5", Kind::Text),
    ("sha1", Kind::Text),
    ("blake3", Kind::Text),
];

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let field = |(name, kind): &(&str, Kind)| match kind {
        Kind::Text | Kind::Json => Field::new(*name, DataType::Utf8, true),
        Kind::Number => Field::new(*name, DataType::UInt64, true),
    };
    Arc::new(Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>()))
});

/// The rows of carved files, stored source by source.
#[derive(Debug)]
pub struct CarveUnits {
    job: String,
    results: Results,
}

/// The data of an object besides its rows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    job: String,
    unit: String,
    rows: u64,
    remarks: Remarks,
}

/// Lines about a source that was carved.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remarks {
    /// Parts of the source that were not examined, or less closely, and damage: rows may be missing.
    pub problems: Vec<String>,
    /// Everything else that people should know.
    pub notices: Vec<String>,
}

/// The stored rows of a source.
pub struct CarvedUnit {
    source: Box<dyn Source>,
    unit: Unit,
    meta: Meta,
}

/// Takes rows in order; an error ends the work.
pub type TakeCarved<'t> = dyn FnMut(Row) -> io::Result<()> + 't;

impl CarveUnits {
    /// Stores rows of this request. `is_single` means that the paths of files begin in the folder of a
    /// single source, not of several.
    #[must_use]
    pub fn new(carve: &Carve, is_single: bool, results: Results) -> Self {
        let digest = hex::encode(&carve.digest());
        let version = env!("CARGO_PKG_VERSION");
        let job = format!("carve {FORMAT} {version} {digest} {is_single}");
        CarveUnits { job: name_of(job.as_bytes()), results }
    }

    /// Whether the object of a unit exists: see [`Results::has`]. It may be damaged.
    ///
    /// # Errors
    /// Those of [`Results::has`].
    pub fn has(&self, unit: &Unit) -> Result<bool> {
        self.results.has(&self.job, unit)
    }

    /// The stored rows of a unit, if there are any. A damaged object is removed; `notice` receives a line
    /// about it.
    ///
    /// # Errors
    /// [`Error::Search`] if the object cannot be read.
    pub fn object(&self, unit: &Unit, notice: &mut dyn FnMut(&str)) -> Result<Option<CarvedUnit>> {
        let Some(source) = self.results.open(&self.job, unit)? else { return Ok(None) };
        match CarvedUnit::open(source, &self.job, unit) {
            Ok(object) => Ok(Some(object)),
            Err(Error::Damaged { name, reason }) => {
                notice(&format!("{name}: is damaged ({reason}); its source is carved again"));
                self.results.remove(&self.job, unit).map(|()| None)
            }
            Err(error) => Err(error),
        }
    }

    /// Stores the rows of a source, in [their order](in_report_order).
    ///
    /// # Errors
    /// [`Error::Changed`] if the source has another version now; [`Error::Results`] if the rows cannot be
    /// stored.
    pub fn store(
        &self,
        (source, unit): (&SourceUnits, &Unit),
        rows: &[Row],
        remarks: Remarks,
    ) -> Result<()> {
        source.check_version()?;
        let (pending, out) = self.results.create(&self.job, unit)?;
        let path = self.results.path(&self.job, unit);
        let failed = |error: io::Error| Error::Results { path: path.clone(), error };
        let (job, unit) = (self.job.clone(), unit.id());
        let meta = Meta { job, unit, rows: rows.len() as u64, remarks };
        let written = SealedWriter::new(out, &SCHEMA).and_then(|mut writer| {
            for rows in rows.chunks(BATCH_ROWS) {
                writer.write(&batch_of(rows)?)?;
            }
            writer.finish(serde_json::to_string(&meta)?)
        });
        pending.publish(&path, written.map_err(failed)?)
    }
}

/// Sorts the rows of a source like those of its report: by offset, an archive before its members.
pub fn in_report_order(rows: &mut [Row]) {
    rows.sort_by(|one, other| {
        let key = |row: &Row| (row.offset, row.number());
        key(one).cmp(&key(other)).then_with(|| one.kind.cmp(&other.kind))
    });
}

fn batch_of(rows: &[Row]) -> io::Result<RecordBatch> {
    let values = rows.iter().map(|row| serde_json::from_str(&row.to_json()));
    let values: Vec<Value> = values.collect::<std::result::Result<_, _>>()?;
    let column = |(name, kind): &(&str, Kind)| -> ArrayRef {
        let values = values.iter().map(|row| row.get(name).filter(|value| !value.is_null()));
        match kind {
            Kind::Number => {
                let mut numbers = UInt64Builder::new();
                values.for_each(|value| numbers.append_option(value.and_then(Value::as_u64)));
                Arc::new(numbers.finish())
            }
            Kind::Text | Kind::Json => {
                let mut strings = StringBuilder::new();
                for value in values {
                    match value {
                        Some(Value::String(text)) => strings.append_value(text),
                        other => strings.append_option(other.map(Value::to_string)),
                    }
                }
                Arc::new(strings.finish())
            }
        }
    };
    let columns = COLUMNS.iter().map(column).collect();
    RecordBatch::try_new(Arc::clone(&SCHEMA), columns).map_err(to_io)
}

/// A row of a batch; `None` if it is none.
fn row_of(batch: &RecordBatch, at: usize) -> Option<Row> {
    let mut object = Map::new();
    for ((name, kind), column) in COLUMNS.iter().zip(batch.columns()) {
        if column.is_null(at) {
            continue;
        }
        let value = match kind {
            Kind::Number => column.as_primitive_opt::<UInt64Type>()?.value(at).into(),
            Kind::Text => column.as_string_opt::<i32>()?.value(at).into(),
            Kind::Json => serde_json::from_str(column.as_string_opt::<i32>()?.value(at)).ok()?,
        };
        object.insert((*name).to_string(), value);
    }
    Row::from_json(&Value::Object(object).to_string())
}

impl CarvedUnit {
    /// Opens an object, and verifies all of it.
    fn open(source: Box<dyn Source>, job: &str, unit: &Unit) -> Result<Self> {
        let name = source.name().to_string();
        let json = meta_of(&*source, &SCHEMA, is_summed)?;
        let meta: Meta =
            serde_json::from_str(&json).map_err(|error| Error::damaged(&name, error))?;
        if meta.job != job || meta.unit != unit.id() {
            return Err(Error::damaged(&name, "it belongs to another run or source"));
        }
        let opened = CarvedUnit { source, unit: unit.clone(), meta };
        opened.rows(&mut |_| Ok(()))?;
        Ok(opened)
    }

    /// Lines about the source.
    #[must_use]
    pub fn remarks(&self) -> &Remarks {
        &self.meta.remarks
    }

    /// Passes on all rows.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the bytes are no such rows, and the receiver's errors.
    pub fn rows(&self, take: &mut TakeCarved<'_>) -> Result<()> {
        let name = self.source.name();
        let file = open_arrow_file(&*self.source).map_err(|error| Error::damaged(name, error))?;
        let mut count = 0;
        for batch in file.batches {
            let batch = batch.map_err(|error| Error::damaged(name, error))?;
            for at in 0..batch.num_rows() {
                let row = row_of(&batch, at).filter(|row| row.source == self.unit.source);
                let row = row.ok_or_else(|| {
                    Error::damaged(name, format!("row {count} does not belong to it"))
                })?;
                count += 1;
                take(row).map_err(quarrier::Error::Output)?;
            }
        }
        match count == self.meta.rows {
            true => Ok(()),
            false => Err(Error::damaged(name, "it has another number of rows")),
        }
    }
}
