//! Units that run on other machines: their objects are sent, their sources have other names there, and some
//! cannot be run.

use std::fs;

use quarrier::Search;
use quarrier_search::Pattern;
use quarrier_units::{Results, SourceUnits, Stored, UnitSearch, View};

use super::lab::{Lab, OwnedRow, planning};

fn search(regex: &str) -> Search {
    let patterns = vec![Pattern::literal("ab").unwrap(), Pattern::regex(regex).unwrap()];
    Search::new(patterns).planning(planning(64))
}

#[test]
fn a_received_object_is_one_that_was_written_here() {
    let (here, there) = (Lab::with(b"ab caab ab aaab"), Lab::with(b"ab caab ab aaab"));
    let search = search("a+b");
    let expected = here.plain(&search);
    // Equal versions of the source.
    let modified = fs::metadata(here.source_path()).unwrap().modified().unwrap();
    fs::File::options()
        .write(true)
        .open(there.source_path())
        .unwrap()
        .set_modified(modified)
        .unwrap();
    let source = here.units(4);
    let mut units = there.search_units(&search);
    for unit in source.units() {
        let path = there.source_path();
        let mut moved =
            SourceUnits::of_unit_at(View::Bytes, &unit, path.as_os_str(), &there.opener).unwrap();
        assert_eq!(moved.name(), unit.source);
        assert_eq!(units.store(&mut moved, &unit).unwrap().0, Stored::Now);
        let bytes = fs::read(there.results().path(units.job(), &unit)).unwrap();
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        let mut incoming = here.results().receive(units.job(), &unit).unwrap();
        incoming.write(first).unwrap();
        incoming.write(rest).unwrap();
        assert!(!here.search_units(&search).has(&unit).unwrap());
        incoming.finish().unwrap();
    }
    let (answer, joined) = here.joined(&search, 4);
    assert_eq!((answer, joined.run, joined.there), (expected, 0, source.len()));
}

#[test]
fn an_object_that_was_not_received_whole_does_not_exist() {
    let lab = Lab::with(b"ab ab");
    let search = search("b");
    let source = lab.units(3);
    let units = lab.search_units(&search);
    let results: Results = lab.results();
    let mut incoming = results.receive(units.job(), &source.unit(0)).unwrap();
    incoming.write(b"ARROW1").unwrap();
    drop(incoming);
    assert!(!units.has(&source.unit(0)).unwrap());
    assert_eq!(lab.joined(&search, 3).0, lab.plain(&search));
}

#[test]
fn a_source_of_another_version_is_refused_by_any_name() {
    let lab = Lab::with(b"ab ab");
    let unit = lab.units(3).unit(1);
    lab.put(b"ab ab ab");
    let opened =
        SourceUnits::of_unit_at(View::Bytes, &unit, lab.source_path().as_os_str(), &lab.opener);
    assert!(opened.err().unwrap().to_string().contains("changed"));
}

#[test]
fn a_refused_unit_is_unreadable_and_the_others_keep_their_rows() {
    let text = b"ab aab ab aaab ab ab aab";
    // The second regex matches across the borders of units.
    for regex in ["zz", "a+b", "(?s:a.{0,9}b)"] {
        let lab = Lab::with(text);
        let search = search(regex);
        let mut source = lab.units(8);
        let mut units: UnitSearch<'_> = lab.search_units(&search);
        units.refuse(&source.unit(1));
        let mut rows = Vec::new();
        let joined = units
            .join(&mut source, &mut |row| {
                rows.push(OwnedRow::of(row));
                Ok(())
            })
            .unwrap();
        assert_eq!(joined.unreadable, std::slice::from_ref(&(8..16)));
        assert!(!units.has(&source.unit(1)).unwrap());
        assert!(rows.iter().all(|row| !(8..16).contains(&row.offset)), "{rows:?}");
        let literals = |rows: &[OwnedRow]| -> Vec<u64> {
            let own = rows.iter().filter(|row| row.pattern == 0 && !(8..16).contains(&row.offset));
            own.map(|row| row.offset).collect()
        };
        assert_eq!(literals(&rows), literals(&lab.plain(&search).0));
    }
}
