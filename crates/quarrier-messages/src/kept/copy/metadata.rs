//! The objects that are not bytes of the log: the tables, and the publishers of removed segments.

use crate::kept::catalog::{Catalog, DEFINITIONS};
use crate::kept::retained::Retained;
use crate::log::disk::Disk;
use crate::log::{Publication, Publishers};

const MAGIC: &[u8; 8] = b"QUARRTAB";
const PUBLISHERS_MAGIC: &[u8; 8] = b"QUARRPUB";
/// Maximum length of such an object in bytes.
pub(super) const METADATA_BYTES_MAX: u64 = 256 << 20;

/// The tables of a data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tables {
    pub(super) names: Catalog,
    pub(super) definitions: Catalog,
    pub(super) retained: Retained,
}

impl Tables {
    /// Reads them from a data folder. All messages that were durable before have their table in them.
    pub(super) fn read(disk: &dyn Disk) -> crate::log::Result<Tables> {
        // A declaration is written before the name, and is in the file when the name is.
        let names = Catalog::read(disk)?;
        let definitions = Catalog::read_from(disk, DEFINITIONS)?;
        Ok(Tables { names, definitions, retained: Retained::read(disk)? })
    }

    /// Writes them to a data folder.
    pub(super) fn write(&self, disk: &dyn Disk) -> crate::log::Result<()> {
        self.retained.write(disk)?;
        self.definitions.write_to(disk, DEFINITIONS)?;
        self.names.write(disk)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for part in [&self.names, &self.definitions, &self.retained.to_catalog()] {
            let part = part.to_bytes();
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&part);
        }
        bytes
    }

    /// Decodes them; None if they are invalid.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Tables> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let mut next = || {
            let (length, after) = rest.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let part = Catalog::of_bytes(after.get(..length)?)?;
            rest = &after[length..];
            Some(part)
        };
        let (names, definitions, retained) = (next()?, next()?, next()?);
        let retained = Retained::of_catalog(&retained);
        rest.is_empty().then_some(Tables { names, definitions, retained })
    }
}

/// Encodes the last publications.
pub(super) fn publishers_to_bytes(publishers: &Publishers) -> Vec<u8> {
    let mut all: Vec<(Publication, u64)> = publishers.noted().collect();
    all.sort_unstable_by_key(|(publication, mark)| (*mark, publication.publisher));
    let mut bytes = PUBLISHERS_MAGIC.to_vec();
    for (publication, mark) in all {
        let Publication { publisher, sequence, source_offset } = publication;
        for number in [publisher, sequence, source_offset, mark] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    bytes
}

/// Decodes them, with the marks of their first messages; None if they are invalid.
pub(super) fn publishers_of_bytes(bytes: &[u8]) -> Option<Vec<(Publication, u64)>> {
    let (all, rest) = bytes.strip_prefix(PUBLISHERS_MAGIC)?.as_chunks::<32>();
    let one = |bytes: &[u8; 32]| {
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| u64::from_le_bytes(numbers[at]);
        let publication =
            Publication { publisher: number(0), sequence: number(1), source_offset: number(2) };
        (publication, number(3))
    };
    rest.is_empty().then(|| all.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_publishers_are_read_as_written_and_no_shorter() {
        let (names, _) = Catalog::default().with("t", 0).unwrap();
        let definitions = Catalog::of_texts([(1, "integer - n\n".to_string())]);
        let mut retained = Retained::default();
        retained.removed = 7;
        retained.set(1, crate::kept::retained::Bounds { from: 9, ..Default::default() });
        let tables = Tables { names, definitions, retained };
        let bytes = tables.to_bytes();
        assert_eq!(Tables::of_bytes(&bytes), Some(tables));
        let mut publishers = Publishers::default();
        for publisher in 0..5 {
            let publication = Publication { publisher, sequence: 3, source_offset: 9 };
            publishers.note(publication, 100 - publisher);
        }
        let listed = publishers_to_bytes(&publishers);
        let read = publishers_of_bytes(&listed).unwrap();
        assert!(read.iter().all(|(publication, mark)| publication.publisher + mark == 100));
        assert_eq!(read.len(), 5);
        for at in 0..bytes.len() {
            assert_eq!(Tables::of_bytes(&bytes[..at]), None);
        }
        assert_eq!(publishers_of_bytes(&listed[..listed.len() - 1]), None);
    }
}
