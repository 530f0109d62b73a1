//! Numbers with check digits.

use super::Seen;

fn digits(found: &[u8]) -> Vec<u32> {
    let digits = found.iter().filter(|byte| byte.is_ascii_digit());
    digits.map(|byte| u32::from(byte - b'0')).collect()
}

pub(super) fn card(seen: &Seen<'_>) -> Option<usize> {
    let digits = digits(seen.found);
    let start = |count: usize| digits[..count].iter().fold(0, |number, digit| number * 10 + digit);
    if !(13..=19).contains(&digits.len()) || digits.iter().all(|digit| *digit == digits[0]) {
        return None;
    }
    // The lengths of an issuer's numbers.
    let is_issued = matches!(
        (start(4), digits.len()),
        (4000..=4999, 13 | 16 | 19)
            | (2221..=2720 | 5100..=5599 | 3528..=3589 | 6011 | 6440..=6599, 16)
            | (3400..=3499 | 3700..=3799, 15)
            | (3000..=3059 | 3600..=3699 | 3800..=3999, 14)
            | (6200..=6299, 16..=19)
            | (5018 | 5020 | 5038 | 6304 | 6759 | 6761..=6763, 13..=19)
    );
    // Luhn: every second digit from the right counts twice.
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match place % 2 {
            0 => *digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| b".-_,".contains(byte));
    let goes_on = match seen.after {
        [b'.' | b',' | b'-', next, ..] => next.is_ascii_digit(),
        _ => false,
    };
    let is_whole = !is_part(seen.before.last()) && !goes_on;
    (is_issued && sum.is_multiple_of(10) && is_whole).then_some(seen.found.len())
}

/// Countries with the length of their account numbers.
const LENGTHS: &str = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 \
    DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 \
    IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 \
    MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 \
    SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30";

pub(super) fn iban(seen: &Seen<'_>) -> Option<usize> {
    let country = seen.found.get(..2)?;
    let length = LENGTHS.split(' ').find_map(|entry| {
        let (of, length) = entry.split_at_checked(2)?;
        (of.as_bytes() == country).then(|| length.parse::<usize>().ok())?
    })?;
    // The match may extend into the next word.
    let places = seen.found.iter().enumerate().filter(|(_, byte)| **byte != b' ');
    let whole: Vec<(usize, u8)> = places.map(|(place, byte)| (place, *byte)).take(length).collect();
    let end = whole.last().filter(|_| whole.len() == length).map(|(place, _)| place + 1)?;
    let next = seen.found.get(end).or(seen.after.first());
    if next.is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    // ISO 7064: the first four characters move to the end, and letters count as 10 to 35.
    let (head, tail) = whole.split_at(4);
    let rest = tail.iter().chain(head).try_fold(0u32, |rest, (_, byte)| {
        let value = char::from(*byte).to_digit(36)?;
        let shift = if value < 10 { 10 } else { 100 };
        Some((rest * shift + value) % 97)
    });
    (rest == Some(1)).then_some(end)
}

pub(super) fn phone(seen: &Seen<'_>) -> Option<usize> {
    let is_part = seen.before.last().is_some_and(u8::is_ascii_alphanumeric);
    let count = |byte: u8| seen.found.iter().filter(|&&b| b == byte).count();
    let is_written = count(b'(') == count(b')')
        && !seen.found.windows(2).any(|two| two.iter().all(|byte| b" .-".contains(byte)));
    let is_long = (8..=15).contains(&digits(seen.found).len());
    (!is_part && is_written && is_long).then_some(seen.found.len())
}
