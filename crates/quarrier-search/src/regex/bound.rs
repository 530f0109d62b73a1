//! Which regexes could run through any data.

use regex_syntax::hir::{Class, Hir, HirKind};

/// An unbounded repetition of more byte values than this runs through any raw data.
const WIDE_CLASS: usize = 128;

/// The first part that repeats nearly any byte without bound, as text.
pub(super) fn unbounded_wide(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Repetition(repetition) => {
            if repetition.max.is_none() && widest(&repetition.sub) > WIDE_CLASS {
                return Some(hir.to_string());
            }
            unbounded_wide(&repetition.sub)
        }
        HirKind::Capture(capture) => unbounded_wide(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().find_map(unbounded_wide)
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => None,
    }
}

/// How many byte values the narrowest byte of each way through allows, the largest of them:
/// a repetition is harmless as long as each round must meet some narrow byte.
fn widest(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Class(Class::Bytes(class)) => {
            class.ranges().iter().map(|r| usize::from(r.end() - r.start()) + 1).sum()
        }
        HirKind::Class(Class::Unicode(class)) => class
            .ranges()
            .iter()
            .map(|r| (r.end() as usize - r.start() as usize) + 1)
            .sum::<usize>()
            .min(256),
        HirKind::Repetition(repetition) => widest(&repetition.sub),
        HirKind::Capture(capture) => widest(&capture.sub),
        HirKind::Concat(parts) => parts
            .iter()
            .filter(|p| p.properties().minimum_len() != Some(0))
            .map(widest)
            .min()
            .unwrap_or(0),
        HirKind::Alternation(parts) => parts.iter().map(widest).max().unwrap_or(0),
        HirKind::Literal(_) => 1,
        HirKind::Empty | HirKind::Look(_) => 0,
    }
}
