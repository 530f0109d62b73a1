//! The metadata of a VHDX disk.

use quarrier_core::Result;
use quarrier_core::source::Source;

use super::{KIB, MIB, id_at};
use crate::bytes::{u16_le, u32_le, u64_le, utf16};
use crate::fault::{damaged, refused, structure};

const TABLE_BYTES: u64 = 64 * KIB;
const ITEMS_MAX: usize = 2047;
/// The maximum by the specification.
const LENGTH_MAX: u64 = 64 << 40;
const LOCATOR_BYTES_MAX: u64 = MIB;

const PARAMETERS: [u8; 16] = [
    0x37, 0x67, 0xA1, 0xCA, 0x36, 0xFA, 0x43, 0x4D, 0xB3, 0xB6, 0x33, 0xF0, 0xAA, 0x44, 0xE7, 0x6B,
];
const LENGTH: [u8; 16] = [
    0x24, 0x42, 0xA5, 0x2F, 0x1B, 0xCD, 0x76, 0x48, 0xB2, 0x11, 0x5D, 0xBE, 0xD8, 0x3B, 0xF4, 0xB8,
];
const SECTOR: [u8; 16] = [
    0x1D, 0xBF, 0x41, 0x81, 0x6F, 0xA9, 0x09, 0x47, 0xBA, 0x47, 0xF2, 0x33, 0xA8, 0xFA, 0xAB, 0x5F,
];
const PHYSICAL_SECTOR: [u8; 16] = [
    0xC7, 0x48, 0xA3, 0xCD, 0x5D, 0x44, 0x71, 0x44, 0x9C, 0xC9, 0xE9, 0x88, 0x52, 0x51, 0xC5, 0x56,
];
const DISK_ID: [u8; 16] = [
    0xAB, 0x12, 0xCA, 0xBE, 0xE6, 0xB2, 0x23, 0x45, 0x93, 0xEF, 0xC3, 0x09, 0xE0, 0x00, 0xC7, 0x46,
];
const PARENT: [u8; 16] = [
    0x2D, 0x5F, 0xD3, 0xA8, 0x0B, 0xB3, 0x4D, 0x45, 0xAB, 0xF7, 0xD3, 0xD8, 0x48, 0x34, 0xAB, 0x0C,
];

#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) block_bytes: u64,
    pub(super) sector_bytes: u64,
    pub(super) length: u64,
    pub(super) has_parent: bool,
    /// Possible locations of the parent, the most likely first.
    pub(super) parent_names: Vec<String>,
    /// The identifiers of the parent's contents (data write GUIDs), without braces, in lower case.
    pub(super) parent_ids: Vec<String>,
}

impl Metadata {
    pub(super) fn read(file: &dyn Source, at: u64, bytes: u64) -> Result<Metadata> {
        let table = structure(file, at, TABLE_BYTES.min(bytes), "the metadata table")?;
        if !table.starts_with(b"metadata") || table.len() < 64 {
            return Err(damaged(file, at, "the metadata table is missing"));
        }
        let (mut parameters, mut length, mut sector, mut locator) = (None, None, None, None);
        let count = usize::from(u16_le(&table, 10)).min(ITEMS_MAX);
        for entry in table[32..].chunks_exact(32).take(count) {
            let (item_at, item_bytes) =
                (u64::from(u32_le(entry, 16)), u64::from(u32_le(entry, 20)));
            if item_at + item_bytes > bytes {
                return Err(damaged(file, at, "metadata lies beyond its region"));
            }
            let item = |most: u64| structure(file, at + item_at, item_bytes.min(most), "metadata");
            match id_at(entry, 0) {
                PARAMETERS => parameters = Some(item(8)?),
                LENGTH => length = Some(u64_le(&item(8)?, 0)),
                SECTOR => sector = Some(u64::from(u32_le(&item(4)?, 0))),
                PARENT => locator = Some(item(LOCATOR_BYTES_MAX)?),
                PHYSICAL_SECTOR | DISK_ID => {}
                _ if u32_le(entry, 24) & 4 != 0 => {
                    return Err(refused(file, "has unknown metadata; convert it to raw"));
                }
                _ => {}
            }
        }
        let (Some(parameters), Some(length), Some(sector_bytes)) = (parameters, length, sector)
        else {
            return Err(damaged(file, at, "metadata that every image has is missing"));
        };
        let block_bytes = u64::from(u32_le(&parameters, 0));
        let is_block = block_bytes.is_power_of_two() && (MIB..=256 * MIB).contains(&block_bytes);
        if !is_block || !matches!(sector_bytes, 512 | 4096) || length > LENGTH_MAX {
            return Err(damaged(file, at, "the metadata has impossible values"));
        }
        let has_parent = u32_le(&parameters, 4) & 2 != 0;
        let mut found = Metadata {
            block_bytes,
            sector_bytes,
            length,
            has_parent,
            parent_names: Vec::new(),
            parent_ids: Vec::new(),
        };
        found.add_parent(&locator.unwrap_or_default());
        Ok(found)
    }

    /// Reads the parent locator.
    fn add_parent(&mut self, locator: &[u8]) {
        let text = |at: u32, bytes: u16| {
            let at = at as usize;
            utf16(locator.get(at..at.saturating_add(bytes.into())).unwrap_or_default(), u16_le)
        };
        let entries = locator.get(20..).unwrap_or_default().chunks_exact(12);
        let count = usize::from(u16_le(locator, 18)).min(64);
        let mut names: Vec<(String, String)> = Vec::new();
        for entry in entries.take(count) {
            let key = text(u32_le(entry, 0), u16_le(entry, 8));
            let value = text(u32_le(entry, 4), u16_le(entry, 10));
            match key.as_str() {
                "parent_linkage" | "parent_linkage2" => {
                    let id = value.trim_matches(['{', '}']).to_ascii_lowercase();
                    self.parent_ids.push(id);
                }
                "relative_path" | "volume_path" | "absolute_win32_path" => names.push((key, value)),
                _ => {}
            }
        }
        names.sort_by_key(|(key, _)| key != "relative_path");
        self.parent_names = names.into_iter().map(|(_, name)| name).collect();
    }
}
