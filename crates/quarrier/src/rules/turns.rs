//! Sources in order: small files are read and evaluated on all threads, ahead of their turn.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::name;
use quarrier_files::{Error as FilesError, find};
use quarrier_rules::{Hits, Judge, ScopeName};
use quarrier_search::Searcher;

use super::RuleSearch;
use super::extents::Extents;
use super::going::{SOURCE_NAME, hand_over};
use super::outcome::{RulesSearched, ScopeKind, WatchRules};
use super::running::{RuleRun, Scope, judged};
use crate::source::{Ahead, SmallReader, Whole};
use crate::{Named, Opened, Opener, Result};

/// Maximum size of files that are evaluated ahead.
const SMALL_BYTES_MAX: usize = 1 << 20;
/// Number of sources that a worker claims at a time.
const GROUP: usize = 8;

/// A source in its turn; see [`RuleRun::in_turn`].
pub struct Turn(State);

enum State {
    Opened(Opened),
    Small(Small),
}

/// A small file that was evaluated ahead.
struct Small {
    name: String,
    length: u64,
    scope: Scope,
    elapsed: Duration,
}

impl Turn {
    /// The name of the source.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            State::Opened(opened) => opened.name(),
            State::Small(small) => &small.name,
        }
    }

    /// A notice that people should read before they trust the bytes.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        match &self.0 {
            State::Opened(opened) => opened.notice(),
            State::Small(_) => None,
        }
    }

    /// The [notice](Self::notice) as a line that begins with the name.
    #[must_use]
    pub fn notice_line(&self) -> Option<String> {
        match &self.0 {
            State::Opened(opened) => opened.notice_line(),
            State::Small(_) => None,
        }
    }
}

impl RuleRun<'_> {
    /// Calls `each` with one source after another, in order, until it breaks or `stop` becomes true;
    /// [`search_turn`](Self::search_turn) then searches it. Small files are read and evaluated on all
    /// threads ahead of their turn, unless files are carved or archives are unpacked. `first` is the first
    /// source if it is open already.
    pub fn in_turn(
        &mut self,
        named: &[Named],
        first: Option<Result<Opened>>,
        opener: &Opener,
        stop: &AtomicBool,
        each: &mut dyn FnMut(&mut Self, Result<Turn>) -> ControlFlow<()>,
    ) {
        let mut rest = named;
        if let Some(first) = first {
            rest = named.get(1..).unwrap_or_default();
            if each(self, first.map(|opened| Turn(State::Opened(opened)))).is_break() {
                return;
            }
        }
        let open = |named| opener.open(named).map(|opened| Turn(State::Opened(opened)));
        let Some(small_files) = self.small_files().filter(|_| rest.len() > 1) else {
            for named in rest {
                if stop.load(Ordering::Relaxed) || each(self, open(named)).is_break() {
                    return;
                }
            }
            return;
        };
        let ahead = Ahead { workers: self.workers(), group: GROUP };
        let worker = || {
            let mut reader = SmallReader::new(SMALL_BYTES_MAX);
            let small_files = &small_files;
            move |named| small_files.evaluated(&mut reader, named, stop).ok_or(named)
        };
        ahead.run(rest, stop, worker, |results| {
            for result in results {
                let turn = result.map_or_else(open, |small| Ok(Turn(State::Small(small))));
                if each(self, turn).is_break() {
                    return;
                }
            }
        });
    }

    /// Evaluates the rules over one source and its files, or passes on what was found ahead.
    ///
    /// # Errors
    /// Those of [`search`](Self::search).
    pub fn search_turn(
        &mut self,
        turn: Turn,
        stop: &AtomicBool,
        watch: &mut dyn WatchRules,
    ) -> Result<RulesSearched> {
        match turn.0 {
            State::Opened(mut opened) => self.search(opened.place(), stop, watch),
            State::Small(small) => Ok(self.pass_on(&small, stop, watch)),
        }
    }

    fn pass_on(
        &self,
        small: &Small,
        stop: &AtomicBool,
        watch: &mut dyn WatchRules,
    ) -> RulesSearched {
        let mut done = RulesSearched { bytes: small.length, ..RulesSearched::default() };
        let scope = (ScopeKind::Source, SOURCE_NAME, &Extents::whole(small.length), &small.scope);
        // A `Break` here needs no handling, since nothing follows.
        let _ = hand_over(self.search, &mut done, watch, scope);
        RulesSearched { elapsed: small.elapsed, ..done.finished(Instant::now(), stop) }
    }

    /// What evaluates small files; `None` if the request needs more than their bytes, or a device.
    fn small_files(&self) -> Option<SmallFiles> {
        let search = self.search;
        let scopes = search.scopes;
        let searcher = match &self.gate {
            Some(gate) => Some(gate.searcher_ahead()?),
            None => None,
        };
        (scopes.source && !scopes.carved && !scopes.members).then(|| SmallFiles {
            search: search.clone(),
            searcher,
            judge: Arc::clone(&self.judge),
        })
    }
}

/// Evaluates small files that hold no file system.
struct SmallFiles {
    search: RuleSearch,
    searcher: Option<Arc<Searcher>>,
    judge: Arc<Judge>,
}

impl SmallFiles {
    /// Reads and evaluates a file; `None` for all other sources.
    fn evaluated(
        &self,
        reader: &mut SmallReader,
        named: &Named,
        stop: &AtomicBool,
    ) -> Option<Small> {
        let Named::Path(path) = named else { return None };
        let started = Instant::now();
        let bytes = reader.read(path)?;
        let length = bytes.len() as u64;
        let has_files = || !matches!(find(&Whole(bytes)), Err(FilesError::FileSystem { .. }));
        let is_listed = self.search.scopes.needs_files() && has_files();
        if length > self.search.scope_bytes_max || is_listed {
            return None;
        }
        let scope = self.scope(path, bytes, stop)?;
        let name = name::of_path(path);
        Some(Small { name, length, scope, elapsed: started.elapsed() })
    }

    /// Evaluates the bytes of a file; `None` if the search for patterns fails, which its turn reports.
    fn scope(&self, path: &Path, bytes: &[u8], stop: &AtomicBool) -> Option<Scope> {
        let mut hits = Hits::default();
        if let Some(searcher) = &self.searcher {
            let findings = searcher.find_all(bytes).ok()?;
            findings.iter().for_each(|finding| hits.add(finding.pattern));
        }
        let rules = &self.search.rules;
        if rules.candidates(&hits, bytes.len() as u64, Some(bytes)).is_empty() {
            return Some(Scope::default());
        }
        let name = ScopeName::of(&name::of_path(path));
        let mut scope = judged(rules, &self.judge, Arc::new(bytes.to_vec()), &name, &hits, stop);
        if !matches!(&scope.judged, Some(Ok(judged)) if !judged.held.is_empty()) {
            // Without rules that hold, nobody needs the bytes.
            scope.bytes = Arc::default();
        }
        Some(scope)
    }
}
