//! Factors: bytes that every match contains. The rarest are chosen.

use std::fmt;

use quarrier_search::Pattern;

/// Maximum length of a factor in bytes: more bytes make it no rarer.
const BYTES_MAX: usize = 32;
/// Minimum number of bytes with a single value in a factor.
const EXACT_MIN: usize = 3;
/// Maximum number of factors that replace one choice.
const CHOICES_MAX: usize = 64;
/// Maximum nesting of choices.
const DEPTH_MAX: usize = 8;

/// Bytes under a mask: `t` matches `value` if `t & mask == value`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Factor {
    bytes: Vec<(u8, u8)>,
    /// Whether ASCII letters match in either case; then all bytes are exact, and in ASCII.
    ignores_case: bool,
}

/// A part of a string.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// One byte: its value under a mask.
    Byte(u8, u8),
    /// Any number of bytes.
    Gap,
    /// One of these alternatives.
    Choice(Vec<Vec<Item>>),
}

impl Factor {
    /// Returns the pattern, for a set that ignores the case of literals; `None` if the engine
    /// rejects it.
    pub(crate) fn pattern(&self) -> Option<Pattern> {
        match self.ignores_case {
            true => {
                let bytes: Vec<u8> = self.bytes.iter().map(|&(value, _)| value).collect();
                Pattern::bytes(&bytes, &self.to_string()).ok()
            }
            // A hexadecimal pattern does not ignore case.
            false => Pattern::hex(&self.to_string()).ok(),
        }
    }

    /// Makes a factor of exact bytes, if they are rare enough.
    pub(crate) fn of_bytes(bytes: &[u8], ignores_case: bool) -> Option<Self> {
        let items: Vec<Item> = bytes.iter().map(|&byte| Item::Byte(byte, 0xFF)).collect();
        best(&items, ignores_case)?.pop()
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ignores_case {
            f.write_str("i")?;
        }
        for &(value, mask) in &self.bytes {
            match mask {
                0xFF => write!(f, "{value:02X}")?,
                0xF0 => write!(f, "{:X}?", value >> 4)?,
                0x0F => write!(f, "?{:X}", value & 0x0F)?,
                _ => f.write_str("??")?,
            }
        }
        Ok(())
    }
}

/// Returns factors such that every match contains one of them: a single factor, or those of a
/// choice.
pub(crate) fn best(items: &[Item], ignores_case: bool) -> Option<Vec<Factor>> {
    best_within(items, ignores_case, 0)
}

fn best_within(items: &[Item], ignores_case: bool, depth: usize) -> Option<Vec<Factor>> {
    // If case is ignored, a factor consists of ASCII bytes only.
    let continues = |item: &Item| match *item {
        Item::Byte(value, mask) => !ignores_case || (mask == 0xFF && value.is_ascii()),
        Item::Gap | Item::Choice(_) => false,
    };
    let runs = items.split(|item| !continues(item));
    let byte =
        |item: &Item| if let Item::Byte(value, mask) = *item { Some((value, mask)) } else { None };
    let windows = runs.filter_map(|run| rarest(&run.iter().filter_map(byte).collect::<Vec<_>>()));
    if let Some((_, bytes)) = windows.max_by_key(|(score, _)| *score) {
        return Some(vec![Factor { bytes, ignores_case }]);
    }
    if depth >= DEPTH_MAX {
        return None;
    }
    let of_choice = |item: &Item| {
        let Item::Choice(branches) = item else { return None };
        let mut all = Vec::new();
        for branch in branches {
            all.extend(best_within(branch, ignores_case, depth + 1)?);
            if all.len() > CHOICES_MAX {
                return None;
            }
        }
        Some(all).filter(|all| !all.is_empty())
    };
    items.iter().filter_map(of_choice).min_by_key(Vec::len)
}

/// Returns the rarest window of a run, with its score; `None` if none is rare enough.
fn rarest(run: &[(u8, u8)]) -> Option<(usize, Vec<(u8, u8)>)> {
    let mut best: Option<(usize, &[(u8, u8)])> = None;
    for window in run.windows(run.len().clamp(1, BYTES_MAX)) {
        if let Some(score) = score(window)
            && best.is_none_or(|(most, _)| score > most)
        {
            best = Some((score, window));
        }
    }
    let (score, window) = best?;
    let is_any = |&(_, mask): &(u8, u8)| mask == 0;
    let start = window.iter().take_while(|byte| is_any(byte)).count();
    let end = window.len() - window.iter().rev().take_while(|byte| is_any(byte)).count();
    let masked = window[start..end].iter().map(|&(value, mask)| (value & mask, mask));
    Some((score, masked.collect()))
}

/// Returns the score of a window, higher for rarer ones; `None` if it is not rare.
fn score(window: &[(u8, u8)]) -> Option<usize> {
    let exact = || window.iter().filter(|(_, mask)| *mask == 0xFF).map(|(value, _)| *value);
    let mut values: Vec<u8> = exact().collect();
    values.sort_unstable();
    values.dedup();
    let halves = window.iter().filter(|(_, mask)| matches!(mask, 0x0F | 0xF0)).count();
    let (bytes, distinct) = (exact().count(), values.len());
    (bytes >= EXACT_MIN && distinct >= 2).then_some(4 * distinct + 2 * bytes + halves)
}
