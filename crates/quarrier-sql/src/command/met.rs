//! What was met while files were loaded: said, and listed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use quarrier::tables::reject_row;
use quarrier_cli::complain;
use quarrier_sql::{Error, Loaded, Result};

use super::Session;

/// The most files of which it is told one by one that messages were left out.
const FILES_TOLD_MAX: usize = 8;

/// The most columns of which it is told that values lost digits.
const COLUMNS_TOLD_MAX: usize = 8;

/// Says what was left out, and lists it where that is wanted.
pub(super) fn tell(session: &Session<'_>) -> Result<()> {
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
    for left_out in loaded.left_out.iter().take(FILES_TOLD_MAX) {
        complain(&format!("{left_out}{hint}"));
    }
    let more = loaded.left_out.iter().skip(FILES_TOLD_MAX);
    let messages: u64 = more.clone().map(|left_out| left_out.count).sum();
    if messages > 0 {
        complain(&format!(
            "{messages} messages of {} more files were left out{hint}",
            more.count()
        ));
    }
    if loaded.fields_left_out > 0 {
        complain(&format!("{} values dropped: more than 4,096 columns", loaded.fields_left_out));
    }
    for rounded in loaded.rounded.iter().take(COLUMNS_TOLD_MAX) {
        complain(&rounded.to_string());
    }
    let more = loaded.rounded.len().saturating_sub(COLUMNS_TOLD_MAX);
    if more > 0 {
        complain(&format!("values of {more} more columns lost digits"));
    }
    Ok(())
}

/// As `quarrier filter` lists them; behind what is listed already. What cannot be written whole is taken
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
        // Where that fails, too, it is told that the file was not written.
        let _ = match before.len() {
            0 => fs::remove_file(path),
            length => file.set_len(length),
        };
    }
    written
}
