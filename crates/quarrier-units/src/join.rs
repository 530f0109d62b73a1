//! Joins units: passes on the rows of their objects, in order, as one plain search would find them.
//!
//! Each unit was searched as if no regex match extended into it. If one does, the rows at the start of the
//! unit may be wrong. They are right again from the first match that both searches find: the original one,
//! and one that knows where the last match ended. Usually that is a few bytes into the unit, so the join
//! searches a first piece of the unit both ways, then a longer one.
//!
//! A match may turn out to exceed the allowed length only in a later unit. The join then searches these
//! units as one.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use quarrier::search::Part;
use quarrier_core::ranges::push_merged;
use quarrier_search::RegexSeam;

use crate::error::{Error, Result};
use crate::row::{HeldRows, Row, Take};
use crate::run::{Stored, UnitOutcome, UnitSearch};
use crate::source::SourceUnits;
use crate::unit::Unit;

/// Size of the first piece of a unit that is searched again.
const PIECE_BYTES: u64 = 256 << 10;

/// Maximum size of such a piece; beyond it, the whole unit is searched.
const PIECE_BYTES_MAX: u64 = 64 << 20;

/// The joined results of a source's units.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The number of units that were run.
    pub run: u64,
    /// The number of objects that existed already.
    pub there: u64,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
}

impl UnitSearch<'_> {
    /// Passes on the rows of all units of a source: those of a plain search. Units without an object are
    /// run, and their rows stored. Without a folder for objects, the source is searched as one.
    ///
    /// # Errors
    /// Those of [`store`](Self::store). Rows before the error have been passed on.
    pub fn join(&mut self, source: &mut SourceUnits, take: &mut Take<'_>) -> Result<Joined> {
        self.join_after(source, &mut |_| Ok(()), take)
    }

    /// Like [`join`](Self::join), and calls `prepare` for each unit before it looks for its object, so that other
    /// processes can still write that.
    ///
    /// # Errors
    /// Those of [`join`](Self::join) and of `prepare`.
    pub fn join_after(
        &mut self,
        source: &mut SourceUnits,
        prepare: &mut dyn FnMut(&Unit) -> Result<()>,
        take: &mut Take<'_>,
    ) -> Result<Joined> {
        let mut join =
            Join { search: &mut *self, source, ends: BTreeMap::new(), joined: Joined::default() };
        if join.search.results().is_none() {
            let count = join.source.len();
            if count > 0 {
                join.together(0, count - 1, take)?;
            }
            return Ok(join.joined);
        }
        let mut number = 0;
        while number < join.source.len() {
            let unit = join.source.unit(number);
            if join.search.is_stopped() {
                let (name, offset) = (unit.source, unit.range.start);
                return Err(quarrier::Error::Stopped { name, offset }.into());
            }
            prepare(&unit)?;
            number = join.unit(number, &unit, take)?;
        }
        let joined = join.joined;
        if let Some(results) = self.results() {
            results.clean(self.job());
        }
        Ok(joined)
    }
}

/// A running join.
struct Join<'j, 's> {
    search: &'j mut UnitSearch<'s>,
    source: &'j mut SourceUnits,
    /// The end of the last match of each regex, by the index of its pattern.
    ends: BTreeMap<u32, u64>,
    joined: Joined,
}

/// The valid rows of a unit.
enum Mended {
    /// All rows.
    Right,
    /// The rows from a border on; the rows given replace those before it. Also the seams, if they
    /// differ.
    From(u64, HeldRows, Option<Vec<RegexSeam>>),
    /// Unknown from the unit alone.
    Unknown,
}

impl Join<'_, '_> {
    /// Passes on the rows of a unit. Returns the number of the next one.
    fn unit(&mut self, number: u64, unit: &Unit, take: &mut Take<'_>) -> Result<u64> {
        if self.search.is_refused(unit) {
            push_merged(&mut self.joined.unreadable, unit.range.clone());
            return Ok(number + 1);
        }
        let before = self.search.object(unit)?;
        let object = match before {
            Some(object) => {
                self.joined.there += 1;
                Some(object)
            }
            None => {
                self.joined.run += 1;
                match self.search.write(self.source, unit) {
                    Ok((Stored::NotKept, _)) => None,
                    Ok(_) => self.search.object(unit)?,
                    Err(error) if is_too_long(&error) => None,
                    Err(error) => return Err(error),
                }
            }
        };
        let Some(object) = object else { return self.search_again(number, take) };
        let seams = object.meta().seams();
        let (mended, labels) = (self.mend(number, unit, &seams)?, self.search.labels().clone());
        let (from, seams) = match mended {
            Mended::Unknown => return self.search_again(number, take),
            Mended::Right => (0, seams),
            Mended::From(border, rows, others) => {
                rows.hand_over(take).map_err(quarrier::Error::Output)?;
                (border, others.unwrap_or(seams))
            }
        };
        object.rows(&labels, from, take)?;
        self.pass(&seams, object.meta().unreadable());
        Ok(number + 1)
    }

    /// Finds the valid rows of a unit that was searched as if no match extended into it.
    fn mend(&mut self, number: u64, unit: &Unit, seams: &[RegexSeam]) -> Result<Mended> {
        let is_last = number + 1 == self.source.len();
        let is_settled = |seams: &[RegexSeam]| is_last || seams.iter().all(|seam| !seam.is_open);
        let end_of = |seam: &RegexSeam| self.ends.get(&seam.pattern).copied().unwrap_or(0);
        let is_right = |seam: &RegexSeam| seam.first.is_none_or(|first| end_of(seam) <= first);
        if !is_settled(seams) {
            return Ok(Mended::Unknown);
        }
        if seams.iter().all(is_right) {
            return Ok(Mended::Right);
        }
        let Range { start, end } = unit.range;
        let mut piece = PIECE_BYTES.min(unit.bytes() / 16 + 1);
        while piece <= PIECE_BYTES_MAX {
            let border = start.saturating_add(piece).min(end);
            let part = Part { owned: start..border, ends: self.ends() };
            let Some((held, truth)) = self.held(&part)? else { return Ok(Mended::Unknown) };
            if border == end {
                return Ok(match is_settled(&truth.seams) {
                    true => Mended::From(border, held, Some(truth.seams)),
                    false => Mended::Unknown,
                });
            }
            let alone = Part::alone(start..border);
            let Some(guess) = self.run(&alone, &mut |_| Ok(()))? else {
                return Ok(Mended::Unknown);
            };
            let has_met = |(truth, guess): (&RegexSeam, &RegexSeam)| {
                let end = self.ends.get(&truth.pattern).copied().unwrap_or(0);
                truth.last == guess.last && !truth.is_open && end <= border
            };
            if truth.seams.iter().zip(&guess.seams).all(has_met) {
                return Ok(Mended::From(border, held, None));
            }
            piece *= 2;
        }
        Ok(Mended::Unknown)
    }

    /// Runs a part and holds its rows. `None` if there are too many, or a match is too long.
    fn held(&mut self, part: &Part) -> Result<Option<(HeldRows, UnitOutcome)>> {
        let (mut held, mut is_full) = (HeldRows::default(), false);
        let ran = self.run(part, &mut |row: &Row<'_>| {
            is_full = !held.push(row);
            if is_full { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
        });
        match ran {
            Err(_) if is_full => Ok(None),
            ran => Ok(ran?.map(|ran| (held, ran))),
        }
    }

    /// Runs a part; `None` if a match is too long.
    fn run(&mut self, part: &Part, take: &mut Take<'_>) -> Result<Option<UnitOutcome>> {
        match self.search.run(self.source, part, take) {
            Err(error) if is_too_long(&error) => Ok(None),
            ran => Ok(Some(ran?)),
        }
    }

    /// Searches a unit with the known ends of the last matches, together with as many later units as it
    /// takes until none of its matches can turn out to be too long. Returns the number of the next unit.
    fn search_again(&mut self, number: u64, take: &mut Take<'_>) -> Result<u64> {
        let (count, mut last, mut more) = (self.next_refused(number), number, 1);
        while !self.search.is_exact_alone() {
            let part = Part { owned: self.range(number, last), ends: self.ends() };
            let Some(ran) = self.run(&part, &mut |_| Ok(()))? else {
                // Bytes far away may decide which match is the first that is too long.
                last = count - 1;
                break;
            };
            let is_open = ran.seams.iter().any(|seam| seam.is_open);
            if !is_open || last + 1 >= count {
                break;
            }
            last = last.saturating_add(more).min(count - 1);
            more *= 2;
        }
        self.together(number, last, take)?;
        Ok(last + 1)
    }

    /// The number of the next unit that must not be run, or the number of units.
    fn next_refused(&self, number: u64) -> u64 {
        let count = self.source.len();
        match self.search.refuses_any() {
            true => (number..count)
                .find(|&number| self.search.is_refused(&self.source.unit(number)))
                .unwrap_or(count),
            false => count,
        }
    }

    /// Searches several units as one, and passes their rows on.
    fn together(&mut self, first: u64, last: u64, take: &mut Take<'_>) -> Result<()> {
        let part = Part { owned: self.range(first, last), ends: self.ends() };
        let ran = self.search.run(self.source, &part, take)?;
        self.source.check_version()?;
        self.pass(&ran.seams, ran.unreadable);
        Ok(())
    }

    fn range(&self, first: u64, last: u64) -> Range<u64> {
        self.source.unit(first).range.start..self.source.unit(last).range.end
    }

    fn ends(&self) -> Vec<(u32, u64)> {
        self.ends.iter().map(|(&pattern, &end)| (pattern, end)).collect()
    }

    /// Records the ends of the last matches, and the unreadable ranges.
    fn pass(&mut self, seams: &[RegexSeam], unreadable: Vec<Range<u64>>) {
        for seam in seams {
            if let Some(last) = &seam.last {
                self.ends.insert(seam.pattern, last.end);
            }
        }
        for range in unreadable {
            push_merged(&mut self.joined.unreadable, range);
        }
    }
}

fn is_too_long(error: &Error) -> bool {
    matches!(error, Error::Search(quarrier::Error::TooLong { .. }))
}
