//! What was met while files were loaded: said, and listed.

use std::io::Write;

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
    if session.query.quiet {
        return Ok(());
    }
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
        complain(&format!(
            "{} values of fields that are too many have no column",
            loaded.fields_left_out
        ));
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

/// As `quarrier filter` lists them.
fn list(path: &std::path::Path, loaded: &Loaded) -> std::io::Result<()> {
    let mut file = std::fs::File::options().create(true).append(true).open(path)?;
    for reject in &loaded.rejects {
        let place = (reject.line, reject.offset);
        let row = reject_row(&reject.source, place, &reject.fault.to_string(), &reject.bytes);
        writeln!(file, "{row}")?;
    }
    file.flush()
}
