//! Rows of the members of archives.

use std::io;

use quarrier_core::parallel::planned_workers;

use super::{Row, described_inside};
use crate::carved::{Carved, Status};
use crate::embedded::{self, Content, Limits};
use crate::view::View;

/// Which archives to unpack, and which members to keep.
pub struct UnpackSettings {
    limits: Limits,
    types: Option<Vec<String>>,
}

/// The skipped members of archives.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// The number of members.
    pub count: u64,
    /// The offset in the source of the first archive with a skipped member, in bytes.
    pub offset: u64,
    /// The path of the first skipped member, and the reason.
    pub first: String,
}

impl Skipped {
    /// Describes the skipped members in one line for people.
    pub fn describe(&self) -> String {
        let members = if self.count == 1 { "member" } else { "members" };
        format!("{} {members} of archives were not examined; {}", self.count, self.first)
    }

    /// Adds the skipped members of another archive.
    pub fn add(sum: &mut Option<Skipped>, more: Skipped) {
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

impl UnpackSettings {
    /// Makes settings for files of `types` (by default all) with this many threads (0: one per
    /// CPU), which share `memory_bytes`: half of it is for members, and half for decoders.
    pub fn new(types: Option<Vec<String>>, memory_bytes: u64, workers: usize) -> Self {
        let mut limits = Limits::default();
        let half = memory_bytes / 2 / (planned_workers(workers) as u64).max(1);
        let share = half / (limits.depth_max as u64).max(1);
        limits.member_bytes_max = limits.member_bytes_max.min(share);
        // All levels together take less than twice as much as the outermost.
        limits.decoder_bytes_max = limits.decoder_bytes_max.min(half / 2);
        UnpackSettings { limits, types }
    }

    /// Whether to write files of this type.
    pub fn wants(&self, kind: &str) -> bool {
        self.types.as_ref().is_none_or(|types| types.iter().any(|one| one == kind))
    }

    /// Passes the members of the archive `outer` of the source `source_name` to `write`, and the
    /// rows that `write` returns to `rows`.
    ///
    /// # Errors
    /// The error of `write`; `rows` has received the rows written before.
    pub fn take(
        &self,
        source_name: &str,
        outer: &Carved,
        view: &mut View<'_>,
        write: &mut dyn FnMut(Row, &[u8]) -> io::Result<Row>,
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
                Content::File { kind, bytes, not_read } => {
                    number += 1;
                    if self.wants(kind.name) {
                        let way = inside.path;
                        let mut row =
                            described_inside(source_name, outer, number, kind, way, bytes);
                        if !not_read.is_empty() {
                            row.status = Status::Partial;
                            row.reason = not_read.to_string();
                        }
                        done = write(row, bytes).map(|row| rows.push(row));
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
