//! Sees every file that is kept: counts it, prints its row, moves the progress bar.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quarrier_carve::folder::Row;
use quarrier_carve::{Carved, Keep, Stride, View};

use super::target::Target;
use crate::args::Carve;
use crate::commands::search::is_closed_pipe;
use crate::commands::search::progress::Progress;
use crate::output::Format;
use crate::output::rows::{self, Column, Excerpt, Kind, Layout, Rows, Value};

const COLUMNS: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "type", kind: Kind::Text },
    Column { name: "offset", kind: Kind::Unsigned },
    Column { name: "length", kind: Kind::Unsigned },
    Column { name: "extents", kind: Kind::Json },
    Column { name: "status", kind: Kind::Text },
    Column { name: "reason", kind: Kind::Text },
    Column { name: "sha256", kind: Kind::Text },
    Column { name: "path", kind: Kind::Text },
];

/// What was found.
#[derive(Default)]
pub(super) struct Seen {
    /// Files of each type: valid, partial, header.
    pub(super) by_type: BTreeMap<String, [u64; 3]>,
    /// Bytes of all.
    pub(super) bytes: u64,
    /// All rows in the order of the source, where a dry run is to have a report of them.
    pub(super) rows: Vec<Row>,
    /// Why rows could not be printed any more.
    pub(super) output_error: Option<io::Error>,
}

impl Seen {
    /// Files of each status.
    pub(super) fn by_status(&self) -> [u64; 3] {
        let sum = |status: usize| self.by_type.values().map(|counts| counts[status]).sum();
        [sum(0), sum(1), sum(2)]
    }

    pub(super) fn total(&self) -> u64 {
        self.by_status().iter().sum()
    }
}

/// Between the carver and where files go.
pub(super) struct Watch<'w> {
    target: &'w Target,
    format: Format,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Files that were kept since rows were printed last.
    pending: Vec<Row>,
    seen: Seen,
    progress: Progress,
    /// Whether rows are printed, and the printer once there was one.
    prints: bool,
    /// Whether rows are remembered: there is no folder with a report to read them from.
    remembers: bool,
    rows: Option<Box<dyn Rows>>,
}

impl<'w> Watch<'w> {
    pub(super) fn new(carve: &Carve, target: &'w Target, progress: Progress) -> Self {
        // For people, files in a folder are counted in the end.
        let prints = carve.dry_run || carve.format != Format::Text;
        let inner = Inner {
            pending: Vec::new(),
            seen: Seen::default(),
            progress,
            prints,
            remembers: carve.dry_run && carve.report.is_some(),
            rows: None,
        };
        Watch { target, format: carve.format, inner: Mutex::new(inner) }
    }

    /// Counts and prints what was kept lately, in the order of the source; `offset`: everything
    /// before is done.
    ///
    /// # Errors
    /// When rows cannot be printed any more, and there is no folder to go on for.
    pub(super) fn flush(&self, offset: Option<u64>) -> io::Result<()> {
        let inner = &mut *self.lock();
        let mut rows = std::mem::take(&mut inner.pending);
        rows.sort_by(|a, b| (a.offset(), &a.kind).cmp(&(b.offset(), &b.kind)));
        for row in &rows {
            inner.seen.bytes += row.length();
            inner.seen.by_type.entry(row.kind.clone()).or_default()[row.status as usize] += 1;
        }
        if inner.prints
            && let Err(error) = inner.print(self.format, &rows)
        {
            inner.prints = false;
            if matches!(self.target, Target::Folder(_)) && is_closed_pipe(&error) {
                // Nobody reads the rows; the files are wanted nevertheless.
                inner.rows = None;
            } else {
                inner.seen.output_error = Some(error);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        if inner.remembers {
            inner.seen.rows.append(&mut rows);
        }
        if let Some(offset) = offset {
            inner.progress.advance_to(offset);
        }
        Ok(())
    }

    /// The end: what was found.
    pub(super) fn end(&self) -> Seen {
        let inner = &mut *self.lock();
        inner.progress.clear();
        let finished = inner.rows.take().map_or(Ok(()), |mut rows| rows.finish());
        let mut seen = std::mem::take(&mut inner.seen);
        seen.rows.sort_by(|a, b| (a.offset(), &a.kind).cmp(&(b.offset(), &b.kind)));
        if let Err(error) = finished
            && !is_closed_pipe(&error)
        {
            seen.output_error.get_or_insert(error);
        }
        seen
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn print(&mut self, format: Format, rows: &[Row]) -> io::Result<()> {
        let printer = match &mut self.rows {
            Some(printer) => printer,
            None => self.rows.insert(rows::to_stdout(format, Layout::Carved, COLUMNS)?),
        };
        for row in rows {
            let extents: Vec<_> = row.extents.iter().map(|e| [e.offset, e.length]).collect();
            let extents = serde_json::json!(extents).to_string();
            let values = [
                Value::Text(&row.source),
                Value::Text(&row.kind),
                Value::Unsigned(row.offset()),
                Value::Unsigned(row.length()),
                Value::Json(&extents),
                Value::Text(row.status.name()),
                Value::Text(&row.reason),
                Value::Text(&row.sha256),
                Value::Text(&row.path),
            ];
            printer.row(&values, Excerpt::default())?;
        }
        Ok(())
    }
}

impl Keep for Watch<'_> {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        let row = self.target.take(carved, view)?;
        self.lock().pending.push(row);
        Ok(())
    }

    fn stride(&self, stride: &Stride<'_>) -> io::Result<()> {
        self.target.note(stride)?;
        self.flush(Some(stride.range.end))
    }
}
