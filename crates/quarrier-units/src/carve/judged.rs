//! Units of carving that are ranges of one source: several processes search and validate its strides, and one decides
//! which files they have, writes them, and mends broken ones.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex};

use arrow_array::{Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use quarrier::carve::{Begin, Carving};
use quarrier::{Carve, Machine};
use quarrier_carve::JudgedStrides;
use quarrier_core::hex;
use quarrier_core::source::Source;
use quarrier_core::sync::lock;
use quarrier_messages::open_arrow_file;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::object::sealed::{SealedWriter, is_summed, meta_of, to_io};
use crate::results::Results;
use crate::run::Stored;
use crate::source::SourceUnits;
use crate::unit::{Unit, name_of};

/// The version of objects; a new version judges everything again.
const FORMAT: u32 = 1;

/// The columns of an object.
static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("start", DataType::UInt64, false),
        Field::new("stride", DataType::Utf8, false),
    ]))
});

/// The data of an object besides its rows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Meta {
    job: String,
    unit: String,
    strides: u64,
}

/// Judged strides, stored unit by unit.
#[derive(Debug)]
pub struct JudgeUnits {
    job: String,
    results: Results,
}

impl JudgeUnits {
    /// Stores strides as this request judges them.
    #[must_use]
    pub fn new(carve: &Carve, results: Results) -> Self {
        let digest = hex::encode(&carve.digest());
        let version = env!("CARGO_PKG_VERSION");
        let job = format!("judge {FORMAT} {version} {digest}");
        JudgeUnits { job: name_of(job.as_bytes()), results }
    }

    /// The name of the job: the folder of its objects.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Whether the object of a unit exists: see [`Results::has`]. It may be damaged.
    ///
    /// # Errors
    /// Those of [`Results::has`].
    pub fn has(&self, unit: &Unit) -> Result<bool> {
        self.results.has(&self.job, unit)
    }

    /// Cuts a source into units of whole strides, of `unit_bytes` bytes or somewhat more.
    ///
    /// # Errors
    /// Those of [`Carve::start`].
    pub fn cut(
        request: &Carve,
        source: &mut SourceUnits,
        unit_bytes: u64,
        machine: &Machine,
        stop: &AtomicBool,
    ) -> Result<Vec<Unit>> {
        let request = request.clone().folder(None);
        let whole = source.unit(0);
        let carving = begin(&request, source, &(0..0), machine, stop)?;
        let ranges = carving.strides(unit_bytes).into_iter();
        Ok(ranges.map(|range| Unit { range, ..whole.clone() }).collect())
    }

    /// Judges the strides of a unit and stores them, unless its object exists.
    ///
    /// # Errors
    /// Those of [`Carve::start`] and [`Carving::judge`]; [`Error::Changed`] if the source changed meanwhile;
    /// [`Error::Results`] if the strides cannot be stored.
    pub fn store(
        &self,
        request: &Carve,
        (source, unit): (&mut SourceUnits, &Unit),
        machine: &Machine,
        stop: &AtomicBool,
    ) -> Result<Stored> {
        if self.has(unit)? && self.read(unit)?.is_some() {
            return Ok(Stored::Before);
        }
        let request = request.clone().folder(None);
        let (pending, out) = self.results.create(&self.job, unit)?;
        let path = self.results.path(&self.job, unit);
        let failed = |error: io::Error| Error::Results { path: path.clone(), error };
        let mut writer = SealedWriter::new(out, &SCHEMA).map_err(failed)?;
        let mut strides = 0;
        let judged = begin(&request, source, &unit.range, machine, stop)?.judge(
            &unit.range,
            &mut |start, line| {
                strides += 1;
                writer.write(&batch_of(start, line)?)
            },
        );
        let is_readable = judged.map_err(|error| match error {
            quarrier::Error::Output(error) => failed(error),
            error => error.into(),
        })?;
        source.check_version()?;
        if source.is_remote() && !is_readable {
            return Ok(Stored::NotKept);
        }
        let meta = Meta { job: self.job.clone(), unit: unit.id(), strides };
        let meta = serde_json::to_string(&meta).map_err(|error| failed(error.into()))?;
        pending.publish(&path, writer.finish(meta).map_err(failed)?)?;
        Ok(Stored::Now)
    }

    /// The strides of a unit by their starts, if they are stored. A damaged object counts as none.
    fn read(&self, unit: &Unit) -> Result<Option<BTreeMap<u64, String>>> {
        let Some(object) = self.results.open(&self.job, unit)? else { return Ok(None) };
        match strides_of(&*object, &self.job, unit) {
            Err(Error::Damaged { .. }) => Ok(None),
            strides => strides.map(Some),
        }
    }

    /// Removes the objects of units that are no longer needed.
    pub fn remove(&self, units: &[Unit]) {
        for unit in units {
            // An object that stays takes space, but does no harm.
            let _ = self.results.remove(&self.job, unit);
        }
        self.results.clean(&self.job);
    }

    /// The strides of units of one source, in order, for the run that decides about them.
    #[must_use]
    pub fn strides<'u>(&'u self, units: &'u [Unit]) -> StoredStrides<'u> {
        StoredStrides { judge: self, state: Mutex::new((BTreeMap::new(), units)) }
    }
}

/// Strides of stored units, which are read when they are needed.
pub struct StoredStrides<'u> {
    judge: &'u JudgeUnits,
    /// The strides that were read and not yet needed, and the units that follow them.
    state: Mutex<(BTreeMap<u64, String>, &'u [Unit])>,
}

impl JudgedStrides for StoredStrides<'_> {
    fn stride(&self, start: u64) -> Option<String> {
        let (strides, units) = &mut *lock(&self.state);
        while let [first, rest @ ..] = units
            && first.range.start <= start
        {
            *units = rest;
            // The run judges what cannot be read.
            if let Ok(Some(read)) = self.judge.read(first) {
                strides.extend(read);
            }
        }
        strides.remove(&start)
    }
}

fn begin<'c>(
    request: &'c Carve,
    source: &'c mut SourceUnits,
    announced: &std::ops::Range<u64>,
    machine: &Machine,
    stop: &'c AtomicBool,
) -> Result<Box<Carving<'c>>> {
    match request.start_reading(announced, source.place(), machine, stop)? {
        Begin::Carving(carving) => Ok(carving),
        // Only a folder can be finished.
        Begin::Finished => Err(Error::Request("there is nothing to carve".to_string())),
    }
}

fn batch_of(start: u64, line: &str) -> io::Result<RecordBatch> {
    let columns: Vec<Arc<dyn Array>> =
        vec![Arc::new(UInt64Array::from(vec![start])), Arc::new(StringArray::from(vec![line]))];
    RecordBatch::try_new(Arc::clone(&SCHEMA), columns).map_err(to_io)
}

/// Reads an object, and verifies all of it.
fn strides_of(object: &dyn Source, job: &str, unit: &Unit) -> Result<BTreeMap<u64, String>> {
    let damaged = |reason: &dyn std::fmt::Display| Error::damaged(object.name(), reason);
    let meta = meta_of(object, &SCHEMA, is_summed)?;
    let meta: Meta = serde_json::from_str(&meta).map_err(|error| damaged(&error))?;
    if meta.job != job || meta.unit != unit.id() {
        return Err(damaged(&"it belongs to another run or source"));
    }
    let mut strides = BTreeMap::new();
    for batch in open_arrow_file(object).map_err(|error| damaged(&error))?.batches {
        let batch = batch.map_err(|error| damaged(&error))?;
        let starts = batch.column(0).as_any().downcast_ref::<UInt64Array>();
        let lines = batch.column(1).as_any().downcast_ref::<StringArray>();
        let (Some(starts), Some(lines)) = (starts, lines) else {
            return Err(damaged(&"a column has another type"));
        };
        for at in 0..batch.num_rows() {
            strides.insert(starts.value(at), lines.value(at).to_string());
        }
    }
    match strides.len() as u64 == meta.strides {
        true => Ok(strides),
        false => Err(damaged(&"it has another number of strides")),
    }
}
