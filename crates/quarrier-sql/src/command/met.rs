//! What was met while files were loaded: said, and listed.

use std::io::Write;

use quarrier_cli::complain;
use quarrier_sql::{Error, Loaded, Result};
use serde_json::json;

use super::Session;

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
    if loaded.rejected > 0 {
        let hint = if session.query.rejects.is_none() { "; --rejects FILE lists them" } else { "" };
        let messages = if loaded.rejected == 1 { "message was" } else { "messages were" };
        complain(&format!("{} {messages} left out{hint}", loaded.rejected));
    }
    if loaded.fields_left_out > 0 {
        complain(&format!(
            "{} values of fields that are too many have no column",
            loaded.fields_left_out
        ));
    }
    Ok(())
}

/// As `quarrier filter` lists them.
fn list(path: &std::path::Path, loaded: &Loaded) -> std::io::Result<()> {
    let mut file = std::fs::File::options().create(true).append(true).open(path)?;
    for reject in &loaded.rejects {
        let row = json!({
            "source": &*reject.source,
            "line": reject.line,
            "offset": reject.offset,
            "reason": reject.fault.to_string(),
            "bytes": String::from_utf8_lossy(&reject.bytes),
        });
        writeln!(file, "{row}")?;
    }
    file.flush()
}
