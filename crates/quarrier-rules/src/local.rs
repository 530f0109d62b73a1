//! Evaluates candidates by windows where that is possible, and the others over the whole scope.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::hits::Hits;
use crate::judge::{FEW_FACTOR, Judge, JudgeError, Judged, Scan, ScopeName};
use crate::windows::windows;

impl Judge {
    /// As [`judge`](Self::judge), but searches for strings only near the offsets of their patterns, if
    /// the scope is long and `hits` has all of them: most of the scope is then not read again.
    ///
    /// # Errors
    /// Those of [`judge`](Self::judge).
    pub fn judge_found(
        &self,
        bytes: &Arc<Vec<u8>>,
        name: &ScopeName,
        candidates: &[u32],
        hits: &Hits,
        stop: &AtomicBool,
    ) -> Result<Judged, JudgeError> {
        let Some((scan, local, rest)) = self.local_scan(bytes.len(), candidates, hits) else {
            return self.judge(bytes, name, candidates, stop);
        };
        let is_in = |rules: &[u32], rule: usize| rules.binary_search(&(rule as u32)).is_ok();
        let mut judged = self.judge_twice(scan, bytes, name, &local, stop)?;
        judged.held.retain(|held| is_in(&local, held.rule));
        judged.by_windows = local.len();
        if !rest.is_empty() {
            let more = self.judge(bytes, name, &rest, stop)?;
            judged.held.extend(more.held.into_iter().filter(|held| is_in(&rest, held.rule)));
            judged.held.sort_by_key(|held| held.rule);
            for overfull in more.overfull {
                if !judged.overfull.contains(&overfull) {
                    judged.overfull.push(overfull);
                }
            }
        }
        Ok(judged)
    }

    /// The scan of windows, its candidates, and the other ones; `None` if it would not be shorter.
    fn local_scan(
        &self,
        length: usize,
        candidates: &[u32],
        hits: &Hits,
    ) -> Option<(Scan, Vec<u32>, Vec<u32>)> {
        let inner = &self.rules.inner;
        if length < self.windows_from || hits.are_all() {
            return None;
        }
        let frequent = inner.frequent(hits);
        let is_local = |rule: &u32| {
            self.needed(&[*rule]).into_iter().all(|needed| inner.is_local(needed, &frequent))
        };
        let (local, rest): (Vec<u32>, Vec<u32>) = candidates.iter().copied().partition(is_local);
        if local.is_empty() || rest.len() * FEW_FACTOR > inner.rules.len() {
            return None;
        }
        let needed = self.needed(&local);
        let windows = windows(inner.local_hits(&needed, hits), length as u64)?;
        let scanner = self.known(needed, true)?;
        Some((Scan::of_windows(scanner, &self.rules, windows), local, rest))
    }
}
