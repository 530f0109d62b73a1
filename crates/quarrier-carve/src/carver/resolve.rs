//! Decides who holds which bytes, where files that were found overlap.

use super::claims::Claims;
use super::ground::Ground;
use super::judge::Judged;
use super::{Alignment, Begun, BrokenFile, extents_of};
use crate::carved::{Carved, Status};
use crate::embedded::is_archive;
use crate::format::{Format, Verdict};
use crate::view::Extent;

/// Block sizes that file systems have, in bytes.
const BLOCK_BYTES: [u64; 8] = [65536, 32768, 16384, 8192, 4096, 2048, 1024, 512];
/// Files that must have been seen before their places say anything about blocks.
const SEEN_MIN: u64 = 8;

/// What was decided so far, from the start of the source on.
pub(super) struct Resolver<'r> {
    formats: &'r [&'r dyn Format],
    embedded: bool,
    claims: Claims,
    /// Those of archives: what lies in them is nobody's file of its own.
    sealed: Claims,
    alignment: Alignment,
}

impl<'r> Resolver<'r> {
    pub(super) fn new(formats: &'r [&'r dyn Format], embedded: bool) -> Self {
        let alignment = Alignment::default();
        let (claims, sealed) = <(Claims, Claims)>::default();
        Resolver { formats, embedded, claims, sealed, alignment }
    }

    /// Takes up what an earlier run has decided.
    pub(super) fn recall(&mut self, begun: &Begun) {
        for one in &begun.whole {
            self.claim(&one.kind, &one.extents);
        }
        self.alignment = begun.alignment;
    }

    /// Where the files seen so far lie.
    pub(super) fn alignment(&self) -> Alignment {
        self.alignment
    }

    pub(super) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// Whether a file that begins here is part of another, and not wanted for that.
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

    /// The size of the blocks in which the files seen so far lie: the largest of which most of
    /// them begin at a multiple. Those that lie at odd places, as parts of others do, say nothing.
    pub(super) fn block_bytes(&self) -> u64 {
        let seen = self.alignment.aligned[BLOCK_BYTES.len() - 1];
        if seen < SEEN_MIN {
            return 4096;
        }
        let most = |count: &u64| *count * 2 > seen;
        let index = self.alignment.aligned.iter().position(most).unwrap_or(BLOCK_BYTES.len() - 1);
        BLOCK_BYTES[index]
    }

    /// The files of a stride that count: those that are whole and in no other, and those that
    /// are broken.
    pub(super) fn resolve(&mut self, judged: Vec<Judged>) -> (Vec<Carved>, Vec<BrokenFile>) {
        let mut whole = Vec::new();
        let mut broken = Vec::new();
        let (weak, strong): (Vec<_>, Vec<_>) =
            judged.into_iter().partition(|one| self.is_weak(one));
        for one in longest_first(strong).into_iter().chain(longest_first(weak)) {
            match &one.verdict {
                Verdict::Not => {}
                Verdict::Whole { .. } => whole.extend(self.accept(one)),
                Verdict::Broken { kind, sure, at, reason } => {
                    if !self.is_covered(one.candidate.offset) {
                        broken.push(BrokenFile {
                            offset: one.candidate.offset,
                            format: self.formats[one.candidate.format as usize].kinds()[0].name,
                            kind: *kind,
                            sure: *sure,
                            at: *at,
                            reason: reason.clone(),
                        });
                    }
                }
            }
        }
        // What was broken and turned out to lie in a file that is whole.
        broken.retain(|one| !self.is_covered(one.offset));
        broken.sort_by_key(|one| one.offset);
        whole.sort_by_key(Carved::offset);
        (whole, broken)
    }

    /// Decides between files that were mended and what is left of the others.
    pub(super) fn settle(
        &mut self,
        ground: &Ground,
        broken: Vec<BrokenFile>,
        mended: Vec<Option<Judged>>,
    ) -> (Vec<Carved>, Vec<Carved>) {
        let mut whole = Vec::new();
        let mut left = Vec::new();
        for (one, mended) in broken.into_iter().zip(mended) {
            match mended {
                Some(judged) => match self.accept(judged) {
                    Some(carved) => whole.push(carved),
                    None => left.push(one),
                },
                None => left.push(one),
            }
        }
        let mut partial = Vec::new();
        let mut parts = Claims::default();
        for one in left {
            if self.is_covered(one.offset) || (!self.embedded && parts.holds(one.offset)) {
                continue;
            }
            let carved = self.partial(ground, &one);
            for extent in extents_of(ground, one.offset, one.sure) {
                parts.add(extent);
            }
            partial.extend(carved);
        }
        (whole, partial)
    }

    /// What is left of a file that is broken: its bytes up to where it breaks, or to the next file
    /// that is whole.
    fn partial(&self, ground: &Ground, one: &BrokenFile) -> Option<Carved> {
        let mut extents = extents_of(ground, one.offset, one.at.max(1));
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
        (!kept.is_empty()).then(|| Carved {
            kind: one.kind.name.to_string(),
            extension: one.kind.extension.to_string(),
            extents: kept,
            status: if one.sure == 0 { Status::Header } else { Status::Partial },
            reason: format!("{} at byte {}", one.reason, one.at),
        })
    }

    fn is_weak(&self, one: &Judged) -> bool {
        self.formats[one.candidate.format as usize].is_weak()
    }

    /// The file, if its bytes are not another's already.
    fn accept(&mut self, one: Judged) -> Option<Carved> {
        let Verdict::Whole { kind, .. } = one.verdict else { return None };
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
            status: Status::Valid,
            reason: String::new(),
        })
    }
}

/// By offset; of those at one offset the longest first, as it holds the others.
fn longest_first(mut judged: Vec<Judged>) -> Vec<Judged> {
    let length = |one: &Judged| one.extents.iter().map(|extent| extent.length).sum::<u64>();
    judged.sort_by_key(|one| (one.candidate.offset, std::cmp::Reverse(length(one))));
    judged
}
