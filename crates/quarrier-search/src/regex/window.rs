//! Runs of bytes that every match of a regex contains: where in the match, and which values.
//!
//! `[a-z]{1,9}@[a-z]` contains a letter, an `@` and a letter, 0 to 8 bytes from its start. A
//! position where no such run stands belongs to no match, so a packed filter can say where
//! the automaton need not look.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

/// The longest run that is kept, and the most copies of a repeated part that are unrolled.
const RUN_BYTES: usize = 8;
/// A run further from the match's start, or less certain of its place, is no help.
const OFFSET_MAX: usize = 1 << 12;

/// A set of byte values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSet([u64; 4]);

impl std::fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries((0..=255u8).filter(|&b| self.contains(b)).map(char::from)).finish()
    }
}

impl ByteSet {
    const EMPTY: ByteSet = ByteSet([0; 4]);
    pub(crate) const ALL: ByteSet = ByteSet([!0; 4]);

    fn insert_range(&mut self, from: u8, to: u8) {
        (from..=to).for_each(|b| self.0[b as usize / 64] |= 1 << (b % 64));
    }

    #[inline]
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[byte as usize / 64] >> (byte % 64) & 1 != 0
    }

    fn union(&self, other: &ByteSet) -> ByteSet {
        ByteSet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

/// A run of bytes that every match contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// The values of each byte.
    pub(crate) sets: Vec<ByteSet>,
    /// How far from the match's start the run begins, at least and at most.
    pub(crate) offset_min: usize,
    pub(crate) offset_max: usize,
}

/// A regex as a line of parts, in the order of a match.
#[derive(Debug, Clone)]
enum Part {
    /// One byte of the set.
    Byte(ByteSet),
    /// `min` to `max` bytes, all of the set; `min` is at least 1.
    Many { set: ByteSet, min: usize, max: Option<usize> },
    /// So many bytes of any value.
    Gap { min: usize, max: Option<usize> },
}

/// All runs that every match contains, each as long as it gets.
pub(super) fn windows(hir: &Hir) -> Vec<Window> {
    let mut runs = Runs { done: Vec::new(), open: Vec::new(), min: 0, max: Some(0) };
    for part in parts(hir) {
        match part {
            Part::Byte(set) => runs.push(set),
            Part::Many { set, min, max } => {
                // The run ends with the first bytes of the many, and a new one begins with
                // the last of them.
                let copies = min.min(RUN_BYTES);
                (0..copies).for_each(|_| runs.push(set));
                let rest = max.map(|max| max - copies);
                runs.skip(min - copies, rest);
                if max != Some(copies) {
                    runs.step_back(set, copies);
                }
            }
            Part::Gap { min, max } => runs.skip(min, max),
        }
    }
    runs.close();
    runs.done
}

/// The bytes that a match may begin with.
pub(super) fn first(hir: &Hir) -> ByteSet {
    match parts(hir).first() {
        Some(Part::Byte(set) | Part::Many { set, .. }) => *set,
        _ => ByteSet::ALL,
    }
}

/// Runs under construction.
struct Runs {
    done: Vec<Window>,
    open: Vec<ByteSet>,
    /// Bytes from the match's start to the end of the open run, at least and at most.
    min: usize,
    max: Option<usize>,
}

impl Runs {
    fn push(&mut self, set: ByteSet) {
        self.open.push(set);
        self.min += 1;
        self.max = self.max.map(|max| max + 1);
    }

    /// Ends the open run and passes over unknown bytes.
    fn skip(&mut self, min: usize, max: Option<usize>) {
        if max != Some(0) {
            self.close();
        }
        self.min += min;
        self.max = self.max.zip(max).map(|(a, b)| a.saturating_add(b));
    }

    /// Begins a run with the last `copies` bytes passed, which are known to be of `set`.
    fn step_back(&mut self, set: ByteSet, copies: usize) {
        self.open = vec![set; copies];
    }

    fn close(&mut self) {
        let sets = std::mem::take(&mut self.open);
        let Some(max) = self.max else { return };
        if sets.is_empty() || max - sets.len() > OFFSET_MAX {
            return;
        }
        let (offset_min, offset_max) = (self.min - sets.len(), max - sets.len());
        self.done.push(Window { sets, offset_min, offset_max });
    }
}

/// The regex as a line of parts.
fn parts(hir: &Hir) -> Vec<Part> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Vec::new(),
        HirKind::Literal(literal) => {
            literal.0.iter().map(|&byte| Part::Byte(set_of(&[(byte, byte)]))).collect()
        }
        HirKind::Class(class) => vec![class_part(class, hir)],
        HirKind::Capture(capture) => parts(&capture.sub),
        HirKind::Concat(subs) => subs.iter().flat_map(parts).collect(),
        HirKind::Repetition(repetition) => repeated(repetition, hir),
        HirKind::Alternation(subs) => either(subs, hir),
    }
}

fn set_of(ranges: &[(u8, u8)]) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    ranges.iter().for_each(|&(from, to)| set.insert_range(from, to));
    set
}

fn gap(hir: &Hir) -> Part {
    let properties = hir.properties();
    Part::Gap { min: properties.minimum_len().unwrap_or(0), max: properties.maximum_len() }
}

fn class_part(class: &Class, hir: &Hir) -> Part {
    match class {
        Class::Bytes(class) => {
            let ranges: Vec<_> = class.ranges().iter().map(|r| (r.start(), r.end())).collect();
            Part::Byte(set_of(&ranges))
        }
        // A class of Unicode characters is a byte only where all of them are ASCII.
        Class::Unicode(class) => match class.to_byte_class() {
            Some(class) if class.is_ascii() => class_part(&Class::Bytes(class), hir),
            _ => gap(hir),
        },
    }
}

fn repeated(repetition: &Repetition, hir: &Hir) -> Vec<Part> {
    let sub = parts(&repetition.sub);
    let (min, max) = (repetition.min as usize, repetition.max.map(|max| max as usize));
    if min == 0 {
        return vec![gap(hir)];
    }
    if let [Part::Byte(set)] = sub[..] {
        return vec![Part::Many { set, min, max }];
    }
    // The first copies one by one; of what may follow only the length is known.
    let copies = min.min(3);
    let mut line: Vec<Part> = (0..copies).flat_map(|_| sub.clone()).collect();
    let length = repetition.sub.properties();
    let rest_min = length.minimum_len().unwrap_or(0).saturating_mul(min - copies);
    let rest_max =
        length.maximum_len().zip(max).map(|(bytes, max)| bytes.saturating_mul(max - copies));
    if rest_max != Some(0) {
        line.push(Part::Gap { min: rest_min, max: rest_max });
    }
    line
}

/// Alternatives: the bytes that all of them begin with, then a gap.
fn either(subs: &[Hir], hir: &Hir) -> Vec<Part> {
    let lines: Vec<Vec<Part>> = subs.iter().map(parts).collect();
    let mut line = Vec::new();
    let mut common = 0;
    while common < RUN_BYTES {
        let sets: Option<Vec<ByteSet>> = lines
            .iter()
            .map(
                |line| if let Some(Part::Byte(set)) = line.get(common) { Some(*set) } else { None },
            )
            .collect();
        let Some(sets) = sets else { break };
        line.push(Part::Byte(sets.iter().fold(ByteSet::EMPTY, |all, set| all.union(set))));
        common += 1;
    }
    let properties = hir.properties();
    let min = properties.minimum_len().unwrap_or(0).saturating_sub(common);
    let max = properties.maximum_len().map(|max| max.saturating_sub(common));
    if max != Some(0) {
        line.push(Part::Gap { min, max });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(regex: &str) -> Vec<(String, usize, usize)> {
        let hir = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .unicode(false)
            .build()
            .parse(regex)
            .unwrap();
        let show = |set: &ByteSet| {
            let bytes: Vec<char> =
                (0..=255u8).filter(|&b| set.contains(b)).map(char::from).collect();
            match bytes.len() {
                1 => bytes[0].to_string(),
                n => format!("<{n}>"),
            }
        };
        windows(&hir)
            .iter()
            .map(|w| (w.sets.iter().map(show).collect(), w.offset_min, w.offset_max))
            .collect()
    }

    #[test]
    fn runs_and_their_places_are_those_of_every_match() {
        let one = |sets: &str, min, max| (sets.to_string(), min, max);
        assert_eq!(of("abc"), [one("abc", 0, 0)]);
        assert_eq!(of("a[bc]d?e"), [one("a<2>", 0, 0), one("e", 2, 3)]);
        assert_eq!(of("[a-z]{1,9}@[a-z]"), [one("<26>", 0, 0), one("<26>@<26>", 0, 8)]);
        assert_eq!(of("x{2}y"), [one("xxy", 0, 0)]);
        assert_eq!(of("x{2,}y"), [one("xx", 0, 0)]);
        assert_eq!(of("(?:ab|ac)d"), [one("a<2>d", 0, 0)]);
        assert_eq!(of("(?:foo|quux)-"), [one("<2><2><2>", 0, 0), one("-", 3, 4)]);
        assert_eq!(of(r"\bab$"), [one("ab", 0, 0)]);
        assert_eq!(of(r"(?:[0-9]{1,3}\.){2}[0-9]")[1], one("<10>.<10>", 0, 2),);
    }
}
