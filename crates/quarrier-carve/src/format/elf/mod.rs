//! ELF: programs, libraries and object files of Unix.
//!
//! *System V Application Binary Interface*, chapters 4 and 5.

use super::{Format, Kind, Signature, Verdict};
use crate::view::View;

/// Executable and Linkable Format, of 32 and 64 bits in both byte orders. It has no checksums: the
/// validator checks the tables of segments and sections, which are at both ends of a file. The file
/// ends after the last byte that they name.
pub struct Elf;

const ELF: Kind = Kind::new("elf");

const NO_BITS: u32 = 8;
/// The count of section headers if the first of them stores the actual count.
const MANY: u16 = 0;

/// The size and byte order of numbers in this file.
#[derive(Clone, Copy)]
struct Layout {
    is_64: bool,
    is_big: bool,
}

/// A table in the file.
struct Table {
    at: u64,
    /// The size of an entry, in bytes.
    bytes: u64,
    count: u64,
}

impl Format for Elf {
    fn kinds(&self) -> &[Kind] {
        &[ELF]
    }

    fn signatures(&self) -> &[Signature] {
        &[
            Signature { hex: "7F 45 4C 46 01 01 01", at: 0 },
            Signature { hex: "7F 45 4C 46 01 02 01", at: 0 },
            Signature { hex: "7F 45 4C 46 02 01 01", at: 0 },
            Signature { hex: "7F 45 4C 46 02 02 01", at: 0 },
        ]
    }

    fn validate(&self, view: &mut View<'_>) -> Verdict {
        let Some((layout, segments, sections)) = header(view) else { return Verdict::Not };
        let header_bytes = if layout.is_64 { 64 } else { 52 };
        let Some(mut end) = layout.segments_end(view, &segments) else {
            return Verdict::broken(view, ELF, 0, view.length(), "segments");
        };
        if sections.at == 0 {
            return Verdict::broken(view, ELF, 0, end, "no sections: nothing shows where it ends");
        }
        match layout.sections_end(view, &sections) {
            Ok(sections_end) => end = end.max(sections_end).max(header_bytes),
            Err(why) => return Verdict::broken(view, ELF, 0, sections.at, why),
        }
        match end <= view.length() {
            true => Verdict::Whole { length: end, kind: ELF },
            false => Verdict::broken(view, ELF, 0, view.length(), "truncated"),
        }
    }
}

/// Reads the layout, the segments and the sections from the header.
fn header(view: &mut View<'_>) -> Option<(Layout, Table, Table)> {
    let begin = view.array::<16>(0)?;
    let layout = Layout { is_64: begin[4] == 2, is_big: begin[5] == 2 };
    let kind = layout.u16(view, 16)?;
    let is_known = matches!(kind, 1..=4 | 0xFE00..=0xFFFF) && layout.u16(view, 18)? != 0;
    if !is_known || layout.u32(view, 20)? != 1 {
        return None;
    }
    let word = if layout.is_64 { 8 } else { 4 };
    let tables = 24 + word;
    let rest = tables + 2 * word + 4;
    let own_bytes = u64::from(layout.u16(view, rest)?);
    let segments = Table {
        at: layout.word(view, tables)?,
        bytes: u64::from(layout.u16(view, rest + 2)?),
        count: u64::from(layout.u16(view, rest + 4)?),
    };
    let mut sections = Table {
        at: layout.word(view, tables + word)?,
        bytes: u64::from(layout.u16(view, rest + 6)?),
        count: u64::from(layout.u16(view, rest + 8)?),
    };
    let (of_segment, of_section) = if layout.is_64 { (56, 64) } else { (32, 40) };
    let is_right = own_bytes == if layout.is_64 { 64 } else { 52 }
        && (segments.count == 0 || segments.bytes == of_segment)
        && (sections.at == 0 || sections.bytes == of_section);
    if sections.count == u64::from(MANY) && sections.at != 0 {
        // The first section, which is a placeholder, holds the count.
        sections.count =
            layout.word(view, sections.at.checked_add(if layout.is_64 { 32 } else { 20 })?)?;
    }
    is_right.then_some((layout, segments, sections))
}

impl Layout {
    fn u16(self, view: &mut View<'_>, at: u64) -> Option<u16> {
        if self.is_big { view.u16_be(at) } else { view.u16_le(at) }
    }

    fn u32(self, view: &mut View<'_>, at: u64) -> Option<u32> {
        if self.is_big { view.u32_be(at) } else { view.u32_le(at) }
    }

    /// Reads a number of four or eight bytes.
    fn word(self, view: &mut View<'_>, at: u64) -> Option<u64> {
        match (self.is_64, self.is_big) {
            (true, true) => view.u64_be(at),
            (true, false) => view.u64_le(at),
            (false, _) => self.u32(view, at).map(u64::from),
        }
    }

    /// Returns the end of the last segment; `None` if the table cannot be read.
    fn segments_end(self, view: &mut View<'_>, table: &Table) -> Option<u64> {
        let mut end = table.at.checked_add(table.bytes * table.count)?;
        let (offset, size) = if self.is_64 { (8, 32) } else { (4, 16) };
        for index in 0..table.count {
            let at = table.at + index * table.bytes;
            let size = self.word(view, at + size)?;
            if size > 0 {
                end = end.max(self.word(view, at + offset)?.checked_add(size)?);
            }
        }
        Some(end)
    }

    /// Returns the end of the last section, or of their table.
    fn sections_end(self, view: &mut View<'_>, table: &Table) -> Result<u64, &'static str> {
        let fault = "table of sections";
        let bytes = table.bytes.checked_mul(table.count).ok_or(fault)?;
        let mut end = table.at.checked_add(bytes).ok_or(fault)?;
        let (offset, size) = if self.is_64 { (24, 32) } else { (16, 20) };
        for index in 0..table.count {
            let at = table.at + index * table.bytes;
            let kind = self.u32(view, at + 4).ok_or(fault)?;
            if index == 0 {
                if kind != 0 || self.word(view, at + offset) != Some(0) {
                    return Err(fault);
                }
                continue;
            }
            let offset = self.word(view, at + offset).ok_or(fault)?;
            let size = self.word(view, at + size).ok_or(fault)?;
            if kind != NO_BITS && kind != 0 {
                end = end.max(offset.checked_add(size).ok_or(fault)?);
            }
        }
        if table.count == 0 { Err(fault) } else { Ok(end) }
    }
}
