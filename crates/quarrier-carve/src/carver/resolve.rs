//! Decides which file owns which bytes if files overlap.

use std::collections::BTreeMap;

use super::judge::Judged;
use super::places::first_of_places;
use super::ranges::CarvedRanges;
use super::{Alignment, BrokenFile, EarlierResults, extents_of};
use crate::carved::{Carved, Status};
use crate::claims::Claims;
use crate::embedded::is_archive;
use crate::format::{Format, Kind, Verdict};
use crate::view::{Extent, SECTOR_BYTES, cut};

/// Usual block sizes of file systems, in bytes.
const BLOCK_BYTES: [u64; 8] = [65536, 32768, 16384, 8192, 4096, 2048, 1024, 512];
/// Minimum number of files for an estimate of the block size.
const SEEN_MIN: u64 = 8;
/// Blocks are rarely larger.
const USUAL_BYTES: u64 = 4096;
/// 2.8 standard deviations of one toss of a fair coin: chance exceeds it in one of 400 images.
const CHANCE: f64 = 1.4;

/// The decisions on the source up to the last stride.
pub(super) struct Resolver<'r> {
    formats: &'r [&'r dyn Format],
    embedded: bool,
    claims: Claims,
    /// The bytes of archives, whose members are not separate files.
    sealed: Claims,
    /// The possible bytes of broken files, from the start of each to where the break was detected.
    reach: Claims,
    alignment: Alignment,
}

/// The result for the undecided files.
#[derive(Default)]
pub(super) struct Outcome {
    /// Files whose rest was found.
    pub(super) mended: Vec<Carved>,
    /// Whole files that turned out not to be part of another.
    pub(super) alone: Vec<Carved>,
    /// The remains of broken files.
    pub(super) partial: Vec<Carved>,
    /// Offsets and types of files that were dropped because there were too many.
    pub(super) left_out: Vec<(u64, &'static str)>,
    /// Whole files taken for parts of others that do not contain all of their bytes.
    pub(super) lost: Vec<Judged>,
}

/// Maximum number of uncertain bytes of all broken files together, as a multiple of the carved
/// bytes: a header without a length could claim everything after it, and so could the next one.
const DOUBTFUL_SHARE: u64 = 2;

/// Maximum number of broken files to keep: this many, plus one for every [`BYTES_PER_BROKEN`]
/// carved bytes. A disk that was not made to defeat carving has far fewer.
const BROKEN_MIN: u64 = 4096;
const BYTES_PER_BROKEN: u64 = 16 << 10;

/// Broken files nest, such as a thumbnail in a picture in a film, but not as deep as this. If so
/// many overlap, most are planted headers.
const CROWD_MIN: usize = 16;

/// Maximum size in bytes of a gap in a broken film, after which its pictures may be at odd offsets.
const FILM_GAP_BYTES: u64 = 256 << 10;
/// Maximum number of bytes between two parts of another file.
const BETWEEN_BYTES: u64 = 400;

impl<'r> Resolver<'r> {
    pub(super) fn new(formats: &'r [&'r dyn Format], embedded: bool) -> Self {
        let alignment = Alignment::default();
        let (claims, sealed, reach) = <(Claims, Claims, Claims)>::default();
        Resolver { formats, embedded, claims, sealed, reach, alignment }
    }

    /// Restores the decisions of an earlier run.
    pub(super) fn recall(&mut self, begun: &EarlierResults) {
        for one in &begun.whole {
            self.claim(&one.kind, &one.extents);
        }
        begun.broken.iter().for_each(|one| self.reach_of(one));
        self.alignment = begun.alignment;
    }

    /// Returns the alignment of the files seen so far.
    pub(super) fn alignment(&self) -> Alignment {
        self.alignment
    }

    pub(super) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Returns whether a file that begins here is part of another, and thus not requested.
    pub(super) fn is_covered(&self, offset: u64) -> bool {
        if self.embedded { self.sealed.holds(offset) } else { self.claims.holds(offset) }
    }

    fn claim(&mut self, kind: &str, extents: &[Extent]) {
        for extent in extents {
            self.claims.add(*extent);
            if is_archive(kind) {
                self.sealed.add(*extent);
            }
        }
    }

    /// Returns the block size to which the files seen so far are aligned: the largest for which
    /// most of them begin at a multiple. Files at odd offsets, such as parts of others, do not
    /// count. If too few files are whole, the `broken` ones count, too.
    pub(super) fn block_bytes(&self, broken: &[BrokenFile]) -> u64 {
        let mut aligned = self.alignment.aligned;
        let last = BLOCK_BYTES.len() - 1;
        if aligned[last] < SEEN_MIN {
            let begun = broken.iter().filter(|one| !one.is_whole).map(|one| one.offset);
            for offset in begun.filter(|offset| offset.is_multiple_of(SECTOR_BYTES)) {
                for (count, bytes) in aligned.iter_mut().zip(BLOCK_BYTES) {
                    *count += u64::from(offset.is_multiple_of(bytes));
                }
            }
        }
        let seen = aligned[last];
        if seen < SEEN_MIN {
            // With so few files, all must be aligned.
            let places = BLOCK_BYTES.iter().zip(aligned);
            let mut most = places.filter(|(bytes, count)| **bytes <= USUAL_BYTES && *count == seen);
            return most.next().map_or(SECTOR_BYTES, |(bytes, _)| *bytes);
        }
        // By chance, half of the files at blocks also begin at blocks of twice the size.
        let least = seen as f64 / 2.0 + CHANCE * (seen as f64).sqrt();
        let most = |count: &u64| *count as f64 >= least;
        let index = aligned.iter().position(most).unwrap_or(last);
        BLOCK_BYTES[index]
    }

    /// Returns whether a whole file that begins here must wait until mending is done. A file at an
    /// odd offset is often a part of another, whose other parts may be anywhere; it waits as long
    /// as there is `room` for it.
    fn is_perhaps_a_part(&self, offset: u64, room: usize) -> bool {
        let is_odd = !offset.is_multiple_of(SECTOR_BYTES);
        !self.embedded && room > 0 && (is_odd || self.reach.holds(offset))
    }

    /// Returns the files of the stride that ends at `end`: the whole ones that are not inside
    /// another, and the undecided ones, up to about `room`.
    pub(super) fn resolve(
        &mut self,
        judged: Vec<Judged>,
        end: u64,
        room: usize,
    ) -> (Vec<Carved>, Vec<BrokenFile>) {
        let mut whole = Vec::new();
        let mut broken = Vec::new();
        let (weak, strong): (Vec<_>, Vec<_>) =
            judged.into_iter().partition(|one| self.is_weak(one));
        for one in longest_first(strong).into_iter().chain(longest_first(weak)) {
            match &one.verdict {
                Verdict::Not => {}
                _ if self.is_covered(one.candidate.offset) => {}
                Verdict::Whole { length, kind } | Verdict::Unread { length, kind, .. } => {
                    let room = room.saturating_sub(broken.len());
                    // A weak file gives way to one that begins in a later stride.
                    let reaches_on = one.extents.iter().any(|extent| extent.end() > end);
                    let gives_way = room > 0 && reaches_on && self.is_weak(&one);
                    let is_open = gives_way || self.is_perhaps_a_part(one.candidate.offset, room);
                    if is_open && !one.is_confirmed {
                        broken.push(self.undecided(&one, *kind, *length, *length));
                    } else {
                        whole.extend(self.accept(one));
                    }
                }
                Verdict::Broken { kind, sure, at, .. } => {
                    let file = self.undecided(&one, *kind, *sure, *at);
                    self.reach_of(&file);
                    broken.push(file);
                }
            }
        }
        // Drop broken files that turned out to be inside a whole one.
        broken.retain(|one| !self.is_covered(one.offset));
        broken.sort_by_key(|one| one.offset);
        whole.sort_by_key(Carved::offset);
        (whole, broken)
    }

    fn undecided(&self, one: &Judged, kind: Kind, sure: u64, at: u64) -> BrokenFile {
        let format = self.formats[one.candidate.format as usize].kinds()[0].name;
        let (is_whole, reason) = match &one.verdict {
            Verdict::Broken { reason, .. } => (false, reason.as_str()),
            verdict => (true, verdict.end().map_or("", |(_, _, not_read)| not_read)),
        };
        let (offset, reason) = (one.candidate.offset, reason.to_string());
        BrokenFile { offset, format, kind, sure, at, is_whole, reason }
    }

    /// Records that files after the start of `one` may be parts of it. A file that begins in the sector where
    /// it breaks is more likely the cause.
    fn reach_of(&mut self, one: &BrokenFile) {
        if !one.is_whole {
            let length = one.at.saturating_sub(1) / SECTOR_BYTES * SECTOR_BYTES;
            self.reach.add(Extent { offset: one.offset + 1, length: length.saturating_sub(1) });
        }
    }

    /// Decides, after mending, about the files that were not mended, and about those that may be
    /// parts of them.
    pub(super) fn settle(
        &mut self,
        ranges: &CarvedRanges,
        undecided: Vec<BrokenFile>,
        mended: Vec<Option<Judged>>,
        kept_max: usize,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let (mut whole, mut found, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (one, mended) in undecided.into_iter().zip(mended) {
            match mended {
                Some(judged) if one.is_whole => whole.push(judged),
                Some(judged) => found.push((one, judged)),
                None if one.is_whole => {}
                None => left.push(one),
            }
        }
        let crowd = Crowd::of(&left);
        // A mended file may itself be a part of an unmended one: a picture of a film.
        let (mut parts, _) = self.parts(ranges, &left);
        let is_part = |parts: &Parts, one: &Judged| {
            !crowd.is_at(one.candidate.offset) && parts.hold_all(&one.extents)
        };
        let (doubtful, sure): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(_, judged)| is_part(&parts, judged));
        for (one, judged) in sure {
            match self.accept(judged) {
                Some(carved) => outcome.mended.push(carved),
                None => left.push(one),
            }
        }
        left.sort_by_key(|one| one.offset);
        left.retain(|one| !self.is_covered(one.offset));
        let kept;
        (parts, kept) = self.parts(ranges, &left);
        for (_, judged) in doubtful {
            if !is_part(&parts, &judged) {
                outcome.mended.extend(self.accept(judged));
            }
        }
        let mut kept = kept.into_iter();
        left.retain(|_| kept.next().unwrap_or(true));
        if !self.embedded {
            leave_out_rows(&mut whole);
        }
        let (weak, strong): (Vec<_>, Vec<_>) = whole.into_iter().partition(|one| self.is_weak(one));
        let in_order = longest_first(strong).into_iter().chain(longest_first(weak));
        let (of_others, alone): (Vec<_>, Vec<_>) = in_order.partition(|one| is_part(&parts, one));
        let mut lost = Vec::new();
        for judged in alone {
            match self.accept(judged.clone()) {
                Some(carved) => outcome.alone.push(carved),
                None => lost.push(judged),
            }
        }
        left.retain(|one| !self.is_covered(one.offset));
        let left_out = thin_out(&mut left, kept_max).into_iter();
        outcome.left_out = left_out.map(|one| (one.offset, one.kind.name)).collect();
        let mut room = ranges.bytes().saturating_mul(DOUBTFUL_SHARE);
        outcome.partial =
            left.iter().filter_map(|one| self.partial(ranges, one, &mut room)).collect();
        // A part of a dropped file becomes a separate file.
        let mut written = Claims::default();
        let extents = outcome.partial.iter().flat_map(|one| &one.extents);
        extents.for_each(|extent| written.add(*extent));
        for judged in of_others {
            let is_written = written.holds(judged.candidate.offset);
            match (!is_written).then(|| self.accept(judged.clone())).flatten() {
                Some(carved) => outcome.alone.push(carved),
                None => lost.push(judged),
            }
        }
        // The carver did not look for files inside these, as they were whole.
        let is_held = |extent: &Extent| {
            [&self.claims, &written]
                .iter()
                .any(|claims| claims.end_of(extent.offset).is_some_and(|end| end >= extent.end()))
        };
        lost.retain(|one| !one.extents.iter().all(is_held));
        outcome.lost = lost;
        outcome
    }

    /// Returns the bytes of files that stay broken, and for each whether it is not a part of
    /// another.
    fn parts(&self, ranges: &CarvedRanges, left: &[BrokenFile]) -> (Parts, Vec<bool>) {
        let mut parts = Parts::default();
        let mut keep = |one: &BrokenFile| {
            let is_kept = !parts.hold(one.offset);
            if is_kept && !self.embedded {
                parts.add(ranges, one);
            }
            is_kept
        };
        let kept = left.iter().map(&mut keep).collect();
        (parts, kept)
    }

    /// Returns the remains of a broken file: its bytes up to the break, or to the next whole file.
    /// If there is no `room` for uncertain bytes, it keeps only the certain ones.
    fn partial(&self, ranges: &CarvedRanges, one: &BrokenFile, room: &mut u64) -> Option<Carved> {
        let mut extents = extents_of(ranges, one.offset, one.at.max(1));
        let mut kept: Vec<Extent> = Vec::new();
        let mut place = 0;
        for extent in &mut extents {
            let next = self.claims.next_after(extent.offset);
            let is_sure = place + extent.length <= one.sure;
            place += extent.length;
            match next {
                Some(next) if next < extent.end() && !is_sure => {
                    let sure = one.sure.saturating_sub(place - extent.length);
                    extent.length = (next - extent.offset).max(sure);
                    kept.push(*extent);
                    break;
                }
                _ => kept.push(*extent),
            }
        }
        kept.retain(|extent| extent.length > 0);
        let sure = one.sure.max(one.at.min(SECTOR_BYTES));
        let doubtful = kept.iter().map(|extent| extent.length).sum::<u64>().saturating_sub(sure);
        match room.checked_sub(doubtful) {
            Some(left) => *room = left,
            None => kept = cut(&kept, sure),
        }
        (!kept.is_empty()).then(|| Carved {
            kind: one.kind.name.to_string(),
            extension: one.kind.extension.to_string(),
            extents: kept,
            status: if one.sure == 0 { Status::Header } else { Status::Partial },
            reason: format!("{} at byte {}", one.reason, one.at),
            is_ended: false,
        })
    }

    fn is_weak(&self, one: &Judged) -> bool {
        self.formats[one.candidate.format as usize].is_weak()
    }

    /// Accepts the file, unless another file owns its bytes.
    fn accept(&mut self, one: Judged) -> Option<Carved> {
        let (_, kind, not_read) = one.verdict.end()?;
        let (status, reason) = match not_read {
            "" => (Status::Valid, String::new()),
            reason => (Status::Partial, reason.to_string()),
        };
        let first = one.extents.first()?;
        if self.is_covered(first.offset) {
            return None;
        }
        if !self.claims.holds(first.offset) {
            self.alignment.seen += 1;
            let counts = self.alignment.aligned.iter_mut();
            for (count, block_bytes) in counts.zip(BLOCK_BYTES) {
                *count += u64::from(first.offset.is_multiple_of(block_bytes));
            }
        }
        self.claim(kind.name, &one.extents);
        Some(Carved {
            kind: kind.name.to_string(),
            extension: kind.extension.to_string(),
            extents: one.extents,
            status,
            reason,
            is_ended: true,
        })
    }
}

/// The bytes of files that stay broken.
#[derive(Default)]
struct Parts {
    /// Bytes that certainly belong to them.
    sure: Claims,
    /// Bytes that may belong to them.
    reach: Claims,
}

impl Parts {
    fn add(&mut self, ranges: &CarvedRanges, one: &BrokenFile) {
        extents_of(ranges, one.offset, one.sure).into_iter().for_each(|e| self.sure.add(e));
        // The extent of a file that is only a header is unknown.
        if one.sure < SECTOR_BYTES {
            return;
        }
        let at = if is_film(one.kind.name) { one.at + FILM_GAP_BYTES } else { one.at };
        extents_of(ranges, one.offset, at).into_iter().for_each(|e| self.reach.add(e));
    }

    /// Returns whether a whole file is taken for a part of one of them. If it ends after all
    /// certain bytes of the other, the other was more likely mistaken for a file.
    fn hold_all(&self, extents: &[Extent]) -> bool {
        let Some(first) = extents.first() else { return false };
        let is_inside = self.sure.end_of(first.offset).is_some_and(|end| end >= first.end());
        is_inside || !first.offset.is_multiple_of(SECTOR_BYTES) && self.reach.holds(first.offset)
    }

    /// Returns whether a file that begins at `offset` is taken for a part of one of them.
    fn hold(&self, offset: u64) -> bool {
        let is_odd = !offset.is_multiple_of(SECTOR_BYTES);
        self.sure.holds(offset) || is_odd && self.reach.holds(offset)
    }
}

/// Returns the maximum number of broken files to keep.
pub(super) fn broken_max(ranges: &CarvedRanges) -> usize {
    let most = BROKEN_MIN.saturating_add(ranges.bytes() / BYTES_PER_BROKEN);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Keeps `most` of the sorted `files`, preferring the first of each place. Returns the dropped
/// ones.
fn thin_out(files: &mut Vec<BrokenFile>, most: usize) -> Vec<BrokenFile> {
    let offsets: Vec<u64> = files.iter().map(|one| one.offset).collect();
    let mut stays = first_of_places(&offsets, most).into_iter();
    let all = std::mem::take(files).into_iter();
    let (stay, go) = all.partition(|_| stays.next().unwrap_or_default());
    *files = stay;
    go
}

/// Counts the broken files that may cover each place, from their start to their break.
struct Crowd {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Crowd {
    fn of(broken: &[BrokenFile]) -> Self {
        let mut starts: Vec<u64> = broken.iter().map(|one| one.offset).collect();
        let mut ends: Vec<u64> = broken.iter().map(|one| one.offset + one.at).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        Crowd { starts, ends }
    }

    /// Returns whether too many files claim the byte at `offset` for any of them to be credible.
    fn is_at(&self, offset: u64) -> bool {
        let begun = self.starts.partition_point(|start| *start <= offset);
        let ended = self.ends.partition_point(|end| *end <= offset);
        begun - ended > CROWD_MIN
    }
}

/// Sorts by offset; at the same offset the longest comes first, as it contains the others.
fn longest_first(mut judged: Vec<Judged>) -> Vec<Judged> {
    let length = |one: &Judged| one.extents.iter().map(|extent| extent.length).sum::<u64>();
    judged.sort_by_key(|one| (one.candidate.offset, std::cmp::Reverse(length(one))));
    judged
}

fn is_film(kind: &str) -> bool {
    matches!(kind, "mov" | "mp4" | "3gp" | "avi")
}

/// Drops consecutive files of one type at odd offsets: pictures of a film or parts of a document
/// whose main file was not found.
fn leave_out_rows(whole: &mut Vec<Judged>) {
    let mut places: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    for one in whole.iter() {
        if let (true, Some(first)) = (is_odd(one), one.extents.first()) {
            places.insert(first.offset, (first.end(), one.candidate.format));
        }
    }
    let follows = |one: &Judged| {
        let Some(first) = one.extents.first() else { return false };
        // In an image that is shifted as a whole, all files begin at the same odd offset within a
        // sector: these do not count.
        let is_kin = |offset: u64, format: u32| {
            format == one.candidate.format && !(offset ^ first.offset).is_multiple_of(SECTOR_BYTES)
        };
        let before = places.range(..first.offset).next_back();
        let after = places.range(first.end()..).next();
        let near = |from: u64, to: u64| from <= to && to - from <= BETWEEN_BYTES;
        before.is_some_and(|(at, (end, format))| is_kin(*at, *format) && near(*end, first.offset))
            || after.is_some_and(|(at, (_, format))| is_kin(*at, *format) && near(first.end(), *at))
    };
    whole.retain(|one| !(is_odd(one) && follows(one)));
}

fn is_odd(one: &Judged) -> bool {
    !one.candidate.offset.is_multiple_of(SECTOR_BYTES)
}
