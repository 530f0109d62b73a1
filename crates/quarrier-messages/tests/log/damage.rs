//! Bytes that change after they were acknowledged, files that are truncated or removed, and cases
//! that are not damage.

use std::ops::Range;
use std::sync::Arc;

use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::log::{Batch, Encoding, Event, Opener, Reader};

use crate::kit::{Contents, TABLE, batch, open, options, read, segments};

/// The place of a batch.
struct Place {
    segment: usize,
    bytes: Range<u64>,
    /// The numbers of its messages.
    numbers: Range<u64>,
}

/// Makes a closed log of some batches over two segments; returns the places of the batches.
fn small() -> (FaultyDisk, Vec<Place>) {
    let disk = FaultyDisk::new(3);
    let log = open(&disk).unwrap();
    let mut number = 0;
    for (count, text_bytes) in [(1, 10), (2, 900), (3, 0), (1, 3000), (1, 2600), (2, 30), (1, 700)]
    {
        log.append(batch(number..number + count, text_bytes)).unwrap();
        number += count;
    }
    log.close().unwrap();
    let mut places = Vec::new();
    let (mut segment, mut last) = (0, 0);
    let mut reader = Reader::of(Arc::new(disk.clone()), 1).unwrap();
    while let Some(Event::Batch(entry)) = reader.next_event().unwrap() {
        segment += usize::from(entry.offset() <= last);
        last = entry.offset();
        let bytes = last..last + 64 + entry.payload().unwrap().len() as u64;
        let marks = entry.marks();
        places.push(Place { segment, bytes, numbers: marks.start - 1..marks.end - 1 });
    }
    assert_eq!((segment, places.len()), (1, 7));
    (disk, places)
}

/// Returns the disk with a segment replaced by another file.
fn with(disk: &FaultyDisk, name: &str, bytes: Vec<u8>) -> FaultyDisk {
    let other = disk.after_kill();
    other.put(name, bytes);
    other
}

/// Checks that everything else is there, and that the lost messages are reported with their marks.
fn check(contents: &Contents, lost: &[u64], what: &str) {
    let expected: Vec<u64> = (0..11).filter(|number| !lost.contains(number)).collect();
    assert_eq!(contents.numbers(), expected, "{what}");
    for (number, mark) in &contents.messages {
        assert_eq!(*mark, number + 1, "{what}");
    }
    for number in lost {
        let is_told = contents.damages.iter().any(|damage| {
            let end = damage.end_mark.unwrap_or(u64::MAX);
            (damage.first_mark..end).contains(&(number + 1))
        });
        assert!(is_told, "{number} is lost, {:?}: {what}", contents.damages);
    }
    for damage in contents.damages.iter().filter(|damage| damage.loses_messages()) {
        let end = damage.end_mark.unwrap_or(12);
        assert!(
            (damage.first_mark..end).all(|mark| lost.contains(&(mark - 1))),
            "{damage}: {what}"
        );
    }
}

/// A closed log has no torn end, however full its last segment is.
#[test]
fn damage_to_the_last_group_of_a_closed_log_is_damage() {
    for text_bytes in (6000..7650).step_by(50) {
        let disk = FaultyDisk::new(3);
        let log = open(&disk).unwrap();
        log.append(batch(0..1, text_bytes)).unwrap();
        log.close().unwrap();
        let names = segments(&disk);
        assert_eq!(names.len(), 1, "{text_bytes}");
        let mut bytes = disk.contents(&names[0]).unwrap();
        bytes[6000] ^= 1;
        let contents = read(&with(&disk, &names[0], bytes));
        assert_eq!((contents.damages.len(), contents.cuts.len()), (1, 0), "{text_bytes}");
        assert_eq!(contents.damages[0].first_mark, 1, "{text_bytes}");
        assert_eq!(contents.damages[0].end_mark, Some(2), "{text_bytes}");
    }
}

#[test]
fn every_flipped_byte_is_reported_and_the_rest_kept() {
    let (disk, places) = small();
    for (segment, name) in segments(&disk).iter().enumerate() {
        let bytes = disk.contents(name).unwrap();
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            let damaged = with(&disk, name, flipped);
            let contents = read(&damaged);
            let what = format!("byte {at} of segment {segment}");
            let hit = places
                .iter()
                .find(|place| place.segment == segment && place.bytes.contains(&(at as u64)));
            let lost: Vec<u64> =
                hit.map(|place| place.numbers.clone().collect()).unwrap_or_default();
            check(&contents, &lost, &what);
            assert_eq!(contents.cuts, [], "nothing was torn: {what}");
            let is_told = contents.damages.iter().any(|damage| {
                damage.path.ends_with(name.as_str())
                    && damage.bytes.start <= at as u64
                    && damage.bytes.end > at as u64
            });
            assert!(is_told, "{contents:?}: {what}");
        }
    }
}

#[test]
fn a_log_truncated_anywhere_reports_what_is_missing() {
    let (disk, places) = small();
    let names = segments(&disk);
    for (segment, name) in names.iter().enumerate() {
        let bytes = disk.contents(name).unwrap();
        for length in 0..bytes.len() {
            let contents = read(&with(&disk, name, bytes[..length].to_vec()));
            let what = format!("segment {segment} cut at {length}");
            let lost = places.iter().filter(|place| {
                place.segment == segment && (place.bytes.end > length as u64 || length < 2048)
            });
            // Without a head, the next segment or the first batch still has the salt.
            let lost: Vec<u64> = lost.flat_map(|place| place.numbers.clone()).collect();
            check(&contents, &lost, &what);
            assert!(!contents.damages.is_empty(), "{what}");
        }
    }
}

#[test]
fn writing_continues_after_damage_and_no_mark_repeats() {
    let (disk, _) = small();
    let names = segments(&disk);
    let bytes = disk.contents(&names[1]).unwrap();
    for length in (0..bytes.len()).step_by(100) {
        let damaged = with(&disk, &names[1], bytes[..length].to_vec());
        let before = read(&damaged);
        let log = open(&damaged).unwrap();
        assert!(log.recovered().is_damaged());
        let committed = log.append(batch(100..101, 10)).unwrap();
        assert!(committed.marks.start >= 12, "{committed:?} at {length}");
        log.close().unwrap();
        let after = read(&damaged);
        assert_eq!(after.messages[..after.messages.len() - 1], before.messages, "cut at {length}");
        assert_eq!(after.messages.last(), Some(&(100, committed.marks.start)));
        let lost = |contents: &Contents| {
            let damages = contents.damages.iter().filter(|damage| damage.loses_messages());
            damages.map(|damage| damage.first_mark).min()
        };
        assert_eq!(lost(&after), lost(&before), "cut at {length}");
    }
}

#[test]
fn a_missing_segment_is_reported() {
    let disk = FaultyDisk::new(3);
    let log = open(&disk).unwrap();
    for number in 0..20 {
        log.append(batch(number..number + 1, 2500)).unwrap();
    }
    log.close().unwrap();
    let names = segments(&disk);
    assert!(names.len() >= 4);
    let other = FaultyDisk::new(4);
    for (index, name) in names.iter().enumerate().filter(|(index, _)| *index != 1) {
        assert_ne!(index, 1);
        other.put(name, disk.contents(name).unwrap());
    }
    let first = u64::from_str_radix(&names[1][..16], 16).unwrap();
    let end = u64::from_str_radix(&names[2][..16], 16).unwrap();
    let contents = read(&other);
    assert_eq!(contents.damages.len(), 1);
    let damage = &contents.damages[0];
    assert_eq!((damage.first_mark, damage.end_mark), (first, Some(end)));
    assert_eq!(contents.messages.len() as u64, 20 - (end - first));
    assert!(damage.to_string().contains("are lost"), "{damage}");
}

#[test]
fn swapped_blocks_are_reported() {
    let disk = FaultyDisk::new(3);
    let log = open(&disk).unwrap();
    for number in 0..4 {
        log.append(batch(number..number + 1, 300)).unwrap();
    }
    log.close().unwrap();
    let name = &segments(&disk)[0];
    let mut bytes = disk.contents(name).unwrap();
    let (first, second) = bytes[4096 + 512..].split_at_mut(512);
    first.swap_with_slice(&mut second[..512]);
    let contents = read(&with(&disk, name, bytes));
    assert_eq!(contents.numbers().len() + contents.damages.len().min(1) * 2, 4, "{contents:?}");
}

/// The messages of a batch are the bytes of another batch, of the same log and the same place.
#[test]
fn a_batch_inside_messages_is_not_mistaken_for_one() {
    // Write the log twice: the messages of the second are the bytes that the first wrote at this
    // place, and a copy of its whole segment.
    let seed = 5;
    let first = FaultyDisk::new(seed);
    let log = open(&first).unwrap();
    for number in 0..3 {
        log.append(batch(number..number + 1, 1500)).unwrap();
    }
    log.close().unwrap();
    let segment = first.contents(&segments(&first)[0]).unwrap();
    let forged = &segment[4096..4096 + 5000];
    // From 576 on, the headers are at places where they were valid.
    for start in [0, 64, 448, 512, 576, 1000] {
        let disk = FaultyDisk::new(seed);
        let log = open(&disk).unwrap();
        let payload = Batch::new(TABLE, Encoding::Json, 1, forged[start..].to_vec()).unwrap();
        log.append(payload).unwrap();
        log.append(batch(1..2, 10)).unwrap();
        log.close().unwrap();
        let name = &segments(&disk)[0];
        let bytes = disk.contents(name).unwrap();
        assert_eq!(entries(&disk), [1..2, 2..3], "forged from {start}");
        // Even if the batch around it is damaged, in its header or after it. (The salt protects
        // against a valid header in its own place after an invalid one.)
        let first = if start == 576 { 64 } else { 0 };
        for at in (4096 + 512 + first..4096 + 512 + 4000).step_by(16) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let marks = entries(&with(&disk, name, damaged));
            assert!(marks.last() == Some(&(2..3)) && marks.len() <= 2, "{marks:?}: {start}, {at}");
        }
    }
}

fn entries(disk: &FaultyDisk) -> Vec<Range<u64>> {
    let mut reader = Reader::of(Arc::new(disk.clone()), 1).unwrap();
    let mut marks = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Batch(entry) = event {
            marks.push(entry.marks());
        }
    }
    marks
}

/// Whether the data was acknowledged distinguishes damage from a torn tail.
#[test]
fn unacknowledged_bytes_are_cut_and_not_reported_as_damage() {
    let (disk, places) = small();
    let name = &segments(&disk)[1];
    let mut bytes = disk.contents(name).unwrap();
    // Without the note at the end, and with the length during writing.
    let last = places.last().unwrap().bytes.clone();
    bytes.truncate(last.end.next_multiple_of(512) as usize);
    bytes.resize(16 << 10, 0);
    assert_eq!(read(&with(&disk, name, bytes.clone())).messages.len(), 11);
    let mut torn = bytes.clone();
    torn[last.end as usize - 3] ^= 1;
    let contents = read(&with(&disk, name, torn.clone()));
    assert_eq!((contents.messages.len(), contents.damages.len()), (10, 0));
    assert_eq!(contents.cuts[0].bytes.start, last.start);
    assert!(contents.cuts[0].to_string().contains("never acknowledged"));
    // The last batch records that the one before it was durable.
    let before = places[places.len() - 2].bytes.clone();
    bytes[before.end as usize - 3] ^= 1;
    let contents = read(&with(&disk, name, bytes));
    assert_eq!((contents.numbers().len(), contents.damages.len(), contents.cuts.len()), (9, 1, 0));
    assert_eq!(contents.damages[0].bytes.start, before.start);
}

#[test]
fn opening_reports_the_same_as_reading() {
    let (disk, places) = small();
    let name = &segments(&disk)[0];
    let mut bytes = disk.contents(name).unwrap();
    bytes[places[1].bytes.start as usize + 100] ^= 1;
    let damaged = with(&disk, name, bytes);
    let mut replayed = 0;
    let opener = Opener::new().options(options());
    let log =
        opener.open_on(Arc::new(damaged.clone()), |entry| replayed += entry.messages()).unwrap();
    let recovered = log.recovered();
    assert_eq!((recovered.batches, recovered.messages, replayed), (6, 9, 9));
    assert_eq!((recovered.damages_found, recovered.next_mark), (1, 12));
    assert_eq!(recovered.damages, read(&damaged).damages);
}
