//! The list of files in the header: names, and which of them have no bytes.

use super::fields::{byte, bytes, number};
use super::header::{END, FILES, FILES_MAX, bounded};
use crate::unpack::Failed;

const EMPTY_STREAMS: u8 = 0x0E;
const EMPTY_FILES: u8 = 0x0F;
const REMOVED: u8 = 0x10;
const NAMES: u8 = 0x11;
/// Maximum number of characters of a name to read.
const NAME_MAX: usize = 1024;

/// The files of an archive, as the header describes them.
#[derive(Debug, Default)]
pub(super) struct Files {
    count: usize,
    /// In UTF-16LE, each with a zero at its end.
    names: Vec<u8>,
    /// Files without bytes, a bit each.
    empty: Vec<u8>,
    /// The files among those without bytes, which are otherwise folders, a bit each.
    empty_files: Vec<u8>,
    /// The records of removed files among those without bytes.
    removed: Vec<u8>,
}

/// A file in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: Vec<u8>,
    pub(super) role: Role,
}

/// What a name in the list stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The next file with bytes.
    Bytes,
    Empty,
    /// A folder, or a file that an update removes.
    None,
}

/// Reads the list that begins `fields`, if there is one.
pub(super) fn read(fields: &mut &[u8]) -> Result<Files, Failed> {
    let mut files = Files::default();
    if fields.is_empty() || byte(fields)? != FILES {
        return Ok(files);
    }
    let count = usize::try_from(number(fields)?).unwrap_or(usize::MAX);
    files.count = bounded(count, FILES_MAX)?;
    loop {
        let property = byte(fields)?;
        if property == END {
            return Ok(files);
        }
        let length = number(fields)?;
        let value = bytes(fields, length)?;
        match property {
            EMPTY_STREAMS => files.empty = value.to_vec(),
            EMPTY_FILES => files.empty_files = value.to_vec(),
            REMOVED => files.removed = value.to_vec(),
            // After a byte that is zero if the names are here.
            NAMES => {
                if let Some((0, names)) = value.split_first() {
                    files.names = names.to_vec();
                }
            }
            _ => {}
        }
    }
}

impl Files {
    /// Iterates over the list, in its order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Named> + '_ {
        let mut names = &self.names[..];
        let mut empty = 0;
        (0..self.count).map(move |index| {
            let name = name(&mut names);
            if !is_set(&self.empty, index) {
                return Named { name, role: Role::Bytes };
            }
            let is_file = is_set(&self.empty_files, empty) && !is_set(&self.removed, empty);
            empty += 1;
            Named { name, role: if is_file { Role::Empty } else { Role::None } }
        })
    }
}

/// Returns a bit of a list of bits; the first one is the highest of the first byte.
fn is_set(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte >> (7 - index % 8) & 1 != 0)
}

/// Takes the next name from `names`.
fn name(names: &mut &[u8]) -> Vec<u8> {
    let (units, _) = names.as_chunks::<2>();
    let end = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
    let (name, rest) = (&units[..end], names.get(2 * (end + 1)..).unwrap_or(&[]));
    *names = rest;
    let units = name.iter().take(NAME_MAX).map(|unit| u16::from_le_bytes(*unit));
    let characters = char::decode_utf16(units);
    let text: String = characters.map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(count: u8, properties: &[(u8, &[u8])]) -> Vec<(String, Role)> {
        let mut header = vec![FILES, count];
        for (property, value) in properties {
            header.extend([*property, value.len() as u8]);
            header.extend(*value);
        }
        header.push(END);
        let files = read(&mut &header[..]).unwrap();
        files.iter().map(|one| (String::from_utf8(one.name).unwrap(), one.role)).collect()
    }

    #[test]
    fn names_and_empty_files_are_in_the_order_of_the_list() {
        let names = b"\0a\0\0\0b\0\x61\x01\0\0d\0\0\0e\0\0\0";
        let empty: (u8, &[u8]) = (EMPTY_STREAMS, &[0b0111_0000]);
        let files =
            [empty, (EMPTY_FILES, &[0b1010_0000]), (REMOVED, &[0b0010_0000]), (NAMES, names)];
        let expected = [
            ("a".to_string(), Role::Bytes),
            ("b\u{161}".to_string(), Role::Empty),
            ("d".to_string(), Role::None),
            ("e".to_string(), Role::None),
        ];
        assert_eq!(list(4, &files), expected);
    }

    #[test]
    fn a_list_that_is_cut_off_has_empty_names() {
        assert_eq!(list(2, &[(NAMES, b"\0a\0")])[1], (String::new(), Role::Bytes));
        assert_eq!(list(1, &[(NAMES, b"\x01a\0")]), [(String::new(), Role::Bytes)]);
        assert!(list(0, &[]).is_empty());
        let many = [&[FILES, 0xFF][..], &[0xFF; 8], &[END]].concat();
        assert!(read(&mut &many[..]).is_err());
        assert!(read(&mut &[FILES, 1, NAMES, 9, 0][..]).is_err());
        assert_eq!(read(&mut &[][..]).unwrap().iter().count(), 0);
    }
}
