//! ISO 9660, with the names of Rock Ridge or Joliet.
//!
//! *ECMA-119*, *IEEE P1281 and P1282* (SUSP and RRIP). If a disc has several sets of names, Rock Ridge
//! takes precedence over Joliet: both name the same bytes. Files that only another set of names has follow, below
//! `/$OrphanFiles` (*Carrier, Different Interpretations of ISO9660 File Systems, 2010*).

mod extra;
mod record;

use std::collections::HashSet;

use record::{Names, Record};

use crate::entry::{Access, Content, Entry, Kind, State, Times};
use crate::error::Result;
use crate::part::{Part, u16_at, u32_at};
use crate::walk::{Walk, joined};

const SECTOR_BYTES: u64 = 2048;
const DESCRIPTORS_AT: u64 = 16 * SECTOR_BYTES;
/// Maximum volume descriptors to examine.
const DESCRIPTORS_MAX: u64 = 64;
const MAGIC: &[u8] = b"CD001";
const PRIMARY: u8 = 1;
const SUPPLEMENTARY: u8 = 2;
const END: u8 = 255;

/// The folder for files that the listed names lack, which sleuthkit calls so, too.
const ORPHANS: &str = "/$OrphanFiles";

/// A folder still to list.
struct Folder {
    path: String,
    at: u64,
    size: u64,
}

pub(crate) struct Volume<'p, 's> {
    part: &'p Part<'s>,
    block_bytes: u64,
    names: Names,
    root: Record,
}

/// The bytes where listed files start, and which files are listed.
#[derive(Default)]
struct Listed {
    files: HashSet<u64>,
    /// Only files that start elsewhere.
    is_rest: bool,
}

impl Listed {
    fn emit(&mut self, entry: Entry, walk: &mut Walk<'_>) -> Result<()> {
        let start = entry.content.runs.first().and_then(|run| run.place);
        let start = start.filter(|_| entry.kind == Kind::File);
        let is_new = start.is_some_and(|start| self.files.insert(start));
        match self.is_rest && !is_new {
            true => Ok(()),
            false => walk.emit(entry),
        }
    }
}

/// Whether `part` is an ISO 9660 volume.
///
/// # Errors
/// As [`Part::read`].
pub(crate) fn is_iso(part: &Part<'_>) -> Result<bool> {
    let mut head = [0; 6];
    if part.length() < DESCRIPTORS_AT + SECTOR_BYTES {
        return Ok(false);
    }
    part.read(DESCRIPTORS_AT, &mut head, "the first descriptor of a disc")?;
    Ok(&head[1..] == MAGIC)
}

/// Lists the volume in `part`.
///
/// # Errors
/// Errors of the walk. Damage is recorded in the walk and is not an error.
pub(crate) fn list(part: &Part<'_>, walk: &mut Walk<'_>) -> Result<()> {
    let volumes = open(part)?;
    let mut listed = Listed::default();
    for volume in &volumes {
        volume.list(&mut listed, walk)?;
        listed.is_rest = true;
    }
    Ok(())
}

/// Reads the volume descriptors: the volumes with all sets of names, the first being the one to list.
fn open<'p, 's>(part: &'p Part<'s>) -> Result<Vec<Volume<'p, 's>>> {
    let (mut primary, mut joliet) = (None, None);
    let mut others = Vec::new();
    let mut sector = [0; SECTOR_BYTES as usize];
    for number in 0..DESCRIPTORS_MAX {
        let at = DESCRIPTORS_AT + number * SECTOR_BYTES;
        part.read(at, &mut sector, "a descriptor of a disc")?;
        if &sector[1..6] != MAGIC || sector[0] == END {
            break;
        }
        let is_joliet = matches!(&sector[88..91], b"%/@" | b"%/C" | b"%/E");
        let block_bytes = u64::from(u16_at(&sector, 128));
        let root = Record::read(&sector[156..190], 0);
        let (Some(root), 512 | 1024 | 2048) = (root, block_bytes) else { continue };
        let names = if is_joliet { Names::Joliet } else { Names::Plain };
        let volume = Volume { part, block_bytes, names, root };
        match sector[0] {
            PRIMARY if primary.is_none() => primary = Some(volume),
            SUPPLEMENTARY if is_joliet && joliet.is_none() => joliet = Some(volume),
            PRIMARY | SUPPLEMENTARY => others.push(volume),
            _ => {}
        }
    }
    if let Some(volume) = &mut primary
        && let Some(skip) = extra::begins(volume)?
    {
        volume.names = Names::RockRidge { skip };
        others.splice(0..0, joliet.take());
    }
    let volumes: Vec<_> = joliet.into_iter().chain(primary).chain(others).collect();
    match volumes.is_empty() {
        true => Err(part.refused(DESCRIPTORS_AT, "a disc without a root directory")),
        false => Ok(volumes),
    }
}

impl Volume<'_, '_> {
    fn list(&self, listed: &mut Listed, walk: &mut Walk<'_>) -> Result<()> {
        let (at, size) = (self.byte(self.root.block), self.root.size);
        let mut content = Content::default();
        content.push(Some(self.part.place(at)), size);
        let root = Entry {
            path: "/".to_string(),
            inode: at / 32,
            kind: Kind::Folder,
            state: State::Allocated,
            size,
            times: self.root.times,
            access: Access::default(),
            content,
        };
        listed.emit(root, walk)?;
        let mut seen = HashSet::from([at]);
        let path = if listed.is_rest { ORPHANS.to_string() } else { String::new() };
        let mut folders = vec![Folder { path, at, size }];
        while let Some(folder) = folders.pop() {
            let first = folders.len();
            let read = self.folder(&folder, (&mut seen, &mut folders), listed, walk);
            walk.tolerate(read)?;
            folders[first..].reverse();
        }
        Ok(())
    }

    fn byte(&self, block: u32) -> u64 {
        u64::from(block) * self.block_bytes
    }

    fn folder(
        &self,
        folder: &Folder,
        (seen, folders): (&mut HashSet<u64>, &mut Vec<Folder>),
        listed: &mut Listed,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        let mut sector = [0; SECTOR_BYTES as usize];
        let mut begun: Option<Entry> = None;
        let mut done = 0;
        while done < folder.size {
            let step = (folder.size - done).min(SECTOR_BYTES) as usize;
            walk.step(self.part)?;
            self.part.read(folder.at + done, &mut sector[..step], "a folder")?;
            let mut at = 0;
            // Records do not cross sectors; the rest is zero-padded.
            while let Some(length) = sector[..step].get(at).map(|length| usize::from(*length)) {
                let Some(bytes) = sector[..step].get(at..at + length).filter(|_| length > 0) else {
                    break;
                };
                walk.step(self.part)?;
                let place = folder.at + done + at as u64;
                if let Some(record) = Record::read(bytes, place) {
                    let begun = (&mut begun, &mut *listed);
                    self.record(folder, record, bytes, begun, (seen, folders), walk)?;
                }
                at += length;
            }
            done += SECTOR_BYTES;
        }
        begun.map_or(Ok(()), |entry| listed.emit(entry, walk))
    }

    fn record(
        &self,
        folder: &Folder,
        mut record: Record,
        bytes: &[u8],
        (begun, listed): (&mut Option<Entry>, &mut Listed),
        (seen, folders): (&mut HashSet<u64>, &mut Vec<Folder>),
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        if record.is_dots(bytes) {
            return Ok(());
        }
        let mut name = record.name(bytes, &self.names);
        let mut kind = if record.is_folder() { Kind::Folder } else { Kind::File };
        let (mut inline, mut access) = (None, Access::default());
        if let Names::RockRidge { skip } = self.names {
            let extra = extra::read(self, &record, bytes, skip, walk)?;
            if extra.is_relocated {
                return Ok(());
            }
            name = extra.name.unwrap_or(name);
            record.times = extra.times.unwrap_or(record.times);
            kind = extra.kind.unwrap_or(kind);
            access = extra.access;
            inline = extra.target.map(|target| target.into_bytes().into_boxed_slice());
            if let Some(block) = extra.moved_to {
                let mut own = [0; 34];
                self.part.read(self.byte(block), &mut own, "a folder")?;
                (record.block, record.size) = (block, u32_at(&own, 10).into());
                kind = Kind::Folder;
            }
        }
        let Some(path) = joined(&folder.path, &name) else {
            walk.damaged(self.part, record.at, "folders nested too deeply");
            return Ok(());
        };
        let start = self.byte(record.block);
        if let Some(entry) = begun.as_mut().filter(|entry| entry.path == path) {
            self.add(&mut entry.content, start, record.size);
            entry.size = entry.size.saturating_add(record.size);
        } else {
            if let Some(entry) = begun.take() {
                listed.emit(entry, walk)?;
            }
            let mut content = Content::default();
            let size = match (&inline, kind) {
                (Some(target), _) => target.len() as u64,
                (None, Kind::Other | Kind::Link) => 0,
                (None, Kind::File | Kind::Folder) => {
                    self.add(&mut content, start, record.size);
                    record.size
                }
            };
            content.inline = inline;
            let is_new = kind == Kind::Folder && content.lost.is_none() && seen.insert(start);
            if is_new {
                folders.push(Folder { path: path.clone(), at: start, size });
            }
            let (inode, times, state) = (record.at / 32, record.times, State::Allocated);
            *begun = Some(Entry { path, inode, kind, state, size, times, access, content });
        }
        // A long file continues in the next record.
        if !record.goes_on()
            && let Some(entry) = begun.take()
        {
            listed.emit(entry, walk)?;
        }
        Ok(())
    }

    fn add(&self, content: &mut Content, start: u64, size: u64) {
        let end = start.checked_add(size);
        if end.is_none_or(|end| end > self.part.length()) {
            content.lost = Some("its blocks lie beyond the end of the volume");
            return;
        }
        content.push(Some(self.part.place(start)), size);
    }
}

/// Applies a time zone in quarters of an hour.
fn zoned(local: Option<i64>, quarters: u8) -> Option<i64> {
    let quarters = i64::from(quarters.cast_signed());
    local?.checked_sub(quarters * (quarrier_core::civil::HOUR_NS / 4))
}

/// Converts date and time numbers to nanoseconds since 1970.
fn point(numbers: [i64; 6]) -> Option<i64> {
    use quarrier_core::civil;
    let [year, month, day, hour, minute, second] = numbers;
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    let seconds = is_time.then_some(hour * 3600 + minute * 60 + second)?;
    civil::join(civil::day(year, month, day)?, seconds * civil::SECOND_NS)
}

/// Parses the 7-byte time of a record.
fn short_time(bytes: &[u8]) -> Option<i64> {
    let [year, month, day, hour, minute, second, zone] = *<&[u8; 7]>::try_from(bytes).ok()?;
    let numbers = [month, day, hour, minute, second].map(i64::from);
    let [month, day, hour, minute, second] = numbers;
    zoned(point([1900 + i64::from(year), month, day, hour, minute, second]), zone)
}

/// Parses the 17-byte time in decimal digits.
fn long_time(bytes: &[u8]) -> Option<i64> {
    let digits = std::str::from_utf8(bytes.get(..16)?).ok()?;
    let number = |from: usize, to: usize| digits.get(from..to)?.parse::<i64>().ok();
    let numbers = [
        number(0, 4)?,
        number(4, 6)?,
        number(6, 8)?,
        number(8, 10)?,
        number(10, 12)?,
        number(12, 14)?,
    ];
    let hundredths = number(14, 16)?.checked_mul(10_000_000)?;
    zoned(point(numbers)?.checked_add(hundredths), *bytes.get(16)?)
}

impl Times {
    fn only(modified: Option<i64>) -> Self {
        Times { modified, ..Times::default() }
    }
}
