//! `quarrier files`.

mod ahead;
mod sheet;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::Scope;

use quarrier::account::{Stats, rate};
use quarrier::files::{Listed, Row, RowBatch};
use quarrier::source::unreadable_line;
use quarrier::{Error, Files as Request, Opener, Sources};
use quarrier_core::parallel::available_workers;
use quarrier_files::Kind as EntryKind;
use quarrier_report::{Manner, number, visible};

use ahead::{Ahead, Memory, NewSheet};
use sheet::Sheet;

use super::search::summary::write_stats;
use super::{broken_output, complain_of, failed, is_closed_pipe, warn_of_cache};
use crate::args::{Files, hash_kinds};
use crate::output::Format;
use crate::output::rows::{self, Column, Kind, Layout, Value};
use crate::{Outcome, StandardOutput, complain, host, interrupt};

const COLUMNS: &[Column] = &[
    Column { name: "source", kind: Kind::Text },
    Column { name: "partition", kind: Kind::Unsigned },
    Column { name: "path", kind: Kind::Text },
    Column { name: "inode", kind: Kind::Unsigned },
    Column { name: "type", kind: Kind::Text },
    Column { name: "state", kind: Kind::Text },
    Column { name: "size", kind: Kind::Unsigned },
    Column { name: "modified", kind: Kind::Text },
    Column { name: "accessed", kind: Kind::Text },
    Column { name: "changed", kind: Kind::Text },
    Column { name: "created", kind: Kind::Text },
    Column { name: "extents", kind: Kind::Json },
];

/// Runs the command.
pub(crate) fn run(files: &Files) -> Outcome {
    let stop = interrupt::watch();
    run_until(files, &stop).unwrap_or_else(|message| failed(&message, &stop))
}

fn error_message(error: Error) -> String {
    error.to_string()
}

fn run_until(files: &Files, stop: &Arc<AtomicBool>) -> Result<Outcome, String> {
    let sources = Sources::of([&files.source]);
    let written = files.stats.iter().map(|path| path.as_path());
    sources.refuse_overwriting(written).map_err(error_message)?;
    let request = Request::new().only(files.only.as_deref()).map_err(error_message)?;
    let request = request
        .deleted(files.deleted)
        .lost_folders(files.lost_folders)
        .extract(files.folder.clone());
    let request = request.hashes(hash_kinds(&files.hashes)).targets(files.bodyfile);
    let request = request.notes(host::notes(&files.line));
    let opener = Opener::new(files.cache.options(), host::environment(), stop);
    let mut opened = Sources::only(&files.source)
        .and_then(|named| opener.open(&named))
        .map_err(error_message)?;
    let name = opened.name().to_string();
    let notice = opened.notice().map(str::to_string);
    let columns = columns(files);
    let new_sheet = |memory: Memory| sheet_into(files, columns, memory);
    let (listed, finished) = std::thread::scope(|scope| {
        let mut printer = Printer { files, columns, scope, new_sheet: &new_sheet, out: None };
        let listed = request.run(opened.place(), stop, &mut |row| printer.row(row));
        (listed, printer.finish())
    });
    let listed = match listed {
        Err(Error::Output(error)) => return Ok(broken_output(&error)),
        listed => listed.map_err(error_message)?,
    };
    if let Err(error) = finished
        && !is_closed_pipe(&error)
    {
        return Ok(broken_output(&error));
    }
    // If damage ends the listing, the error names it, and a notice would repeat it.
    notice.iter().for_each(|notice| complain_of(&name, notice));
    warn_of_cache(&opener);
    let outcome = report_problems(&name, files, &listed);
    if let Some(path) = &files.stats {
        let (bytes, seconds) = (listed.written_bytes, listed.elapsed.as_secs_f64());
        let stats = Stats {
            command: "files",
            bytes,
            seconds,
            bytes_per_second: rate(bytes, seconds),
            findings: listed.rows,
            workers: 1,
            device: "cpu".to_string(),
            limited_by: "read",
            remote: opener.remote_cost(),
            ..Stats::default()
        };
        write_stats(&stats, path)?;
    }
    Ok(outcome)
}

/// Reports skipped, damaged and unreadable parts, and their number.
fn report_problems(name: &str, files: &Files, listed: &Listed) -> Outcome {
    let mut outcome = if listed.rows > 0 { Outcome::Found } else { Outcome::Nothing };
    for notice in listed.systems.notices() {
        complain_of(name, &notice);
    }
    for damage in &listed.damages {
        complain_of(name, damage);
        outcome = outcome.worse(Outcome::Incomplete);
    }
    for range in &listed.unreadable {
        complain(&unreadable_line(name, range));
        outcome = outcome.worse(Outcome::Incomplete);
    }
    if listed.stopped {
        complain(&format!("{name}: interrupted; the rows before are complete"));
        outcome = outcome.worse(Outcome::Interrupted);
    }
    if !files.quiet && io::stderr().is_terminal() {
        let kinds: Vec<String> =
            listed.systems.systems.iter().map(|s| s.kind.to_string()).collect();
        let mut line = format!("{} in {}", number::counted(listed.rows, "row"), kinds.join(", "));
        if let Some(folder) = &files.folder {
            let bytes = number::bytes(listed.written_bytes);
            line.push_str(&format!("; {bytes} written to {}", folder.display()));
        }
        let seconds = listed.elapsed.as_secs_f64();
        let _ = writeln!(io::stderr(), "{}; {seconds:.3} s", visible(&line));
    }
    outcome
}

/// The columns of a run, with those of the hashes that `--hash` names.
fn columns(files: &Files) -> &'static [Column] {
    let hashes = ["md5", "sha1", "sha256", "blake3"];
    let chosen = hashes.into_iter().filter(|name| files.hashes.iter().any(|one| one == name));
    let chosen = chosen.map(|name| Column { name, kind: Kind::Text });
    // Leaks once per run.
    COLUMNS.iter().copied().chain(chosen).collect::<Vec<_>>().leak()
}

/// Maximum number of threads that format: they keep up with the thread that reads file systems.
const FORMATTERS_MAX: usize = 4;

/// A sheet that writes to memory the rows after the head.
fn sheet_into(files: &Files, columns: &'static [Column], memory: Memory) -> io::Result<Sheet> {
    let out = Box::new(memory);
    if files.bodyfile {
        return Ok(Sheet::Body(out));
    }
    let rows = rows::continued(files.format, Layout::Files, columns, out);
    rows.map(Sheet::of).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Prints rows; writes nothing, not even a header, before the first row.
struct Printer<'scope, 'env> {
    files: &'env Files,
    columns: &'static [Column],
    scope: &'scope Scope<'scope, 'env>,
    new_sheet: &'env NewSheet<'env>,
    out: Option<Out<'scope>>,
}

/// The threads that format rows.
enum Out<'scope> {
    /// Only this one. The batch holds the current row.
    Here(Sheet, RowBatch),
    Others(Ahead<'scope>),
}

impl<'scope, 'env> Printer<'scope, 'env> {
    fn row(&mut self, row: &Row) -> io::Result<()> {
        if self.out.is_none() {
            self.out = Some(self.open()?);
        }
        let (files, columns) = (self.files, self.columns);
        match &mut self.out {
            Some(Out::Others(ahead)) => ahead.row(row),
            Some(Out::Here(sheet, batch)) => {
                batch.clear();
                batch.push(row);
                let digests = digests(files, row);
                let hashes = columns[COLUMNS.len()..].iter().map(|column| {
                    let found = digests.iter().find(|(name, _)| *name == column.name);
                    found.map_or(Value::Missing, |(_, hash)| Value::Text(hash))
                });
                let hashes: Vec<_> = hashes.collect();
                batch.rows().try_for_each(|row| sheet.row(&row, &hashes))
            }
            None => Ok(()),
        }
    }

    /// Starts the output.
    fn open(&self) -> io::Result<Out<'scope>> {
        if let Some(ahead) = self.open_ahead()? {
            return Ok(Out::Others(ahead));
        }
        let sheet = match self.files.bodyfile {
            true => {
                let out = StandardOutput::new().shown(Manner::Text);
                Sheet::Body(Box::new(io::BufWriter::with_capacity(64 << 10, out)))
            }
            false => Sheet::of(rows::to_stdout(self.files.format, Layout::Files, self.columns)?),
        };
        Ok(Out::Here(sheet, RowBatch::default()))
    }

    /// Starts threads that format rows, if they can: a terminal shows rows at once, an Arrow stream has
    /// one writer, and rows with hashes wait for files to be written.
    fn open_ahead(&self) -> io::Result<Option<Ahead<'scope>>> {
        let files = self.files;
        let is_arrow = files.format == Format::Arrow && !files.bodyfile;
        let workers = available_workers();
        let out = StandardOutput::new();
        let has_hashes = files.folder.is_some() || !files.hashes.is_empty();
        if is_arrow || has_hashes || workers < 2 || out.is_terminal() {
            return Ok(None);
        }
        let head = match files.bodyfile {
            true => Vec::new(),
            false => rows::head(files.format, self.columns)?,
        };
        let formatters = (workers - 1).min(FORMATTERS_MAX);
        Ahead::start(self.scope, formatters, self.new_sheet, Box::new(out), &head)
    }

    fn finish(self) -> io::Result<()> {
        match self.out {
            Some(Out::Here(mut sheet, _)) => sheet.finish(),
            Some(Out::Others(ahead)) => ahead.finish(),
            None => Ok(()),
        }
    }
}

/// The hashes of a written file, with their names.
fn digests(files: &Files, row: &Row) -> Vec<(&'static str, String)> {
    let written = row.written.as_ref().filter(|_| row.entry.kind != EntryKind::Folder);
    written.map_or_else(Vec::new, |written| {
        let sha256 = ("sha256", written.digests.sha256_hex());
        let mut named = written.digests.named(hash_kinds(&files.hashes));
        named.push(sha256);
        named
    })
}
