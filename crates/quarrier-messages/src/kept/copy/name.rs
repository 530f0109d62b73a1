//! The names of objects.

use std::fmt;

/// The folder of an object, with what its name says. Numbers have 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// A complete segment: its first mark, that of the next segment, and its salt.
    Segment { first: u64, next: u64, salt: u64, sum: u64 },
    /// A part of the last segment: the segment by mark and salt, and the place of the bytes in it.
    Part { first: u64, salt: u64, start: u64, end: u64, sum: u64 },
    /// The tables; the greatest number counts.
    Tables { number: u64, sum: u64 },
    /// The publishers; the greatest number counts.
    Publishers { number: u64, sum: u64 },
}

pub(super) const SEGMENTS: &str = "log";
pub(super) const PARTS: &str = "tail";
pub(super) const TABLES: &str = "tables";
pub(super) const PUBLISHERS: &str = "publishers";

/// The extension of segments, as on disk.
const ENDING: &str = ".qlog";

impl Name {
    /// Parses the name of an object in a folder; None for any other name, of which nothing is used.
    pub(super) fn of(folder: &str, text: &str) -> Option<Name> {
        let text = match folder {
            SEGMENTS => text.strip_suffix(ENDING)?,
            _ => text,
        };
        let mut numbers = text.split('-').map(number);
        let mut next = || numbers.next().flatten();
        let name = match folder {
            SEGMENTS => {
                Name::Segment { first: next()?, next: next()?, salt: next()?, sum: next()? }
            }
            PARTS => {
                let (first, salt) = (next()?, next()?);
                Name::Part { first, salt, start: next()?, end: next()?, sum: next()? }
            }
            TABLES => Name::Tables { number: next()?, sum: next()? },
            PUBLISHERS => Name::Publishers { number: next()?, sum: next()? },
            _ => return None,
        };
        numbers.next().is_none().then_some(name)
    }

    /// Returns the checksum of the object's bytes.
    pub(super) fn sum(&self) -> u64 {
        match self {
            Name::Segment { sum, .. }
            | Name::Part { sum, .. }
            | Name::Tables { sum, .. }
            | Name::Publishers { sum, .. } => *sum,
        }
    }
}

fn number(digits: &str) -> Option<u64> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_number = digits.len() == 16 && digits.bytes().all(is_hex);
    u64::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Segment { first, next, salt, sum } => {
                write!(f, "{SEGMENTS}/{first:016x}-{next:016x}-{salt:016x}-{sum:016x}{ENDING}")
            }
            Name::Part { first, salt, start, end, sum } => {
                write!(f, "{PARTS}/{first:016x}-{salt:016x}-{start:016x}-{end:016x}-{sum:016x}")
            }
            Name::Tables { number, sum } => write!(f, "{TABLES}/{number:016x}-{sum:016x}"),
            Name::Publishers { number, sum } => write!(f, "{PUBLISHERS}/{number:016x}-{sum:016x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written_and_nothing_else_is() {
        let all = [
            Name::Segment { first: 1, next: 0x1f, salt: u64::MAX, sum: 7 },
            Name::Part { first: 9, salt: 8, start: 0, end: 4096, sum: u64::MAX },
            Name::Tables { number: 3, sum: 4 },
            Name::Publishers { number: 5, sum: 6 },
        ];
        for name in all {
            let text = name.to_string();
            let (folder, rest) = text.split_once('/').unwrap();
            assert_eq!(Name::of(folder, rest), Some(name), "{text}");
            let wrongs = [
                format!("../{rest}"),
                format!("{rest}/.."),
                format!("{rest}-0000000000000001"),
                rest.to_uppercase(),
                rest.replacen('0', "+", 1),
                rest[1..].to_string(),
                String::new(),
            ];
            // Without letters, capitals change nothing.
            for wrong in wrongs.iter().filter(|wrong| *wrong != rest) {
                assert_eq!(Name::of(folder, wrong), None, "{wrong}");
            }
            assert_eq!(Name::of("other", rest), None);
        }
    }
}
