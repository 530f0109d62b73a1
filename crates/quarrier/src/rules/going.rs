//! Evaluates the scopes of one source, after the search for patterns.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quarrier_core::source::Source;
use quarrier_core::threads::team;
use quarrier_report::number;
use quarrier_rules::{Hits, JudgeError, Judged, Rules, ScopeName};

use super::RuleSearch;
use super::bytes::{self, ScopeBytes};
use super::extents::Extents;
use super::files::{File, Group};
use super::members::judge_members;
use super::outcome::{JudgedScope, RulesSearched, ScopeKind, WatchRules};
use super::running::{RuleRun, Scope};

/// Size of the files evaluated in one batch, which stay in memory until the end of it.
pub(super) const BATCH_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of files in one batch.
pub(super) const BATCH_FILES_MAX: usize = 256;
/// Maximum total size of the files of a source, as a multiple of its length, or of a gibibyte: a
/// damaged file system may claim that a million files share the same clusters.
const FILES_TIMES_MAX: u64 = 4;
/// The name of the scope that is the whole source.
pub(super) const SOURCE_NAME: &str = "source";

/// The scopes of one source, after the search for patterns.
pub(super) struct Going<'g, 's> {
    pub(super) run: &'g RuleRun<'s>,
    pub(super) source: &'g dyn Source,
    pub(super) stop: &'g AtomicBool,
    pub(super) done: RulesSearched,
    pub(super) watch: &'g mut dyn WatchRules,
}

impl Going<'_, '_> {
    /// Evaluates all scopes: the source, then files, then members of archives; returns whether to
    /// continue.
    pub(super) fn judge_all(
        &mut self,
        small: Option<ScopeBytes>,
        hits: &Hits,
        groups: &[Group],
        has_files: bool,
    ) -> ControlFlow<()> {
        let scopes = self.run.search.scopes;
        match scopes.source {
            true => self.judge_source(small, hits, has_files)?,
            false => small.iter().for_each(|small| self.done.could_not_read(&small.unreadable)),
        }
        for group in groups.iter().filter(|group| group.is_judged) {
            self.judge_files(group)?;
        }
        match scopes.members {
            true => judge_members(self, groups),
            false => ControlFlow::Continue(()),
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Evaluates the source as a scope; returns whether to continue.
    fn judge_source(
        &mut self,
        small: Option<ScopeBytes>,
        hits: &Hits,
        has_files: bool,
    ) -> ControlFlow<()> {
        let search = self.run.search;
        let (length, most) = (self.source.length(), search.scope_bytes_max);
        let known = small.as_ref().map(|small| &*small.bytes);
        if search.rules.candidates(hits, length, known).is_empty() {
            small.iter().for_each(|small| self.done.could_not_read(&small.unreadable));
            return ControlFlow::Continue(());
        }
        if length > most {
            let line = format!(
                "rules are not evaluated over all of the source, which has {}, more than {}; raise \
                 --rules-max-size",
                number::bytes(length),
                number::bytes(most),
            );
            match has_files {
                true => self.done.notice(format!("{line}; those of its files are")),
                false => self.done.missing(line),
            }
            return ControlFlow::Continue(());
        }
        let read = match small
            .map_or_else(|| bytes::of_source(self.source, self.run.workers(), self.stop), Ok)
        {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return ControlFlow::Break(());
            }
            Err(error) => {
                let line = format!("rules are not evaluated over all of the source: {error}");
                self.done.missing(line);
                return ControlFlow::Continue(());
            }
        };
        self.done.could_not_read(&read.unreadable);
        let name = ScopeName::of(self.source.name());
        let scope = self.run.judged(Arc::new(read.bytes), &name, hits, self.stop);
        self.hand_over(ScopeKind::Source, SOURCE_NAME, &Extents::whole(length), &scope)
    }

    /// Evaluates each file of a group in which a rule may hold; returns whether to continue.
    fn judge_files(&mut self, group: &Group) -> ControlFlow<()> {
        let rules = &self.run.search.rules;
        let bytes_max = self.source.length().max(1 << 30).saturating_mul(FILES_TIMES_MAX);
        let (mut batch, mut batch_bytes, mut all_bytes) = (Vec::new(), 0u64, 0u64);
        for (file, hits) in group.files.iter().zip(&group.hits) {
            if self.is_stopped() {
                return ControlFlow::Break(());
            }
            let size = file.entry.size;
            // A fragmented file is searched when it is read.
            let all = hits.is_none().then(Hits::all);
            let known = hits.as_ref().or(all.as_ref());
            if known.is_some_and(|hits| rules.candidates(hits, size, None).is_empty()) {
                continue;
            }
            if let Some(why) = self.refusal(file, all_bytes, bytes_max) {
                self.done.missing(format!("{}: {why}", group.name(file)));
                continue;
            }
            let is_full = batch_bytes + size > BATCH_BYTES_MAX || batch.len() >= BATCH_FILES_MAX;
            if is_full && !batch.is_empty() {
                self.judge_batch(group, &batch)?;
                batch.clear();
                batch_bytes = 0;
            }
            batch_bytes += size;
            all_bytes = all_bytes.saturating_add(size);
            batch.push((file, hits.as_ref()));
        }
        self.judge_batch(group, &batch)
    }

    /// Why a file is not evaluated; `None` if it is.
    fn refusal(&self, file: &File, all_bytes: u64, bytes_max: u64) -> Option<String> {
        let (size, most) = (file.entry.size, self.run.search.scope_bytes_max);
        if size > most {
            let (size, most) = (number::bytes(size), number::bytes(most));
            return Some(format!(
                "its rules are not evaluated: it has {size}, more than {most}; raise --rules-max-size"
            ));
        }
        (all_bytes.saturating_add(size) > bytes_max).then(|| {
            format!(
                "its rules are not evaluated: the files have more than {} together, which is \
                 {FILES_TIMES_MAX} times what the source has",
                number::bytes(bytes_max)
            )
        })
    }

    /// Evaluates files on all threads, and passes them on in order; returns whether to continue.
    fn judge_batch(&mut self, group: &Group, batch: &[(&File, Option<&Hits>)]) -> ControlFlow<()> {
        let (run, source, stop) = (self.run, self.source, self.stop);
        let judged = self.on_all_threads(batch.len(), |place| {
            let (file, hits) = batch[place];
            run.judge_file(source, file, hits, stop)
        });
        for (place, scope) in judged {
            let (file, _) = batch[place];
            let extents = Extents::of(&file.entry);
            self.hand_over(group.kind, &group.name(file), &extents, &scope)?;
        }
        ControlFlow::Continue(())
    }

    /// Evaluates `count` scopes on all threads. Returns them in order, without those that had not begun when
    /// the run was stopped.
    pub(super) fn on_all_threads(
        &self,
        count: usize,
        judge: impl Fn(usize) -> Scope + Sync,
    ) -> Vec<(usize, Scope)> {
        let stop = self.stop;
        let next = AtomicUsize::new(0);
        let workers = self.run.workers().clamp(1, count.max(1));
        let work = |_| {
            let mut mine = Vec::new();
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= count {
                    return mine;
                }
                if !stop.load(Ordering::Relaxed) {
                    mine.push((place, judge(place)));
                }
            }
        };
        let mut judged: Vec<(usize, Scope)> =
            team(0..workers, work).into_iter().flatten().collect();
        judged.sort_by_key(|(place, _)| *place);
        judged
    }

    /// Passes on the rules that hold in a scope, and records missing parts; returns whether to
    /// continue.
    pub(super) fn hand_over(
        &mut self,
        kind: ScopeKind,
        name: &str,
        extents: &Extents,
        scope: &Scope,
    ) -> ControlFlow<()> {
        hand_over(self.run.search, &mut self.done, self.watch, (kind, name, extents, scope))
    }
}

/// Passes on the rules that hold in a scope, and records missing parts in `done`; returns whether to
/// continue.
pub(super) fn hand_over(
    search: &RuleSearch,
    done: &mut RulesSearched,
    watch: &mut dyn WatchRules,
    (kind, name, extents, scope): (ScopeKind, &str, &Extents, &Scope),
) -> ControlFlow<()> {
    done.could_not_read(&scope.unreadable);
    let judged = match &scope.judged {
        None => return ControlFlow::Continue(()),
        Some(Ok(judged)) => judged,
        Some(Err(JudgeError::Stopped)) => return ControlFlow::Break(()),
        Some(Err(JudgeError::Late)) => {
            let seconds = search.scope_time_max.as_secs_f64();
            done.missing(format!(
                "{name}: rules take more than {seconds} s here, so none of them is reported; raise \
                 --rules-timeout, or remove slow ones"
            ));
            return ControlFlow::Continue(());
        }
        Some(Err(JudgeError::Failed(reason))) => {
            done.missing(format!("{name}: its rules are not evaluated: {reason}"));
            return ControlFlow::Continue(());
        }
    };
    done.scopes += 1;
    note_overfull(&search.rules, done, name, judged);
    if judged.held.is_empty() {
        return ControlFlow::Continue(());
    }
    let held = &*judged.held;
    watch.take(&JudgedScope { kind, name, bytes: &scope.bytes, held, extents })
}

/// Reports strings with more matches than the limit.
fn note_overfull(rules: &Rules, done: &mut RulesSearched, name: &str, judged: &Judged) {
    for overfull in &judged.overfull {
        let holds = judged.held.iter().any(|held| held.rule == overfull.rule);
        let rule = &rules.rules()[overfull.rule];
        let line = format!(
            "{name}: {} of rule {} occurs more than {} times; only the first ones count",
            overfull.string, rule.name, overfull.matches_max,
        );
        if rule.needs_offsets {
            done.missing(line);
        } else if holds {
            done.notice(line);
        }
    }
}
