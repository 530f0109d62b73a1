//! The display of a run, for people and programs: rows, progress, and errors.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::Error;
use quarrier::filter::{Done, Header, Rows, SourceRejects, Watch};
use quarrier::source::unreadable_line;

use super::form;
use super::out::{Held, Out};
use crate::args::Filter;
use crate::commands::search::progress::Progress;
use crate::{Outcome, complain};

/// The state of a run's display.
pub(super) struct Show<'f> {
    filter: &'f Filter,
    stop: &'f AtomicBool,
    out: Option<Out>,
    held: Arc<Held>,
    progress: Option<Progress>,
    /// Whether a requested column is missing.
    is_wrong: bool,
    outcome: Option<Outcome>,
}

impl<'f> Show<'f> {
    pub(super) fn new(filter: &'f Filter, stop: &'f AtomicBool) -> Self {
        let held = Arc::default();
        Show { filter, stop, out: None, held, progress: None, is_wrong: false, outcome: None }
    }

    /// The outcome, unless the run succeeded.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// Keeps the worse of two outcomes.
    pub(super) fn worsen(&mut self, outcome: Outcome) {
        self.outcome = Some(self.outcome.map_or(outcome, |now| now.worse(outcome)));
    }

    /// Ends the rows. Returns whether they are valid; otherwise drops the rows held back.
    pub(super) fn finish(&mut self) -> io::Result<bool> {
        if let Some(out) = &mut self.out {
            out.finish()?;
        }
        match self.is_wrong {
            true => self.held.discard(),
            false => self.held.release()?,
        }
        Ok(!self.is_wrong)
    }
}

impl Watch for Show<'_> {
    fn open(&mut self, header: &Header) -> io::Result<()> {
        if !header.is_certain {
            self.held.hold();
        }
        self.out = Some(Out::open((form(self.filter), self.filter.format), header, &self.held)?);
        Ok(())
    }

    fn certain(&mut self) -> io::Result<()> {
        self.held.release()
    }

    fn rows(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), |out| out.write(rows))
    }

    fn pause(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Out::flush)
    }

    fn begin(&mut self, name: &str, end: u64) {
        self.progress = Some(Progress::new(name, 0..end, self.filter.quiet));
    }

    fn advance(&mut self, offset: u64) {
        if let Some(progress) = &mut self.progress {
            progress.advance_to(offset);
        }
    }

    fn end(&mut self) {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
    }

    fn notice(&mut self, notice: &str) {
        complain(notice);
    }

    fn damaged(&mut self, _name: &str, damage: &str) {
        complain(damage);
        self.worsen(Outcome::Incomplete);
    }

    fn rejected(&mut self, name: &str, rejects: &SourceRejects) {
        let Some((line, reason)) = rejects.first.as_ref().filter(|_| !self.filter.quiet) else {
            return;
        };
        let hint = if self.filter.rejects.is_some() { "" } else { "; --rejects FILE lists them" };
        let (count, messages) = (rejects.count, rejects.messages);
        let were = if count == 1 { "was" } else { "were" };
        complain(&format!(
            "{name}: {count} of {messages} messages {were} left out, the first at line {line}: \
             {reason}{hint}"
        ));
    }

    fn done(&mut self, done: &Done<'_>) {
        let name = done.name;
        for range in &done.run.unreadable {
            complain(&unreadable_line(name, range));
        }
        if !done.run.unreadable.is_empty() {
            self.worsen(Outcome::Incomplete);
        }
        if let Some(position) = done.interrupted_at {
            complain(&format!(
                "{name}: interrupted at byte {position}; the messages before it are complete"
            ));
            self.worsen(Outcome::Interrupted);
        }
        if !done.fields_left_out.is_empty() {
            complain(&format!(
                "{name}: {} came after the columns were written and {} not shown; name them with \
                 --columns, or use --format json",
                done.fields_left_out.join(", "),
                if done.fields_left_out.len() == 1 { "is" } else { "are" },
            ));
        }
    }

    fn failed(&mut self, error: Error) -> quarrier::Result<()> {
        complain(&error.to_string());
        self.is_wrong |= matches!(error, Error::NoColumn { .. });
        let is_stopped = self.stop.load(Ordering::Relaxed);
        self.worsen(if is_stopped { Outcome::Interrupted } else { Outcome::Failed });
        Ok(())
    }
}
