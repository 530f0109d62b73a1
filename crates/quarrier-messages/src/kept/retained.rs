//! The retention of tables: the declared bounds, and the mark from which each table still has its messages.
//!
//! The file `retention` is a catalog with a text in place of each name:
//!
//! ```text
//!  age 604800000000     maximum age of messages, in microseconds
//!  bytes 10737418240    maximum bytes of messages in the log
//!  from 812345          the table has no message with a lower mark
//! ```
//!
//! The text of number 0, which no table has, is `removed` and the mark before which segments were removed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::catalog::Catalog;
use super::index::Extent;
use crate::log::Retention;
use crate::log::disk::Disk;

/// The file.
pub(super) const NAME: &str = "retention";
/// Messages are removed in steps of this fraction (1/16) of the bound, so that a table is not cut all the time.
const STEPS: u64 = 16;

/// The retention of all tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Retained {
    tables: BTreeMap<u32, Bounds>,
    /// Segments before this mark were removed, and no table has messages there.
    pub(super) removed: u64,
    /// Whether a copy is damaged.
    pub(super) is_damaged: bool,
}

/// The retention of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) retention: Retention,
    /// The table has no message with a lower mark.
    pub(super) from: u64,
}

impl Retained {
    /// Reads the file; no table has bounds if the folder has none.
    ///
    /// # Errors
    /// As [`Catalog::read_from`].
    pub(super) fn read(disk: &dyn Disk) -> crate::log::Result<Self> {
        Ok(Retained::of_catalog(&Catalog::read_from(disk, NAME)?))
    }

    /// Decodes the file's contents.
    pub(super) fn of_catalog(catalog: &Catalog) -> Self {
        let mut retained = Retained { is_damaged: catalog.is_damaged, ..Retained::default() };
        for number in catalog.numbers() {
            let text = catalog.text(number).unwrap_or_default();
            if number == 0 {
                retained.removed = number_after(text, "removed").unwrap_or(0);
            } else {
                retained.tables.insert(number, Bounds::of_text(text));
            }
        }
        retained
    }

    /// Encodes the file's contents.
    pub(super) fn to_catalog(&self) -> Catalog {
        let texts = self.tables.iter().map(|(number, bounds)| (*number, bounds.to_text()));
        let removed = (self.removed > 0).then(|| (0, format!("removed {}\n", self.removed)));
        Catalog::of_texts(removed.into_iter().chain(texts))
    }

    /// Replaces the file.
    ///
    /// # Errors
    /// As [`Catalog::write_to`].
    pub(super) fn write(&self, disk: &dyn Disk) -> crate::log::Result<()> {
        self.to_catalog().write_to(disk, NAME)
    }

    /// Moves marks beyond `next_mark` back to it, for a log that ends there: messages that are still to come belong
    /// to their tables.
    pub(super) fn limit(&mut self, next_mark: u64) {
        self.removed = self.removed.min(next_mark);
        for bounds in self.tables.values_mut() {
            bounds.from = bounds.from.min(next_mark);
        }
    }

    pub(super) fn bounds(&self, number: u32) -> Bounds {
        self.tables.get(&number).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, number: u32, bounds: Bounds) {
        if bounds == Bounds::default() {
            self.tables.remove(&number);
        } else {
            self.tables.insert(number, bounds);
        }
        self.is_damaged = false;
    }

    /// Returns the tables with their bounds.
    pub(super) fn tables(&self) -> impl Iterator<Item = (u32, Bounds)> + '_ {
        self.tables.iter().map(|(number, bounds)| (*number, *bounds))
    }
}

impl Bounds {
    fn to_text(self) -> String {
        let mut text = String::new();
        let age = self.retention.age_max.map(|age| age.as_micros());
        let bytes = self.retention.bytes_max.map(u128::from);
        let from = (self.from > 0).then_some(u128::from(self.from));
        for (word, number) in [("age", age), ("bytes", bytes), ("from", from)] {
            if let Some(number) = number {
                // Writing to a String never fails.
                let _ = writeln!(text, "{word} {number}");
            }
        }
        text
    }

    fn of_text(text: &str) -> Self {
        let age_max = number_after(text, "age").map(Duration::from_micros);
        let retention = Retention { age_max, bytes_max: number_after(text, "bytes") };
        Bounds { retention, from: number_after(text, "from").unwrap_or(0) }
    }

    /// Returns the number of the first batches that exceed the bounds now.
    pub(super) fn excess(&self, extents: &[Extent], now_us: i64) -> usize {
        let mut excess = 0;
        if let Some(age) = self.retention.age_max {
            let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
            let step = (age / STEPS.cast_signed()).max(1);
            let oldest_us = now_us.saturating_sub(age);
            let oldest_us = oldest_us.saturating_sub(oldest_us.rem_euclid(step));
            // Commit times never go back.
            excess = extents.partition_point(|extent| extent.time_us < oldest_us);
        }
        if let Some(bytes_max) = self.retention.bytes_max {
            let mut bytes: u64 = extents.iter().map(|it| u64::from(it.place.bytes)).sum();
            let most = if bytes > bytes_max { bytes_max - bytes_max / STEPS } else { bytes_max };
            let is_over = |extent: &&Extent| {
                let is_over = bytes > most;
                bytes -= u64::from(extent.place.bytes);
                is_over
            };
            excess = excess.max(extents.iter().take_while(is_over).count());
        }
        excess
    }
}

/// Returns the number after a word at the start of a line.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let mut rest = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    rest.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::log::disk::FaultyDisk;

    #[test]
    fn bounds_are_read_as_written() {
        let disk = FaultyDisk::new(1);
        let mut retained = Retained::default();
        assert_eq!(Retained::read(&disk).unwrap(), retained);
        let age_max = Some(Duration::from_secs(7 * 86_400));
        for (number, bounds) in [
            (1, Bounds { retention: Retention { age_max, bytes_max: None }, from: 0 }),
            (7, Bounds { retention: Retention { age_max, bytes_max: Some(5) }, from: 812_345 }),
            (8, Bounds { retention: Retention::default(), from: u64::MAX }),
        ] {
            retained.set(number, bounds);
        }
        retained.removed = 17;
        retained.write(&disk).unwrap();
        assert_eq!(Retained::read(&disk).unwrap(), retained);
        retained.set(7, Bounds::default());
        retained.write(&disk).unwrap();
        assert_eq!(Retained::read(&disk).unwrap(), retained);
        let whole = disk.contents(NAME).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            disk.put(NAME, flipped);
            let read = Retained::read(&disk).unwrap();
            assert_eq!(read.bounds(1), retained.bounds(1), "byte {at}");
        }
    }

    fn extents(each: &[(i64, u32)]) -> Vec<Extent> {
        let extent = |(at, (time_us, bytes)): (usize, &(i64, u32))| Extent {
            place: crate::log::Place {
                segment: 1,
                offset: 0,
                bytes: *bytes,
                bytes_unpacked: *bytes,
                is_compressed: false,
                extension_bytes: 0,
                checksum: 0,
            },
            marks: at as u64 + 1..at as u64 + 2,
            time_us: *time_us,
            encoding: crate::log::Encoding::Json,
            publication: None,
            header: Arc::default(),
        };
        each.iter().enumerate().map(extent).collect()
    }

    #[test]
    fn the_oldest_batches_exceed_the_bounds() {
        let batches = extents(&[(100, 10), (200, 10), (300, 10), (400, 10)]);
        let excess = |age: Option<u64>, bytes_max: Option<u64>, now| {
            let retention = Retention { age_max: age.map(Duration::from_micros), bytes_max };
            Bounds { retention, from: 0 }.excess(&batches, now)
        };
        assert_eq!(excess(None, None, i64::MAX), 0);
        assert_eq!(excess(None, Some(40), 0), 0);
        // Not to the bound, but a sixteenth below it.
        assert_eq!(excess(None, Some(39), 0), 1);
        assert_eq!(excess(None, Some(31), 0), 1);
        assert_eq!(excess(None, Some(30), 0), 2);
        assert_eq!(excess(None, Some(0), 0), 4);
        assert_eq!(excess(Some(160), None, 260), 0);
        assert_eq!(excess(Some(160), None, 261), 0);
        assert_eq!(excess(Some(160), None, 270), 1);
        assert_eq!(excess(Some(160), None, 560), 3);
        assert_eq!(excess(Some(160), None, i64::MAX), 4);
        assert_eq!(excess(Some(160), Some(0), i64::MIN), 4);
        assert_eq!(excess(Some(u64::MAX), None, i64::MIN), 0);
        assert_eq!(excess(Some(0), None, 300), 2);
    }
}
