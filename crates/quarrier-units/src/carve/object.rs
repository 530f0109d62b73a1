//! The stored rows of a source.

use std::io;

use quarrier_carve::folder::Row;
use quarrier_core::source::Source;
use quarrier_messages::open_arrow_file;
use serde::{Deserialize, Serialize};

use super::remarks::Remarks;
use super::rows::{SCHEMA, row_of};
use crate::error::{Error, Result};
use crate::object::sealed::{is_summed, meta_of};
use crate::unit::Unit;

/// The data of an object besides its rows.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Meta {
    pub(super) job: String,
    pub(super) unit: String,
    pub(super) rows: u64,
    pub(super) remarks: Remarks,
}

/// The stored rows of a source.
pub struct CarvedUnit {
    source: Box<dyn Source>,
    unit: Unit,
    meta: Meta,
}

/// Takes rows in order; an error ends the work.
pub type TakeCarved<'t> = dyn FnMut(Row) -> io::Result<()> + 't;

impl CarvedUnit {
    /// Opens an object, and verifies all of it.
    pub(super) fn open(source: Box<dyn Source>, job: &str, unit: &Unit) -> Result<Self> {
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
