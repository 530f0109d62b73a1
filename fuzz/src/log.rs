//! Any bytes as a segment of a log, and a log with any mutations, with and without valid checksums:
//! marks rise, opening the log changes nothing that was read, and writing continues. The same bytes as a segment by
//! itself, also as one of a copy: what is read of it are messages of the log.

use std::io;
use std::sync::Arc;

use quarrier_core::source::{Memory, Source};
use quarrier_messages::kept::{SegmentFolder, SegmentObject, Store};
use quarrier_messages::log::disk::{Disk, FaultyDisk};
use quarrier_messages::log::{Batch, Encoding, Event, Log, Opener, Options, Reader};

use crate::checksum::crc32c;
use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "log", run, once: &[], seeds: SEEDS, words: WORDS };

/// Mutations of a log: position, type, value.
const SEEDS: &[&[u8]] = &[
    &[0x10, 0x40, 0, 1, 0x14, 0x00, 1, 0xFF],
    &[0x12, 0x00, 2, 0, 0x16, 0x20, 1, 7, 0x00, 0x10, 3, 9],
    b"QUARRLOG\x01\0\0\0\0\x02\0\0",
    b"QBAT\x01\x01\0\0",
    // Both heads lost; a head with another mark than in its name.
    b"\0\0\0\0\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\xA5\x13\0\x3A\xFF",
    b"\0\0\0\x1D\x2D\x40\0\0\0\x1D\x2D\x40\0\0\0\0",
];

const WORDS: &[&[u8]] =
    &[b"QBAT\x01", b"QUARRLOG\x01\0\0\0", &[0xFF; 8], &[0; 8], &[0x10, 0, 1, 0xFF]];

/// Reads `bytes` as a segment, and as mutations of an intact log.
pub fn run(bytes: &[u8]) -> Verdict {
    let disk = FaultyDisk::new(1);
    disk.set_room(1 << 20);
    disk.put("0000000000000001.qlog", bytes.to_vec());
    alone(&disk, "0000000000000001.qlog", bytes.len() as u64);
    check(&disk);
    let disk = whole();
    let mut names = disk.names().unwrap_or_default();
    names.sort();
    assert_eq!(names.len(), 2, "segments");
    let mut is_changed = false;
    for (name, changes) in
        names.iter().zip([bytes, bytes.get(bytes.len() / 2..).unwrap_or_default()])
    {
        let Some(mut segment) = disk.contents(name) else { continue };
        for change in changes.chunks_exact(4) {
            is_changed = true;
            self::change(&mut segment, change);
        }
        disk.put(name, segment);
    }
    for name in &names {
        alone(&disk, name, bytes.first().map_or(1, |first| u64::from(*first) + 1));
    }
    check(&disk);
    if is_changed { Verdict::Checked } else { Verdict::Skipped }
}

fn open(disk: &FaultyDisk) -> Option<Log> {
    let mut options = Options::default();
    options.segment_bytes = 16 << 10;
    options.write_bytes = 4 << 10;
    Opener::new().options(options).open_on(Arc::new(disk.clone()), |_| {}).ok()
}

fn batch(bytes: usize) -> Batch {
    let Ok(batch) = Batch::new(1, Encoding::Json, 2, vec![b'a'; bytes]) else { panic!("a batch") };
    batch
}

/// Makes eight batches in two segments.
fn whole() -> FaultyDisk {
    let disk = FaultyDisk::new(1);
    disk.set_room(1 << 20);
    let Some(log) = open(&disk) else { panic!("an empty disk") };
    for bytes in [200, 500, 3000, 900, 1200, 100, 900, 30] {
        assert!(log.append(batch(bytes)).is_ok());
    }
    assert!(log.close().is_ok());
    disk
}

/// Applies one mutation: a byte, zeros, a cut, or a byte of a header with a corrected checksum.
fn change(segment: &mut Vec<u8>, change: &[u8]) {
    let [high, low, how, value] = *change else { return };
    let at = usize::from(high) << 8 | usize::from(low);
    match (how % 4, segment.get_mut(at)) {
        (0, Some(byte)) => *byte ^= value.max(1),
        (1, Some(byte)) => {
            *byte = value;
            mend(segment, at / 64 * 64);
        }
        (2, Some(_)) => {
            let end = (at + usize::from(value) * 8).min(segment.len());
            segment[at..end].fill(0);
        }
        (_, Some(_)) => segment.truncate(at),
        (_, None) => {}
    }
}

/// Corrects the checksum of the header at `at`, or of both copies of the head.
fn mend(segment: &mut [u8], at: usize) {
    if at < 4096 && segment.len() >= 4096 {
        let sum = crc32c(&segment[..2044]);
        segment[2044..2048].copy_from_slice(&sum);
        segment.copy_within(..2048, 2048);
    } else if let Some(header) = segment.get_mut(at..at + 64) {
        let sum = crc32c(&[&header[..60], &(at as u64).to_le_bytes()].concat());
        header[60..].copy_from_slice(&sum);
    }
}

/// Returns the marks of all batches, and the mark after them.
fn read(disk: &FaultyDisk) -> (Vec<(u64, u64)>, u64) {
    let Ok(mut reader) = Reader::of(Arc::new(disk.clone()), 1) else { panic!("a disk in memory") };
    let mut marks = Vec::new();
    loop {
        match reader.next_event() {
            Ok(None) => break,
            Ok(Some(Event::Batch(entry))) => {
                let _ = entry.payload();
                marks.push((entry.marks().start, entry.marks().end));
            }
            Ok(Some(Event::Damage(damage))) => {
                assert!(damage.bytes.start <= damage.bytes.end, "{damage:?}");
                assert!(!damage.to_string().is_empty());
            }
            Ok(Some(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(marks.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{marks:?}");
    assert!(marks.last().is_none_or(|last| last.1 <= reader.next_mark()));
    (marks, reader.next_mark())
}

/// The folder of a segment.
struct Folder<'f>(&'f FaultyDisk);

impl SegmentFolder for Folder<'_> {
    fn names(&self, beginning: &str) -> io::Result<Vec<String>> {
        let names = self.0.names()?.into_iter();
        Ok(names.filter(|name| name.starts_with(beginning)).collect())
    }

    fn open(&self, name: &str) -> io::Result<SegmentObject> {
        let bytes = self.0.contents(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(SegmentObject::new(name, Arc::new(Memory::new(name, bytes))))
    }
}

/// Reads a segment by itself, by its name and by that of a copy before the mark `next`.
fn alone(disk: &FaultyDisk, name: &str, next: u64) {
    let Some(bytes) = disk.contents(name) else { return };
    let first = name.trim_end_matches(".qlog");
    let copied = format!("{first}-{next:016x}-{next:016x}-0000000000000000.qlog");
    for name in [name, copied.as_str()] {
        let source = Arc::new(Memory::new("segment", bytes.clone()));
        let object = SegmentObject::new(name, source);
        let Ok(store) = Store::read_object(object, &Folder(disk)) else { continue };
        assert!(store.found().damages.iter().all(|damage| damage.path == "segment"), "{name}");
        let Ok(runs) = store.all_runs() else { continue };
        for run in runs {
            let mut buffer = vec![0; usize::try_from(run.length()).unwrap_or(0).min(1 << 20)];
            let mut filled = 0;
            while let Ok(count @ 1..) = run.read_at(filled as u64, &mut buffer[filled..]) {
                filled += count;
            }
        }
    }
}

fn check(disk: &FaultyDisk) {
    let (marks, next_mark) = read(disk);
    let Some(log) = open(disk) else { return };
    let committed = log.append(batch(20));
    drop(log);
    let (mut after, _) = read(disk);
    if let Ok(committed) = committed {
        assert!(committed.marks.start >= next_mark);
        assert_eq!(after.pop(), Some((committed.marks.start, committed.marks.end)));
    }
    assert_eq!(after, marks);
}
