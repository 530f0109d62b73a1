//! TIFF directories: lists of entries, each with a few numbers or a reference to them. Other
//! formats embed such directories, too, for data about a picture.

use crate::view::View;

/// Maximum number of entries of a directory.
const ENTRIES_MAX: u64 = 4096;

/// The format of numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    is_big_endian: bool,
    /// BigTIFF: offsets take 8 bytes.
    is_wide: bool,
    /// The place from which offsets count.
    base: u64,
}

impl Order {
    /// Reads the header at `base`: the byte order, and the offset of the first directory. The
    /// caller knows that it is a header; the first of the two equal bytes of the order may be
    /// damaged.
    pub(crate) fn read(view: &mut View<'_>, base: u64) -> Option<(Order, u64)> {
        let mark = view.array::<4>(base)?;
        let is_wide = mark[2] == 0x2B || mark[3] == 0x2B;
        let order = Order { is_big_endian: mark[1] == b'M', is_wide, base };
        let first = order.place(view, base + if is_wide { 8 } else { 4 })?;
        let least = base + if is_wide { 16 } else { 8 };
        (first >= least && first < view.length()).then_some((order, first))
    }

    fn u16(self, view: &mut View<'_>, at: u64) -> Option<u64> {
        let number = if self.is_big_endian { view.u16_be(at) } else { view.u16_le(at) };
        number.map(u64::from)
    }

    /// Reads four bytes at `at`.
    pub(crate) fn u32(self, view: &mut View<'_>, at: u64) -> Option<u64> {
        let number = if self.is_big_endian { view.u32_be(at) } else { view.u32_le(at) };
        number.map(u64::from)
    }

    fn u64(self, view: &mut View<'_>, at: u64) -> Option<u64> {
        if self.is_big_endian { view.u64_be(at) } else { view.u64_le(at) }
    }

    fn count(self, view: &mut View<'_>, at: u64) -> Option<u64> {
        if self.is_wide { self.u64(view, at) } else { self.u32(view, at) }
    }

    fn place(self, view: &mut View<'_>, at: u64) -> Option<u64> {
        self.base.checked_add(self.count(view, at)?)
    }
}

/// A directory.
pub(crate) struct Directory {
    pub(crate) at: u64,
    pub(crate) end: u64,
    /// The offset of the next one; 0 if there is none.
    pub(crate) next: u64,
    pub(crate) entries: Vec<Entry>,
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) tag: u16,
    /// Bytes per value.
    size: u64,
    pub(crate) count: u64,
    /// The place of its values.
    pub(crate) at: u64,
}

impl Directory {
    /// Returns `None` if it is invalid.
    pub(crate) fn read(view: &mut View<'_>, order: Order, at: u64) -> Option<Directory> {
        let (count, head, entry_bytes, place_bytes) = match order.is_wide {
            true => (order.u64(view, at)?, 8, 20, 8),
            false => (order.u16(view, at)?, 2, 12, 4),
        };
        if count == 0 || count > ENTRIES_MAX {
            return None;
        }
        let mut entries = Vec::new();
        let mut strange = 0;
        for index in 0..count {
            let entry = at.checked_add(head + index * entry_bytes)?;
            let tag = order.u16(view, entry)? as u16;
            let size = match order.u16(view, entry + 2)? {
                1 | 2 | 6 | 7 => 1,
                3 | 8 => 2,
                4 | 9 | 11 | 13 => 4,
                5 | 10 | 12 | 16 | 17 | 18 => 8,
                _ => {
                    strange += 1;
                    continue;
                }
            };
            let count = order.count(view, entry + 4)?;
            let values = entry + 4 + place_bytes;
            let is_inside = count.checked_mul(size).is_some_and(|bytes| bytes <= place_bytes);
            let at = if is_inside { values } else { order.place(view, values)? };
            entries.push(Entry { tag, size, count, at });
        }
        if strange > 2 + count / 8 {
            return None;
        }
        let end = at + head + count * entry_bytes;
        // The last directory may lack the offset of a next one.
        let next = order.count(view, end).filter(|next| *next != 0);
        let next = next.map_or(0, |next| next.saturating_add(order.base));
        Some(Directory { at, end: (end + place_bytes).min(view.length()), next, entries })
    }

    pub(crate) fn entry(&self, tag: u16) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.tag == tag)
    }
}

impl Entry {
    /// Returns the end of its values.
    pub(crate) fn end(&self) -> Option<u64> {
        self.at.checked_add(self.count.checked_mul(self.size)?)
    }

    /// Returns one of its values, if it is an integer.
    pub(crate) fn number(&self, view: &mut View<'_>, order: Order, index: u64) -> Option<u64> {
        let at = self.at.checked_add(index.checked_mul(self.size)?)?;
        match self.size {
            _ if index >= self.count => None,
            2 => order.u16(view, at),
            4 => order.u32(view, at),
            8 => order.u64(view, at),
            _ => None,
        }
    }
}
