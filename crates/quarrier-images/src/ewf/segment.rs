//! Parses the sections of all segments: media, stored hashes, and chunk tables.

use std::io;

use super::error::{Error, Result};
use super::hashes::StoredHashes;
use super::layout::{
    DIGEST_BYTES, FILE_HEADER_BYTES, HASH_BYTES, Kind, SECTION_BYTES, SMART_VOLUME_BYTES, Section,
    VOLUME_BYTES, Volume, segment_number,
};
use super::names::{ending_of, letter_of};
use super::parts::{Held, Parts};
use super::table::{self, TABLES_MAX, Table};

/// The contents of an image's sections.
pub(crate) struct Map {
    pub(crate) volume: Volume,
    pub(crate) tables: Vec<Table>,
    pub(crate) hashes: StoredHashes,
    /// The segment, offset and error of a damaged stored hash.
    pub(crate) hash_damage: Option<(String, u64, String)>,
    /// The reason why chunks beyond the tables cannot be read.
    pub(crate) ended: String,
}

/// Parses the sections of all segments.
///
/// Damage after the volume section ends the map; earlier chunks remain readable.
///
/// # Errors
/// The error that prevents reading the first segment or the description of the media.
pub(crate) fn map(parts: &Parts) -> Result<Map> {
    let mut walk = Walk {
        volume: None,
        tables: Vec::new(),
        hashes: StoredHashes::default(),
        hash_damage: None,
        known_chunks: 0,
        has_bad_table: false,
        is_smart: false,
    };
    let mut ended = String::new();
    for index in 0..parts.count() {
        let name = parts.name(index);
        let outcome = match parts.get(index) {
            Ok(segment) => walk.segment(&segment, index, &name),
            Err(error) => Err(Error::Source(error)),
        };
        match outcome {
            Ok(Ending::Done) => {
                ended = format!("{name} says that it is the last segment");
                break;
            }
            Ok(Ending::Next) => {
                let missing = ending_of(index as u32 + 2, letter_of(name.as_ref()));
                let missing = missing.unwrap_or_default();
                ended = format!("the segment .{missing} is missing");
            }
            Err(error) if walk.volume.is_none() => return Err(error),
            Err(error) => {
                ended = error.to_string();
                break;
            }
        }
    }
    let Some(volume) = walk.volume else {
        let reason = "has no volume section, so the length of its media is unknown";
        return Err(Error::NotAnImage { source_name: parts.name(0), reason: reason.to_string() });
    };
    let Walk { tables, hashes, hash_damage, .. } = walk;
    Ok(Map { volume, tables, hashes, hash_damage, ended })
}

/// The end of a segment.
enum Ending {
    Next,
    Done,
}

struct Walk {
    volume: Option<Volume>,
    tables: Vec<Table>,
    hashes: StoredHashes,
    hash_damage: Option<(String, u64, String)>,
    /// The number of chunks in the tables.
    known_chunks: u64,
    /// Whether the header of the last table is damaged, and its copy is still to come.
    has_bad_table: bool,
    /// Whether the format is SMART, in which table entries have no checksum.
    is_smart: bool,
}

impl Walk {
    /// Parses the sections of a segment. Offsets must increase, so the segment's size bounds their
    /// number.
    fn segment(&mut self, segment: &Held<'_>, index: usize, name: &str) -> Result<Ending> {
        let failed = |offset, error: io::Error| Error::Damaged {
            source_name: name.to_string(),
            offset,
            reason: error.to_string(),
        };
        let mut header = [0; FILE_HEADER_BYTES];
        if segment.length() < FILE_HEADER_BYTES as u64 {
            let reason = "is too short for an EWF image".to_string();
            return Err(Error::NotAnImage { source_name: name.to_string(), reason });
        }
        segment.read(0, &mut header).map_err(|error| failed(0, error))?;
        let number = segment_number(&header).map_err(|reason| Error::NotAnImage {
            source_name: name.to_string(),
            reason: reason.to_string(),
        })?;
        if usize::from(number) != (index + 1) & 0xFFFF {
            let reason = format!("says that it is segment {number}, and not {}", index + 1);
            return Err(Error::NotAnImage { source_name: name.to_string(), reason });
        }
        let mut at = FILE_HEADER_BYTES as u64;
        let mut data_end = None;
        loop {
            let mut bytes = [0; SECTION_BYTES];
            segment.read(at, &mut bytes).map_err(|error| failed(at, error))?;
            let damaged = |reason: &str| failed(at, table::invalid(reason));
            let section = Section::parse(&bytes)
                .ok_or_else(|| damaged("the checksum of a section's header is wrong"))?;
            match section.kind {
                Kind::Next => return Ok(Ending::Next),
                Kind::Done => return Ok(Ending::Done),
                _ => {}
            }
            if section.next < at + SECTION_BYTES as u64 || section.next > segment.length() {
                return Err(damaged("a section ends before it begins, or beyond the segment"));
            }
            let span = (at, section.next);
            match section.kind {
                Kind::Sectors => data_end = Some(section.next),
                Kind::Table | Kind::TableCopy => {
                    if self.has_bad_table && section.kind == Kind::Table {
                        return Err(damaged("the table before this one is damaged"));
                    }
                    // The first writers put the chunks after the table, inside its section.
                    let data_end = data_end.unwrap_or(section.next);
                    let is_copy = section.kind == Kind::TableCopy;
                    self.table(segment, index, span, data_end, is_copy)
                        .map_err(|error| failed(at, error))?;
                }
                Kind::Volume => self.volume(segment, span).map_err(|error| failed(at, error))?,
                kind => {
                    if let Err(error) = self.hash(segment, kind, at) {
                        self.hash_damage = Some((name.to_string(), at, error.to_string()));
                    }
                }
            }
            at = section.next;
        }
    }

    fn table(
        &mut self,
        segment: &Held<'_>,
        index: usize,
        span: (u64, u64),
        data_end: u64,
        is_copy: bool,
    ) -> io::Result<()> {
        let replaces = is_copy && !self.has_bad_table;
        if replaces && self.tables.last().is_none_or(|last| last.is_intact) {
            return Ok(());
        }
        let before = if replaces { self.tables.last().copied() } else { None };
        let first = before.map_or(self.known_chunks, |table| table.first);
        let Some(table) = table::read(segment, index, span, data_end, (first, !self.is_smart))?
        else {
            if is_copy && before.is_none() {
                return Err(table::invalid("a table is damaged, and so is its copy"));
            }
            self.has_bad_table |= !is_copy;
            return Ok(());
        };
        match before {
            Some(before) if before.count == table.count && table.is_intact => {
                self.tables.pop();
            }
            Some(_) => return Ok(()),
            None => self.known_chunks += u64::from(table.count),
        }
        self.has_bad_table = false;
        if self.tables.len() == TABLES_MAX {
            return Err(table::invalid("there are too many tables"));
        }
        if table.count > 0 {
            self.tables.push(table);
        }
        Ok(())
    }

    fn volume(&mut self, segment: &Held<'_>, (start, end): (u64, u64)) -> io::Result<()> {
        let at = start + SECTION_BYTES as u64;
        self.is_smart = end - at == SMART_VOLUME_BYTES as u64;
        let mut bytes = [0; VOLUME_BYTES];
        let bytes = match self.is_smart {
            true => &mut bytes[..SMART_VOLUME_BYTES],
            false => &mut bytes[..],
        };
        segment.read(at, bytes)?;
        let volume = Volume::parse(bytes).map_err(table::invalid)?;
        self.volume.get_or_insert(volume);
        Ok(())
    }

    fn hash(&mut self, segment: &Held<'_>, kind: Kind, start: u64) -> io::Result<()> {
        let at = start + SECTION_BYTES as u64;
        let added = match kind {
            Kind::Hash => {
                let mut bytes = [0; HASH_BYTES];
                segment.read(at, &mut bytes)?;
                self.hashes.add_hash(&bytes)
            }
            Kind::Digest => {
                let mut bytes = [0; DIGEST_BYTES];
                segment.read(at, &mut bytes)?;
                self.hashes.add_digest(&bytes)
            }
            _ => Ok(()),
        };
        added.map_err(table::invalid)
    }
}
