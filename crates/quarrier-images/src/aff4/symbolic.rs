//! Streams defined by name alone, without data: repeated bytes, and ranges that the drive could not
//! read during acquisition.

use std::io;

use quarrier_core::source::Source;

use super::graph::SCHEMA;
use crate::fault::invalid;

/// A symbolic stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symbolic {
    /// Zeros.
    Zeros,
    /// Never acquired.
    Unknown,
    /// The drive could not read it.
    Unreadable,
    /// This byte, repeated.
    Filled(u8),
}

impl Symbolic {
    /// The symbolic stream with this name.
    pub(super) fn of(urn: &str) -> Option<Symbolic> {
        match urn.strip_prefix(SCHEMA)? {
            "Zero" => Some(Symbolic::Zeros),
            "UnknownData" => Some(Symbolic::Unknown),
            "UnreadableData" => Some(Symbolic::Unreadable),
            name => match name.strip_prefix("SymbolicStream")? {
                "00" => Some(Symbolic::Zeros),
                // `from_str_radix` would accept a sign.
                byte if byte.len() == 2 && !byte.starts_with('+') => {
                    u8::from_str_radix(byte, 16).ok().map(Symbolic::Filled)
                }
                _ => None,
            },
        }
    }
}

/// A source of one repeated byte.
pub(super) struct Filled {
    pub(super) byte: u8,
}

impl Source for Filled {
    fn name(&self) -> &str {
        "a byte that repeats"
    }

    fn length(&self) -> u64 {
        i64::MAX as u64
    }

    fn read_at(&self, _: u64, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(self.byte);
        Ok(buffer.len())
    }

    fn is_resident(&self) -> bool {
        true
    }
}

/// A source whose bytes cannot be read.
pub(super) struct Unreadable;

impl Source for Unreadable {
    fn name(&self) -> &str {
        "bytes that the drive could not read"
    }

    fn length(&self) -> u64 {
        i64::MAX as u64
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
        Err(invalid("the drive could not read it when the image was made"))
    }

    fn is_resident(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbolic_streams_are_known_by_their_names() {
        let of = |name: &str| Symbolic::of(&format!("{SCHEMA}{name}"));
        assert_eq!(of("Zero"), Some(Symbolic::Zeros));
        assert_eq!(of("SymbolicStream00"), Some(Symbolic::Zeros));
        assert_eq!(of("SymbolicStreamfF"), Some(Symbolic::Filled(0xFF)));
        for name in ["SymbolicStream", "SymbolicStream1", "SymbolicStream+1", "SymbolicStreamXX"] {
            assert_eq!(of(name), None, "{name}");
        }
        assert_eq!(Symbolic::of("aff4://Zero"), None);
    }
}
