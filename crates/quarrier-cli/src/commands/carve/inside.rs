//! `--embedded`: what lies packed in archives.

use std::io;

use quarrier_carve::embedded::{self, Content, Limits};
use quarrier_carve::folder::{Row, described_inside};
use quarrier_carve::{Carved, View};

use super::target::Target;
use crate::args::Carve;

/// How archives are looked into.
pub(super) struct Inside {
    limits: Limits,
    types: Option<Vec<String>>,
}

/// What was not looked at inside archives.
#[derive(Debug, Clone)]
pub(super) struct Skipped {
    count: u64,
    /// The first of them, in the order of the source.
    offset: u64,
    first: String,
}

impl Skipped {
    pub(super) fn in_words(&self) -> String {
        let members = if self.count == 1 { "member" } else { "members" };
        format!("{} {members} of archives were not looked at; {}", self.count, self.first)
    }

    pub(super) fn add(sum: &mut Option<Skipped>, more: Skipped) {
        match sum {
            None => *sum = Some(more),
            Some(sum) => {
                sum.count += more.count;
                if more.offset < sum.offset {
                    sum.offset = more.offset;
                    sum.first = more.first;
                }
            }
        }
    }
}

impl Inside {
    /// None where nobody asks for it.
    pub(super) fn new(carve: &Carve, workers: usize) -> Option<Self> {
        let mut limits = Limits::default();
        let levels = (workers * limits.depth_max) as u64;
        let share = carve.memory_bytes_max / 2 / levels.max(1);
        limits.member_bytes_max = limits.member_bytes_max.min(share);
        carve.embedded.then(|| Inside { limits, types: carve.types.clone() })
    }

    /// Whether files of this type are written.
    pub(super) fn wants(&self, kind: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.iter().any(|one| one == kind))
    }

    /// Gives what lies in the archive `outer` to `target`, and the rows to `rows`.
    ///
    /// # Errors
    /// What the operating system says; the rows of what was written before are in `rows`.
    pub(super) fn take(
        &self,
        outer: &Carved,
        view: &mut View<'_>,
        target: &Target,
        rows: &mut Vec<Row>,
    ) -> io::Result<Option<Skipped>> {
        let mut done = Ok(());
        let mut number = 0;
        let mut skipped = None;
        embedded::walk(&outer.kind, view, &self.limits, &mut |inside| {
            if done.is_err() {
                return;
            }
            match inside.content {
                Content::File { kind, bytes } => {
                    number += 1;
                    if self.wants(kind.name) {
                        let source = target.source_name();
                        let row = described_inside(source, outer, number, kind, inside.path, bytes);
                        done = target.take_inside(row, bytes).map(|row| rows.push(row));
                    }
                }
                Content::Skipped { reason } => {
                    let offset = outer.offset();
                    let first = format!("at {offset:#x}, {}: {reason}", inside.path);
                    Skipped::add(&mut skipped, Skipped { count: 1, offset, first });
                }
            }
        });
        done.map(|()| skipped)
    }
}
