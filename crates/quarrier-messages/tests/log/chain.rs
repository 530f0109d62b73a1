//! Chains of batches, duplicates, and the contents of batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quarrier_messages::log::disk::FaultyDisk;
use quarrier_messages::log::{Batch, Encoding, Error, Event, Opener, Publication, Reader};

use crate::kit::{Random, TABLE, batch, open, options, read};

#[test]
fn chains_are_atomic_at_any_crash() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let done = Arc::new(AtomicU64::new(0));
        disk.keep_history(Arc::clone(&done));
        let log = open(&disk).unwrap();
        log.append(batch(0..1, 10)).unwrap();
        let mut chain = log.begin().unwrap();
        for part in 0..6 {
            chain.append(batch(1 + part * 2..3 + part * 2, 1500)).unwrap();
        }
        chain.commit(None).unwrap();
        done.store(1, Ordering::SeqCst);
        log.append(batch(13..14, 10)).unwrap();
        drop(log);
        for moment in disk.history() {
            let crashed = moment.disk.after_crash(random.next());
            let contents = read(&crashed);
            let count = contents.messages.len();
            assert!([0, 1, 13, 14].contains(&count), "{count} of a chain, seed {seed}");
            assert!(moment.note == 0 || count >= 13, "{count} after the commit, seed {seed}");
            assert_eq!(contents.numbers(), (0..count as u64).collect::<Vec<u64>>());
            assert_eq!(contents.damages, [], "seed {seed}");
            // A resuming writer finds the same batches.
            let log = open(&crashed).unwrap();
            log.append(batch(100..101, 10)).unwrap();
            drop(log);
            let mut expected: Vec<u64> = (0..count as u64).collect();
            expected.push(100);
            assert_eq!(read(&crashed).numbers(), expected, "seed {seed}");
        }
    }
}

#[test]
fn an_abandoned_chain_is_discarded() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    log.append(batch(0..1, 10)).unwrap();
    let mut chain = log.begin().unwrap();
    for number in 1..4 {
        chain.append(batch(number..number + 1, 10)).unwrap();
    }
    drop(chain);
    let empty = log.begin().unwrap();
    assert!(matches!(empty.commit(None), Err(Error::Invalid { .. })));
    log.append(batch(4..5, 10)).unwrap();
    log.close().unwrap();
    let contents = read(&disk);
    assert_eq!((contents.numbers(), contents.unfinished), (vec![0, 4], 1));
}

#[test]
fn senders_wait_for_the_end_of_a_chain() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    let mut chain = log.begin().unwrap();
    chain.append(batch(0..1, 10)).unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| log.append(batch(3..4, 10)).unwrap());
        chain.append(batch(1..2, 10)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        chain.append(batch(2..3, 10)).unwrap();
        assert_eq!(chain.commit(None).unwrap().marks, 3..4);
        assert_eq!(other.join().unwrap().marks, 4..5);
    });
    assert_eq!(read(&disk).numbers(), [0, 1, 2, 3]);
}

#[test]
fn a_batch_that_would_wait_is_not_sent() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    let sent = log.send_now(batch(0..1, 10)).unwrap().unwrap();
    assert_eq!(sent.wait().unwrap().marks, 1..2);
    let mut chain = log.begin().unwrap();
    chain.append(batch(1..2, 10)).unwrap();
    assert!(log.send_now(batch(9..10, 10)).unwrap().is_none());
    chain.commit(None).unwrap();
    let sent = log.send_now(batch(2..3, 10)).unwrap().unwrap();
    assert_eq!(sent.wait().unwrap().marks, 3..4);
    assert_eq!(read(&disk).numbers(), [0, 1, 2]);
}

#[test]
fn a_chain_with_a_batch_that_did_not_fit_is_discarded() {
    let disk = FaultyDisk::new(1);
    disk.set_room(32 << 10);
    let log = open(&disk).unwrap();
    let mut chain = log.begin().unwrap();
    for number in 0..30 {
        chain.append(batch(number..number + 1, 3000)).unwrap();
    }
    let error = chain.commit(None).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    disk.set_room(1 << 20);
    log.append(batch(50..51, 10)).unwrap();
    log.close().unwrap();
    assert_eq!(read(&disk).numbers(), [50]);
}

#[test]
fn batches_sent_again_are_stored_once() {
    let publication =
        |sequence| Publication { publisher: 9, sequence, source_offset: sequence * 100 };
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    assert_eq!(log.append(batch(0..2, 10).published(publication(1))).unwrap().marks, 1..3);
    let again = log.append(batch(0..2, 10).published(publication(1))).unwrap();
    assert!(again.is_duplicate && again.marks.is_empty());
    // Including batches in the same group.
    let pending: Vec<_> = [2, 2, 3, 1]
        .map(|sequence| {
            log.send(batch(sequence..sequence + 1, 10).published(publication(sequence)))
        })
        .into_iter()
        .collect();
    let answers = pending.into_iter().map(|pending| pending.unwrap().wait().unwrap());
    assert_eq!(
        answers.map(|answer| answer.is_duplicate).collect::<Vec<_>>(),
        [false, true, false, true]
    );
    let mut chain = log.begin().unwrap();
    chain.append(batch(4..5, 10)).unwrap();
    chain.append(batch(5..6, 10)).unwrap();
    assert!(!chain.commit(Some(publication(4))).unwrap().is_duplicate);
    let mut chain = log.begin().unwrap();
    chain.append(batch(4..5, 10)).unwrap();
    chain.append(batch(5..6, 10)).unwrap();
    assert!(chain.commit(Some(publication(4))).unwrap().is_duplicate);
    drop(log);
    assert_eq!(read(&disk).numbers(), [0, 1, 2, 3, 4, 5]);
    // The same after a crash.
    let log = open(&disk.after_crash(1)).unwrap();
    assert_eq!(log.last_publication(9), Some(publication(4)));
    assert_eq!(log.last_publication(8), None);
    assert!(log.append(batch(4..6, 10).published(publication(4))).unwrap().is_duplicate);
}

#[test]
fn messages_are_kept_verbatim_with_or_without_compression() {
    let disk = FaultyDisk::new(1);
    let bytes: Vec<u8> = (0..3000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
    let log = open(&disk).unwrap();
    let publication = Publication { publisher: 1, sequence: 1, source_offset: 12 };
    let whole = || Batch::new(TABLE, Encoding::Csv, 3, bytes[..6000].to_vec()).unwrap();
    log.append(whole()).unwrap();
    log.append(whole().compressed(3).unwrap().published(publication)).unwrap();
    drop(log);
    let mut reader = Reader::of(Arc::new(disk), 1).unwrap();
    let mut found = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        let Event::Batch(entry) = event else { panic!("{event:?}") };
        assert_eq!(entry.payload().unwrap(), &bytes[..6000]);
        assert_eq!((entry.encoding(), entry.messages()), (Encoding::Csv, 3));
        found.push((entry.marks(), entry.publication()));
    }
    assert_eq!(found, [(1..4, None), (4..7, Some(publication))]);
}

#[test]
fn a_batch_that_no_segment_holds_is_refused() {
    let log = open(&FaultyDisk::new(1)).unwrap();
    let error = log.append(batch(0..1, 16 << 10)).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    log.append(batch(0..1, 7 << 10)).unwrap();
}

#[test]
fn time_never_goes_back_and_marks_continue() {
    let disk = FaultyDisk::new(1);
    let mut times = Vec::new();
    for (life, clock_us) in [(0, 5_000), (1, 4_000), (2, 6_000)] {
        disk.set_clock_us(clock_us);
        let log = open(&disk).unwrap();
        let committed = log.append(batch(life..life + 1, 10)).unwrap();
        assert_eq!(committed.marks, life + 1..life + 2);
        times.push(committed.time_us);
    }
    assert!(times.is_sorted() && times[0] >= 5_000 && times[2] >= 6_000, "{times:?}");
}

#[test]
fn a_log_is_read_from_a_checkpoint() {
    let disk = FaultyDisk::new(1);
    let log = open(&disk).unwrap();
    for number in 0..40 {
        log.append(batch(number..number + 1, 2000)).unwrap();
    }
    let publishers = log.publishers();
    drop(log);
    let mut marks = Vec::new();
    let opener = Opener::new().options(options()).from_checkpoint(31, publishers);
    let log = opener.open_on(Arc::new(disk), |entry| marks.extend(entry.marks())).unwrap();
    assert_eq!(marks, (31..41).collect::<Vec<u64>>());
    assert_eq!(log.append(batch(40..41, 10)).unwrap().marks, 41..42);
}
