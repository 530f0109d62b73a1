//! NTFS: the master file table, record by record.
//!
//! ```text
//!  boot sector ──→ $MFT's runs ──→ pass 1: folders and their parents
//!                            └───→ pass 2: an entry for each name and each stream
//! ```
//!
//! Records of deleted files remain until they are reused. Paths follow parent references, whose
//! sequence number shows whether the parent's record was reused.

mod attribute;
mod boot;
mod names;
mod record;
mod runs;
mod table;

pub(crate) use attribute::{DATA, Form};
pub(crate) use boot::{Boot, boot};
pub(crate) use record::Record;
pub(crate) use runs::Runs;

use std::collections::HashSet;

use attribute::{Attribute, INDEX_ALLOCATION, REPARSE_POINT};
use names::{Folders, Paths};
use table::Table;

use crate::ahead;
use crate::entry::{Content, Entry, Kind, State};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part};
use crate::walk::{Walk, push_name};

/// Maximum streams listed per file: a record has room for few.
const STREAMS_MAX: usize = 4096;

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, first: &[u8; BOOT_BYTES], walk: &mut Walk<'_>) -> Result<()> {
    let Some(boot) = boot(part, first)? else { return Ok(()) };
    let table = Table::open(part, &boot, walk)?;
    let mut folders = Folders::default();
    table.each(walk, &mut |record, walk| {
        if record.is_folder() && (record.is_in_use() || walk.deleted) {
            let attributes = table.gather(&record, walk)?;
            folders.add(&record, &attributes);
        }
        Ok(())
    })?;
    let state = || (Vec::new(), Paths::new(&folders));
    ahead::in_order(part, walk, table.steps(), &state, &|step, (buffer, paths), walk| {
        table.step(step, buffer, walk, &mut |record, walk| {
            if !record.is_in_use() && !walk.deleted {
                return Ok(());
            }
            let attributes = table.gather(&record, walk)?;
            entries(part, &boot, &record, &attributes, paths, walk)
        })
    })
}

/// Emits the entries of a record and its extension records.
fn entries(
    part: &Part<'_>,
    boot: &Boot,
    record: &Record<'_>,
    attributes: &[Attribute<'_>],
    folders: &mut Paths<'_>,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let state = if record.is_in_use() { State::Allocated } else { State::Deleted };
    let (mut paths, is_nested) = folders.paths(record, attributes);
    if is_nested {
        walk.damaged(part, record.at, "folders nested too deeply");
    }
    if paths.is_empty() {
        return Ok(());
    }
    let reparse = attributes.iter().find(|one| one.kind == REPARSE_POINT && one.name.is_empty());
    let main = attributes.iter().find(|one| one.kind == DATA && one.name.is_empty());
    let interix = || main.and_then(|one| one.resident()).and_then(names::interix_target);
    let link = reparse.and_then(|one| one.resident()).and_then(names::link_target).or_else(interix);
    let kind = match (&link, record.is_folder()) {
        (Some(_), _) => Kind::Link,
        (None, true) => Kind::Folder,
        (None, false) => Kind::File,
    };
    let (times, access) = names::times_and_access(attributes);
    // Most files have one stream.
    let is_only = attributes.iter().filter(|one| is_stream(one)).nth(1).is_none();
    let (mut has_main, mut seen) = (false, HashSet::new());
    for attribute in attributes.iter().filter(|one| is_stream(one)).take(STREAMS_MAX) {
        let is_main = attribute.name.is_empty() || attribute.kind == INDEX_ALLOCATION;
        let is_target = is_main && kind == Kind::Link;
        let is_seen = if is_main { has_main } else { !seen.insert(attribute.name.as_str()) };
        if is_target || is_seen {
            continue;
        }
        has_main |= is_main;
        let (size, mut content) = table::content(part, boot, attributes, attribute, walk)?;
        if is_main && reparse.is_some_and(is_packed_elsewhere) {
            content.lost = Some("it is compressed by the Windows Overlay Filter");
        }
        let last = paths.len() - 1;
        for (index, path) in paths.iter_mut().enumerate() {
            let is_last_use = is_only && is_main;
            let mut path = if is_last_use { std::mem::take(path) } else { path.clone() };
            let content = match index == last {
                true => std::mem::take(&mut content),
                false => content.clone(),
            };
            if !is_main {
                path.push(':');
                push_name(&mut path, &attribute.name);
            }
            walk.step(part)?;
            walk.emit(Entry {
                path,
                inode: record.number,
                kind: if is_main { kind } else { Kind::File },
                state,
                size,
                times,
                access,
                content,
            })?;
        }
    }
    if has_main {
        return Ok(());
    }
    let inline = link.map(|target| target.into_bytes().into_boxed_slice());
    for path in paths {
        walk.emit(Entry {
            path,
            inode: record.number,
            kind,
            state,
            size: inline.as_ref().map_or(0, |target| target.len() as u64),
            times,
            access,
            content: Content { inline: inline.clone(), ..Content::default() },
        })?;
    }
    Ok(())
}

/// Whether an attribute is listed: data streams of files, and indexes of folders.
fn is_stream(attribute: &Attribute<'_>) -> bool {
    attribute.kind == DATA || (attribute.kind == INDEX_ALLOCATION && attribute.name == "$I30")
}

/// Whether the content of the file is compressed in another stream (Windows Overlay Filter).
fn is_packed_elsewhere(reparse: &Attribute<'_>) -> bool {
    reparse.resident().is_some_and(|bytes| bytes.starts_with(&0x8000_0017u32.to_le_bytes()))
}
