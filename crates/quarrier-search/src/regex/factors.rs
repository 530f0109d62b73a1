//! Decomposes regexes: finds runs of bytes, with their distance from the start, such that every match
//! contains one of them.
//!
//! Every match of `[\w.-]{0,40}?(?:key|token) = ` contains `key = ` or `token = `, 0 to 40 bytes
//! from its start. Such a set of runs is a *factor* of the regex. A position without a run of a
//! factor belongs to no match, so a filter shows which positions the automaton can skip.
//!
//! A part of the regex is represented by the strings that it matches, if they are few (`exact`),
//! else by their prefixes and suffixes. Neighbours are joined as long as there are few strings;
//! every way of joining is a candidate, and the sample shows which is rare.

use std::cell::RefCell;
use std::collections::HashMap;

use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};
use regex_syntax::utf8::Utf8Sequences;

use super::byteset::ByteSet;
use crate::arch::WIDTH_MAX;
use crate::sample::{KINDS, PerKind, Sample};

/// Maximum length of a run in bytes.
pub(super) const RUN_BYTES_MAX: usize = 64;
/// Maximum number of strings that represent a part.
const STRINGS_MAX: usize = 64;
/// Maximum number of runs in a factor, enough for a list of that many words.
const RUNS_MAX: usize = 1024;
/// Maximum number of candidates to keep for a part.
const CANDIDATES_MAX: usize = 8;
/// Maximum number of ways of joining to follow at once.
const OPEN_MAX: usize = 4;
/// Maximum number of optional copies that become separate strings.
const COPIES_MAX: usize = 4;

/// Approximate time of an attempt to match.
const TRY_NS: f32 = 200.0;
/// Additional time for each further start that a run allows, up to a bound.
const START_NS: f32 = 2.0;
const STARTS_MAX: usize = 4096;
/// Time to examine a candidate of the filter.
const CANDIDATE_NS: f32 = 6.0;
/// Cost of a run's space in the filter, which is low for adjacent fixed bytes.
const FIXED_ROOM_NS: f32 = 0.000_02;
const CLASSES_ROOM_NS: f32 = 0.001;
/// Minimum number of adjacent fixed bytes for a needle of the engine for literals.
pub(super) const FIXED_MIN: usize = 3;

type Text = Vec<ByteSet>;

/// A run of bytes, and its position in a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// The values of each byte.
    pub(super) sets: Text,
    /// The minimum and maximum distance of the run from the match's start.
    pub(super) offset_min: usize,
    pub(super) offset_max: Option<usize>,
    /// Whether a word begins, or ends, with the run.
    pub(super) begins_word: bool,
    pub(super) ends_word: bool,
}

/// A set of runs; every match contains one of them.
#[derive(Debug, Clone)]
pub(super) struct Factor {
    pub(super) runs: Vec<Run>,
    /// Expected nanoseconds for each byte of data.
    pub(super) cost: f32,
}

/// The byte runs that matches of a regex must contain, and the bytes that may start them.
pub(super) struct RegexFactors {
    /// The candidate runs, the cheapest first.
    pub(super) factors: Vec<Factor>,
    /// The bytes that a match may begin with.
    pub(super) first: ByteSet,
}

/// The frequencies of bytes in the data.
pub(super) struct Rates<'s> {
    sample: &'s Sample,
    known: RefCell<HashMap<ByteSet, PerKind>>,
}

/// The strings that a part of a regex matches, or their prefixes and suffixes.
#[derive(Clone)]
struct Shape {
    /// All strings that it matches, or a superset, if they are few.
    exact: Option<Vec<Text>>,
    /// Each matching string begins with one of `prefix`, and ends with one of `suffix`.
    prefix: Vec<Text>,
    suffix: Vec<Text>,
    factors: Vec<Factor>,
    min: usize,
    max: Option<usize>,
    /// Whether it is `\b` or a similar assertion.
    is_edge: bool,
}

/// Decomposes a regex.
pub(super) fn take_apart(hir: &Hir, rates: &Rates<'_>) -> RegexFactors {
    let shape = Parts { rates }.whole(hir);
    let first = match shape.prefix.iter().map(|text| text.first()).collect::<Option<Vec<_>>>() {
        Some(sets) => sets.into_iter().fold(ByteSet::EMPTY, |all, set| all.union(set)),
        None => ByteSet::ALL,
    };
    RegexFactors { factors: shape.factors, first }
}

impl<'s> Rates<'s> {
    pub(super) fn new(sample: &'s Sample) -> Self {
        Rates { sample, known: RefCell::default() }
    }

    /// Returns the frequency of a set's bytes in each kind of data.
    pub(super) fn of_set(&self, set: &ByteSet) -> PerKind {
        // Most sets are a byte, or a letter in either case: not worth a table lookup.
        let is_small = set.len() <= 2;
        if !is_small && let Some(rate) = self.known.borrow().get(set) {
            return *rate;
        }
        let mut sum = [0.0; KINDS];
        for byte in set.iter() {
            let frequency = &self.sample.frequency[byte as usize];
            sum.iter_mut().zip(frequency).for_each(|(s, f)| *s += f);
        }
        if !is_small {
            self.known.borrow_mut().insert(*set, sum);
        }
        sum
    }

    /// Returns the expected share of positions with such a run.
    pub(super) fn of(&self, sets: &[ByteSet]) -> f32 {
        self.product(sets.iter().map(|set| self.of_set(set)))
    }

    /// Returns the index of the run's rarest byte.
    pub(super) fn rarest(&self, sets: &[ByteSet]) -> usize {
        let rate = |place: usize| self.of(&sets[place..=place]);
        (0..sets.len()).min_by(|&a, &b| rate(a).total_cmp(&rate(b))).unwrap_or(0)
    }

    fn product(&self, rates: impl Iterator<Item = PerKind>) -> f32 {
        let mut product: PerKind = self.sample.share;
        for rate in rates {
            product.iter_mut().zip(rate).for_each(|(p, s)| *p *= s);
        }
        product.iter().sum()
    }

    /// Returns the share of positions where the whole run occurs, the share of its rarest bytes, as many as
    /// the filter sees, and the index of these in the run.
    pub(super) fn of_run(&self, sets: &[ByteSet]) -> (f32, f32, usize) {
        let rates: Vec<PerKind> = sets.iter().map(|set| self.of_set(set)).collect();
        let (window, at) = (0..=sets.len().saturating_sub(WIDTH_MAX))
            .map(|at| {
                let bytes = &rates[at..sets.len().min(at + WIDTH_MAX)];
                (self.product(bytes.iter().copied()), at)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or((1.0, 0));
        (self.product(rates.into_iter()), window, at)
    }
}

/// Returns the time of a false positive in nanoseconds.
pub(super) fn hit_ns(offset_min: usize, offset_max: Option<usize>) -> f32 {
    let starts = offset_max.map_or(STARTS_MAX, |max| (max - offset_min).min(STARTS_MAX));
    TRY_NS + START_NS * starts as f32
}

struct Parts<'p, 's> {
    rates: &'p Rates<'s>,
}

impl Parts<'_, '_> {
    /// Represents a part, with its own strings among the candidates.
    fn whole(&self, hir: &Hir) -> Shape {
        let mut shape = self.shape(hir);
        let at_start = |text: &Text| Run::new(text.clone(), 0, Some(0));
        let starts = shape.exact.as_ref().unwrap_or(&shape.prefix);
        let begin: Vec<Run> = starts.iter().map(at_start).collect();
        let end = shape.suffix.iter().map(|text| Run::ending(text.clone(), shape.min, shape.max));
        let end: Vec<Run> = end.collect();
        self.offer(&mut shape.factors, begin);
        self.offer(&mut shape.factors, end);
        shape
    }

    fn shape(&self, hir: &Hir) -> Shape {
        let properties = hir.properties();
        let (min, max) = (properties.minimum_len().unwrap_or(0), properties.maximum_len());
        let shape = match hir.kind() {
            HirKind::Empty => Shape::exactly(vec![Vec::new()]),
            HirKind::Look(look) => {
                let is_edge = matches!(look, Look::WordAscii | Look::WordStartAscii)
                    || matches!(look, Look::WordEndAscii)
                    || matches!(look, Look::WordStartHalfAscii | Look::WordEndHalfAscii);
                Shape { is_edge, ..Shape::exactly(vec![Vec::new()]) }
            }
            HirKind::Literal(literal) => {
                self.literal(literal.0.iter().map(|&byte| ByteSet::one(byte)).collect())
            }
            HirKind::Class(class) => class_shape(class),
            HirKind::Capture(capture) => self.shape(&capture.sub),
            HirKind::Concat(subs) => self.concat(subs),
            HirKind::Repetition(repetition) => self.repeated(repetition),
            HirKind::Alternation(subs) => self.either(subs),
        };
        Shape { min, max, ..shape }
    }

    fn literal(&self, text: Text) -> Shape {
        if text.len() <= RUN_BYTES_MAX {
            return Shape::exactly(vec![text]);
        }
        let mut factors = Vec::new();
        for (index, piece) in text.chunks(RUN_BYTES_MAX).take(CANDIDATES_MAX).enumerate() {
            let at = index * RUN_BYTES_MAX;
            self.offer(&mut factors, vec![Run::new(piece.to_vec(), at, Some(at))]);
        }
        let prefix = vec![text[..RUN_BYTES_MAX].to_vec()];
        let suffix = vec![text[text.len() - RUN_BYTES_MAX..].to_vec()];
        Shape { factors, ..Shape::between(prefix, suffix) }
    }

    fn repeated(&self, repetition: &Repetition) -> Shape {
        let sub = self.shape(&repetition.sub);
        let min = repetition.min as usize;
        let max = repetition.max.map(|max| max as usize);
        if let (Some(strings), Some(max)) = (&sub.exact, max)
            && (min == max || max <= COPIES_MAX)
            && let Some(all) = powers(strings, min, max)
        {
            return Shape::exactly(all);
        }
        if min == 0 {
            return Shape::between(vec![Vec::new()], vec![Vec::new()]);
        }
        let (mut prefix, mut suffix) = match &sub.exact {
            Some(strings) => (strings.clone(), strings.clone()),
            None => {
                return Shape { factors: sub.factors, ..Shape::between(sub.prefix, sub.suffix) };
            }
        };
        for _ in 1..min {
            match join_cut(&prefix, &sub.prefix, Cut::End).zip(join_cut(
                &sub.suffix,
                &suffix,
                Cut::Start,
            )) {
                Some((longer_prefix, longer_suffix)) if longer_prefix != prefix => {
                    (prefix, suffix) = (longer_prefix, longer_suffix);
                }
                _ => break,
            }
        }
        Shape::between(prefix, suffix)
    }

    fn either(&self, subs: &[Hir]) -> Shape {
        let shapes: Vec<Shape> = subs.iter().map(|sub| self.whole(sub)).collect();
        let union = |of: fn(&Shape) -> Option<&Vec<Text>>| {
            let mut all: Vec<Text> = Vec::new();
            for shape in &shapes {
                all.extend(of(shape)?.iter().cloned());
                if all.len() > 4 * STRINGS_MAX {
                    return None;
                }
            }
            distinct(&mut all);
            (all.len() <= STRINGS_MAX).then_some(all)
        };
        let every = |of: fn(&Shape) -> &Vec<Text>| shapes.iter().flat_map(of);
        let prefix = union(|shape| Some(&shape.prefix))
            .unwrap_or_else(|| vec![merged(every(|shape| &shape.prefix), Cut::End)]);
        let suffix = union(|shape| Some(&shape.suffix))
            .unwrap_or_else(|| vec![merged(every(|shape| &shape.suffix), Cut::Start)]);
        let exact = union(|shape| shape.exact.as_ref());
        let mut factors = Vec::new();
        let best: Option<Vec<&Factor>> = shapes.iter().map(|shape| shape.factors.first()).collect();
        if let Some(best) = best {
            self.offer(&mut factors, best.into_iter().flat_map(|f| f.runs.clone()).collect());
        }
        Shape { exact, factors, ..Shape::between(prefix, suffix) }
    }

    fn concat(&self, subs: &[Hir]) -> Shape {
        let shapes: Vec<Shape> = subs.iter().map(|sub| self.shape(sub)).collect();
        let (mut min, mut max) = (0usize, Some(0usize));
        let mut factors = Vec::new();
        // Ways of joining the parts that end here.
        let mut open = vec![vec![Run::new(Vec::new(), 0, Some(0))]];
        for shape in &shapes {
            if shape.is_edge {
                open.iter_mut().flatten().for_each(|run| run.ends_word = true);
                let begins_word = true;
                open.push(vec![Run { begins_word, ..Run::new(Vec::new(), min, max) }]);
                continue;
            }
            let mut next = Vec::new();
            let is_one = shape.exact.as_ref().is_some_and(|strings| strings.len() == 1);
            for runs in &open {
                match shape.exact.as_ref().and_then(|strings| extended(runs, strings)) {
                    Some(longer) => next.push(longer),
                    None => self.offer(&mut factors, extended_cut(runs, &shape.prefix)),
                }
                if !is_one {
                    let core = merged(shape.prefix.iter(), Cut::End);
                    self.offer(&mut factors, extended_cut(runs, &[core]));
                    self.offer(&mut factors, runs.clone());
                }
            }
            for factor in &shape.factors {
                let moved = factor.runs.iter().map(|run| run.moved(min, max)).collect();
                self.offer(&mut factors, moved);
            }
            min = min.saturating_add(shape.min);
            max = max.zip(shape.max).map(|(a, b)| a.saturating_add(b));
            if !is_one || next.is_empty() {
                let core = merged(shape.suffix.iter(), Cut::Start);
                next.push(vec![Run::ending(core, min, max)]);
                if shape.suffix.len() > 1 {
                    let all = shape.suffix.iter().map(|text| Run::ending(text.clone(), min, max));
                    next.push(all.collect());
                }
            }
            next.sort_by(|a, b| self.cost(a).total_cmp(&self.cost(b)));
            next.truncate(OPEN_MAX);
            open = next;
        }
        for runs in open {
            self.offer(&mut factors, runs);
        }
        let (exact, prefix) = joined(&shapes, Cut::End);
        let (_, suffix) = joined(&shapes, Cut::Start);
        Shape { exact, factors, ..Shape::between(prefix, suffix) }
    }

    /// Adds a candidate if it is among the cheapest.
    fn offer(&self, factors: &mut Vec<Factor>, mut runs: Vec<Run>) {
        if runs.is_empty() || runs.iter().any(|run| run.sets.is_empty()) || runs.len() > RUNS_MAX {
            return;
        }
        for run in &mut runs {
            // `\b` constrains the adjacent byte only if the other one belongs to a word.
            run.begins_word &= run.sets.first().is_some_and(ByteSet::is_word);
            run.ends_word &= run.sets.last().is_some_and(ByteSet::is_word);
        }
        runs.dedup();
        let cost = self.cost(&runs);
        let at = factors.partition_point(|factor| factor.cost <= cost);
        let is_known = factors[..at].last().is_some_and(|factor| factor.runs == runs);
        if at < CANDIDATES_MAX && !is_known {
            factors.insert(at, Factor { runs, cost });
            factors.truncate(CANDIDATES_MAX);
        }
    }

    fn cost(&self, runs: &[Run]) -> f32 {
        let (min, max) = span(runs);
        let hit = hit_ns(min, max);
        runs.iter()
            .map(|run| {
                let (stands, window, _) = self.rates.of_run(&run.sets);
                let edges = usize::from(run.begins_word) + usize::from(run.ends_word);
                let is_needle =
                    run.sets.windows(FIXED_MIN).any(|w| w.iter().all(ByteSet::is_fixed));
                let room = if is_needle { FIXED_ROOM_NS } else { CLASSES_ROOM_NS };
                stands * [1.0, 0.3, 0.1][edges] * hit + window * CANDIDATE_NS + room
            })
            .sum()
    }
}

/// Returns the minimum and maximum distance of these runs from a match's start.
pub(super) fn span(runs: &[Run]) -> (usize, Option<usize>) {
    let min = runs.iter().map(|run| run.offset_min).min().unwrap_or(0);
    let max = runs.iter().try_fold(0, |most, run| Some(run.offset_max?.max(most)));
    (min, max)
}

impl Shape {
    fn exactly(strings: Vec<Text>) -> Self {
        Shape { exact: Some(strings.clone()), ..Shape::between(strings.clone(), strings) }
    }

    fn between(prefix: Vec<Text>, suffix: Vec<Text>) -> Self {
        let (exact, factors) = (None, Vec::new());
        Shape { exact, prefix, suffix, factors, min: 0, max: None, is_edge: false }
    }
}

impl Run {
    fn new(sets: Text, offset_min: usize, offset_max: Option<usize>) -> Self {
        Run { sets, offset_min, offset_max, begins_word: false, ends_word: false }
    }

    /// Makes a run that ends `min` to `max` bytes from the start.
    fn ending(sets: Text, min: usize, max: Option<usize>) -> Self {
        let length = sets.len();
        Run::new(sets, min.saturating_sub(length), max.map(|max| max.saturating_sub(length)))
    }

    fn moved(&self, min: usize, max: Option<usize>) -> Self {
        let offset_min = self.offset_min.saturating_add(min);
        let offset_max = self.offset_max.zip(max).map(|(a, b)| a.saturating_add(b));
        Run { offset_min, offset_max, ..self.clone() }
    }

    fn then(&self, more: &[ByteSet]) -> Self {
        let mut sets = self.sets.clone();
        sets.extend_from_slice(more);
        let ends_word = self.ends_word && more.is_empty();
        Run { sets, ends_word, ..self.clone() }
    }
}

/// Returns every run followed by every string, if these are few and short.
fn extended(runs: &[Run], strings: &[Text]) -> Option<Vec<Run>> {
    let longest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let bytes = longest(&mut runs.iter().map(|run| run.sets.len()))
        + longest(&mut strings.iter().map(Vec::len));
    if runs.len() * strings.len() > STRINGS_MAX || bytes > RUN_BYTES_MAX {
        return None;
    }
    Some(runs.iter().flat_map(|run| strings.iter().map(|text| run.then(text))).collect())
}

/// Returns every run followed by the beginning of every string, or the runs alone.
fn extended_cut(runs: &[Run], strings: &[Text]) -> Vec<Run> {
    if runs.len() * strings.len() > STRINGS_MAX || strings.iter().any(Vec::is_empty) {
        return runs.to_vec();
    }
    let add = |run: &Run, text: &Text| {
        let room = RUN_BYTES_MAX.saturating_sub(run.sets.len()).min(text.len());
        run.then(&text[..room])
    };
    runs.iter().flat_map(|run| strings.iter().map(move |text| add(run, text))).collect()
}

/// The end at which a string that is too long is cut.
#[derive(Clone, Copy, PartialEq)]
enum Cut {
    Start,
    End,
}

/// Returns all concatenations of a string of `first` and one of `second`, cut to the length of a run. `None`
/// if there are too many.
fn join_cut(first: &[Text], second: &[Text], cut: Cut) -> Option<Vec<Text>> {
    if first.len() * second.len() > STRINGS_MAX {
        return None;
    }
    let mut all = Vec::new();
    for text in first {
        for more in second {
            let mut joined = [text.as_slice(), more].concat();
            match cut {
                Cut::End => joined.truncate(RUN_BYTES_MAX),
                Cut::Start => {
                    joined.drain(..joined.len().saturating_sub(RUN_BYTES_MAX));
                }
            }
            all.push(joined);
        }
    }
    distinct(&mut all);
    Some(all)
}

/// Returns all concatenations of `min` to `max` strings, if they are few and short.
fn powers(strings: &[Text], min: usize, max: usize) -> Option<Vec<Text>> {
    let longest = strings.iter().map(Vec::len).max().unwrap_or(0);
    if longest.saturating_mul(max) > RUN_BYTES_MAX {
        return None;
    }
    let (mut all, mut power) = (Vec::new(), vec![Vec::new()]);
    for copies in 0..=max {
        if copies >= min {
            all.extend(power.iter().cloned());
        }
        if all.len() > STRINGS_MAX {
            return None;
        }
        if copies < max {
            power = join_cut(&power, strings, Cut::End)?;
        }
    }
    distinct(&mut all);
    Some(all)
}

/// Returns the strings that a sequence of parts matches, if few, and their prefixes or suffixes.
fn joined(shapes: &[Shape], cut: Cut) -> (Option<Vec<Text>>, Vec<Text>) {
    let in_order: Vec<&Shape> = match cut {
        Cut::End => shapes.iter().collect(),
        Cut::Start => shapes.iter().rev().collect(),
    };
    let join = |known: &[Text], more: &[Text]| match cut {
        Cut::End => join_cut(known, more, cut),
        Cut::Start => join_cut(more, known, cut),
    };
    let mut known: Vec<Text> = vec![Vec::new()];
    let mut bytes = 0;
    for shape in in_order {
        let next = shape.exact.as_ref().and_then(|strings| {
            bytes += strings.iter().map(Vec::len).max().unwrap_or(0);
            if bytes > RUN_BYTES_MAX { None } else { join(&known, strings) }
        });
        match next {
            Some(longer) => known = longer,
            None => {
                let side = if cut == Cut::End { &shape.prefix } else { &shape.suffix };
                let known = join(&known, side).unwrap_or(known);
                return (None, known);
            }
        }
    }
    (Some(known.clone()), known)
}

/// Merges strings into one that covers all: as long as the shortest, with the union of their bytes
/// at each position.
fn merged<'t>(strings: impl Iterator<Item = &'t Text>, cut: Cut) -> Text {
    let mut all: Option<Text> = None;
    for text in strings {
        all = Some(match all {
            None => text.clone(),
            Some(all) => {
                let length = all.len().min(text.len());
                let (a, b) = match cut {
                    Cut::End => (&all[..length], &text[..length]),
                    Cut::Start => (&all[all.len() - length..], &text[text.len() - length..]),
                };
                a.iter().zip(b).map(|(a, b)| a.union(b)).collect()
            }
        });
    }
    all.unwrap_or_default()
}

fn distinct(strings: &mut Vec<Text>) {
    let mut seen = std::collections::HashSet::new();
    strings.retain(|text| seen.insert(text.clone()));
}

fn class_shape(class: &Class) -> Shape {
    match class {
        Class::Bytes(class) => {
            let mut set = ByteSet::EMPTY;
            class.ranges().iter().for_each(|range| set.insert_range(range.start(), range.end()));
            Shape::exactly(vec![vec![set]])
        }
        Class::Unicode(class) => {
            let mut strings: Vec<Text> = Vec::new();
            for range in class.ranges() {
                for sequence in Utf8Sequences::new(range.start(), range.end()) {
                    let set = |range: &regex_syntax::utf8::Utf8Range| {
                        let mut set = ByteSet::EMPTY;
                        set.insert_range(range.start, range.end);
                        set
                    };
                    strings.push(sequence.as_slice().iter().map(set).collect());
                }
            }
            // Merge strings of the same length that differ in only one byte.
            strings.sort_by_key(Vec::len);
            let single = strings.partition_point(|text| text.len() == 1);
            if single > 1 {
                let one = merged(strings[..single].iter(), Cut::End);
                strings.splice(..single, [one]);
            }
            if strings.len() <= STRINGS_MAX / 8 {
                return Shape::exactly(strings);
            }
            let prefix = vec![merged(strings.iter(), Cut::End)];
            let suffix = vec![merged(strings.iter(), Cut::Start)];
            Shape::between(prefix, suffix)
        }
    }
}
