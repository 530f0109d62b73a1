//! The rows and the outcome of a search for rules.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier_core::pipeline::Run;
use quarrier_core::ranges::merged;
use quarrier_rules::{HeldRule, Rule, Rules};

use super::extents::Extents;
use crate::search::MATCH_BYTES_MAX;

/// Maximum number of notices kept for a source; the rest are only counted.
const NOTICES_MAX: usize = 50;

/// The type of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// All bytes of the source.
    Source,
    /// An allocated file in it.
    File,
    /// A deleted file in it.
    Deleted,
    /// A carved file.
    Carved,
    /// A member of an archive.
    Member,
}

/// A scope in which rules hold.
#[derive(Clone, Copy)]
pub struct JudgedScope<'s> {
    /// The type of the scope.
    pub kind: ScopeKind,
    /// The name of the scope: `source`; the path of a file, after `#N` of the partition if there are
    /// several file systems, and before ` (deleted)` if it is deleted; the path of a carved file in the
    /// output folder of `carve`; for a member, the scope that is the archive, then `!` and a name for each
    /// level of nesting.
    pub name: &'s str,
    /// The bytes of the scope.
    pub bytes: &'s [u8],
    /// The rules that hold, in the order of their declaration.
    pub held: &'s [HeldRule],
    pub(super) extents: &'s Extents,
}

/// A row: a string found of a rule that holds, or a rule that holds without one.
#[derive(Debug, Clone, Copy)]
pub struct RuleRow<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// The index of the rule among all rules.
    pub place: usize,
    /// The name of the string, with the dollar sign.
    pub string: Option<&'r str>,
    /// The offset of the match in the source, if the source holds its bytes verbatim.
    pub offset: Option<u64>,
    /// The length of the match in bytes.
    pub length: Option<u64>,
    /// The bytes of the match, at most [`MATCH_BYTES_MAX`].
    pub found: &'r [u8],
}

impl RuleRow<'_> {
    /// The bytes found as a string; `None` if the rule holds without a string.
    #[must_use]
    pub fn match_text(&self) -> Option<String> {
        let mut text = String::new();
        self.rule.show_match(self.string?, self.found, &mut text);
        Some(text)
    }
}

impl<'s> JudgedScope<'s> {
    /// The offset in the source of the byte at `offset` of the scope. `None` if the source does not hold it
    /// verbatim: in a hole, in a compressed file or member, or in a file that a record of the file system
    /// holds.
    #[must_use]
    pub fn source_offset(&self, offset: u64) -> Option<u64> {
        self.extents.at(offset)
    }

    /// The bytes found, at most `bytes_max` of them.
    #[must_use]
    pub fn found(&self, offset: u64, length: u64, bytes_max: usize) -> &'s [u8] {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes_max);
        &self.bytes[start..start.saturating_add(length).min(self.bytes.len())]
    }

    /// One row for each string found of each rule that holds, and one for a rule that holds without any.
    pub fn rows<'r>(&'r self, rules: &'r Rules) -> impl Iterator<Item = RuleRow<'r>> {
        self.held.iter().flat_map(move |held| {
            let (rule, place) = (&rules.rules()[held.rule], held.rule);
            let bare =
                RuleRow { rule, place, string: None, offset: None, length: None, found: &[] };
            let found = held.found.iter().map(move |one| RuleRow {
                rule,
                place,
                string: Some(&*one.string),
                offset: self.source_offset(one.offset),
                length: Some(one.length),
                found: self.found(one.offset, one.length, MATCH_BYTES_MAX),
            });
            held.found.is_empty().then_some(bare).into_iter().chain(found)
        })
    }
}

/// Observes the search of one source. A closure that takes scopes implements it.
pub trait WatchRules: Send {
    /// A pass over `range` of the source begins: one for carved files, if these are scopes, and one for
    /// patterns.
    fn begin(&mut self, range: &Range<u64>) {
        let _ = range;
    }

    /// The pass has reached `offset`.
    fn advance(&mut self, offset: u64) {
        let _ = offset;
    }

    /// Rules hold in a scope. `Break` ends the search of this source.
    fn take(&mut self, scope: &JudgedScope<'_>) -> ControlFlow<()>;
}

impl<F> WatchRules for F
where
    F: FnMut(&JudgedScope<'_>) -> ControlFlow<()> + Send,
{
    fn take(&mut self, scope: &JudgedScope<'_>) -> ControlFlow<()> {
        self(scope)
    }
}

/// The outcome of one source.
#[derive(Debug, Default)]
pub struct RulesSearched {
    /// The length of the source in bytes.
    pub bytes: u64,
    /// The run of the search for patterns; `None` for a small source, and if no rule has patterns.
    pub run: Option<Run>,
    /// The number of files in its file systems, of deleted and carved files if these are scopes, and of
    /// members of archives.
    pub files: u64,
    /// The number of scopes whose rules were evaluated, because some rule could hold.
    pub scopes: u64,
    /// Notices, a line each, without the name of the source.
    pub notices: Vec<String>,
    /// Whether a rule may hold that is not reported: scopes were skipped, or files may be missing.
    pub is_incomplete: bool,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Whether the stop flag ended the search early.
    pub is_stopped: bool,
    /// The duration of the search.
    pub elapsed: Duration,
    pub(super) notices_left_out: u64,
}

impl RulesSearched {
    pub(super) fn notice(&mut self, line: String) {
        match self.notices.len() < NOTICES_MAX {
            true => self.notices.push(line),
            false => self.notices_left_out += 1,
        }
    }

    /// Adds a notice about skipped scopes.
    pub(super) fn missing(&mut self, line: String) {
        self.is_incomplete = true;
        self.notice(line);
    }

    pub(super) fn could_not_read(&mut self, ranges: &[Range<u64>]) {
        self.unreadable.extend_from_slice(ranges);
    }

    pub(super) fn finished(mut self, started: Instant, stop: &AtomicBool) -> Self {
        if self.notices_left_out > 0 {
            self.notices.push(format!("{} more notices are left out", self.notices_left_out));
        }
        self.unreadable = merged(std::mem::take(&mut self.unreadable));
        self.is_incomplete |= !self.unreadable.is_empty();
        self.is_stopped = stop.load(Ordering::Relaxed);
        self.elapsed = started.elapsed();
        self
    }
}
