//! Objects: complete or absent, and never trusted when damaged.

use std::path::{Path, PathBuf};

use quarrier::Search;
use quarrier_search::{Options, Pattern};
use quarrier_units::{Identity, Labels, Object, Results, Stored};

use super::lab::{Lab, OwnedRow, forget};

fn search() -> Search {
    let patterns = vec![
        Pattern::literal("ab").unwrap().named("letters"),
        Pattern::regex("[a-c]{2,9}").unwrap(),
        Pattern::hex("00 ??").unwrap(),
    ];
    Search::new(patterns).options(Options { ignore_case: true, ..Options::default() })
}

const TEXT: &[u8] = b"xxabcABx\0\x01ab cab\0\0abcabcabc";

/// The files in a folder and those below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut found: Vec<PathBuf> = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn a_damaged_object_is_run_again_and_none_of_its_rows_are_passed_on() {
    let (lab, search) = (Lab::with(TEXT), search());
    let expected = lab.plain(&search);
    assert_eq!(lab.joined(&search, 10).0, expected);
    let objects = files(lab.results().folder().unwrap());
    assert_eq!(objects.len(), 3);
    let whole = std::fs::read(&objects[1]).unwrap();
    let changed = (0..whole.len()).step_by(29).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    });
    let cut = (0..whole.len()).step_by(97).map(|length| whole[..length].to_vec());
    for bytes in changed.chain(cut) {
        std::fs::write(&objects[1], &bytes).unwrap();
        let (answer, joined) = lab.joined(&search, 10);
        assert_eq!(answer, expected);
        // Padding, and redundant parts of the format, may change without harm.
        assert!(joined.run <= 1);
        std::fs::write(&objects[1], &whole).unwrap();
    }
    std::fs::copy(&objects[0], &objects[2]).unwrap();
    let (answer, joined) = lab.joined(&search, 10);
    assert_eq!((answer, joined.run), (expected, 1));
    assert_eq!(files(lab.results().folder().unwrap()), objects);
}

#[test]
fn an_object_has_the_rows_of_its_unit_and_of_no_other_search() {
    let (lab, search) = (Lab::with(TEXT), search());
    let mut source = lab.units(u64::MAX);
    let mut units = lab.search_units(&search);
    let unit = source.unit(0);
    assert_eq!(units.store(&mut source, &unit).unwrap(), (Stored::Now, vec![]));
    assert_eq!(units.store(&mut source, &unit).unwrap(), (Stored::Before, vec![]));
    let path = lab.results().path(units.job(), &unit);
    let open = |identity: &Identity| {
        Object::open(Box::new(quarrier_core::source::FileSource::open(&path).unwrap()), identity)
    };
    let identity = Identity { job: units.job().to_string(), unit, patterns: 3 };
    let mut rows = Vec::new();
    let object = open(&identity).unwrap();
    let labels = Labels::of(search.patterns());
    object
        .rows(&labels, 0, &mut |row| {
            rows.push(OwnedRow::of(row));
            Ok(())
        })
        .unwrap();
    assert_eq!((rows, None), lab.plain(&search));
    let others = [
        Identity { job: "other".to_string(), ..identity.clone() },
        Identity { patterns: 1, ..identity.clone() },
    ];
    for other in others {
        assert!(open(&other).is_err(), "{other:?}");
    }
    let fewer = Labels::of(&search.patterns()[..1]);
    assert!(object.rows(&fewer, 0, &mut forget).is_err());
}

#[test]
fn processes_that_run_the_same_unit_leave_one_object() {
    let (lab, search) = (Lab::with(TEXT), search());
    let barrier = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (mut source, mut units) = (lab.units(u64::MAX), lab.search_units(&search));
                let unit = source.unit(0);
                barrier.wait();
                units.store(&mut source, &unit).unwrap();
            });
        }
    });
    assert_eq!(files(lab.results().folder().unwrap()).len(), 1);
    assert_eq!(lab.joined(&search, u64::MAX).1.there, 1);
}

#[test]
fn leftovers_of_killed_processes_are_no_objects_and_are_removed() {
    let (lab, search) = (Lab::with(TEXT), search());
    let expected = lab.plain(&search);
    lab.joined(&search, 10);
    let object = files(lab.results().folder().unwrap()).remove(0);
    let unit = object.file_stem().unwrap().to_str().unwrap();
    let leftover = object.with_file_name(format!(".{unit}.1-0-0.part"));
    std::fs::write(&leftover, "ARROW1").unwrap();
    std::fs::remove_file(&object).unwrap();
    assert_eq!(lab.joined(&search, 10).0, expected);
    assert!(!leftover.exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_names_it() {
    let (lab, search) = (Lab::with(TEXT), search());
    let path = lab.source_path().join("found");
    let mut units =
        lab.search_units(&search).keep(Results::at(path.as_os_str(), &lab.opener).unwrap());
    let error = units.join(&mut lab.units(10), &mut forget).unwrap_err().to_string();
    assert!(error.contains("source/found"), "{error}");
    let error = Results::at("https://me:secret@lab/found".as_ref(), &lab.opener);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("https://lab/found: ") && error.contains("s3://"), "{error}");
}
