//! Names, paths, times and targets of links.

use std::collections::HashMap;

use super::attribute::{Attribute, FILE_NAME, STANDARD_INFORMATION};
use super::record::{Record, count_of, number_of};
use crate::entry::{Access, Times};
use crate::part::{u16_at, u32_at, u64_at};
use crate::walk::{joined, name_of_units, name_of_utf16, units};

const ROOT: u64 = 5;
/// The namespace of 8.3 names that accompany a long name.
const DOS: u8 = 2;
/// The Unix epoch in units of 100 ns since 1601.
const TICKS_TO_1970: i64 = 116_444_736_000_000_000;
/// Maximum nesting of folders.
const DEPTH_MAX: usize = 4096;
/// Size limit of a thread's path cache, in bytes.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// The folder of files without a parent, named as in sleuthkit.
const ORPHANS: &str = "/$OrphanFiles";
const LINK: u32 = 0xA000_000C;
const JUNCTION: u32 = 0xA000_0003;

/// A name from a `$FILE_NAME` attribute.
struct Name {
    parent: u64,
    name: String,
}

/// The names of a record, without 8.3 names if there are others.
fn names_of(attributes: &[Attribute<'_>]) -> Vec<Name> {
    let mut names = Vec::new();
    let mut short = None;
    for attribute in attributes.iter().filter(|one| one.kind == FILE_NAME) {
        let Some(bytes) = attribute.resident().filter(|bytes| bytes.len() >= 66) else { continue };
        let count = usize::from(bytes[64]);
        let Some(name) = bytes.get(66..66 + count * 2) else { continue };
        let name = Name { parent: u64_at(bytes, 0), name: name_of_utf16(name) };
        match bytes[65] {
            DOS => short = Some(name),
            _ => names.push(name),
        }
    }
    if names.is_empty() {
        names.extend(short);
    }
    names
}

/// A folder, as its record describes it.
struct Folder {
    count: u16,
    is_in_use: bool,
    parent: u64,
    name: Box<str>,
}

/// All folders, by record number.
#[derive(Default)]
pub(super) struct Folders {
    folders: HashMap<u64, Folder>,
}

/// Finds paths; each thread has its own cache.
pub(super) struct Paths<'f> {
    folders: &'f Folders,
    paths: HashMap<u64, Box<str>>,
    kept_bytes: usize,
    /// The reference that was looked up last, and its path: neighbours are often in the same folder.
    last: Option<(u64, String)>,
}

impl Folders {
    pub(super) fn add(&mut self, record: &Record<'_>, attributes: &[Attribute<'_>]) {
        if let Some(Name { parent, name }) = names_of(attributes).into_iter().next() {
            let (count, is_in_use) = (record.count(), record.is_in_use());
            let folder = Folder { count, is_in_use, parent, name: name.into() };
            self.folders.insert(record.number, folder);
        }
    }

    /// The referenced folder, unless its record was reused since.
    fn named(&self, reference: u64) -> Option<&Folder> {
        let folder = self.folders.get(&number_of(reference))?;
        let count = count_of(reference);
        // Deleting a folder increments the sequence number.
        let is_same =
            folder.count == count || (!folder.is_in_use && folder.count == count.wrapping_add(1));
        is_same.then_some(folder)
    }
}

impl<'f> Paths<'f> {
    pub(super) fn new(folders: &'f Folders) -> Self {
        Paths { folders, paths: HashMap::new(), kept_bytes: 0, last: None }
    }

    /// The paths of a record, one for each name, and whether one of them was too long.
    pub(super) fn paths(
        &mut self,
        record: &Record<'_>,
        attributes: &[Attribute<'_>],
    ) -> (Vec<String>, bool) {
        if record.number == ROOT {
            return (vec!["/".to_string()], false);
        }
        let mut paths = Vec::new();
        let mut is_nested = false;
        for Name { parent, name } in names_of(attributes) {
            let folder = self.path(parent);
            match joined(folder, &name) {
                Some(path) => paths.push(path),
                None => is_nested = true,
            }
        }
        // Without a name, list only records with content; reserved records have none.
        let has_bytes = |one: &Attribute<'_>| super::is_stream(one);
        let is_lost = paths.is_empty() && !is_nested && !record.is_in_use();
        if is_lost && attributes.iter().any(has_bytes) {
            paths.push(format!("{ORPHANS}/OrphanFile-{}", record.number));
        }
        (paths, is_nested)
    }

    /// The path of a referenced folder; empty for the root.
    fn path(&mut self, reference: u64) -> &str {
        if self.last.as_ref().is_none_or(|(last, _)| *last != reference) {
            self.last = Some((reference, self.find_path(reference)));
        }
        self.last.as_ref().map_or("", |(_, path)| path)
    }

    fn find_path(&mut self, reference: u64) -> String {
        if number_of(reference) == ROOT {
            return String::new();
        }
        if let Some(folder) = self.folders.named(reference)
            && let Some(path) = self.paths.get(&number_of(reference))
        {
            let _ = folder;
            return path.to_string();
        }
        let mut names = Vec::new();
        let mut at = reference;
        let mut path = loop {
            if number_of(at) == ROOT {
                break String::new();
            }
            match self.folders.named(at) {
                Some(folder) if names.len() < DEPTH_MAX => {
                    names.push(folder.name.clone());
                    at = folder.parent;
                }
                _ => break ORPHANS.to_string(),
            }
        };
        for name in names.iter().rev() {
            let Some(longer) = joined(&path, name) else { break };
            path = longer;
        }
        if self.kept_bytes > KEPT_BYTES_MAX {
            self.paths.clear();
            self.kept_bytes = 0;
        }
        self.kept_bytes += path.len() + 64;
        self.paths.insert(number_of(reference), path.as_str().into());
        path
    }
}

/// The times of a record, its permissions, and the number of its owner, which the oldest version lacks.
pub(super) fn times_and_access(attributes: &[Attribute<'_>]) -> (Times, Access) {
    let standard = attributes.iter().find(|one| one.kind == STANDARD_INFORMATION);
    let Some(bytes) = standard.and_then(|one| one.resident()).filter(|b| b.len() >= 32) else {
        return Default::default();
    };
    let at = |place: usize| {
        let ticks = i64::try_from(u64_at(bytes, place)).ok().filter(|ticks| *ticks > 0)?;
        (ticks - TICKS_TO_1970).checked_mul(100)
    };
    let times = Times { created: at(0), modified: at(8), changed: at(16), accessed: at(24) };
    let access = Access { user: u32_at(bytes, 48), ..Access::of_attributes(u32_at(bytes, 32)) };
    (times, access)
}

/// The target of a link that Interix or ntfs-3g stored as a system file.
pub(super) fn interix_target(bytes: &[u8]) -> Option<String> {
    bytes.strip_prefix(b"IntxLNK\x01").map(|target| name_of_units(units(target)))
}

/// The target of a symbolic link or a junction; `None` for other entries.
pub(super) fn link_target(bytes: &[u8]) -> Option<String> {
    let head = match u32_at(bytes, 0) {
        LINK => 20,
        JUNCTION => 16,
        _ => return None,
    };
    let (from, length) = (usize::from(u16_at(bytes, 8)), usize::from(u16_at(bytes, 10)));
    let target = bytes.get(head + from..head + from + length)?;
    let target = name_of_units(units(target));
    Some(target.strip_prefix("\\??\\").map_or(target.clone(), str::to_string))
}
