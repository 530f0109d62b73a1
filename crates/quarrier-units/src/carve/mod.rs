//! Stores the rows of carved files. A unit of carving is a whole source, because fragments of a file may be
//! anywhere in it. Its strides may be judged unit by unit before.

mod judged;
mod object;
mod remarks;
mod rows;
mod run;

pub use judged::{JudgeUnits, StoredStrides};
pub use object::{CarvedUnit, TakeCarved};
pub use remarks::{Remarks, WhatToTry};
pub use rows::in_report_order;
pub use run::{CarveProgress, CarvedRows};

use std::io;

use quarrier::Carve;
use quarrier_carve::folder::Row;
use quarrier_core::hex;

use self::object::Meta;
use self::rows::{SCHEMA, batch_of};
use crate::error::{Error, Result};
use crate::object::sealed::SealedWriter;
use crate::results::Results;
use crate::source::SourceUnits;
use crate::unit::{Unit, name_of};

/// The version of objects; a new version carves everything again.
const FORMAT: u32 = 1;

/// Maximum number of rows in a batch.
const BATCH_ROWS: usize = 16 * 1024;

/// The rows of carved files, stored source by source.
#[derive(Debug)]
pub struct CarveUnits {
    job: String,
    results: Results,
}

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
