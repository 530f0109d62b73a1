//! The options of an engine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::{Environment, Machine, OpenOptions};
use quarrier_messages::{HiddenColumns, Limits};

use super::WORDS_MAX;
use crate::{Reach, Spreading};

/// Options of an [`Engine`](crate::Engine).
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of threads; 0, the default, means one per CPU.
    pub workers: usize,
    /// Bytes of memory for tables, joins, grouping and sorting together; beyond it, operators spill
    /// if they can, and fail otherwise. Unlimited by default.
    pub memory_bytes_max: Option<u64>,
    /// Maximum number of tokens in a text: [`WORDS_MAX`] if the threads' stacks are large enough
    /// for trees of that depth, [`WORDS_ON_ANY_STACK`](crate::WORDS_ON_ANY_STACK) if they have 32
    /// MiB.
    pub statement_words_max: usize,
    /// Limits for loading messages.
    pub limits: Limits,
    /// Hidden columns that statements will name; none by default. If a statement names hidden
    /// columns that are not listed here, the engine reads the table's source again.
    pub hidden: HiddenColumns,
    /// Ends loads soon after it becomes true.
    pub stop: Arc<AtomicBool>,
    /// Proxies and credentials for remote sources; none by default.
    pub environment: Environment,
    /// Options for opening sources, such as headers for URLs. Their limit of memory is ignored if there is a
    /// limit for all.
    pub open: OpenOptions,
    /// The files that statements may name; all by default.
    pub reach: Reach,
    /// The machine profile for planning searches; unknown by default.
    pub machine: Machine,
    /// The cluster that reads tables; none by default.
    pub spread: Option<Spreading>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: 0,
            memory_bytes_max: None,
            statement_words_max: WORDS_MAX,
            limits: Limits::default(),
            hidden: HiddenColumns::default(),
            stop: Arc::default(),
            environment: Environment::default(),
            open: OpenOptions::default(),
            reach: Reach::default(),
            machine: Machine::unknown(),
            spread: None,
        }
    }
}
