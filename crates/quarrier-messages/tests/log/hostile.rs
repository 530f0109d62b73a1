//! Files that only an attacker would make: headers with valid checksums and wrong numbers.

use std::ops::Range;
use std::sync::Arc;

use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::log::{Event, Reader};

use crate::kit::{Random, batch, open, segments};

/// Computes CRC-32C, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { 0x82F6_3B78 } else { 0 };
        }
    }
    !sum
}

/// Corrects the checksum of a header at `at`.
fn mend_header(bytes: &mut [u8], at: usize) {
    let mut checked = bytes[at..at + 60].to_vec();
    checked.extend_from_slice(&(at as u64).to_le_bytes());
    let sum = crc32(&checked);
    bytes[at + 60..at + 64].copy_from_slice(&sum.to_le_bytes());
}

/// Corrects the checksums of both copies of the head.
fn mend_head(bytes: &mut [u8]) {
    let sum = crc32(&bytes[..2044]);
    bytes[2044..2048].copy_from_slice(&sum.to_le_bytes());
    bytes.copy_within(..2048, 2048);
}

fn log() -> (FaultyDisk, String, Vec<u8>) {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    for number in 0..4 {
        log.append(batch(number..number + 1, 200)).unwrap();
    }
    log.close().unwrap();
    let name = segments(&disk)[0].clone();
    let bytes = disk.contents(&name).unwrap();
    (disk, name, bytes)
}

/// Reads the log, writes to it, and reads it again: marks increase, and messages that were read
/// remain.
fn exercise(disk: &FaultyDisk) {
    let before = marks(disk);
    let committed = open(disk).and_then(|log| log.append(batch(90..91, 10)));
    let mut after = marks(disk);
    if let Ok(committed) = committed {
        assert_eq!(after.pop(), Some(committed.marks));
    }
    assert_eq!(after, before);
}

fn marks(disk: &FaultyDisk) -> Vec<Range<u64>> {
    let mut reader = Reader::of(Arc::new(disk.clone()), 1).unwrap();
    let mut marks: Vec<Range<u64>> = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Batch(entry) = event {
            let _ = entry.payload();
            assert!(marks.last().is_none_or(|last| last.end <= entry.marks().start));
            marks.push(entry.marks());
        }
    }
    assert!(marks.last().is_none_or(|last| last.end <= reader.next_mark()));
    marks
}

#[test]
fn numbers_of_any_size_in_headers_do_no_harm() {
    let (disk, name, bytes) = log();
    let fields =
        [(5, 1), (6, 2), (16, 8), (24, 4), (28, 4), (32, 4), (36, 4), (40, 8), (48, 8), (56, 4)];
    for (field, length) in fields {
        for value in
            [0, 1, 63, 65, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 33, u64::MAX / 2, u64::MAX - 1, u64::MAX]
        {
            for batch in 0..5 {
                let mut hostile = bytes.clone();
                let at = 4096 + 512 * batch;
                hostile[at + field..at + field + length]
                    .copy_from_slice(&value.to_le_bytes()[..length]);
                mend_header(&mut hostile, at);
                let other = disk.after_kill();
                other.put(&name, hostile);
                exercise(&other);
            }
        }
    }
}

#[test]
fn numbers_of_any_size_in_heads_do_no_harm() {
    let (disk, name, bytes) = log();
    for (field, length) in [(12, 4), (16, 8), (24, 8), (32, 8), (40, 8), (48, 8), (56, 8)] {
        for value in [0, 1, 511, 4096, 0xFFFF_FFFF, 1 << 40, u64::MAX / 2, u64::MAX] {
            let mut hostile = bytes.clone();
            hostile[field..field + length].copy_from_slice(&value.to_le_bytes()[..length]);
            mend_head(&mut hostile);
            let other = disk.after_kill();
            other.set_room(1 << 20);
            other.put(&name, hostile);
            exercise(&other);
        }
    }
}

#[test]
fn random_bytes_and_names_do_no_harm() {
    let mut random = Random(1);
    let (_, name, bytes) = log();
    for seed in 0..2000 {
        let disk = FaultyDisk::new(seed);
        disk.set_room(1 << 20);
        for index in 0..1 + random.below(3) {
            let mut file = match random.below(3) {
                0 => (0..random.below(9000)).map(|_| random.next() as u8).collect(),
                _ => bytes.clone(),
            };
            for _ in 0..random.below(6) {
                let at = random.below(file.len() as u64) as usize;
                let end = (at + random.below(700) as usize).min(file.len());
                match random.below(3) {
                    0 => file[at..end].fill(0),
                    1 => drop(file.drain(at..end)),
                    _ => file[at..end].iter_mut().for_each(|byte| *byte ^= 0x5A),
                }
            }
            let names =
                [name.clone(), "ffffffffffffffff.qlog".into(), format!("{index:016x}.qlog")];
            disk.put(&names[random.below(3) as usize], file);
        }
        disk.put("readme.txt", vec![1; 100]);
        exercise(&disk);
    }
}

#[test]
fn false_compressed_lengths_are_an_error() {
    let (disk, name, bytes) = log();
    let mut hostile = bytes;
    // Flagged as compressed, with a claimed length of 64 MiB.
    let at = 4096 + 512;
    hostile[at + 6] |= 2;
    hostile[at + 36..at + 40].copy_from_slice(&(64u32 << 20).to_le_bytes());
    mend_header(&mut hostile, at);
    disk.put(&name, hostile);
    let mut reader = Reader::of(Arc::new(disk), 1).unwrap();
    let Some(Event::Batch(entry)) = reader.next_event().unwrap() else {
        panic!("the batch is whole")
    };
    assert!(entry.payload().unwrap_err().to_string().contains("mark 1"));
}
