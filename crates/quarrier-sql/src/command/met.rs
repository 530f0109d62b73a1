//! Reports and lists the rejects and other problems of loaded files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use crate::{Error, Loaded, Result};
use quarrier::tables::reject_row;
use quarrier_cli::complain;

use super::Session;

/// The number of files whose rejects get a line each.
const FILES_REPORTED_MAX: usize = 8;

/// The number of columns for which lost digits are reported.
const COLUMNS_REPORTED_MAX: usize = 8;

/// Reports rejects, and lists them if requested.
pub(super) fn report(session: &Session<'_>) -> Result<()> {
    let loaded = session.engine.take_loaded();
    session.account.borrow_mut().bytes += loaded.bytes;
    if let Some(path) = &session.query.rejects {
        list(path, &loaded)
            .map_err(|error| Error::Output { name: path.display().to_string(), error })?;
    }
    if !loaded.damages.is_empty() {
        loaded.damages.iter().for_each(|damage| complain(damage));
        session.worsen(super::INCOMPLETE);
    }
    if session.query.quiet {
        return Ok(());
    }
    loaded.notices.iter().for_each(|notice| complain(notice));
    let hint = if session.query.rejects.is_none() { "; --rejects FILE lists them" } else { "" };
    for file in loaded.rejects_by_file.iter().take(FILES_REPORTED_MAX) {
        complain(&format!("{file}{hint}"));
    }
    let more = loaded.rejects_by_file.iter().skip(FILES_REPORTED_MAX);
    let messages: u64 = more.clone().map(|file| file.count).sum();
    if messages > 0 {
        complain(&format!(
            "{messages} messages of {} more files were left out{hint}",
            more.count()
        ));
    }
    if loaded.fields_left_out > 0 {
        complain(&format!("{} values dropped: more than 4,096 columns", loaded.fields_left_out));
    }
    for rounded in loaded.rounded.iter().take(COLUMNS_REPORTED_MAX) {
        complain(&rounded.to_string());
    }
    let more = loaded.rounded.len().saturating_sub(COLUMNS_REPORTED_MAX);
    if more > 0 {
        complain(&format!("values of {more} more columns lost digits"));
    }
    Ok(())
}

/// Prints the notes on the answers so far. The exit code becomes 3 if part of a source could not be
/// read.
pub(super) fn report_notes(session: &Session<'_>) {
    session.engine.take_notices().iter().for_each(|notice| complain(notice));
    let missing = session.engine.take_notes();
    if !missing.is_empty() {
        missing.iter().for_each(|line| complain(line));
        session.worsen(super::INCOMPLETE);
    }
}

/// Discards the notes of a failed statement: its error says why it has no answer.
pub(super) fn discard_notes(session: &Session<'_>) {
    session.engine.take_notices();
    session.engine.take_notes();
}

/// Appends the rejects to the file in the format of `quarrier filter`. A failed write is rolled
/// back.
fn list(path: &Path, loaded: &Loaded) -> io::Result<()> {
    let mut rows = String::new();
    for reject in &loaded.rejects {
        let place = (reject.line, reject.offset);
        let row = reject_row(&reject.source, place, &reject.fault.to_string(), &reject.bytes);
        rows += &format!("{row}\n");
    }
    let mut file = File::options().create(true).append(true).open(path)?;
    let before = file.metadata()?;
    let written = file.write_all(rows.as_bytes());
    if written.is_err() && before.is_file() {
        // If that fails too, the error says that the file was not written.
        let _ = match before.len() {
            0 => fs::remove_file(path),
            length => file.set_len(length),
        };
    }
    written
}
