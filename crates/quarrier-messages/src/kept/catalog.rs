//! The tables of a data folder: their names and numbers.
//!
//! ```text
//!  0  8  "QUARRCAT"      16  4  tables
//!   8  4  version, 1      20     for each: its number, 4 bytes; bytes of its name, 4; the name
//!  12  4  bytes in all           CRC-64/NVME of everything before, 8 bytes
//! ```
//!
//! The file holds two copies, each aligned to 4,096 bytes, so that one damaged block loses no name. It is
//! replaced as a whole: a new file is written, synced and renamed, then the folder is synced. If both copies
//! are damaged, tables are called by their numbers.

use std::io;

use crc_fast::{CrcAlgorithm, checksum};
use quarrier_core::region::AlignedBuffer;

use crate::log::disk::{Access, Disk, DiskFile};
use crate::log::{Error, Result};

/// The file with the names of the tables.
pub(super) const NAME: &str = "catalog";
/// The file with the declarations of the tables: a catalog with declarations in place of names.
pub(super) const DEFINITIONS: &str = "definitions";
const MAGIC: &[u8; 8] = b"QUARRCAT";
const VERSION: u32 = 1;
const BLOCK_BYTES: usize = 4096;
/// Maximum length of a name in bytes.
pub(super) const NAME_BYTES_MAX: usize = 255;
/// Maximum number of tables.
const TABLES_MAX: usize = 1 << 16;
const BYTES_MAX: usize = 64 << 20;

/// Maps the numbers of tables to their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Catalog {
    tables: Vec<(u32, String)>,
    /// Whether a copy is damaged.
    pub(super) is_damaged: bool,
}

impl Catalog {
    /// Returns the number of a table.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.tables.iter().find(|(_, known)| known == name).map(|(number, _)| *number)
    }

    /// Returns the name of the table with this number; if it has none, a name made from the number.
    pub(super) fn name(&self, number: u32) -> String {
        let known = self.tables.iter().find(|(known, _)| *known == number);
        known.map_or_else(|| format!("table{number}"), |(_, name)| name.clone())
    }

    /// Returns all numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.tables.iter().map(|(number, _)| *number)
    }

    /// Returns the catalog with another table, whose number is greater than all others and `used`.
    pub(super) fn with(&self, name: &str, used: u32) -> Option<(Catalog, u32)> {
        let last = self.numbers().max().unwrap_or(0).max(used);
        let number = last.checked_add(1).filter(|_| self.tables.len() < TABLES_MAX)?;
        let mut tables = self.tables.clone();
        tables.push((number, name.to_string()));
        Some((Catalog { tables, is_damaged: false }, number))
    }

    /// Returns the string (name or declaration) of the table with this number.
    pub(super) fn text(&self, number: u32) -> Option<&str> {
        self.tables.iter().find(|(known, _)| *known == number).map(|(_, text)| text.as_str())
    }

    /// Returns the catalog with another string for a table, or without one; None if the catalog would be too
    /// long.
    pub(super) fn with_text(&self, number: u32, text: Option<String>) -> Option<Catalog> {
        let mut tables = self.tables.clone();
        tables.retain(|(known, _)| *known != number);
        tables.extend(text.map(|text| (number, text)));
        let bytes: usize = tables.iter().map(|(_, text)| 8 + text.len()).sum();
        (bytes < BYTES_MAX / 2).then_some(Catalog { tables, is_damaged: false })
    }

    /// Makes a catalog of these strings.
    pub(super) fn of_texts(tables: impl IntoIterator<Item = (u32, String)>) -> Catalog {
        Catalog { tables: tables.into_iter().collect(), is_damaged: false }
    }

    /// Reads the catalog of a folder; empty if it has none.
    ///
    /// # Errors
    /// [`Error::Io`] if the file exists and cannot be opened.
    pub(super) fn read(disk: &dyn Disk) -> Result<Catalog> {
        Catalog::read_from(disk, NAME)
    }

    /// Like [`read`](Self::read), from a file with this name.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn read_from(disk: &dyn Disk, name: &str) -> Result<Catalog> {
        let fail = |what, error| Error::io(disk.path(name), what, error);
        let file = match disk.open(name, Access::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Catalog::default()),
            opened => opened.map_err(|error| fail("open it", error))?,
        };
        let length = file.length().map_err(|error| fail("read its length", error))?;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(BYTES_MAX).min(2 * BYTES_MAX)];
        let mut filled = 0;
        while filled < bytes.len() {
            // Unreadable bytes count as damaged.
            match file.read_at(filled as u64, &mut bytes[filled..]) {
                Ok(0) | Err(_) => break,
                Ok(count) => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok(Catalog::of(&bytes))
    }

    /// Decodes a copy made by [`to_bytes`](Self::to_bytes); None if it is damaged.
    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Catalog> {
        tables(bytes).map(Catalog::of_texts)
    }

    /// Decodes the first intact copy.
    fn of(bytes: &[u8]) -> Catalog {
        let mut whole = None;
        let mut copies = 0;
        for copy in bytes.chunks(BLOCK_BYTES).enumerate().map(|(at, _)| &bytes[at * BLOCK_BYTES..])
        {
            if let Some(tables) = tables(copy) {
                copies += 1;
                whole.get_or_insert(tables);
            }
        }
        Catalog { tables: whole.unwrap_or_default(), is_damaged: copies != 2 }
    }

    /// Replaces the catalog on the disk.
    pub(super) fn write(&self, disk: &dyn Disk) -> Result<()> {
        self.write_to(disk, NAME)
    }

    /// Like [`write`](Self::write), to a file with this name.
    pub(super) fn write_to(&self, disk: &dyn Disk, name: &str) -> Result<()> {
        let (path, new) = (disk.path(name), format!("{name}.new"));
        let fail = |what: &str, error: io::Error| match crate::log::is_full(&error) {
            true => Error::Full { path: path.clone(), error: error.into() },
            false => Error::io(&path, what, error),
        };
        let copy = self.to_bytes();
        let bytes = copy.len().next_multiple_of(BLOCK_BYTES);
        let mut both = AlignedBuffer::new(2 * bytes);
        both.fill(0);
        both[..copy.len()].copy_from_slice(&copy);
        both[bytes..bytes + copy.len()].copy_from_slice(&copy);
        let file = disk.create(&new, 2 * bytes as u64).map_err(|error| fail("write it", error))?;
        write_all(file.as_ref(), &both[..2 * bytes]).map_err(|error| fail("write it", error))?;
        file.sync().map_err(|error| fail("sync it", error))?;
        disk.rename(&new, name).map_err(|error| fail("replace it", error))?;
        disk.sync_folder().map_err(|error| fail("sync its folder", error))
    }

    /// Encodes one copy.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let names: usize = self.tables.iter().map(|(_, name)| 8 + name.len()).sum();
        for number in [VERSION, (28 + names) as u32, self.tables.len() as u32] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for (number, name) in &self.tables {
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        let sum = checksum(CrcAlgorithm::Crc64Nvme, &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }
}

fn write_all(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    let mut at = 0;
    while at < bytes.len() {
        match file.write_at(at as u64, &bytes[at..])? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => at += count,
        }
    }
    Ok(())
}

/// Decodes the tables of a copy; None if it is damaged.
fn tables(bytes: &[u8]) -> Option<Vec<(u32, String)>> {
    let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    if !bytes.starts_with(MAGIC) || u32_at(8)? != VERSION {
        return None;
    }
    let length = u32_at(12)? as usize;
    let end = length.checked_sub(8).filter(|end| *end >= 20)?;
    let sum = u64::from_le_bytes(*bytes.get(end..)?.first_chunk()?);
    if sum != checksum(CrcAlgorithm::Crc64Nvme, bytes.get(..end)?) {
        return None;
    }
    let count = u32_at(16)? as usize;
    let (mut at, mut tables) = (20, Vec::new());
    for _ in 0..count.min(TABLES_MAX) {
        let (number, name_bytes) = (u32_at(at)?, u32_at(at + 4)? as usize);
        let name = bytes.get(at + 8..(at + 8).checked_add(name_bytes)?)?;
        tables.push((number, std::str::from_utf8(name).ok()?.to_string()));
        at += 8 + name_bytes;
    }
    (at == end).then_some(tables)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let (catalog, orders) = Catalog::default().with("orders", 0).unwrap();
        let (catalog, fills) = catalog.with("fills é", 7).unwrap();
        assert_eq!((orders, fills), (1, 8));
        catalog
    }

    fn both(catalog: &Catalog) -> Vec<u8> {
        let mut bytes = catalog.to_bytes();
        bytes.resize(BLOCK_BYTES, 0);
        bytes.repeat(2)
    }

    #[test]
    fn a_catalog_survives_a_round_trip() {
        assert_eq!(Catalog::of(&both(&catalog())), catalog());
        assert_eq!(catalog().number("fills é"), Some(8));
        assert_eq!((catalog().name(8), catalog().name(9)), ("fills é".into(), "table9".into()));
    }

    #[test]
    fn a_flipped_byte_and_a_cut_file_lose_no_name() {
        let whole = both(&catalog());
        let used = catalog().to_bytes().len();
        for at in (0..used).chain(BLOCK_BYTES..BLOCK_BYTES + used) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            let read = Catalog::of(&damaged);
            assert!(read.is_damaged && read.tables == catalog().tables, "byte {at}");
        }
        for length in used..whole.len() {
            assert_eq!(Catalog::of(&whole[..length]).tables, catalog().tables, "{length} bytes");
        }
        assert!(Catalog::of(&whole[..used - 1]).is_damaged);
    }
}
