//! Power cuts and failing disks during a load: it resumes, and nothing is lost or duplicated.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use quarrier_core::source::Memory;
use quarrier_messages::Format;
use quarrier_messages::kept::Origin;
use quarrier_messages::log::disk::{Fault, FaultyDisk};

use crate::kit::{Acknowledged, assert_same, at_once, load, open, orders, small, table};

#[test]
fn reported_progress_survives_power_cuts_and_the_load_resumes() {
    let bytes = orders(0..120);
    let whole = at_once(&[&bytes], Format::Json);
    for seed in 0..4 {
        let disk = FaultyDisk::new(seed);
        let note = Arc::new(AtomicU64::new(0));
        disk.keep_history(Arc::clone(&note));
        let store = open(&disk).unwrap();
        let source = Memory::new("f", bytes.clone());
        let origin = Origin::Source { source: &source, identity: Some("f") };
        let stop = AtomicBool::new(false);
        let how = small(Format::Json);
        store.load("t", origin, &how, &stop, &mut Acknowledged(note)).unwrap();
        store.close().unwrap();
        for (number, moment) in disk.history().into_iter().enumerate() {
            for cut in 0..4 {
                let what = format!("seed {seed}, moment {number}, cut {cut}");
                let crashed = moment.disk.after_crash(seed ^ cut ^ (number as u64) << 8);
                let store = open(&crashed).unwrap();
                assert!(store.found().damages.is_empty(), "{what}");
                assert!(
                    !store.is_catalog_damaged() || store.tables().unwrap().is_empty(),
                    "{what}"
                );
                let found = store.tables().unwrap().first().map_or(0, |table| table.messages);
                assert!(found >= moment.note, "{found} of {} acknowledged: {what}", moment.note);
                let stored = load(&store, "f", &bytes, &how).unwrap();
                assert_eq!(stored.messages, 120 - found, "{what}");
                assert_same(&table(&store), &whole, &what);
            }
        }
    }
}

/// Injects every fault into every call of a load.
#[test]
fn a_load_resumes_after_a_fault_at_any_call() {
    let bytes = orders(0..120);
    let whole = at_once(&[&bytes], Format::Json);
    let how = small(Format::Json);
    for fault in [Fault::Full, Fault::Io, Fault::Short, Fault::Crash] {
        let calls = {
            let disk = FaultyDisk::new(1);
            let store = open(&disk).unwrap();
            load(&store, "f", &bytes, &how).unwrap();
            drop(store);
            disk.calls()
        };
        for call in 0..calls {
            let what = format!("{fault:?} at call {call}");
            let disk = FaultyDisk::new(1);
            disk.fail([(call, fault)]);
            let loaded = open(&disk).and_then(|store| load(&store, "f", &bytes, &how));
            let crashed = disk.after_crash(call);
            let store = open(&crashed).unwrap();
            load(&store, "f", &bytes, &how).unwrap();
            assert_same(&table(&store), &whole, &what);
            if fault == Fault::Short {
                assert!(loaded.is_ok(), "{what}: {loaded:?}");
            }
        }
    }
}
