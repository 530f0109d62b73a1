//! Rules: finds the YARA rules that hold in a source, and in the files in it.
//!
//! ```text
//!  files of rules ──read_rules──→ Rules ──→ RuleSearch ──start──→ RuleRun ──search(place)──┐
//!                                                                                          │
//!   one pass for the strings' patterns ──→ hits of the source and of each of its files     │
//!       ──→ candidates of each scope ──→ its bytes, judged ──→ JudgedScope ──→ watch  ←────┘
//! ```
//!
//! A scope is the bytes that a condition refers to: `filesize` is its length, and `uint16(0)` reads its
//! start. Scopes are the source itself and each allocated file of the file systems in it; on request
//! ([`Scopes`]) also deleted and carved files and the members of archives.

mod bytes;
mod carved;
mod extents;
mod files;
mod going;
mod members;
mod outcome;
mod read;
mod running;
mod scopes;
mod turns;

pub use outcome::{JudgedScope, RuleRow, RulesSearched, ScopeKind, WatchRules};
pub use quarrier_rules::{HeldRule, Rule, Rules, StringMatch};
pub use read::read_rules;
pub use running::RuleRun;
pub use scopes::Scopes;
pub use turns::Turn;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_gpu::DeviceChoice;
use quarrier_search::EngineName;

use crate::search::Planning;
use crate::{Machine, Place, Result, Search};

/// The default maximum size of a scope, in bytes; a scope is held in memory.
pub const SCOPE_BYTES_MAX: u64 = 1 << 30;

/// The default maximum time for the rules of one scope.
pub const SCOPE_TIME_MAX: Duration = Duration::from_secs(60);

/// A request: rules to evaluate over sources and their files.
///
/// ```
/// use std::ops::ControlFlow;
/// use quarrier::rules::{JudgedScope, RuleSearch};
/// use quarrier::{Machine, Place};
/// use quarrier_core::source::Memory;
/// use quarrier_rules::{RuleFile, Rules};
///
/// let text = br#"rule invoice { strings: $a = "invoice" condition: $a at 3 }"#;
/// let file = RuleFile { name: "money.yar".to_string(), bytes: text.to_vec() };
/// let stop = false.into();
/// let rules = Rules::compile(&[file], &mut |_, _| Err("none".to_string()), &stop)?;
/// let search = RuleSearch::new(rules);
/// let machine = Machine::unknown();
/// let mut run = search.start(&machine, None, &stop)?;
/// let image = Memory::new("image", b"an invoice".to_vec());
/// let mut held = Vec::new();
/// let mut take = |scope: &JudgedScope<'_>| {
///     held.extend(scope.held.iter().map(|held| held.found[0].offset));
///     ControlFlow::Continue(())
/// };
/// run.search(Place::Local(&image), &stop, &mut take)?;
/// assert_eq!(held, [3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct RuleSearch {
    rules: Rules,
    /// The search for the strings' patterns; `None` if no string has one.
    gate: Option<Search>,
    scopes: Scopes,
    scope_bytes_max: u64,
    scope_time_max: Duration,
    workers: usize,
}

impl RuleSearch {
    /// Creates a search for the scopes in which rules hold.
    pub fn new(rules: Rules) -> Self {
        let patterns = rules.patterns().to_vec();
        let gate =
            (!patterns.is_empty()).then(|| Search::new(patterns).options(rules.pattern_options()));
        RuleSearch {
            rules,
            gate,
            scopes: Scopes::default(),
            scope_bytes_max: SCOPE_BYTES_MAX,
            scope_time_max: SCOPE_TIME_MAX,
            workers: 0,
        }
    }

    /// Sets the scopes over which rules are evaluated.
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// Sets the maximum size of a scope, which is held in memory. Longer ones are skipped and reported.
    pub fn scope_bytes_max(mut self, bytes: u64) -> Self {
        self.scope_bytes_max = bytes;
        self
    }

    /// Sets the maximum time for the rules of one scope. Slower scopes are skipped and reported.
    pub fn scope_time_max(mut self, time: Duration) -> Self {
        self.scope_time_max = time;
        self
    }

    /// Configures the pipeline of the search for patterns, and the number of threads that evaluate
    /// rules.
    pub fn planning(mut self, planning: Planning) -> Self {
        self.workers = planning.workers;
        self.gate = self.gate.map(|gate| gate.planning(planning));
        self
    }

    /// Sets the device that searches for patterns.
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.gate = self.gate.map(|gate| gate.device(device));
        self
    }

    /// Sets the engine that searches for patterns.
    pub fn engine(mut self, engine: EngineName) -> Self {
        self.gate = self.gate.map(|gate| gate.engine(engine));
        self
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Compiles the search for patterns, with a sample of the first place.
    ///
    /// # Errors
    /// Those of [`Search::start`].
    pub fn start<'s>(
        &'s self,
        machine: &'s Machine,
        first: Option<&Place<'_>>,
        stop: &AtomicBool,
    ) -> Result<RuleRun<'s>> {
        RuleRun::start(self, machine, first, stop)
    }
}
