//! Writes numbers as PostgreSQL does.

use std::io::Write;

/// Writes an integer in decimal.
pub(super) fn whole(number: i128, out: &mut Vec<u8>) {
    // A write to memory cannot fail.
    let _ = match i64::try_from(number) {
        Ok(number) => write!(out, "{number}"),
        Err(_) => write!(out, "{number}"),
    };
}

/// Writes a float in the fewest digits that identify it, as PostgreSQL does: with an exponent below
/// 1e-4 and from 1e15 on.
pub(super) fn floating(number: f64, shortest: impl Fn(bool) -> String, out: &mut Vec<u8>) {
    if number.is_nan() {
        return out.extend_from_slice(b"NaN");
    }
    if number.is_infinite() {
        return out.extend_from_slice(if number > 0.0 { b"Infinity" } else { b"-Infinity" });
    }
    let size = number.abs();
    if size == 0.0 || (1e-4..1e15).contains(&size) {
        return out.extend_from_slice(shortest(false).as_bytes());
    }
    let written = shortest(true);
    let Some((digits, exponent)) = written.split_once('e') else {
        return out.extend_from_slice(written.as_bytes());
    };
    out.extend_from_slice(digits.as_bytes());
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    let _ = write!(out, "e{sign}{exponent:0>2}");
}

/// Writes the digits of an integer, with a point before the last `scale` of them.
pub(super) fn pointed(digits: &str, scale: i8, out: &mut Vec<u8>) {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    out.extend_from_slice(sign.as_bytes());
    if scale <= 0 {
        out.extend_from_slice(digits.as_bytes());
        if digits != "0" {
            out.resize(out.len() + usize::from(scale.unsigned_abs()), b'0');
        }
        return;
    }
    let scale = scale as usize;
    match digits.len().checked_sub(scale) {
        Some(whole) if whole > 0 => {
            out.extend_from_slice(&digits.as_bytes()[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits.as_bytes()[whole..]);
        }
        _ => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits.as_bytes());
        }
    }
}

/// Converts a number that `pointed` wrote to PostgreSQL's binary form: digits to the base 10,000.
pub(super) fn numeric(written: &str, out: &mut Vec<u8>) {
    let (is_negative, written) = match written.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written),
    };
    let (whole, part) = written.split_once('.').unwrap_or((written, ""));
    let whole = whole.trim_start_matches('0');
    let mut groups: Vec<u16> = Vec::with_capacity(whole.len() / 4 + part.len() / 4 + 2);
    let first = whole.len() % 4;
    let number = |digits: &str, width: usize| -> u16 {
        let padded = digits.bytes().chain(std::iter::repeat(b'0')).take(width);
        padded.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'))
    };
    if first > 0 {
        groups.push(number(&whole[..first], first));
    }
    let mut at = first;
    while at < whole.len() {
        groups.push(number(&whole[at..at + 4], 4));
        at += 4;
    }
    // The number of groups before the point.
    let before = groups.len() as i16;
    let mut at = 0;
    while at < part.len() {
        groups.push(number(&part[at..part.len().min(at + 4)], 4));
        at += 4;
    }
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let weight = if groups.is_empty() { 0 } else { before - 1 - leading as i16 };
    let sign: u16 = if is_negative && !groups.is_empty() { 0x4000 } else { 0 };
    out.extend((groups.len() as u16).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend((part.len() as u16).to_be_bytes());
    groups.iter().for_each(|group| out.extend(group.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::decimal_of_numeric;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats_are_written_like_postgres() {
        let float = |number: f64| {
            let shortest =
                |exponent| if exponent { format!("{number:e}") } else { format!("{number}") };
            text(|out| floating(number, shortest, out))
        };
        let written = [1.5, 1e15, 1e-5, -2.5e-7, 1e300, 0.0001, 100.0, f64::NAN, -f64::INFINITY];
        let shown = written.map(float).join(" ");
        assert_eq!(shown, "1.5 1e+15 1e-05 -2.5e-07 1e+300 0.0001 100 NaN -Infinity");
    }

    #[test]
    fn decimals_have_their_point() {
        let decimal = |digits: &str, scale| text(|out| pointed(digits, scale, out));
        assert_eq!(decimal("12345", 2), "123.45");
        assert_eq!(decimal("-5", 3), "-0.005");
        assert_eq!(decimal("0", 2), "0.00");
        assert_eq!(decimal("7", -2), "700");
        assert_eq!(decimal("123", 3), "0.123");
    }

    proptest::proptest! {
        #[test]
        fn binary_decimals_survive_a_round_trip(number: i128, scale in 0_i8..39) {
            let number = number / 10;
            let written = text(|out| pointed(&number.to_string(), scale, out));
            let mut binary = Vec::new();
            numeric(&written, &mut binary);
            proptest::prop_assert_eq!(decimal_of_numeric(&binary), Some(written));
        }
    }
}
