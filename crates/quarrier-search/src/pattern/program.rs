//! Programs: patterns whose matches differ in length, or in ways that a mask cannot express.
//!
//! A program runs at each place that a needle has found, and returns the shortest match that begins
//! there. It follows all ends that a step can reach at once, so its worst-case time is the number
//! of steps times the length.

/// The first horizon within which to look for a match; each further one is eight times as far.
const HORIZON_BYTES: usize = 512;

/// A sequence of steps that match bytes. Steps refer to later ones only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A byte `b` with `b & mask == value`; with `negated`, a byte without that.
    Byte { value: u8, mask: u8, negated: bool },
    /// One of these bytes, in ascending order.
    Set(Vec<u8>),
    /// One of several strings, none of which is a prefix of another.
    Strings(Vec<Vec<u8>>),
    /// A number of arbitrary bytes.
    Jump { least: u32, most: Reach },
    /// Continues at each of these steps.
    Split(Vec<usize>),
    /// Continues at this step.
    Goto(usize),
}

/// The upper bound of a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Bytes(u32),
    /// Up to the maximum length of a match.
    Open,
}

impl Step {
    pub(crate) fn byte(value: u8) -> Self {
        Step::Byte { value, mask: 0xFF, negated: false }
    }

    pub(crate) fn masked(value: u8, mask: u8) -> Self {
        Step::Byte { value: value & mask, mask, negated: false }
    }

    fn is_forking(&self) -> bool {
        matches!(self, Step::Jump { .. } | Step::Split(_) | Step::Goto(_))
    }
}

/// Whether a byte matches a step [`Step::Byte`].
#[inline]
fn is_byte(byte: u8, value: u8, mask: u8, negated: bool) -> bool {
    (byte & mask == value) != negated
}

/// The ends reached so far: ranges in ascending order that do not touch.
type Ends = Vec<(usize, usize)>;

impl Program {
    /// Returns the length of the shortest match at the start of `text`, of at most `most` bytes.
    pub(crate) fn shortest(&self, text: &[u8], most: usize) -> Option<usize> {
        let end = text.len().min(most);
        if !self.steps.iter().any(Step::is_forking) {
            return self.straight(&text[..end]);
        }
        let mut horizon = HORIZON_BYTES.min(end);
        loop {
            let found = self.within(&text[..horizon]);
            if found.is_some() || horizon == end {
                return found;
            }
            horizon = (horizon * 8).min(end);
        }
    }

    /// Returns the maximum length of a match, where `most` is the maximum allowed.
    pub(crate) fn length_bytes_max(&self, most: usize) -> usize {
        let mut lengths = vec![None::<usize>; self.steps.len() + 1];
        lengths[0] = Some(0);
        for (at, step) in self.steps.iter().enumerate() {
            let Some(length) = lengths[at] else { continue };
            let mut reach = |at: usize, bytes: usize| {
                let there = length.saturating_add(bytes).min(most);
                lengths[at] = Some(lengths[at].map_or(there, |known| known.max(there)));
            };
            match step {
                Step::Byte { .. } | Step::Set(_) => reach(at + 1, 1),
                Step::Strings(all) => {
                    reach(at + 1, all.iter().map(Vec::len).max().unwrap_or_default());
                }
                Step::Jump { most: Reach::Bytes(bytes), .. } => reach(at + 1, *bytes as usize),
                Step::Jump { most: Reach::Open, .. } => reach(at + 1, most),
                Step::Split(all) => all.iter().for_each(|&to| reach(to, 0)),
                Step::Goto(to) => reach(*to, 0),
            }
        }
        lengths[self.steps.len()].unwrap_or_default()
    }

    /// Returns the minimum length of a match.
    pub(crate) fn length_bytes_min(&self) -> usize {
        let mut lengths = vec![None::<usize>; self.steps.len() + 1];
        lengths[0] = Some(0);
        for (at, step) in self.steps.iter().enumerate() {
            let Some(length) = lengths[at] else { continue };
            let mut reach = |at: usize, bytes: usize| {
                let there = length.saturating_add(bytes);
                lengths[at] = Some(lengths[at].map_or(there, |known| known.min(there)));
            };
            match step {
                Step::Byte { .. } | Step::Set(_) => reach(at + 1, 1),
                Step::Strings(all) => {
                    reach(at + 1, all.iter().map(Vec::len).min().unwrap_or_default());
                }
                Step::Jump { least, .. } => reach(at + 1, *least as usize),
                Step::Split(all) => all.iter().for_each(|&to| reach(to, 0)),
                Step::Goto(to) => reach(*to, 0),
            }
        }
        lengths[self.steps.len()].unwrap_or_default()
    }

    /// Matches steps that do not fork.
    fn straight(&self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        for step in &self.steps {
            at = match step {
                Step::Byte { value, mask, negated } => {
                    is_byte(*text.get(at)?, *value, *mask, *negated).then_some(at + 1)?
                }
                Step::Set(bytes) => bytes.binary_search(text.get(at)?).ok().map(|_| at + 1)?,
                Step::Strings(all) => {
                    let rest = text.get(at..)?;
                    at + all.iter().find(|string| rest.starts_with(string))?.len()
                }
                Step::Jump { .. } | Step::Split(_) | Step::Goto(_) => return None,
            };
        }
        Some(at)
    }

    /// Returns the length of the shortest match that ends within `text`.
    fn within(&self, text: &[u8]) -> Option<usize> {
        let mut reached: Vec<Ends> = vec![Ends::new(); self.steps.len() + 1];
        reached[0].push((0, 0));
        for (at, step) in self.steps.iter().enumerate() {
            let ends = std::mem::take(&mut reached[at]);
            if ends.is_empty() {
                continue;
            }
            match step {
                Step::Byte { value, mask, negated } => {
                    let next = &mut reached[at + 1];
                    each_byte(&ends, text, next, |b| is_byte(b, *value, *mask, *negated));
                }
                Step::Set(bytes) => {
                    let next = &mut reached[at + 1];
                    each_byte(&ends, text, next, |b| bytes.binary_search(&b).is_ok());
                }
                Step::Strings(all) => {
                    let mut next = Ends::new();
                    for place in ends.iter().flat_map(|&(from, to)| from..=to) {
                        let rest = text.get(place..).unwrap_or_default();
                        if let Some(string) = all.iter().find(|string| rest.starts_with(string)) {
                            next.push((place + string.len(), place + string.len()));
                        }
                    }
                    join(&mut reached[at + 1], next);
                }
                Step::Jump { least, most } => {
                    let far = match most {
                        Reach::Bytes(bytes) => *bytes as usize,
                        Reach::Open => text.len(),
                    };
                    let moved = ends.iter().filter_map(|&(from, to)| {
                        let from = from.saturating_add(*least as usize);
                        (from <= text.len()).then(|| (from, to.saturating_add(far).min(text.len())))
                    });
                    join(&mut reached[at + 1], moved.collect());
                }
                Step::Split(all) => all.iter().for_each(|&to| join(&mut reached[to], ends.clone())),
                Step::Goto(to) => join(&mut reached[*to], ends),
            }
        }
        reached[self.steps.len()].first().map(|&(from, _)| from)
    }
}

/// Advances each end by one byte, if that byte is wanted.
fn each_byte(ends: &Ends, text: &[u8], next: &mut Ends, is_wanted: impl Fn(u8) -> bool) {
    let mut further = Ends::new();
    for &(from, to) in ends {
        let Some(bytes) = text.get(from..(to + 1).min(text.len())) else { continue };
        for (place, _) in (from..).zip(bytes).filter(|(_, byte)| is_wanted(**byte)) {
            push(&mut further, (place + 1, place + 1));
        }
    }
    join(next, further);
}

/// Adds a range that begins no earlier than the previous ones.
fn push(ends: &mut Ends, (from, to): (usize, usize)) {
    match ends.last_mut() {
        Some((_, last)) if *last + 1 >= from => *last = (*last).max(to),
        _ => ends.push((from, to)),
    }
}

/// Adds ranges in any order.
fn join(ends: &mut Ends, more: Ends) {
    if ends.is_empty() && more.len() <= 1 {
        *ends = more;
        return;
    }
    let mut all = std::mem::take(ends);
    all.extend(more);
    all.sort_unstable();
    all.into_iter().for_each(|range| push(ends, range));
}
