//! Strides that are searched and judged apart from the run that decides about their files, for instance on other
//! machines.
//!
//! ```text
//!  strides ─→ ranges of whole strides ─→ judge ─→ JudgedStride ─→ JudgedStrides ─→ run: decide, keep, mend
//! ```
//!
//! What a stride has does not depend on any other, so a run has the same results wherever its strides were judged.

use std::io;
use std::ops::Range;
use std::sync::Mutex;

use quarrier_core::pipeline::Run;
use quarrier_core::source::Source;
use serde_json::{Value, json};

use super::Carver;
use super::account::{Keep, Summary, Times};
use super::cached::CachedSource;
use super::candidates::{Candidate, CandidateSearch, Signatures};
use super::in_pieces::FilesInPieces;
use super::judge::{Judged, Judgement};
use super::resume::Midway;
use super::run::CarveRun;
use super::scheduler::{Scheduler, stride_end};
use crate::carved::Carved;
use crate::error::Result;
use crate::format::{Kind, Verdict};
use crate::view::{Extent, View};

/// A judged stride, or a part of one with very many candidates.
pub(super) struct JudgedPart {
    pub(super) range: Range<u64>,
    /// The state of its stride, if it is not the last part.
    pub(super) midway: Option<Midway>,
    pub(super) search: PartSearch,
    pub(super) judgement: Judgement,
}

/// The account of a search for candidates.
pub(super) struct PartSearch {
    /// The number of candidates.
    pub(super) candidates: u64,
    pub(super) hole_bytes: u64,
    pub(super) unreadable: Vec<Range<u64>>,
    /// The search, if this run made it.
    pub(super) run: Option<Run>,
}

impl PartSearch {
    pub(super) fn of(search: CandidateSearch) -> Self {
        PartSearch {
            candidates: search.candidates.len() as u64,
            hole_bytes: search.run.hole_bytes,
            unreadable: search.run.unreadable.clone(),
            run: Some(search.run),
        }
    }
}

/// A stride that was searched and judged: all that a run needs to decide about its files.
pub(super) struct JudgedStride {
    pub(super) range: Range<u64>,
    /// In order.
    pub(super) parts: Vec<JudgedPart>,
}

/// What became of strides that were to be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedRange {
    /// Whether all were judged; otherwise the run was stopped.
    pub is_complete: bool,
    /// Whether all their bytes could be read.
    pub is_readable: bool,
}

/// Strides that were judged apart, as [`Carver::judge`] passes them on.
pub trait JudgedStrides: Sync {
    /// The stride that begins at this offset, in a line of JSON; `None` to judge it in the run. Called at most once
    /// for each stride, nearly in order.
    fn stride(&self, start: u64) -> Option<String>;
}

impl<'a> Carver<'a> {
    /// Takes the strides that were judged apart, by a carver with the same settings. A run judges the others itself,
    /// also where a line is damaged.
    #[must_use]
    pub fn judged(mut self, strides: &'a dyn JudgedStrides) -> Self {
        self.judged = Some(strides);
        self
    }

    /// Returns ranges of whole strides, in order: all but the last have `bytes` bytes or somewhat more.
    pub fn strides(&self, source: &dyn Source, bytes: u64) -> Vec<Range<u64>> {
        let (ranges, _) = self.ranges_of(source);
        let mut strides: Vec<Range<u64>> = Vec::new();
        let mut at = ranges.span().start;
        while let Some(from) = ranges.next(at) {
            at = stride_end(source, &ranges, from);
            match strides.last_mut() {
                Some(last) if last.end - last.start < bytes => last.end = at,
                _ => strides.push(from..at),
            }
        }
        strides
    }

    /// Searches and judges all strides that begin in one of [`strides`](Self::strides), and passes them on in order, each
    /// with its range and in a line of JSON.
    ///
    /// # Errors
    /// [`Error::Source`](crate::Error::Source) if the source fails as a whole,
    /// [`Error::Keep`](crate::Error::Keep) with the error of `take`.
    pub fn judge(
        &self,
        source: &dyn Source,
        range: &Range<u64>,
        take: &mut (dyn FnMut(&Range<u64>, &str) -> io::Result<()> + Send),
    ) -> Result<JudgedRange> {
        let (ranges, _) = self.ranges_of(source);
        let in_pieces = FilesInPieces::new(&self.in_pieces);
        let signatures = Signatures::new(&self.formats)?;
        let cached = CachedSource::new(source, self.memory_bytes_max);
        let run = CarveRun {
            carver: self,
            source: &cached,
            keep: &KeepsNothing,
            ranges: &ranges,
            in_pieces: &in_pieces,
            times: Times::default(),
        };
        let summary = Summary { position: range.start, ..Summary::default() };
        let mut parts: Vec<JudgedPart> = Vec::new();
        let (mut position, mut is_readable) = (range.start, true);
        let mut collect = |part: JudgedPart| -> io::Result<()> {
            position = part.range.end;
            is_readable &= part.search.unreadable.is_empty();
            let is_last = part.midway.is_none();
            parts.push(part);
            if !is_last {
                return Ok(());
            }
            let parts = std::mem::take(&mut parts);
            let stride = JudgedStride { range: parts[0].range.start..position, parts };
            take(&stride.range, &stride.to_json())
        };
        let passing = Passing { end: range.end, take: Mutex::new(&mut collect) };
        let state = run.recall(summary)?;
        Scheduler::new(&run, &signatures, state).pass(&passing).run()?;
        let is_complete = ranges.next(position).is_none_or(|from| from >= range.end);
        Ok(JudgedRange { is_complete, is_readable })
    }
}

/// Where a scheduler passes judged parts, in order, in place of deciding.
pub(super) struct Passing<'p> {
    /// Strides that begin here or later are left out.
    pub(super) end: u64,
    pub(super) take: Mutex<&'p mut (dyn FnMut(JudgedPart) -> io::Result<()> + Send)>,
}

struct KeepsNothing;

impl Keep for KeepsNothing {
    fn keep(&self, _: &Carved, _: &mut View<'_>) -> io::Result<()> {
        Ok(())
    }
}

impl JudgedStride {
    /// The stride as JSON, in one line.
    fn to_json(&self) -> String {
        let parts: Vec<Value> = self.parts.iter().map(part_to_json).collect();
        json!([self.range.start, self.range.end, parts]).to_string()
    }
}

impl Carver<'_> {
    /// Parses the JSON of a stride of a carver with the same formats. `None` if it cannot be that.
    pub(super) fn judged_stride(&self, json: &str) -> Option<JudgedStride> {
        let value: Value = serde_json::from_str(json).ok()?;
        let [start, end, parts] = array(&value)?;
        let range = range_of(start, end)?;
        let parts: Vec<JudgedPart> =
            parts.as_array()?.iter().map(|part| self.part_of(part)).collect::<Option<_>>()?;
        let mut at = range.start;
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            if part.range.start != at || part.midway.is_none() != is_last {
                return None;
            }
            at = part.range.end;
        }
        (at == range.end && !parts.is_empty()).then_some(JudgedStride { range, parts })
    }

    fn part_of(&self, value: &Value) -> Option<JudgedPart> {
        let [start, end, midway, search, cost, unread, judged] = array(value)?;
        let [candidates, hole_bytes, unreadable] = array(search)?;
        let unreadable = unreadable.as_array()?.iter();
        let unreadable = unreadable.map(|pair| {
            let [start, end] = array(pair)?;
            range_of(start, end)
        });
        let unread = unread.as_array()?.iter().map(|one| {
            let [offset, format] = array(one)?;
            self.candidate_of(offset, format)
        });
        let judged = judged.as_array()?.iter().map(|one| self.judged_of(one));
        Some(JudgedPart {
            range: range_of(start, end)?,
            midway: if midway.is_null() { None } else { Some(Midway::from_json(midway)?) },
            search: PartSearch {
                candidates: candidates.as_u64()?,
                hole_bytes: hole_bytes.as_u64()?,
                unreadable: unreadable.collect::<Option<_>>()?,
                run: None,
            },
            judgement: Judgement {
                judged: judged.collect::<Option<_>>()?,
                unread: unread.collect::<Option<_>>()?,
                cost_bytes: cost.as_u64()?,
            },
        })
    }

    fn candidate_of(&self, offset: &Value, format: &Value) -> Option<Candidate> {
        let format = u32::try_from(format.as_u64()?).ok()?;
        let is_known = (format as usize) < self.formats.len();
        is_known.then_some(Candidate { offset: offset.as_u64()?, format })
    }

    fn judged_of(&self, value: &Value) -> Option<Judged> {
        let [offset, format, verdict, extents, is_confirmed] = array(value)?;
        let candidate = self.candidate_of(offset, format)?;
        let kinds = self.formats[candidate.format as usize].kinds();
        let verdict = verdict_of(verdict, kinds)?;
        let extents = extents.as_array()?.iter().map(extent_of).collect::<Option<Vec<_>>>()?;
        let is_right = match verdict.end() {
            // A file begins at its candidate, and has as many bytes as its extents.
            Some((length, ..)) => {
                let bytes = extents.iter().try_fold(0u64, |sum, one| sum.checked_add(one.length));
                bytes == Some(length) && extents.first()?.offset == candidate.offset
            }
            None => extents.is_empty(),
        };
        let is_confirmed = is_confirmed.as_bool()?;
        is_right.then_some(Judged { candidate, verdict, extents, is_confirmed })
    }
}

fn part_to_json(part: &JudgedPart) -> Value {
    let JudgedPart { range, midway, search, judgement } = part;
    let midway = midway.map(Midway::to_json);
    let unreadable: Vec<Value> =
        search.unreadable.iter().map(|range| json!([range.start, range.end])).collect();
    let search = json!([search.candidates, search.hole_bytes, unreadable]);
    let unread: Vec<Value> =
        judgement.unread.iter().map(|one| json!([one.offset, one.format])).collect();
    let judged: Vec<Value> = judgement.judged.iter().map(judged_to_json).collect();
    json!([range.start, range.end, midway, search, judgement.cost_bytes, unread, judged])
}

fn judged_to_json(judged: &Judged) -> Value {
    let Judged { candidate, verdict, extents, is_confirmed } = judged;
    let verdict = match verdict {
        Verdict::Whole { length, kind } => json!(["whole", kind.name, length]),
        Verdict::Unread { length, kind, reason } => json!(["unread", kind.name, length, reason]),
        Verdict::Broken { kind, sure, at, reason } => {
            json!(["broken", kind.name, sure, at, reason])
        }
        // No judgement has them.
        Verdict::Not => json!([]),
    };
    let extents: Vec<Value> = extents.iter().map(|one| json!([one.offset, one.length])).collect();
    json!([candidate.offset, candidate.format, verdict, extents, is_confirmed])
}

fn verdict_of(value: &Value, kinds: &[Kind]) -> Option<Verdict> {
    let text = |place: usize| value.get(place)?.as_str();
    let number = |place: usize| value.get(place)?.as_u64();
    let name = text(1)?;
    let kind = *kinds.iter().find(|kind| kind.name == name)?;
    let verdict = match text(0)? {
        "whole" => Verdict::Whole { length: number(2)?, kind },
        "unread" => Verdict::Unread { length: number(2)?, kind, reason: text(3)?.to_string() },
        "broken" => {
            let (sure, at, reason) = (number(2)?, number(3)?, text(4)?.to_string());
            Verdict::Broken { kind, sure, at, reason }
        }
        _ => return None,
    };
    match verdict {
        Verdict::Broken { sure, at, .. } if sure > at => None,
        verdict => Some(verdict),
    }
}

fn extent_of(value: &Value) -> Option<Extent> {
    let [offset, length] = array(value)?;
    let extent = Extent { offset: offset.as_u64()?, length: length.as_u64()? };
    (extent.length > 0 && extent.offset.checked_add(extent.length).is_some()).then_some(extent)
}

fn range_of(start: &Value, end: &Value) -> Option<Range<u64>> {
    let range = start.as_u64()?..end.as_u64()?;
    (!range.is_empty()).then_some(range)
}

/// The elements of an array of this length.
fn array<const N: usize>(value: &Value) -> Option<&[Value; N]> {
    value.as_array()?.as_slice().try_into().ok()
}
