//! Messages of a durable log as sources.

use std::path::Path;

use quarrier_core::name;
use quarrier_core::source::Memory;
use quarrier_messages::kept::{Run, Store};

use super::Opened;
use crate::{Error, Result};

/// Opens all messages of a data folder, or of one segment of its log.
pub(super) fn opened(path: &Path) -> Result<Opened> {
    let store = Store::read(path)?;
    let damages = damages(&store);
    let mut runs = store.all_runs()?;
    let Some(run) = runs.pop() else {
        let source = Box::new(Memory::new(name::of_path(path), Vec::<u8>::new()));
        return Ok(Opened::Local {
            source,
            notice: None,
            format: None,
            damages,
            beside: Vec::new(),
        });
    };
    if !runs.is_empty() {
        let tables: Vec<String> = store.tables()?.iter().map(|table| table.name.clone()).collect();
        let reason = format!(
            "it holds messages in several formats, of the tables {}; name one of them, with \
             --data and the data folder",
            tables.join(", ")
        );
        return Err(Error::Unsupported { name: name::of_path(path), reason });
    }
    let format = Some(run.format().clone());
    let (source, beside) = (Box::new(run), Vec::new());
    Ok(Opened::Local { source, notice: None, format, damages, beside })
}

/// Opens the messages of a table.
pub(super) fn opened_run(run: &Run) -> Opened {
    let format = Some(run.format().clone());
    let (source, damages, beside) = (Box::new(run.clone()), Vec::new(), Vec::new());
    Opened::Local { source, notice: None, format, damages, beside }
}

/// Lists damaged places, a line each, with the marks of the lost messages.
pub(crate) fn damages(store: &Store) -> Vec<String> {
    let found = store.found();
    let mut lines: Vec<String> = found.damages.iter().map(ToString::to_string).collect();
    let more = found.damages_found.saturating_sub(lines.len() as u64);
    if more > 0 {
        lines.push(format!("{}: {more} more places are damaged", store.place()));
    }
    lines
}
