//! Watches every recovered file: counts it, prints its row, moves the progress bar.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard};

use quarrier_carve::folder::Row;
use quarrier_core::sync::lock;

use crate::args::Carve;
use crate::commands::is_closed_pipe;
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

/// With `--embedded`: the path to files inside others.
const CONTAINER: &[Column] = &[Column { name: "container", kind: Kind::Text }];

/// With `--where`.
const PLACE: &[Column] = &[
    Column { name: "file", kind: Kind::Text },
    Column { name: "inode", kind: Kind::Optional },
    Column { name: "state", kind: Kind::Text },
    Column { name: "modified", kind: Kind::Text },
];

/// With `--known`.
const KNOWN: &[Column] = &[Column { name: "known", kind: Kind::Json }];

/// With `--hash`: a column for each hash that it names.
const HASHES: [&[Column]; 3] = [
    &[Column { name: "md5", kind: Kind::Text }],
    &[Column { name: "sha1", kind: Kind::Text }],
    &[Column { name: "blake3", kind: Kind::Text }],
];

/// The columns of a run.
fn columns(carve: &Carve) -> &'static [Column] {
    let has = |hash: &[Column]| carve.hashes.iter().any(|name| name == hash[0].name);
    let [md5, sha1, blake3] = HASHES.map(|hash| (has(hash), hash));
    let wanted = [
        (carve.embedded, CONTAINER),
        (carve.locates, PLACE),
        (!carve.known.is_empty(), KNOWN),
        md5,
        sha1,
        blake3,
    ];
    let more = wanted.iter().filter(|(is_wanted, _)| *is_wanted).flat_map(|(_, columns)| *columns);
    // Leaks once per run.
    COLUMNS.iter().chain(more).copied().collect::<Vec<_>>().leak()
}

/// The files found.
#[derive(Default)]
pub(super) struct Seen {
    /// Files of each type: valid, partial, header.
    pub(super) by_type: BTreeMap<String, [u64; 3]>,
    /// The total size of all files.
    pub(super) bytes: u64,
    /// All rows in the order of the source, for the report of a dry run.
    pub(super) rows: Vec<Row>,
    /// Why rows can no longer be printed.
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

/// Watches files as they are carved.
pub(super) struct Watch {
    columns: &'static [Column],
    has_folder: bool,
    format: Format,
    inner: Mutex<Inner>,
}

struct Inner {
    seen: Seen,
    /// The current source's progress.
    progress: Option<Progress>,
    /// Whether to print rows.
    prints: bool,
    /// Whether to remember rows, because no folder holds a report to read them from.
    remembers: bool,
    rows: Option<Box<dyn Rows>>,
}

impl Watch {
    pub(super) fn new(carve: &Carve) -> Self {
        // People get a count of the files in the folder at the end.
        let prints = carve.folder.is_none() || carve.format != Format::Text;
        let inner = Inner {
            seen: Seen::default(),
            progress: None,
            prints,
            remembers: carve.dry_run && carve.report.is_some(),
            rows: None,
        };
        Watch {
            columns: columns(carve),
            has_folder: carve.folder.is_some(),
            format: carve.format,
            inner: Mutex::new(inner),
        }
    }

    /// Shows the progress of the next source.
    pub(super) fn begin(&self, progress: Progress) {
        if let Some(mut before) = self.lock().progress.replace(progress) {
            before.clear();
        }
    }

    /// Whether printing rows has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().seen.output_error.is_some()
    }

    /// Ends the display; returns the files found.
    pub(super) fn end(&self) -> Seen {
        let inner = &mut *self.lock();
        if let Some(mut progress) = inner.progress.take() {
            progress.clear();
        }
        let finished = inner.rows.take().map_or(Ok(()), |mut rows| rows.finish());
        let mut seen = std::mem::take(&mut inner.seen);
        if let Err(error) = finished
            && !is_closed_pipe(&error)
        {
            seen.output_error.get_or_insert(error);
        }
        seen
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }
}

impl Inner {
    fn print(
        &mut self,
        format: Format,
        columns: &'static [Column],
        rows: &[Row],
    ) -> io::Result<()> {
        let printer = match &mut self.rows {
            Some(printer) => printer,
            None => self.rows.insert(rows::to_stdout(format, Layout::Carved, columns)?),
        };
        for row in rows {
            let extents: Vec<_> = row.extents.iter().map(|e| [e.offset, e.length]).collect();
            let extents = serde_json::json!(extents).to_string();
            let place = row.place.as_ref();
            let value = |name: &str| match name {
                // The report has the container; it would make the line too long for people.
                "container" if format == Format::Text => Value::Missing,
                "container" => text(row.container.as_ref()),
                "file" => text(place.and_then(|place| place.file.as_ref())),
                "inode" => {
                    place.and_then(|place| place.inode).map_or(Value::Missing, Value::Unsigned)
                }
                "state" => text(place.map(|place| &place.state)),
                "modified" => text(place.and_then(|place| place.modified.as_ref())),
                // One hash is enough for people.
                "md5" | "sha1" | "blake3" if format == Format::Text => Value::Missing,
                "md5" => text(row.hashes.md5.as_ref()),
                "sha1" => text(row.hashes.sha1.as_ref()),
                "blake3" => text(row.hashes.blake3.as_ref()),
                _ => match row.known {
                    Some(true) => Value::Json("true"),
                    Some(false) => Value::Json("false"),
                    None => Value::Missing,
                },
            };
            let values = [
                Value::Text(&row.source),
                Value::Text(&row.kind),
                Value::Unsigned(row.offset),
                Value::Unsigned(row.length),
                Value::Json(&extents),
                Value::Text(row.status.name()),
                Value::Text(&row.reason),
                Value::Text(&row.sha256),
                Value::Text(&row.path),
            ];
            let more = columns[COLUMNS.len()..].iter().map(|column| value(column.name));
            let values: Vec<_> = values.into_iter().chain(more).collect();
            printer.row(&values, Excerpt::default())?;
        }
        Ok(())
    }
}

fn text(text: Option<&String>) -> Value<'_> {
    text.map_or(Value::Missing, |text| Value::Text(text))
}

impl quarrier::carve::Watch for Watch {
    /// Counts and prints the files carved since the last call. Fails if rows can no longer be printed
    /// and no output folder makes it worth continuing.
    fn files(&self, mut rows: Vec<Row>, done_until: Option<u64>) -> io::Result<()> {
        let inner = &mut *self.lock();
        for row in &rows {
            inner.seen.bytes += row.length;
            inner.seen.by_type.entry(row.kind.clone()).or_default()[row.status as usize] += 1;
        }
        if inner.prints
            && let Err(error) = inner.print(self.format, self.columns, &rows)
        {
            inner.prints = false;
            if self.has_folder && is_closed_pipe(&error) {
                // The reader of the rows is gone, but the files in the folder are still wanted.
                inner.rows = None;
            } else {
                inner.seen.output_error = Some(error);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        if inner.remembers {
            inner.seen.rows.append(&mut rows);
        }
        if let (Some(offset), Some(progress)) = (done_until, &mut inner.progress) {
            progress.advance_to(offset);
        }
        Ok(())
    }
}
