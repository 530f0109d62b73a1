//! `quarrier files`.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::account::{Stats, rate};
use quarrier::files::{Listed, Row};
use quarrier::source::unreadable_line;
use quarrier::{Error, Files as Request, Opener, Sources};
use quarrier_files::Kind as EntryKind;
use quarrier_report::{Manner, number, visible};

use super::search::summary::write_stats;
use super::{broken_output, complain_of, failed, is_closed_pipe, warn_of_cache};
use crate::args::{Files, hash_kinds};
use crate::output::rows::{self, Column, Excerpt, Kind, Layout, Rows, Value};
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
    let request = request.deleted(files.deleted).extract(files.folder.clone());
    let request = request.hashes(hash_kinds(&files.hashes));
    let request = request.notes(host::notes(&files.line));
    let opener = Opener::new(files.cache.options(), host::environment(), stop);
    let mut opened = Sources::only(&files.source)
        .and_then(|named| opener.open(&named))
        .map_err(error_message)?;
    let name = opened.name().to_string();
    let notice = opened.notice().map(str::to_string);
    let mut printer = Printer::new(files);
    let listed = request.run(opened.place(), stop, &mut |row| printer.row(row));
    let finished = printer.finish();
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

/// Prints rows; writes nothing, not even a header, before the first row.
struct Printer<'f> {
    files: &'f Files,
    columns: &'static [Column],
    rows: Option<Box<dyn Rows>>,
    body: Option<Box<dyn Write>>,
}

impl<'f> Printer<'f> {
    fn new(files: &'f Files) -> Self {
        Printer { files, columns: columns(files), rows: None, body: None }
    }

    fn row(&mut self, row: &Row) -> io::Result<()> {
        if self.files.bodyfile {
            let out = self.body.get_or_insert_with(|| {
                let out = StandardOutput::new().shown(Manner::Text);
                Box::new(io::BufWriter::with_capacity(64 << 10, out))
            });
            return writeln!(out, "{}", row.bodyfile());
        }
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => {
                self.rows.insert(rows::to_stdout(self.files.format, Layout::Files, self.columns)?)
            }
        };
        let (times, extents, entry) = (row.times(), row.extents_json(), &row.entry);
        let [modified, accessed, changed, created] =
            times.each_ref().map(|time| time.as_deref().map_or(Value::Missing, Value::Text));
        let values = [
            Value::Text(&row.source),
            Value::Unsigned(row.partition.into()),
            Value::Text(&entry.path),
            Value::Unsigned(entry.inode),
            Value::Text(entry.kind.name()),
            Value::Text(entry.state.name()),
            Value::Unsigned(entry.size),
            modified,
            accessed,
            changed,
            created,
            Value::Json(&extents),
        ];
        let digests = row.written.as_ref().filter(|_| entry.kind != EntryKind::Folder);
        let digests = digests.map_or_else(Vec::new, |written| {
            let sha256 = ("sha256", written.digests.sha256_hex());
            let mut named = written.digests.named(hash_kinds(&self.files.hashes));
            named.push(sha256);
            named
        });
        let hashes = self.columns[COLUMNS.len()..].iter().map(|column| {
            let found = digests.iter().find(|(name, _)| *name == column.name);
            found.map_or(Value::Missing, |(_, hash)| Value::Text(hash))
        });
        let values: Vec<_> = values.into_iter().chain(hashes).collect();
        rows.row(&values, Excerpt::default())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.finish()?;
        }
        self.body.as_mut().map_or(Ok(()), |body| body.flush())
    }
}
