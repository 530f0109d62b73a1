//! Sheets: the units of a job, in lists that the scheduler keeps and workers get. A plan holds only slices of
//! sheets: a plan with a million units would be too large for a message.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch, StringArray, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::error::Result;
use quarrier_units::Unit;
use serde::{Deserialize, Serialize};

use crate::door::hash_of;
use crate::task::{Task, TaskSource, damaged};

/// The number of units of a sheet, rounded up to whole tasks.
const SHEET_UNITS: usize = 1_000;

/// Maximum number of tasks of a plan, each of which runs one or more units.
const TASKS_MAX: usize = 2_000;

/// The number of sheets that a worker keeps.
const SHEETS_KEPT: usize = 8;

/// A list of units.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sheet {
    sources: Vec<TaskSource>,
    lines: Vec<Line>,
}

/// A unit: its index in the job, the number of its source on the sheet, and its range.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Line(u64, usize, u64, u64);

/// The units of a task: lines of a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The SHA-256 of the sheet.
    pub(crate) sheet: Arc<str>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A sheet as it is sent, by its SHA-256.
pub(crate) struct Written {
    pub(crate) hash: Arc<str>,
    pub(crate) bytes: Vec<u8>,
}

/// Writes the sheets of units with their indexes and the names by which workers open their sources, and the
/// slices of all tasks.
///
/// # Errors
/// If memory is short.
pub(crate) fn write(units: &[(u64, &Unit, &OsStr)]) -> Result<(Vec<Written>, Vec<Slice>)> {
    let per_task = units.len().div_ceil(TASKS_MAX).max(1);
    let per_sheet = SHEET_UNITS.next_multiple_of(per_task);
    let (mut sheets, mut slices) = (Vec::new(), Vec::new());
    for chunk in units.chunks(per_sheet) {
        let bytes = serde_json::to_vec(&Sheet::of(chunk)).map_err(damaged)?;
        let hash: Arc<str> = hash_of(&bytes).into();
        let tasks = (0..chunk.len()).step_by(per_task);
        slices.extend(tasks.map(|from| Slice {
            sheet: Arc::clone(&hash),
            from: from as u64,
            to: chunk.len().min(from + per_task) as u64,
        }));
        sheets.push(Written { hash, bytes });
    }
    Ok((sheets, slices))
}

impl Sheet {
    fn of(units: &[(u64, &Unit, &OsStr)]) -> Self {
        let mut sheet = Sheet::default();
        let mut before: Option<(&Unit, &OsStr)> = None;
        for &(index, unit, at) in units {
            // Units of one source stand together.
            let is_same = before.is_some_and(|(earlier, place)| {
                place == at
                    && earlier.name == unit.name
                    && earlier.source == unit.source
                    && earlier.version == unit.version
            });
            if !is_same {
                sheet.sources.push(TaskSource::new(unit, at));
            }
            before = Some((unit, at));
            let source = sheet.sources.len() - 1;
            sheet.lines.push(Line(index, source, unit.range.start, unit.range.end));
        }
        sheet
    }

    /// Reads a sheet.
    ///
    /// # Errors
    /// If these bytes are not a sheet.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// The units of a slice, with their indexes.
    ///
    /// # Errors
    /// If the sheet does not have them.
    pub(crate) fn tasks(&self, slice: &Slice) -> Result<Vec<(u64, Task)>> {
        let at = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
        let lines = self.lines.get(at(slice.from)..at(slice.to));
        let lines = lines.ok_or_else(|| damaged("a sheet is too short"))?;
        let task = |line: &Line| {
            let &Line(index, source, start, end) = line;
            let source = self.sources.get(source).ok_or_else(|| damaged("a source is missing"))?;
            Ok((index, Task { source: source.clone(), start, end }))
        };
        lines.iter().map(task).collect()
    }
}

pub(crate) fn slice_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("sheet", DataType::Utf8, false),
        Field::new("from", DataType::UInt64, false),
        Field::new("to", DataType::UInt64, false),
    ]))
}

/// A slice as a row.
///
/// # Errors
/// If memory is short.
pub(crate) fn row_of(slice: &Slice) -> Result<RecordBatch> {
    let columns: Vec<Arc<dyn Array>> = vec![
        Arc::new(StringArray::from(vec![&*slice.sheet])),
        Arc::new(UInt64Array::from(vec![slice.from])),
        Arc::new(UInt64Array::from(vec![slice.to])),
    ];
    Ok(RecordBatch::try_new(slice_schema(), columns)?)
}

/// The slices of rows.
///
/// # Errors
/// If the batch has no such rows.
pub(crate) fn slices_of(batch: &RecordBatch) -> Result<Vec<Slice>> {
    let column = |at: usize| batch.columns().get(at).ok_or_else(|| damaged("a column is missing"));
    let number = |at: usize| {
        let numbers = column(at)?.as_any().downcast_ref::<UInt64Array>();
        numbers.ok_or_else(|| damaged("a column has another type"))
    };
    let sheets = column(0)?.as_any().downcast_ref::<StringArray>();
    let sheets = sheets.ok_or_else(|| damaged("a column has another type"))?;
    let (from, to) = (number(1)?, number(2)?);
    let slice =
        |((sheet, from), to): ((Option<&str>, Option<u64>), Option<u64>)| match (sheet, from, to) {
            (Some(sheet), Some(from), Some(to)) => Ok(Slice { sheet: sheet.into(), from, to }),
            _ => Err(damaged("a value is missing")),
        };
    sheets.iter().zip(from).zip(to).map(slice).collect()
}

/// The last sheets that a worker got.
#[derive(Default)]
pub(crate) struct Sheets {
    by_hash: HashMap<Arc<str>, Arc<Sheet>>,
    order: VecDeque<Arc<str>>,
}

impl Sheets {
    pub(crate) fn get(&self, hash: &str) -> Option<Arc<Sheet>> {
        self.by_hash.get(hash).cloned()
    }

    pub(crate) fn keep(&mut self, hash: Arc<str>, sheet: Arc<Sheet>) {
        if self.by_hash.insert(Arc::clone(&hash), sheet).is_none() {
            self.order.push_back(hash);
        }
        while self.order.len() > SHEETS_KEPT {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.by_hash.remove(&oldest));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::ffi::OsStrExt;

    use quarrier::source::Version;

    use super::*;

    /// Units of three sources.
    pub(crate) fn units(count: usize) -> Vec<(u64, Unit)> {
        let unit = |index: usize| Unit {
            name: OsStr::from_bytes(b"a\xFFb").to_os_string(),
            source: format!("a?secret={}", index * 3 / count),
            version: Version { length: 99, mark: "m".to_string() },
            range: index as u64..index as u64 + 1,
        };
        (0..count).map(|index| (2 * index as u64, unit(index))).collect()
    }

    pub(crate) fn written(units: &[(u64, Unit)]) -> (Vec<Written>, Vec<Slice>) {
        let at = OsStr::from_bytes(b"/a\xFFb");
        let units: Vec<_> = units.iter().map(|(index, unit)| (*index, unit, at)).collect();
        write(&units).unwrap()
    }

    #[test]
    fn tasks_have_all_units_once_and_in_order() {
        for count in [0, 1, 2, 999, 1_001, 5_000] {
            let all = units(count);
            let (sheets, slices) = written(&all);
            assert!(slices.len() <= TASKS_MAX && slices.len() >= count.min(TASKS_MAX / 2));
            let sheets: HashMap<_, _> = sheets
                .iter()
                .map(|sheet| (&*sheet.hash, Sheet::read(&sheet.bytes).unwrap()))
                .collect();
            let tasks = slices.iter().flat_map(|slice| sheets[&*slice.sheet].tasks(slice).unwrap());
            let found: Vec<(u64, Unit)> = tasks.map(|(index, task)| (index, task.unit())).collect();
            assert_eq!(found, all);
        }
    }

    #[test]
    fn damaged_sheets_and_slices_are_errors() {
        let (sheets, slices) = written(&units(4));
        let bytes = &sheets[0].bytes;
        let sheet = Sheet::read(bytes).unwrap();
        for at in 0..bytes.len() {
            assert!(Sheet::read(&bytes[..at]).is_err());
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            // Any result is fine, but no panic.
            if let Ok(sheet) = Sheet::read(&changed) {
                let _ = sheet.tasks(&slices[0]);
            }
        }
        for (from, to) in [(0, 5), (4, 3), (0, u64::MAX), (u64::MAX, u64::MAX)] {
            assert!(sheet.tasks(&Slice { from, to, ..slices[0].clone() }).is_err());
        }
        let sheet = Sheet { sources: Vec::new(), ..sheet };
        assert!(sheet.tasks(&slices[0]).is_err());
    }

    #[test]
    fn a_worker_keeps_the_last_sheets() {
        let mut sheets = Sheets::default();
        for number in 0..20 {
            sheets.keep(number.to_string().into(), Arc::default());
        }
        assert!(sheets.get("11").is_none() && sheets.get("12").is_some());
        assert_eq!((sheets.by_hash.len(), sheets.order.len()), (SHEETS_KEPT, SHEETS_KEPT));
    }
}
