//! Retention removes old segments, and nothing else.

use std::time::Duration;

use quarrier_messages::log::Retention;
use quarrier_messages::log::disk::FaultyDisk;

use crate::kit::{Random, batch, open, read, segments};

fn log(disk: &FaultyDisk) -> quarrier_messages::log::Log {
    let log = open(disk).unwrap();
    for number in 0..30 {
        disk.set_clock_us(number as i64 * 1_000_000);
        log.append(batch(number..number + 1, 3000)).unwrap();
    }
    log
}

#[test]
fn everything_is_kept_by_default() {
    let disk = FaultyDisk::new(1);
    let log = log(&disk);
    assert_eq!(log.retain(Retention::default(), u64::MAX).unwrap().segments, 0);
}

#[test]
fn segments_are_removed_by_size_only_after_a_checkpoint() {
    let disk = FaultyDisk::new(1);
    let log = log(&disk);
    let before = segments(&disk).len() as u64;
    let small = Retention { bytes_max: Some(40 << 10), ..Retention::default() };
    assert_eq!(log.retain(small, 0).unwrap().segments, 0);
    let removed = log.retain(small, 12).unwrap();
    let contents = read(&disk);
    assert!(removed.segments > 0 && contents.messages[0].0 <= 11, "{contents:?}");
    let removed = removed.segments + log.retain(small, u64::MAX).unwrap().segments;
    assert_eq!(segments(&disk).len() as u64, before - removed);
    assert!(log.retain(small, u64::MAX).unwrap().segments == 0 && segments(&disk).len() >= 2);
    // The last segment always remains.
    let none = Retention { bytes_max: Some(0), ..Retention::default() };
    log.retain(none, u64::MAX).unwrap();
    assert_eq!(segments(&disk).len(), 1);
    log.append(batch(30..31, 10)).unwrap();
    drop(log);
    let contents = read(&disk);
    assert_eq!(contents.messages.last(), Some(&(30, 31)));
    assert!(contents.damages.is_empty(), "what was removed on purpose is no damage");
}

#[test]
fn segments_are_removed_by_age() {
    let disk = FaultyDisk::new(1);
    let log = log(&disk);
    let retention = Retention { age_max: Some(Duration::from_secs(10)), ..Retention::default() };
    disk.set_clock_us(30_000_000);
    log.retain(retention, u64::MAX).unwrap();
    let oldest = read(&disk).messages[0].0;
    // The messages of a segment are older than the next segment.
    assert!((15..=20).contains(&oldest), "{oldest}");
}

#[test]
fn a_crash_while_segments_are_removed_leaves_no_gap() {
    for seed in 0..50 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let log = log(&disk);
        disk.keep_history(std::sync::Arc::default());
        let none = Retention { bytes_max: Some(0), ..Retention::default() };
        log.retain(none, u64::MAX).unwrap();
        drop(log);
        for moment in disk.history() {
            let contents = read(&moment.disk.after_crash(random.next()));
            assert!(contents.damages.is_empty(), "{:?}, seed {seed}", contents.damages);
            assert_eq!(contents.messages.last(), Some(&(29, 30)));
        }
    }
}
