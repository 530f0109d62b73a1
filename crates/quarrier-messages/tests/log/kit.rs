//! Logs of numbered messages: each is a line with its number.

use std::sync::Arc;

use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::log::{Batch, Cut, Damage, Encoding, Event, Log, Opener, Options, Reader};

pub(crate) const TABLE: u32 = 7;

/// Small segments, to get many of them.
pub(crate) fn options() -> Options {
    let mut options = Options::default();
    options.segment_bytes = 16 << 10;
    options.write_bytes = 4 << 10;
    options
}

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Makes a batch of messages with these numbers, each padded to this length.
pub(crate) fn batch(numbers: std::ops::Range<u64>, text_bytes: usize) -> Batch {
    let lines: String =
        numbers.clone().map(|number| format!("{number} {}\n", "x".repeat(text_bytes))).collect();
    let count = u32::try_from(numbers.end - numbers.start).unwrap();
    Batch::new(TABLE, Encoding::Json, count, lines.into_bytes()).unwrap()
}

pub(crate) fn open(disk: &FaultyDisk) -> quarrier_messages::log::Result<Log> {
    Opener::new().options(options()).open_on(Arc::new(disk.clone()), |_| {})
}

/// The contents of a log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Numbers of messages, each with its mark.
    pub(crate) messages: Vec<(u64, u64)>,
    pub(crate) damages: Vec<Damage>,
    pub(crate) cuts: Vec<Cut>,
    pub(crate) unfinished: u64,
    pub(crate) next_mark: u64,
}

impl Contents {
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.messages.iter().map(|(number, _)| *number).collect()
    }

    fn add(&mut self, event: Event) {
        match event {
            Event::Batch(entry) => {
                assert_eq!((entry.table(), entry.encoding()), (TABLE, Encoding::Json));
                let payload = entry.payload().unwrap();
                let text = std::str::from_utf8(&payload).unwrap();
                let numbers = text.lines().map(|line| line.split(' ').next().unwrap());
                let numbers = numbers.map(|number| number.parse().unwrap());
                self.messages.extend(numbers.zip(entry.marks()));
            }
            Event::Damage(damage) => self.damages.push(damage),
            Event::Cut(cut) => self.cuts.push(cut),
            Event::Unfinished { .. } => self.unfinished += 1,
            other => panic!("{other:?}"),
        }
    }
}

/// Reads the whole log.
pub(crate) fn read(disk: &FaultyDisk) -> Contents {
    let mut reader = Reader::of(Arc::new(disk.clone()), 1).unwrap();
    let mut contents = Contents::default();
    while let Some(event) = reader.next_event().unwrap() {
        contents.add(event);
    }
    contents.next_mark = reader.next_mark();
    let marks: Vec<u64> = contents.messages.iter().map(|(_, mark)| *mark).collect();
    assert!(marks.is_sorted_by(|a, b| a < b), "marks rise: {marks:?}");
    assert!(marks.last().is_none_or(|last| *last < contents.next_mark));
    contents
}

/// Returns the names of the segments on a disk, in order.
pub(crate) fn segments(disk: &FaultyDisk) -> Vec<String> {
    use quarrier_messages::log::disk::Disk;
    let mut names = disk.names().unwrap();
    names.retain(|name| name.len() == 21);
    names.sort();
    names
}
