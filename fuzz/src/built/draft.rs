//! A file under construction: its numbers are fields, some of which may be mutated.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};

/// A change of a number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    /// Adds this much; may wrap.
    Add(u64),
    Times(u8),
    To(u64),
}

impl Change {
    pub(super) fn draw(u: &mut Unstructured<'_>) -> Result<Self> {
        const ENDS: [u64; 12] = [
            0,
            1,
            0x7F,
            0xFF,
            0x7FFF,
            0xFFFF,
            1 << 20,
            0x7FFF_FFFF,
            0xFFFF_FFFF,
            1 << 40,
            i64::MAX as u64,
            u64::MAX,
        ];
        Ok(match u.int_in_range(0..=4)? {
            0 => Change::Add(1),
            1 => Change::Add(u64::MAX),
            2 => Change::Add(u64::from(u.arbitrary::<u16>()?)),
            3 => Change::Times(u.arbitrary()?),
            _ => Change::To(*u.choose(&ENDS)?),
        })
    }

    fn of(self, value: u64) -> u64 {
        match self {
            Change::Add(more) => value.wrapping_add(more),
            Change::Times(by) => value.wrapping_mul(u64::from(by)),
            Change::To(value) => value,
        }
    }
}

/// A part of a file, or all of it.
#[derive(Debug, Default)]
pub(super) struct Draft {
    bytes: Vec<u8>,
    /// The number of fields so far, of this part and those before.
    count: usize,
    changes: BTreeMap<usize, Change>,
}

impl Draft {
    /// Makes a draft in which the fields with these indexes are changed.
    pub(super) fn changed(changes: Vec<(usize, Change)>) -> Self {
        Draft { changes: changes.into_iter().collect(), ..Draft::default() }
    }

    /// Returns the number of fields; 1 if there are none.
    pub(super) fn fields(&self) -> usize {
        self.count.max(1)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Appends bytes unchanged.
    pub(super) fn put(&mut self, bytes: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(bytes.as_ref());
    }

    /// Returns the next field, changed or not.
    pub(super) fn number(&mut self, value: u64) -> u64 {
        let change = self.changes.get(&self.count);
        self.count += 1;
        change.map_or(value, |change| change.of(value))
    }

    pub(super) fn u8(&mut self, value: u8) {
        let value = self.number(value.into()) as u8;
        self.bytes.push(value);
    }

    pub(super) fn le16(&mut self, value: usize) {
        let value = self.number(value as u64) as u16;
        self.put(value.to_le_bytes());
    }

    pub(super) fn le32(&mut self, value: usize) {
        let value = self.number(value as u64) as u32;
        self.put(value.to_le_bytes());
    }

    pub(super) fn le64(&mut self, value: usize) {
        let value = self.number(value as u64);
        self.put(value.to_le_bytes());
    }

    pub(super) fn be16(&mut self, value: usize) {
        let value = self.number(value as u64) as u16;
        self.put(value.to_be_bytes());
    }

    pub(super) fn be32(&mut self, value: usize) {
        let value = self.number(value as u64) as u32;
        self.put(value.to_be_bytes());
    }

    /// Appends a number in decimal, with at least `digits` digits.
    pub(super) fn decimal(&mut self, value: usize, digits: usize) {
        let value = self.number(value as u64);
        self.put(format!("{value:0digits$}"));
    }

    /// Writes a part separately, to compute its length or checksum.
    pub(super) fn part(&mut self, write: impl FnOnce(&mut Draft) -> Result<()>) -> Result<Vec<u8>> {
        let whole = std::mem::take(&mut self.bytes);
        let done = write(self);
        let part = std::mem::replace(&mut self.bytes, whole);
        done.map(|()| part)
    }
}
