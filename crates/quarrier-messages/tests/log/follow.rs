//! Reads a log while another thread writes.

use std::time::Duration;

use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::log::{Error, Event, Follower, Retention};

use crate::kit::{batch, open};

const SOON: Duration = Duration::from_secs(20);

fn next(follower: &mut Follower) -> std::ops::Range<u64> {
    match follower.next_event(SOON).unwrap() {
        Some(Event::Batch(entry)) => entry.marks(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_follower_gets_everything_once_from_its_mark_on() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    for number in 0..10 {
        log.append(batch(number..number + 1, 2000)).unwrap();
    }
    std::thread::scope(|scope| {
        for from in [1, 4, 11, 25] {
            let mut follower = log.follow(from).unwrap();
            scope.spawn(move || {
                for mark in from..=60 {
                    assert_eq!(next(&mut follower), mark..mark + 1);
                }
            });
        }
        for number in 10..60 {
            log.append(batch(number..number + 1, 2000)).unwrap();
        }
    });
}

#[test]
fn a_follower_waits_and_returns_none_without_news() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    let mut follower = log.follow(1).unwrap();
    assert!(follower.next_event(Duration::from_millis(5)).unwrap().is_none());
    log.append(batch(0..3, 10)).unwrap();
    assert_eq!(next(&mut follower), 1..4);
    log.close().unwrap();
    assert!(follower.next_event(SOON).unwrap().is_none(), "at once, since the log is closed");
}

#[test]
fn a_follower_sees_only_complete_chains() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    let mut follower = log.follow(1).unwrap();
    let mut chain = log.begin().unwrap();
    for number in 0..10 {
        chain.append(batch(number..number + 1, 3000)).unwrap();
    }
    assert!(follower.next_event(Duration::from_millis(20)).unwrap().is_none());
    chain.commit(None).unwrap();
    for mark in 1..11 {
        assert_eq!(next(&mut follower), mark..mark + 1);
    }
    let mut chain = log.begin().unwrap();
    chain.append(batch(10..11, 10)).unwrap();
    chain.append(batch(11..12, 10)).unwrap();
    drop(chain);
    log.append(batch(12..13, 10)).unwrap();
    loop {
        match follower.next_event(SOON).unwrap() {
            Some(Event::Unfinished { .. }) => {}
            Some(Event::Batch(entry)) => break assert_eq!(entry.messages(), 1),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_request_for_removed_messages_reports_the_oldest_mark() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    for number in 0..20 {
        log.append(batch(number..number + 1, 3000)).unwrap();
    }
    let retention = Retention { bytes_max: Some(0), ..Retention::default() };
    assert!(log.retain(retention, 15).unwrap().segments > 0);
    let Err(Error::Gone { mark: 1, oldest }) = log.follow(1) else { panic!("it is gone") };
    assert!(oldest <= 15);
    assert_eq!(next(&mut log.follow(oldest).unwrap()), oldest..oldest + 1);
}
