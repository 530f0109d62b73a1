//! A log that is damaged anywhere: it is told where, and all else is kept.

use std::path::Path;

use quarrier_messages::kept::Store;
use quarrier_messages::log::Options;
use quarrier_messages::{Format, Value};

use crate::kit::{orders, small, table};

/// A log of a few batches, and the name of its one segment.
fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.segment_bytes = 64 << 10;
    let store = Store::open_with(folder.path(), options).unwrap();
    let mut how = small(Format::Json);
    how.batch_bytes = 300;
    crate::kit::load(&store, "f", &orders(0..16), &how).unwrap();
    store.close().unwrap();
    let segment = std::fs::read_dir(folder.path().join("log")).unwrap().next().unwrap().unwrap();
    let path = segment.path();
    (folder, path)
}

/// The numbers of the messages in a data folder, and whether some are said to be lost.
fn read(path: &Path) -> (Vec<u64>, bool, bool) {
    let store = Store::read(path).unwrap();
    let found = store.found().clone();
    let names = store.tables().unwrap();
    let numbers = match names.is_empty() || names[0].messages == 0 {
        true => Vec::new(),
        false => {
            let table = table(&store);
            let column = table.schema().position("n").unwrap();
            let number = |row| match table.value(row, column) {
                Value::Integer(number) => number as u64,
                other => panic!("{other:?}"),
            };
            (0..table.rows()).map(number).collect()
        }
    };
    let loses = found.damages.iter().any(|damage| damage.loses_messages());
    for damage in &found.damages {
        let line = damage.to_string();
        assert!(line.contains(".qlog: damaged at bytes") && line.contains("mark"), "{line}");
    }
    // What nobody can know to be written is read as torn.
    (numbers, !found.damages.is_empty() || found.cut.is_some(), loses)
}

#[test]
fn a_flipped_byte_loses_its_batch_at_most_and_is_told() {
    let (folder, segment) = folder();
    let whole = std::fs::read(&segment).unwrap();
    let all: Vec<u64> = (0..16).collect();
    assert_eq!(read(folder.path()), (all.clone(), false, false));
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&segment, &damaged).unwrap();
        let (numbers, is_damaged, loses) = read(folder.path());
        assert!(is_damaged, "byte {at}");
        // What tells that nothing comes after the last message may be damaged, too.
        assert!(loses || numbers.len() == 16, "byte {at}: {numbers:?}");
        assert!(numbers.len() >= 10 && numbers.is_sorted(), "byte {at}: {numbers:?}");
    }
}

/// What a look at the headers finds is never less, and never something else, than all bytes say.
#[test]
fn a_look_at_the_headers_misses_no_damage() {
    let (folder, segment) = folder();
    let whole = std::fs::read(&segment).unwrap();
    let all = |store: &Store| store.table("t", 2, &false.into()).map(|table| table.rows());
    let store = Store::skimmed(folder.path()).unwrap().expect("nothing is out of the ordinary");
    assert_eq!(all(&store).unwrap(), 16);
    for at in (0..whole.len()).step_by(5) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        std::fs::write(&segment, &damaged).unwrap();
        let skimmed = Store::skimmed(folder.path()).unwrap();
        assert!(skimmed.is_none_or(|store| all(&store).is_err()), "byte {at}");
    }
    for length in (0..whole.len()).step_by(64) {
        std::fs::write(&segment, &whole[..length]).unwrap();
        assert!(Store::skimmed(folder.path()).unwrap().is_none(), "{length} bytes");
    }
}

#[test]
fn a_log_that_is_cut_off_keeps_its_beginning_and_says_so() {
    let (folder, segment) = folder();
    let whole = std::fs::read(&segment).unwrap();
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&segment, &whole[..length]).unwrap();
        let (numbers, is_damaged, _) = read(folder.path());
        assert!(is_damaged, "{length} bytes");
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{length} bytes: {numbers:?}");
    }
}

#[test]
fn a_segment_alone_is_a_file_of_messages() {
    let (folder, segment) = folder();
    let copy = folder.path().join("copy of it");
    std::fs::copy(&segment, &copy).unwrap();
    for path in [&segment, &copy] {
        assert!(quarrier_messages::kept::is_log(path));
        let store = Store::read(path).unwrap();
        let runs = store.all_runs().unwrap();
        assert_eq!(runs.len(), 1);
        let loaded = quarrier_messages::Load::new(runs[0].format().clone()).run(&[&runs[0]]);
        assert_eq!(loaded.unwrap().table.rows(), 16);
    }
    assert!(quarrier_messages::kept::is_log(folder.path()));
    assert!(!quarrier_messages::kept::is_log(Path::new("/")));
}
