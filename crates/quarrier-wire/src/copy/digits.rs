//! Writes numbers, dates and times of cells as JSON spells them.
//!
//! Each function returns false for a value that it does not write; then it may have appended a part
//! of it.

use std::io::Write;

use quarrier_core::civil;

/// Maximum groups of four digits of an exact number, in total and before its point.
const GROUPS_MAX: usize = 20;
/// Maximum decimals of an exact number whose column has no limit.
const DECIMALS_MAX: usize = 38;

pub(super) fn integer(value: i64, out: &mut Vec<u8>) -> bool {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    true
}

/// Writes the shortest decimal number that is read back as this one, as `{:?}` does.
pub(super) fn float(value: f64, out: &mut Vec<u8>) -> bool {
    if !value.is_finite() {
        return false;
    }
    match of_few_digits(value.abs()) {
        Some((digits, decimals)) => {
            if value.is_sign_negative() {
                out.push(b'-');
            }
            pointed(digits, decimals, out);
        }
        // A write to memory cannot fail.
        None => drop(write!(out, "{value:?}")),
    }
    true
}

/// Returns the digits of a number with at most 15 of them, and how many are decimals.
///
/// Different decimal numbers of at most 15 digits are different floating-point numbers. So if one
/// of them is read back as `size`, no shorter one is, and it is the shortest.
fn of_few_digits(size: f64) -> Option<(u64, usize)> {
    const POWERS: [f64; 9] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];
    // Smaller numbers are written with an exponent.
    if size < 1e-4 && size != 0.0 {
        return None;
    }
    for (decimals, power) in POWERS.into_iter().enumerate() {
        let scaled = size * power;
        if scaled >= 1e15 {
            return None;
        }
        let digits = (scaled + 0.5) as u64;
        // Both are exact, so that the division yields the float nearest to this decimal number.
        if digits as f64 / power == size {
            return Some((digits, decimals));
        }
    }
    None
}

/// Writes digits with a point before the last ones; before a zero if none are decimals.
fn pointed(digits: u64, decimals: usize, out: &mut Vec<u8>) {
    let power = 10_u64.pow(decimals as u32);
    out.extend_from_slice(itoa::Buffer::new().format(digits / power).as_bytes());
    out.push(b'.');
    let start = out.len();
    out.resize(start + decimals.max(1), b'0');
    let mut part = digits % power;
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (part % 10) as u8;
        part /= 10;
    }
}

/// Writes an exact number in PostgreSQL's binary form: groups of four digits.
pub(super) fn numeric(cell: &[u8], scale: Option<u8>, out: &mut Vec<u8>) -> bool {
    let Some((head, groups)) = cell.split_first_chunk::<8>() else { return false };
    let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let (groups, odd) = groups.as_chunks::<2>();
    let (weight, sign, decimals) = (word(2) as i16, word(4), usize::from(word(6)));
    let is_usual = odd.is_empty()
        && groups.len() == usize::from(word(0))
        && groups.len() <= GROUPS_MAX
        && usize::from(weight.unsigned_abs()) <= GROUPS_MAX
        && matches!(sign, 0 | 0x4000)
        && decimals <= scale.map_or(DECIMALS_MAX, usize::from)
        && groups.iter().all(|group| u16::from_be_bytes(*group) < 10_000);
    if !is_usual {
        return false;
    }
    let group = |place: i16| {
        let at = usize::try_from(place).ok().and_then(|at| groups.get(at));
        at.map_or(0, |group| u16::from_be_bytes(*group))
    };
    if sign != 0 {
        out.push(b'-');
    }
    let start = out.len();
    for place in 0..=weight {
        let group = group(place);
        match out.len() > start {
            true => out.extend(four(group)),
            false if group > 0 => {
                integer(group.into(), out);
            }
            false => {}
        }
    }
    if out.len() == start {
        out.push(b'0');
    }
    if decimals > 0 {
        out.push(b'.');
        let point = out.len();
        let mut place = weight + 1;
        while out.len() < point + decimals {
            out.extend(four(group(place)));
            place += 1;
        }
        out.truncate(point + decimals);
    }
    true
}

/// Writes an exact number in decimal notation, if it is spelt as JSON spells it.
pub(super) fn exact(cell: &str, scale: Option<u8>, out: &mut Vec<u8>) -> bool {
    let digits = cell.strip_prefix('-').unwrap_or(cell);
    let (whole, part) = match digits.split_once('.') {
        Some((whole, part)) => (whole, Some(part)),
        None => (digits, None),
    };
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = |part: &str| scale.is_none_or(|scale| part.len() <= usize::from(scale));
    let is_spelt = are_digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && part.is_none_or(|part| are_digits(part) && fits(part));
    if is_spelt {
        out.extend_from_slice(cell.as_bytes());
    }
    is_spelt
}

/// Writes the date of a day, counted from 1970-01-01, if its year has four digits.
pub(super) fn date(day: i64, out: &mut Vec<u8>) -> bool {
    let (year, month, of_month) = civil::date(day);
    if !(0..=9_999).contains(&year) {
        return false;
    }
    let [a, b, c, d] = four(year as u16);
    let ([e, f], [g, h]) = (two(month), two(of_month));
    out.extend_from_slice(&[a, b, c, d, b'-', e, f, b'-', g, h]);
    true
}

/// Writes the time of a microsecond of the day, with decimals up to the last that is not zero.
pub(super) fn time(micros: i64, out: &mut Vec<u8>) -> bool {
    let (seconds, mut part) = (micros / 1_000_000, micros % 1_000_000);
    let [[a, b], [c, d], [e, f]] = [seconds / 3_600, seconds / 60 % 60, seconds % 60].map(two);
    out.extend_from_slice(&[a, b, b':', c, d, b':', e, f]);
    if part > 0 {
        let mut digits = [b'0'; 6];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (part % 10) as u8;
            part /= 10;
        }
        let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
        out.push(b'.');
        out.extend_from_slice(&digits[..digits.len() - zeros]);
    }
    true
}

/// Returns the four digits of a number below 10,000.
fn four(number: u16) -> [u8; 4] {
    let digit = |power: u16| b'0' + (number / power % 10) as u8;
    [digit(1_000), digit(100), digit(10), digit(1)]
}

/// Returns the two digits of a number below 100.
fn two(number: i64) -> [u8; 2] {
    [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]
}
