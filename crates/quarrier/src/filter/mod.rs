//! Filter: finds the messages for which a condition is true, without loading the sources first.
//!
//! ```text
//!  source ─→ sample ─→ conditions bound to its columns ─→ Sieve
//!    └──→ pipeline: workers parse, evaluate, make rows ─→ drain: in order ─→ Watch
//!                                                              └──→ Filtered: counts, account
//! ```
//!
//! The type of a column covers the values of all messages. The sample determines it; if a later value
//! has another type, the source is read again from its start.

mod account;
mod again;
mod columns;
mod conditions;
mod counting;
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
pub(crate) use conditions::in_parallel;
pub(crate) use counting::{Counting, Counts};
pub use rejects::SourceRejects;
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
    /// No output; messages are only counted.
    Count,
    /// The original bytes of each message.
    Messages,
    /// The original bytes, once for each condition that is true: see [`Rows::conditions`].
    Matches,
    /// A line of tab-separated values.
    Text,
    /// A JSON object a line, with the requested columns, or all fields of the message.
    Json,
    /// A CSV record.
    Csv,
    /// Arrow record batches.
    Arrow,
}

impl Filter {
    /// Creates a request for the bytes of matching messages. Several conditions are evaluated in one
    /// pass, and only counted, except for [`Form::Matches`].
    pub fn new(conditions: Conditions) -> Self {
        Filter::of(Arc::new(conditions))
    }

    fn of(conditions: Arc<Conditions>) -> Self {
        Filter {
            conditions,
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

    /// Sets the columns of rows; `None` for the columns of the sample.
    pub fn columns(mut self, columns: Option<Vec<String>>) -> Self {
        self.columns = columns;
        self
    }

    /// Sets the format of the messages; `None` to detect it for each source.
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

    /// Lists rejected messages in this file, one JSON object a line.
    pub fn rejects(mut self, path: Option<PathBuf>) -> Self {
        self.rejects = path;
        self
    }

    /// The number of threads that read and evaluate; 0, the default, means one per CPU.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets other limits for messages.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether to follow a file: the run waits at its end for more data, until stopped. A file that was
    /// replaced or truncated is read from its start.
    pub fn follow(mut self, follows: bool) -> Self {
        self.follows = follows;
        self
    }

    /// The hidden columns in conditions, and those among the columns of rows.
    fn hidden(&self) -> (HiddenColumns, HiddenColumns) {
        let all = |all: HiddenColumns, one: HiddenColumns| all | one;
        let tested = self.conditions.strings().map(HiddenColumns::named_in);
        let shown = self.columns.iter().flatten().map(|name| HiddenColumns::of_name(name));
        let none = HiddenColumns::default();
        // The sieve evaluates lists without this column, while messages are parsed.
        let positions = |hidden: HiddenColumns| HiddenColumns { list_ends: false, ..hidden };
        (positions(tested.fold(none, all)), positions(shown.fold(none, all)))
    }

    /// The conditions, in order.
    pub fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    /// Filters the sources in order. Ends soon after `stop` becomes true; messages passed to the
    /// watcher until then are correct.
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
