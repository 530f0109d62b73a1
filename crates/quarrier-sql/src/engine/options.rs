//! How an engine works.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::{Environment, Machine};
use quarrier_messages::{HiddenColumns, Limits};

use super::WORDS_MAX;
use crate::Reach;

/// How an [`Engine`](crate::Engine) works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads; 0, the default, means one per CPU.
    pub workers: usize,
    /// Bytes of memory for tables, joins, groups and orders together; beyond it, operators spill if
    /// they can, and fail otherwise. Unlimited by default.
    pub memory_bytes_max: Option<u64>,
    /// The most words and marks of a text: [`WORDS_MAX`] where threads have the stacks for trees as
    /// deep as that, [`WORDS_ON_ANY_STACK`](crate::WORDS_ON_ANY_STACK) where they have 32 MiB.
    pub statement_words_max: usize,
    /// The limits of messages.
    pub limits: Limits,
    /// Hidden columns that statements will name. A table gets hidden columns when the first statement
    /// names them, which reads its source once more unless they are foreseen here; none by default.
    pub hidden: HiddenColumns,
    /// Ends loads soon after it became true.
    pub stop: Arc<AtomicBool>,
    /// Proxies and credentials for remote sources; none by default.
    pub environment: Environment,
    /// The files that statements may name; all by default.
    pub reach: Reach,
    /// The machine by which searches are planned; unknown by default.
    pub machine: Machine,
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
            reach: Reach::default(),
            machine: Machine::unknown(),
        }
    }
}
