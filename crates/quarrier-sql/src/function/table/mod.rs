//! Table functions that run engines of quarrier: `search(…)`, `rules(…)`, `carve(…)`, `files(…)`,
//! `gauge(…)`, `messages(…)`.
//!
//! ```text
//!  call ─→ arguments ─→ provider ─→ FoundExec ─→ a thread that finds ─→ batches, a few ahead
//!                       conditions, columns       └─ ends when nobody reads them any more
//! ```

mod arguments;

mod carve;

mod chosen;

mod counting;

mod files;

mod gauge;

mod messages;

mod plan;
pub(crate) use plan::FoundExec;

mod rows;

mod rules;

mod search;

mod starts;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use datafusion::prelude::SessionContext;
use quarrier::source;
use quarrier::{Environment, Machine, OpenOptions};
use quarrier_core::sync::lock;

use crate::files::Spreading;
use crate::reach::Reach;
use crate::rewrite::MESSAGES;

/// Notes on answers, which all table functions share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<source::Notes>>);

impl Notes {
    /// Adds ranges of a source that could not be read.
    fn add_unreadable(&self, name: &str, ranges: &[Range<u64>]) {
        lock(&self.0).add_unreadable(name, ranges);
    }

    /// Adds messages about other parts of sources that the answer lacks.
    fn add(&self, lines: impl IntoIterator<Item = String>) {
        lock(&self.0).add_missing(lines);
    }

    /// Adds notices of sources that were read in full.
    pub(crate) fn add_notices(&self, lines: impl IntoIterator<Item = String>) {
        lock(&self.0).add_notices(lines);
    }

    /// Takes the messages about missing parts since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        lock(&self.0).take_missing()
    }

    /// Takes the notices since the last call.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        lock(&self.0).take_notices()
    }
}

/// The machine and environment for searches and carving.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) environment: Environment,
    pub(crate) machine: Machine,
    /// The files that the functions may read.
    pub(crate) reach: Reach,
    /// How sources are opened.
    pub(crate) open: OpenOptions,
    /// Where other processes search and carve.
    pub(crate) spread: Option<Spreading>,
}

/// Registers the table functions.
pub(crate) fn register(context: &SessionContext, notes: &Notes, host: &Host) {
    if host.reach.has_tables_of_the_engine() {
        context.register_udtf("search", Arc::new(search::Search::new(notes, host)));
        context.register_udtf("rules", Arc::new(rules::Rules::new(notes, host)));
        context.register_udtf("carve", Arc::new(carve::Carve::new(notes, host)));
        context.register_udtf("files", Arc::new(files::Files::new(notes, host)));
    }
    if host.reach.has_gauge() {
        context.register_udtf("gauge", Arc::new(gauge::Gauge::new(host)));
    }
    context.register_udtf(MESSAGES, Arc::new(messages::Messages));
}
