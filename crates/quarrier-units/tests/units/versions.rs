//! Sources that change.

use std::time::Duration;

use quarrier::Search;
use quarrier_search::Pattern;
use quarrier_units::{Error, Stored};

use super::lab::{Lab, forget};

fn search() -> Search {
    Search::new(vec![Pattern::literal("ab").unwrap()])
}

/// Changes the source, with a later time than before.
fn change(lab: &Lab, bytes: &[u8]) {
    let path = lab.source_path();
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    lab.put(bytes);
    let file = std::fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(before + Duration::from_secs(1)).unwrap();
}

#[test]
fn a_source_that_changed_since_it_was_cut_is_an_error_and_leaves_no_object() {
    let (lab, search) = (Lab::with(b"ab ab ab ab"), search());
    let mut source = lab.units(4);
    let mut units = lab.search_units(&search);
    let unit = source.unit(0);
    assert_eq!(units.store(&mut source, &unit).unwrap().0, Stored::Now);
    change(&lab, b"xx xx xx xx");
    let next = source.unit(1);
    assert!(matches!(units.store(&mut source, &next), Err(Error::Changed { .. })));
    assert!(!units.has(&next).unwrap());
    let error = units.join(&mut source, &mut forget).unwrap_err().to_string();
    assert!(error.contains("changed since"), "{error}");
}

#[test]
fn objects_of_another_version_are_not_those_of_this_one() {
    let (lab, search) = (Lab::with(b"ab ab ab ab"), search());
    assert_eq!(lab.joined(&search, 4).0.0.len(), 4);
    change(&lab, b"ab ab xx xx");
    let ((rows, error), joined) = lab.joined(&search, 4);
    assert_eq!((rows.len(), error, joined.there), (2, None, 0));
}

#[test]
fn units_end_at_multiples_of_their_size_whatever_the_range() {
    let lab = Lab::with(&[0; 100]);
    let ranges = |range: std::ops::Range<u64>, bytes| -> Vec<_> {
        lab.units_in(&range, bytes).units().map(|unit| unit.range).collect()
    };
    assert_eq!(ranges(0..100, 40), [0..40, 40..80, 80..100]);
    assert_eq!(ranges(50..90, 40), [50..80, 80..90]);
    let whole = ranges(0..100, u64::MAX);
    assert!(whole.len() == 1 && whole[0] == (0..100), "{whole:?}");
    assert_eq!(ranges(0..100, 100).len(), 1);
    assert_eq!(ranges(7..7, 1).len(), 0);
    let unit = |range| lab.units_in(&range, 40).unit(0);
    assert_eq!(unit(0..100).id(), unit(0..40).id());
    assert_ne!(unit(0..100).id(), unit(1..100).id());
}
