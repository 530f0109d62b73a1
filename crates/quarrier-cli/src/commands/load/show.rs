//! The display of a load, for people and programs: rows, progress, and errors.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::Error;
use quarrier::kept::{DataFolder, KeptWatch, LoadedSource, Progress as Stored};
use quarrier_messages::Reject;
use quarrier_report::number;

use super::{per_second, rows_of_load, tell_found};
use crate::args::Load;
use crate::commands::search::progress::Progress;
use crate::output::rows::{Excerpt, Rows, Value};
use crate::{Outcome, complain};

/// The state of a load's display.
pub(super) struct Show<'l> {
    load: &'l Load,
    stop: &'l AtomicBool,
    rows: Option<Box<dyn Rows>>,
    progress: Option<Progress>,
    outcome: Outcome,
    /// Why standard output can no longer be written.
    broken: Option<io::Error>,
}

impl<'l> Show<'l> {
    pub(super) fn new(load: &'l Load, stop: &'l AtomicBool) -> Self {
        let outcome = Outcome::Found;
        Show { load, stop, rows: None, progress: None, outcome, broken: None }
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Keeps the worse of two outcomes.
    pub(super) fn worsen(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.worse(outcome);
    }

    /// Reports what opening the folder found.
    pub(super) fn found(&mut self, kept: &DataFolder, is_quiet: bool) {
        self.worsen(tell_found(kept, is_quiet));
    }

    /// Ends the rows.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        if let Some(error) = self.broken.take() {
            return Err(error);
        }
        self.rows.as_mut().map_or(Ok(()), |rows| rows.finish())
    }

    fn row(&mut self, loaded: &LoadedSource) -> io::Result<()> {
        let rows = match &mut self.rows {
            Some(rows) => rows,
            None => self.rows.insert(rows_of_load(self.load)?),
        };
        let (stored, seconds) = (&loaded.stored, loaded.elapsed.as_secs_f64());
        let values = [
            Value::Text(&self.load.table),
            Value::Text(&loaded.name),
            Value::Unsigned(stored.messages),
            Value::Unsigned(stored.rejected),
            Value::Unsigned(stored.start),
            Value::Unsigned(stored.bytes),
            Value::Number(seconds),
            Value::Number(per_second(stored.messages, seconds)),
        ];
        rows.row(&values, Excerpt::default())
    }
}

impl KeptWatch for Show<'_> {
    fn begin(&mut self, name: &str, end: u64) {
        self.progress = Some(Progress::new(name, 0..end, self.load.quiet));
    }

    fn notice(&mut self, notice: &str) {
        complain(notice);
    }

    fn damaged(&mut self, damage: &str) {
        complain(damage);
        self.worsen(Outcome::Incomplete);
    }

    fn progressed(&mut self, stored: &Stored) {
        if let Some(progress) = &mut self.progress {
            progress.advance_to(stored.bytes);
        }
    }

    fn done(&mut self, loaded: &LoadedSource, first: Option<&Reject>) {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
        let (name, stored) = (&loaded.name, &loaded.stored);
        if let Some(first) = first {
            let all = stored.messages + stored.rejected;
            let were = if stored.rejected == 1 { "was" } else { "were" };
            let hint = if self.load.rejects.is_some() { "" } else { "; --rejects FILE lists them" };
            complain(&format!(
                "{name}: {} of {} messages {were} left out, the first at line {}: {}{hint}",
                stored.rejected, all, first.line, first.fault
            ));
        }
        if stored.is_stopped {
            complain(&format!(
                "{name}: interrupted at byte {}; the {} before it are on disk, and the same \
                 command continues there",
                stored.end,
                number::counted(stored.messages, "message")
            ));
            self.worsen(Outcome::Interrupted);
        }
        if self.broken.is_none() {
            self.broken = self.row(loaded).err();
        }
    }

    fn failed(&mut self, error: Error) -> quarrier::Result<()> {
        complain(&error.to_string());
        let is_stopped = self.stop.load(Ordering::Relaxed);
        self.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
        Ok(())
    }
}
