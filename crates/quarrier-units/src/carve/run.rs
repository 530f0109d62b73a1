//! Carves a source, and stores its rows.

use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use quarrier::carve::{Begin, Carved, Watch, reported};
use quarrier::{Carve, Machine, Place};
use quarrier_carve::JudgedStrides;
use quarrier_carve::folder::Row;
use quarrier_core::source::Renamed;
use quarrier_core::sync::{into_inner, lock};

use super::{CarveUnits, Remarks, WhatToTry, in_report_order};
use crate::error::{Error, Result};
use crate::source::SourceUnits;
use crate::unit::Unit;

/// Maximum memory for the rows of a source, in bytes.
const ROWS_BYTES_MAX: usize = 1 << 30;

/// The rows of a source that was carved.
#[derive(Debug)]
pub struct CarvedRows {
    /// The rows, in [their order](in_report_order).
    pub rows: Vec<Row>,
    /// Lines about the source.
    pub remarks: Remarks,
    /// Whether the rows are stored: not those of a remote source of which another run may read more.
    pub is_stored: bool,
}

/// Shows how far a run is.
pub trait CarveProgress: Sync {
    /// The range of offsets to carve.
    fn begin(&self, range: &Range<u64>);

    /// Everything before the offset is done.
    fn advance_to(&self, offset: u64);
}

/// Shows nothing.
impl CarveProgress for () {
    fn begin(&self, _: &Range<u64>) {}

    fn advance_to(&self, _: u64) {}
}

impl CarveUnits {
    /// Carves a source by a request that differs from that of [`new`](Self::new) only in its folder, and stores
    /// the rows. Strides that were `judged` by an equal request are not judged again.
    ///
    /// # Errors
    /// [`Error::Search`] if carving fails or is stopped; [`Error::Request`] if there are too many rows, or the
    /// folder to resume is finished; and those of [`store`](Self::store).
    pub fn carve(
        &self,
        request: &Carve,
        (source, unit): (&mut SourceUnits, &Unit),
        judged: Option<&dyn JudgedStrides>,
        (progress, what_to_try): (&dyn CarveProgress, WhatToTry),
        machine: &Machine,
        stop: &AtomicBool,
    ) -> Result<CarvedRows> {
        let name = source.name().to_string();
        let renamed;
        let place = match source.place() {
            // Another process may find the source by another name.
            Place::Local(inner) => {
                renamed = Renamed::new(inner, name.clone());
                Place::Local(&renamed)
            }
            place => place,
        };
        // With judged strides, it reads here and there.
        let announced = if judged.is_some() { 0..0 } else { 0..u64::MAX };
        let begun = request.start_reading(&announced, place, machine, stop)?;
        let Begin::Carving(carving) = begun else {
            return Err(Error::Request(format!(
                "{name}: its files are in the output folder, but their rows are not stored; name \
                 another folder"
            )));
        };
        let mut remarks = Remarks::before(&name, &carving);
        progress.begin(carving.range());
        let collect = Collect::new(progress);
        let ran = carving.run_with(judged, &collect);
        let Some(mut rows) = collect.end() else {
            let mebibytes = ROWS_BYTES_MAX >> 20;
            return Err(Error::Request(format!(
                "{name}: the rows of its files take more than {mebibytes} MiB; carve it without \
                 storing them, or with fewer types"
            )));
        };
        let carved: Carved = ran?;
        if carved.summary.stopped {
            let offset = carved.summary.position;
            return Err(quarrier::Error::Stopped { name, offset }.into());
        }
        if request.is_resumed()
            && let Some(folder) = request.output_folder()
        {
            // Files of the earlier run have no rows in this one.
            rows = reported(folder)?;
            if let Some(part) = request.part_name() {
                rows.iter_mut().for_each(|row| row.path = format!("{part}/{}", row.path));
            }
        }
        in_report_order(&mut rows);
        remarks.add(Remarks::of_run(&name, &carved, what_to_try));
        let is_stored = !source.is_remote() || carved.summary.unreadable.is_empty();
        if is_stored {
            self.store((&*source, unit), &rows, remarks.clone())?;
        }
        Ok(CarvedRows { rows, remarks, is_stored })
    }
}

/// Collects the rows of a source.
struct Collect<'p> {
    inner: Mutex<Collected>,
    progress: &'p dyn CarveProgress,
}

struct Collected {
    rows: Vec<Row>,
    /// The memory left for rows; `None` if they did not fit.
    bytes_left: Option<usize>,
}

impl<'p> Collect<'p> {
    fn new(progress: &'p dyn CarveProgress) -> Self {
        let collected = Collected { rows: Vec::new(), bytes_left: Some(ROWS_BYTES_MAX) };
        Collect { inner: Mutex::new(collected), progress }
    }

    /// The rows; `None` if they did not fit in memory.
    fn end(self) -> Option<Vec<Row>> {
        let Collected { rows, bytes_left } = into_inner(self.inner);
        bytes_left.map(|_| rows)
    }
}

/// The memory that a row takes, approximately.
fn memory_of(row: &Row) -> usize {
    let strings = [&row.source, &row.kind, &row.reason, &row.sha256, &row.path];
    let strings: usize = strings.iter().map(|text| text.len()).sum();
    let container = row.container.as_ref().map_or(0, String::len);
    size_of::<Row>() + strings + container + size_of_val(&row.extents[..])
}

impl Watch for Collect<'_> {
    fn files(&self, mut rows: Vec<Row>, done_until: Option<u64>) -> io::Result<()> {
        let all = &mut *lock(&self.inner);
        let bytes = rows.iter().map(memory_of).sum();
        all.bytes_left = all.bytes_left.and_then(|left| left.checked_sub(bytes));
        if all.bytes_left.is_none() {
            all.rows = Vec::new();
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        all.rows.append(&mut rows);
        if let Some(offset) = done_until {
            self.progress.advance_to(offset);
        }
        Ok(())
    }
}
