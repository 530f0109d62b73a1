//! A directory record.

use quarrier_core::name;

use super::short_time;
use crate::entry::Times;
use crate::part::u32_at;
use crate::walk::name_of_units;

const HEAD_BYTES: usize = 33;
const FOLDER: u8 = 2;
const GOES_ON: u8 = 0x80;

/// Which set of names to use.
pub(super) enum Names {
    /// The record's own name, with a version suffix.
    Plain,
    /// The record's own name, in UTF-16.
    Joliet,
    /// The Rock Ridge name in the system use area.
    RockRidge {
        /// Bytes to skip before the first entry.
        skip: usize,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Record {
    /// The offset of the record in the volume.
    pub(super) at: u64,
    pub(super) block: u32,
    pub(super) size: u64,
    pub(super) times: Times,
    flags: u8,
    name_bytes: usize,
}

impl Record {
    pub(super) fn read(bytes: &[u8], at: u64) -> Option<Self> {
        let name_bytes = usize::from(*bytes.get(HEAD_BYTES - 1)?);
        bytes.get(HEAD_BYTES..HEAD_BYTES + name_bytes)?;
        Some(Record {
            at,
            // Extended attributes precede the content of a file.
            block: u32_at(bytes, 2).saturating_add(bytes[1].into()),
            size: u32_at(bytes, 10).into(),
            times: Times::only(short_time(&bytes[18..25])),
            flags: bytes[25],
            name_bytes,
        })
    }

    pub(super) fn is_folder(&self) -> bool {
        self.flags & FOLDER != 0
    }

    pub(super) fn goes_on(&self) -> bool {
        self.flags & GOES_ON != 0
    }

    /// Whether the record is the folder itself or its parent.
    pub(super) fn is_dots(&self, bytes: &[u8]) -> bool {
        self.name_bytes == 1 && matches!(bytes[HEAD_BYTES], 0 | 1)
    }

    /// The system use area after the name.
    pub(super) fn extra<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let end = (HEAD_BYTES + self.name_bytes).next_multiple_of(2);
        bytes.get(end..).unwrap_or_default()
    }

    pub(super) fn name(&self, bytes: &[u8], names: &Names) -> String {
        let name = &bytes[HEAD_BYTES..HEAD_BYTES + self.name_bytes];
        let name = match names {
            Names::Joliet => {
                let units = name.chunks_exact(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
                name_of_units(units)
            }
            Names::Plain | Names::RockRidge { .. } => name::of_bytes(name),
        };
        if self.is_folder() {
            return name;
        }
        let name = name.rsplit_once(';').map_or(&*name, |(name, _)| name);
        match names {
            Names::Joliet => name.to_string(),
            _ => name.strip_suffix('.').unwrap_or(name).to_string(),
        }
    }
}
