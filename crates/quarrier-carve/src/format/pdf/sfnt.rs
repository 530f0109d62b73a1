//! TrueType and OpenType fonts, whose directory has a checksum for each table.
//!
//! *OpenType 1.9*, "Organization of an OpenType Font". A font that is resumed at a wrong place has
//! a table with a wrong checksum.

use std::rc::Rc;

use crate::mend::{Reading, Step};
use crate::view::View;

const HEAD_BYTES: usize = 12;
const ENTRY_BYTES: usize = 16;
/// Versions of the directory: TrueType, Apple's name for it, PostScript outlines.
const VERSIONS: [&[u8; 4]; 3] = [&[0, 1, 0, 0], b"true", b"OTTO"];
/// Maximum number of tables in a valid directory.
const TABLES_MAX: usize = 256;
/// A word in the table `head` that the table's own checksum excludes.
const ADJUSTMENT: std::ops::Range<u64> = 8..12;

/// A table in the directory.
struct Table {
    offset: u64,
    length: u64,
    sum: u32,
    is_head: bool,
}

/// The position in a font, which begins with the view.
#[derive(Clone)]
pub(super) struct Sfnt {
    at: u64,
    /// In the order of their offsets; `None` until the directory has been read.
    tables: Option<Rc<[Table]>>,
    /// The number of tables that are done.
    done: usize,
    /// The partial checksum of the table being read.
    sum: u32,
}

impl Sfnt {
    pub(super) fn new() -> Self {
        Sfnt { at: 0, tables: None, done: 0, sum: 0 }
    }

    /// Adds the bytes at `self.at` to the sum of `table`.
    fn add(&mut self, table: &Table, bytes: &[u8]) {
        for (offset, byte) in (self.at - table.offset..).zip(bytes) {
            if !(table.is_head && ADJUSTMENT.contains(&offset)) {
                let word = u32::from(*byte) << (24 - offset % 4 * 8);
                self.sum = self.sum.wrapping_add(word);
            }
        }
        self.at += bytes.len() as u64;
    }
}

/// Reads the directory; `None` if it is invalid, or tables overlap.
fn directory(view: &mut View<'_>) -> Option<Rc<[Table]>> {
    let head = view.take(0, HEAD_BYTES)?;
    let count = usize::from(u16::from_be_bytes([head[4], head[5]]));
    if !VERSIONS.iter().any(|version| head.starts_with(*version)) || count > TABLES_MAX {
        return None;
    }
    let entries = view.take(HEAD_BYTES as u64, count * ENTRY_BYTES)?;
    let mut tables: Vec<Table> = entries
        .chunks_exact(ENTRY_BYTES)
        .map(|entry| {
            let word = |at: usize| {
                u32::from_be_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
            };
            let (offset, length) = (u64::from(word(8)), u64::from(word(12)));
            Table { offset, length, sum: word(4), is_head: entry.starts_with(b"head") }
        })
        .collect();
    tables.sort_unstable_by_key(|table| table.offset);
    let mut end = (HEAD_BYTES + count * ENTRY_BYTES) as u64;
    for table in &tables {
        if table.offset < end {
            return None;
        }
        end = table.offset + table.length;
    }
    (!tables.is_empty()).then(|| tables.into())
}

impl Reading for Sfnt {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        let tables = match &self.tables {
            Some(tables) => Rc::clone(tables),
            // Nothing can be decided before the whole directory can be read.
            None if to < (HEAD_BYTES + TABLES_MAX * ENTRY_BYTES) as u64 => return Step::Going,
            None => match directory(view) {
                Some(tables) => Rc::clone(self.tables.insert(tables)),
                None => return Step::Broken { at: 0 },
            },
        };
        while let Some(table) = tables.get(self.done) {
            self.at = self.at.max(table.offset);
            let end = table.offset + table.length;
            while self.at < end.min(to) {
                let most = usize::try_from(end.min(to) - self.at).unwrap_or(usize::MAX);
                let bytes = view.run(self.at, most.min(64 << 10)).to_vec();
                if bytes.is_empty() {
                    return Step::Broken { at: self.at };
                }
                self.add(table, &bytes);
            }
            if self.at < end {
                return Step::Going;
            }
            if self.sum != table.sum {
                return Step::Broken { at: table.offset };
            }
            (self.done, self.sum) = (self.done + 1, 0);
        }
        Step::Whole { length: self.at }
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}
