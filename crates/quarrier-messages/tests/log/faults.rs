//! A disk that refuses a request, fails, or does only a part of it.

use std::collections::BTreeSet;

use quarrier_messages::log::Error;
use quarrier_messages::log::disk::{Fault, FaultyDisk};

use crate::kit::{Random, batch, open, read};

/// The results of messages, by their numbers.
#[derive(Default)]
struct Sent {
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    unknown: BTreeSet<u64>,
}

/// Sends until the log stops or enough messages were sent.
fn live(disk: &FaultyDisk, random: &mut Random, sent: &mut Sent, first: u64) -> u64 {
    let Ok(log) = open(disk) else { return first };
    let mut number = first;
    for _ in 0..12 {
        let count = 1 + random.below(3);
        let numbers = number..number + count;
        number += count;
        match log.append(batch(numbers.clone(), random.below(1500) as usize)) {
            Ok(_) => sent.acknowledged.extend(numbers),
            Err(Error::Full { .. } | Error::Io { .. }) => sent.refused.extend(numbers),
            Err(Error::Stopped { .. } | Error::Closed) => {
                sent.unknown.extend(numbers);
                assert!(matches!(
                    log.append(batch(number..number + 1, 1)),
                    Err(Error::Stopped { .. })
                ));
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    number
}

fn check(disk: &FaultyDisk, sent: &Sent, what: &str) {
    let contents = read(disk);
    let found: BTreeSet<u64> = contents.numbers().into_iter().collect();
    assert_eq!(found.len(), contents.messages.len(), "each once: {what}");
    assert!(contents.numbers().is_sorted(), "in order: {what}");
    assert!(sent.acknowledged.is_subset(&found), "what was acknowledged is there: {what}");
    assert!(sent.refused.is_disjoint(&found), "what was refused is not: {what}");
    assert!(contents.damages.is_empty(), "{:?}: {what}", contents.damages);
}

/// Injects every fault into every call of a life, then cuts the power and reopens the log.
#[test]
fn a_fault_at_any_call_loses_nothing_that_was_acknowledged() {
    for fault in [Fault::Full, Fault::Io, Fault::Short, Fault::Crash] {
        for seed in 0..12 {
            let calls = {
                let disk = FaultyDisk::new(seed);
                live(&disk, &mut Random(seed), &mut Sent::default(), 0);
                disk.calls()
            };
            for call in 0..calls {
                let what = format!("{fault:?} at call {call} of {calls}, seed {seed}");
                let disk = FaultyDisk::new(seed);
                disk.fail([(call, fault)]);
                let mut sent = Sent::default();
                let number = live(&disk, &mut Random(seed), &mut sent, 0);
                let crashed = disk.after_crash(seed ^ call);
                check(&crashed, &sent, &what);
                live(&crashed, &mut Random(seed + 1), &mut sent, number);
                check(&crashed, &sent, &what);
                assert!(sent.acknowledged.iter().any(|sent| *sent >= number), "it goes on: {what}");
            }
        }
    }
}

/// Injects many faults into one life.
#[test]
fn faults_in_any_number_lose_nothing_that_was_acknowledged() {
    for seed in 0..400 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let kinds = [Fault::Full, Fault::Full, Fault::Short, Fault::Io];
        let faults: Vec<(u64, Fault)> = (0..random.below(12))
            .map(|_| (random.below(80), kinds[random.below(4) as usize]))
            .collect();
        disk.fail(faults);
        let mut sent = Sent::default();
        live(&disk, &mut random, &mut sent, 0);
        check(&disk.after_crash(seed), &sent, &format!("seed {seed}"));
        check(&disk.after_kill(), &sent, &format!("killed, seed {seed}"));
    }
}

#[test]
fn a_failed_sync_stops_writes_and_not_reads() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    log.append(batch(0..3, 10)).unwrap();
    // A group is a write and a sync.
    let calls = disk.calls();
    disk.fail([(calls + 1, Fault::Io)]);
    let error = log.append(batch(3..4, 10)).unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
    assert!(error.to_string().contains("cannot sync"), "{error}");
    let calls = disk.calls();
    assert!(matches!(log.append(batch(4..5, 10)), Err(Error::Stopped { .. })));
    assert!(matches!(log.stopped(), Some(Error::Stopped { .. })));
    assert_eq!(disk.calls(), calls, "no call follows a failed sync");
    let mut follower = log.follow(1).unwrap();
    assert!(follower.next_event(std::time::Duration::ZERO).unwrap().is_some());
    assert!(follower.next_event(std::time::Duration::ZERO).unwrap().is_none());
    log.close().unwrap();
    assert_eq!(read(&disk).numbers()[..3], [0, 1, 2]);
}

#[test]
fn a_full_disk_is_a_clear_error_and_writes_resume_with_space() {
    let disk = FaultyDisk::new(1);
    disk.set_room(32 << 10);
    let log = open(&disk).unwrap();
    assert!(log.is_room_ready());
    let (mut taken, mut refused) = (0, 0);
    while refused == 0 {
        match log.append(batch(taken..taken + 1, 3000)) {
            Ok(_) => taken += 1,
            Err(error @ Error::Full { .. }) => {
                assert!(error.to_string().contains("no space"), "{error}");
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(taken >= 4 && !log.is_room_ready());
    assert!(matches!(log.append(batch(taken..taken + 1, 3000)), Err(Error::Full { .. })));
    assert_eq!(read(&disk).messages.len() as u64, taken);
    disk.set_room(1 << 20);
    for number in taken..taken + 20 {
        log.append(batch(number..number + 1, 3000)).unwrap();
    }
    log.close().unwrap();
    assert_eq!(read(&disk).numbers(), (0..taken + 20).collect::<Vec<u64>>());
}
