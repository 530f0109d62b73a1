//! Needles of a program: the prefixes of its matches.
//!
//! Follows the steps, and each branch of a fork separately, until enough bytes are known to search
//! for. Where a needle cannot express the steps, or ends before them, the program runs at each
//! place of the needle.

use super::program::{Program, Reach, Step};

/// Maximum number of needles of a program.
const WAYS_MAX: usize = 256;
/// Number of known bits that suffice to search for.
const BITS_ENOUGH: u32 = 96;
/// Number of known bits that suffice if the next step forks.
const BITS_ENOUGH_AT_FORK: u32 = 24;
/// Maximum number of needles to make only for more fixed bytes: a needle with fewer than four
/// adjacent ones is compared at every candidate.
const WAYS_OF_BYTES: usize = 8;
/// A needle with enough bits ends before this many wildcards in a row.
const GAP_BYTES: usize = 16;

/// A prefix of some matches: byte values under a mask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) value: Vec<u8>,
    pub(crate) mask: Vec<u8>,
}

/// A set of prefixes such that each match of a program begins with one of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    pub(crate) all: Vec<Prefix>,
    /// Whether the prefixes are complete matches, so that the program need not run.
    pub(crate) are_matches: bool,
}

#[derive(Clone, Default)]
struct Way {
    prefix: Prefix,
    at: usize,
    bits: u32,
}

impl Way {
    fn push(&mut self, value: u8, mask: u8) {
        self.prefix.value.push(value & mask);
        self.prefix.mask.push(mask);
        self.bits += mask.count_ones();
    }

    /// Returns this way, continued by a string.
    fn with(&self, string: &[u8]) -> Self {
        let mut next = self.clone();
        string.iter().for_each(|&byte| next.push(byte, 0xFF));
        next
    }

    fn skip(&mut self, bytes: usize) {
        self.prefix.value.extend(std::iter::repeat_n(0, bytes));
        self.prefix.mask.extend(std::iter::repeat_n(0, bytes));
    }
}

/// Returns the prefixes of a program's matches, or `None` if there are too many to search for.
pub(crate) fn prefixes(program: &Program) -> Option<Prefixes> {
    let mut open = vec![Way::default()];
    let mut done: Vec<Way> = Vec::new();
    let mut are_matches = true;
    while let Some(mut way) = open.pop() {
        let Some(step) = program.steps.get(way.at) else {
            done.push(way);
            continue;
        };
        if way.bits >= BITS_ENOUGH && way.prefix.value.len() >= 4 {
            are_matches = false;
            done.push(way);
            continue;
        }
        way.at += 1;
        match step {
            Step::Byte { value, mask, negated: false } => way.push(*value, *mask),
            Step::Byte { negated: true, .. } => {
                are_matches = false;
                way.skip(1);
            }
            Step::Set(bytes) => {
                let strings: Vec<Vec<u8>> = bytes.iter().map(|&byte| vec![byte]).collect();
                let room = WAYS_OF_BYTES.saturating_sub(open.len() + done.len());
                if is_worth_forking(&way, &strings, room) {
                    open.extend(strings.iter().map(|string| way.with(string)));
                    continue;
                }
                are_matches &= push_common(&mut way, &strings.iter().collect::<Vec<_>>());
            }
            Step::Strings(strings)
                if is_worth_forking(
                    &way,
                    strings,
                    WAYS_OF_BYTES.saturating_sub(open.len() + done.len()),
                ) =>
            {
                open.extend(strings.iter().map(|string| way.with(string)));
                continue;
            }
            Step::Goto(to) => way.at = *to,
            Step::Strings(_) | Step::Jump { .. } | Step::Split(_) => {
                let room = WAYS_MAX.saturating_sub(open.len() + done.len());
                match fork(&way, step, room) {
                    Some((ways, is_exact)) => {
                        are_matches &= is_exact;
                        open.extend(ways);
                    }
                    // A needle ends here; the program continues from it.
                    None if way.bits > 0 => {
                        are_matches = false;
                        done.push(way);
                    }
                    None => return None,
                }
                continue;
            }
        }
        open.push(way);
    }
    finished(done, are_matches)
}

fn finished(done: Vec<Way>, are_matches: bool) -> Option<Prefixes> {
    if done.iter().any(|way| way.bits == 0) {
        return None;
    }
    let mut all: Vec<Prefix> = done.into_iter().map(|way| way.prefix).collect();
    let is_of_one_length = all.iter().all(|one| one.value.len() == all[0].value.len());
    let are_matches = are_matches && is_of_one_length;
    if !are_matches {
        for one in &mut all {
            let known = one.mask.iter().rposition(|&mask| mask != 0).map_or(0, |last| last + 1);
            one.value.truncate(known);
            one.mask.truncate(known);
        }
    }
    all.sort_by(|a, b| (&a.value, &a.mask).cmp(&(&b.value, &b.mask)));
    all.dedup();
    Some(Prefixes { all, are_matches })
}

/// Returns the ways through a step that forks, and whether they express it exactly. `None` if there
/// are too many, or if enough bits are known.
fn fork(way: &Way, step: &Step, room: usize) -> Option<(Vec<Way>, bool)> {
    let is_known = way.bits >= BITS_ENOUGH_AT_FORK;
    let mut ways = Vec::new();
    let mut is_exact = true;
    match step {
        Step::Strings(all) => {
            let mut lengths: Vec<usize> = all.iter().map(Vec::len).collect();
            lengths.sort_unstable();
            lengths.dedup();
            if lengths.len() > 1 && is_known {
                return None;
            }
            for length in lengths {
                let of_length: Vec<&Vec<u8>> = all.iter().filter(|s| s.len() == length).collect();
                let mut next = way.clone();
                is_exact &= push_common(&mut next, &of_length);
                ways.push(next);
            }
        }
        Step::Jump { least, most } => {
            let least = *least as usize;
            let more = match most {
                Reach::Bytes(bytes) => (*bytes as usize).saturating_sub(least),
                Reach::Open => usize::MAX,
            };
            if is_known && (more > 0 || least > GAP_BYTES) || more >= room || least > 1 << 16 {
                return None;
            }
            for bytes in least..=least + more {
                let mut next = way.clone();
                next.skip(bytes);
                ways.push(next);
            }
        }
        Step::Split(all) => {
            if is_known && all.len() > 16 {
                return None;
            }
            ways.extend(all.iter().map(|&at| Way { at, ..way.clone() }));
        }
        Step::Byte { .. } | Step::Set(_) | Step::Goto(_) => {}
    }
    (ways.len() <= room).then_some((ways, is_exact))
}

/// Whether to give each of several strings of the same length its own needle: only if there are
/// few, and they differ in more than the case of a letter.
fn is_worth_forking(way: &Way, strings: &[Vec<u8>], room: usize) -> bool {
    let [first, others @ ..] = strings else { return false };
    let differ = |a: &u8, b: &u8| (a ^ b) & !0x20 != 0;
    let is_of_one_length = others.iter().all(|other| other.len() == first.len());
    let differ_much = others.iter().any(|other| other.iter().zip(first).any(|(a, b)| differ(a, b)));
    way.bits < 2 * BITS_ENOUGH_AT_FORK && is_of_one_length && differ_much && strings.len() <= room
}

/// Appends the bits that strings of the same length have in common; returns whether these bits
/// imply one of the strings.
fn push_common(way: &mut Way, strings: &[&Vec<u8>]) -> bool {
    let Some(first) = strings.first() else { return false };
    let mut free_bits = 0;
    for (place, &value) in first.iter().enumerate() {
        let differing = strings.iter().fold(0, |bits, string| bits | (string[place] ^ value));
        way.push(value, !differing);
        free_bits += differing.count_ones();
    }
    u32::try_from(strings.len()).is_ok_and(|count| 1u32.checked_shl(free_bits) == Some(count))
}
