//! Records of the catalog: folders and files.

use super::tree::Record;
use super::volume::{Fork, name_units};
use crate::decmpfs::PACKED;
use crate::entry::{Access, Kind, Times};
use crate::part::{be16, be32};
use crate::walk::name_of_units;

const FOLDER: u16 = 1;
const FILE: u16 = 2;
const FOLDER_BYTES: usize = 88;
const FILE_BYTES: usize = 248;
/// Seconds between 1904 and 1970.
const EPOCH_SECONDS: i64 = 2_082_844_800;

/// A name in a folder.
pub(super) struct Named {
    pub(super) parent: u32,
    pub(super) name: String,
    pub(super) item: Item,
}

/// A folder or file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) id: u32,
    pub(super) is_folder: bool,
    pub(super) times: Times,
    mode: u16,
    user: u32,
    group: u32,
    /// The number of a hard link's target.
    number: u32,
    link: Option<LinkKind>,
    /// Whether its bytes are compressed, in an attribute or the resource fork.
    pub(super) is_packed: bool,
    pub(super) data: Fork,
    pub(super) resource: Fork,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkKind {
    File,
    Folder,
}

impl Item {
    pub(super) fn kind(&self) -> Kind {
        match self.mode >> 12 {
            _ if self.is_folder => Kind::Folder,
            // Older systems left the file type zero.
            0 | 8 => Kind::File,
            10 => Kind::Link,
            _ => Kind::Other,
        }
    }

    pub(super) fn access(&self) -> Access {
        // Older systems left it zero.
        let mode = Some(self.mode).filter(|mode| *mode != 0);
        Access { mode, user: self.user, group: self.group }
    }

    /// The size of its record's value.
    pub(super) fn record_bytes(&self) -> usize {
        if self.is_folder { FOLDER_BYTES } else { FILE_BYTES }
    }

    /// Whether the file type in its mode is one of a folder or file.
    pub(super) fn has_type(&self) -> bool {
        match self.mode >> 12 {
            kind if self.is_folder => matches!(kind, 0 | 4),
            kind => matches!(kind, 0 | 1 | 2 | 6 | 8 | 10 | 12),
        }
    }

    /// The number of the link target, if this is a hard link to a file.
    pub(super) fn linked_file(&self) -> Option<u32> {
        (self.link == Some(LinkKind::File)).then_some(self.number)
    }

    /// The number of the link target, if this is a hard link to a folder.
    pub(super) fn linked_folder(&self) -> Option<u32> {
        (self.link == Some(LinkKind::Folder)).then_some(self.number)
    }
}

/// Parses the folder or file of a record, with its name; `None` for thread records, which only map
/// numbers to names.
///
/// # Errors
/// `()` if the record is damaged.
pub(super) fn named(record: &Record<'_>) -> Result<Option<Named>, ()> {
    let value = record.value;
    let is_folder = match be16(value, 0) {
        FOLDER if value.len() >= FOLDER_BYTES => true,
        FILE if value.len() >= FILE_BYTES => false,
        FOLDER | FILE => return Err(()),
        _ => return Ok(None),
    };
    let units = record.key.get(4..).and_then(name_units).ok_or(())?;
    // HFS+ allows a slash in names; paths show it as a colon.
    let swap = |unit: u16| if unit == u16::from(b'/') { u16::from(b':') } else { unit };
    let time = |at: usize| match be32(value, at) {
        0 => None,
        seconds => (i64::from(seconds) - EPOCH_SECONDS).checked_mul(1_000_000_000),
    };
    let link = match &value[48..56] {
        b"hlnkhfs+" if !is_folder => Some(LinkKind::File),
        b"fdrpMACS" if !is_folder => Some(LinkKind::Folder),
        _ => None,
    };
    let fork = |at: usize| value.get(at..).filter(|_| !is_folder).map(Fork::of).unwrap_or_default();
    Ok(Some(Named {
        parent: be32(record.key, 0),
        name: name_of_units(units.into_iter().map(swap)),
        item: Item {
            id: be32(value, 8),
            is_folder,
            times: Times {
                created: time(12),
                modified: time(16),
                changed: time(20),
                accessed: time(24),
            },
            mode: be16(value, 42),
            user: be32(value, 32),
            group: be32(value, 36),
            number: be32(value, 44),
            link,
            is_packed: !is_folder && value[41] & PACKED != 0,
            data: fork(88),
            resource: fork(168),
        },
    }))
}
