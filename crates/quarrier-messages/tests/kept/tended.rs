//! Merges in the background change no answer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_messages::Format;
use quarrier_messages::kept::Store;
use quarrier_messages::log::disk::FaultyDisk;

use crate::grown::lines;
use crate::keyed::{TableHistory, keyed, step};
use crate::kit::{Random, alone, assert_same, at_once, load, open, orders, small};

#[test]
fn a_tended_table_is_merged_between_requests_and_its_rows_stay() {
    let disk = FaultyDisk::new(1);
    let (store, stop) = (open(&disk).unwrap(), AtomicBool::new(false));
    assert_eq!(store.tend(1, &stop).unwrap().merged, 0);
    for number in 0..300 {
        let line = orders(number..number + 1);
        load(&store, &format!("f{number}"), &line, &small(Format::Json)).unwrap();
        assert_eq!(alone(&store).unwrap().rows(), number + 1);
    }
    let before = alone(&store).unwrap();
    assert_eq!(before.segments(), 300, "requests leave merges to the thread");
    assert_eq!(store.tend(1, &stop).unwrap().merged, 1);
    let after = alone(&store).unwrap();
    assert_eq!(after.segments(), 1);
    assert_same(&after, &before, "merged");
    assert_same(&after, &at_once(&[&orders(0..300)], Format::Json), "300 appends");
    assert!(!Arc::ptr_eq(&before, &after));
    assert_eq!(store.tend(1, &stop).unwrap().merged, 0);
    // Without a request, nothing is made.
    load(&store, "more", &orders(300..310), &small(Format::Json)).unwrap();
    assert_eq!(store.tend(1, &stop).unwrap().merged, 0);
    assert_eq!(alone(&store).unwrap().rows(), 310);
}

#[test]
fn requests_merge_tables_that_grow_too_fast() {
    let disk = FaultyDisk::new(1);
    let (store, stop) = (open(&disk).unwrap(), AtomicBool::new(false));
    store.tend(1, &stop).unwrap();
    for number in 0..700 {
        let line = orders(number..number + 1);
        load(&store, &format!("f{number}"), &line, &small(Format::Json)).unwrap();
        assert!(alone(&store).unwrap().segments() <= 8 * 64);
    }
}

#[test]
fn a_grown_and_merged_table_equals_one_of_all_messages_at_once() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let stop = AtomicBool::new(false);
        let mut store = open(&disk).unwrap();
        let mut all = Vec::new();
        for step in 0..70 + random.below(120) {
            let more = lines(&mut random);
            load(&store, &format!("f{step}"), &more, &small(Format::Json)).unwrap();
            all.extend_from_slice(&more);
            let what = format!("seed {seed}, step {step}");
            alone(&store).unwrap();
            match random.below(30) {
                0 => drop(store.tend(1, &stop).unwrap()),
                1 => {
                    drop(store);
                    store = open(&disk).unwrap();
                }
                2 if !all.is_empty() => {
                    let naive = at_once(&[&all], Format::Json);
                    assert_same(&alone(&store).unwrap(), &naive, &what);
                }
                _ => {}
            }
        }
        store.tend(1, &stop).unwrap();
        let naive = at_once(&[&all], Format::Json);
        assert_same(&alone(&store).unwrap(), &naive, &format!("seed {seed}, at the end"));
    }
}

#[test]
fn a_table_with_a_key_has_the_same_rows_after_merges() {
    for seed in 0..15 {
        let mut random = Random(seed);
        let disk = FaultyDisk::new(seed);
        let stop = AtomicBool::new(false);
        let store = keyed(&disk).unwrap();
        store.tend(1, &stop).unwrap();
        let mut history = TableHistory::default();
        let keys = if seed % 2 == 0 { 100_000 } else { 400 };
        let mut merged = 0;
        for number in 0..250 {
            step(&mut random, &store, &mut history, keys);
            alone(&store).unwrap();
            if random.below(20) == 0 {
                merged += store.tend(1, &stop).unwrap().merged;
                let what = format!("seed {seed}, step {number}");
                assert_same(&alone(&store).unwrap(), &history.table(history.all()), &what);
            }
        }
        assert!(merged > 0 || keys == 400, "seed {seed}");
    }
}

/// Appends and requests go on during merges.
#[test]
fn messages_that_arrive_during_a_merge_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_with(folder.path(), crate::kit::options()).unwrap();
    let (is_done, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..400 {
                let line = orders(number..number + 1);
                load(&store, &format!("f{number}"), &line, &small(Format::Json)).unwrap();
                assert!(alone(&store).unwrap().rows() > number);
            }
            is_done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
            store.tend(1, &stop).unwrap();
        }
    });
    assert_same(&alone(&store).unwrap(), &at_once(&[&orders(0..400)], Format::Json), "in the end");
}
