//! Filter: the messages of sources for which a condition is true, without loading anything first.
//!
//! ```text
//!  source ─→ sample ─→ conditions bound to its columns ─→ Sieve
//!    └──→ pipeline: workers parse, evaluate, make rows ─→ drain: in order ─→ Watch
//!                                                              └──→ Filtered: counts, account
//! ```
//!
//! A column has the kind that holds the values of all messages. The first ones show it; where a later
//! value is of another kind, the source is read again from its start.

mod account;
mod again;
mod columns;
mod conditions;
mod drain;
mod hidden;
mod kind;
mod pass;
mod passes;
mod record;
mod rejects;
mod running;
mod sample;
mod show;
mod watch;
mod worker;

pub use conditions::Conditions;
pub use rejects::LeftOut;
pub use running::Filtered;
pub use watch::{Done, Header, Message, Rows, Watch};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_messages::{Format, HiddenColumns, Limits};

use crate::{Opener, Result, Sources};

/// A request: conditions, and the output for messages for which they are true.
///
/// ```
/// use std::sync::Arc;
/// use quarrier::filter::{Conditions, Rows};
/// use quarrier::{Environment, Filter, OpenOptions, Opener, Sources};
///
/// # let file = std::env::temp_dir().join(format!("quarrier-filter-{}.ndjson", std::process::id()));
/// std::fs::write(&file, "{\"side\":\"B\",\"qty\":7}\n{\"side\":\"S\",\"qty\":8}\nno message\n")?;
/// let filter = Filter::new(Conditions::one("qty > 7"));
/// let stop = Arc::default();
/// let opener = Opener::new(OpenOptions::default(), &Environment::default(), &stop);
/// let mut found = Vec::new();
/// let mut take = |rows: &Rows<'_>| {
///     found.extend(rows.messages().map(|message| (message.offset, message.bytes.to_vec())));
///     Ok(())
/// };
/// let filtered = filter.run(&Sources::of([&file]), &opener, &stop, &mut take)?;
/// assert_eq!(found, [(21, b"{\"side\":\"S\",\"qty\":8}".to_vec())]);
/// assert_eq!((filtered.counts[0], filtered.messages, filtered.rejected), (1, 2, 1));
/// # std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Filter {
    conditions: Arc<Conditions>,
    form: Form,
    columns: Option<Vec<String>>,
    format: Option<Format>,
    matches_max: u64,
    rejects: Option<PathBuf>,
    workers: usize,
    limits: Limits,
    follows: bool,
}

/// The output for messages for which the condition is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Nothing: they are counted.
    Count,
    /// Their original bytes.
    Messages,
    /// Their own bytes, once for each condition that is true: see [`Rows::conditions`].
    Matches,
    /// A line with tabs between the values.
    Text,
    /// A JSON object a line, with the requested columns, or else all fields of the message.
    Json,
    /// A record of CSV.
    Csv,
    /// Record batches of Arrow.
    Arrow,
}

impl Filter {
    /// A request for the bytes of the messages for which the condition is true. Several conditions
    /// are evaluated in one pass, and only counted, except for [`Form::Matches`].
    pub fn new(conditions: Conditions) -> Self {
        Filter {
            conditions: Arc::new(conditions),
            form: Form::Messages,
            columns: None,
            format: None,
            matches_max: u64::MAX,
            rejects: None,
            workers: 0,
            limits: Limits::default(),
            follows: false,
        }
    }

    /// Sets the output for matching messages.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// The columns of rows; None: those that the first messages have.
    pub fn columns(mut self, columns: Option<Vec<String>>) -> Self {
        self.columns = columns;
        self
    }

    /// The format of the messages; `None` to detect it for each source.
    pub fn format(mut self, format: Option<Format>) -> Self {
        self.format = format;
        self
    }

    /// Ends the run after this many messages for which the first condition is true, in all sources
    /// together.
    pub fn matches_max(mut self, messages: u64) -> Self {
        self.matches_max = messages;
        self
    }

    /// Messages that do not parse are listed in this file, one JSON object a line.
    pub fn rejects(mut self, path: Option<PathBuf>) -> Self {
        self.rejects = path;
        self
    }

    /// Threads that read and evaluate; 0: one a CPU, as if it is not set.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets other limits for messages.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether a file is followed: at its end, the run waits for more, until it is to stop. A file that
    /// takes the place of another one, or was cut off, is read from its start.
    pub fn follow(mut self, follows: bool) -> Self {
        self.follows = follows;
        self
    }

    /// The hidden columns that conditions may name, and those among the columns of rows.
    fn hidden(&self) -> (HiddenColumns, HiddenColumns) {
        let all = |all: HiddenColumns, one: HiddenColumns| all | one;
        let tested = self.conditions.texts().map(HiddenColumns::named_in);
        let shown = self.columns.iter().flatten().map(|name| HiddenColumns::of_name(name));
        let none = HiddenColumns::default();
        // Lists are evaluated as messages come.
        let places = |hidden: HiddenColumns| HiddenColumns { list_ends: false, ..hidden };
        (places(tested.fold(none, all)), places(shown.fold(none, all)))
    }

    /// The conditions, in their order.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Filters one source after another. Ends soon after `stop` becomes true; messages that were
    /// handed on until then are right.
    ///
    /// # Errors
    /// [`Error::Output`](crate::Error::Output) if the watcher returns an error for rows. Errors of a
    /// source, a condition or a column go to [`Watch::failed`] first, and end the run if that returns
    /// them. [`Error::Request`](crate::Error::Request) if a source would be overwritten.
    pub fn run(
        &self,
        sources: &Sources,
        opener: &Opener,
        stop: &Arc<AtomicBool>,
        watch: &mut dyn Watch,
    ) -> Result<Filtered> {
        sources.refuse_overwriting(self.rejects.as_deref())?;
        running::Session::new(self, stop, watch).run(sources, opener)
    }
}
