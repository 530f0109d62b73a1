//! Tests the facade against the table of sources and requests that every front end answers alike.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::carve::{Begin, Watch};
use quarrier::search::Planning;
use quarrier::{Carve, Environment, Error, Machine, OpenOptions, Opened, Opener, Search, Sources};
use quarrier_carve::folder::Row;
use quarrier_core::Error::BadPlan;
use quarrier_core::pipeline::Chunk;
use quarrier_core::size::parse_size;
use quarrier_search::{Encodings, Finding, Options, parse_file};
use serde_json::{Value, json};

pub(crate) const TABLE: &str = include_str!("../doors.json");

fn bytes_of(pieces: &Value) -> Vec<u8> {
    let piece = |piece: &Value| -> Vec<u8> {
        let count = |key: &str| piece[key].as_u64().map(|count| count as usize);
        if let Some(hex) = piece["hex"].as_str() {
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            (0..hex.len()).step_by(2).map(byte).collect()
        } else if let Some(zeros) = count("zeros") {
            vec![0; zeros]
        } else if let Some(times) = count("count") {
            piece["repeat"].as_str().unwrap().repeat(times).into_bytes()
        } else {
            piece["text"].as_str().unwrap().as_bytes().to_vec()
        }
    };
    pieces.as_array().unwrap().iter().flat_map(piece).collect()
}

/// Writes the files of the table to a folder.
pub(crate) fn files(table: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, pieces) in table["files"].as_object().unwrap() {
        std::fs::write(folder.path().join(name), bytes_of(pieces)).unwrap();
    }
    folder
}

/// The name of a case's source: a path in the folder, unless it is a URL.
pub(crate) fn named(folder: &Path, case: &Value) -> String {
    let name = case["source"].as_str().unwrap();
    if quarrier::source::is_remote(name) {
        return name.to_string();
    }
    folder.join(name).into_os_string().into_string().unwrap()
}

pub(crate) fn opener(direct: bool) -> Opener {
    let options = OpenOptions::default().direct(direct);
    Opener::new(options, &Environment::default(), &Arc::new(AtomicBool::new(false)))
}

fn request(case: &Value) -> quarrier::Result<Search> {
    let options = &case["options"];
    let size = |name: &str, otherwise: u64| match &options[name] {
        Value::String(text) => parse_size(text).map_err(|error| BadPlan(error.to_string()).into()),
        number => quarrier::Result::Ok(number.as_u64().unwrap_or(otherwise)),
    };
    let count = |name: &str| options[name].as_u64().unwrap_or(0) as usize;
    let lines: Vec<&str> =
        case["patterns"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    let flag = |name: &str| options[name].as_bool().unwrap_or(false);
    let search = Search::new(parse_file(lines.join("\n").as_bytes()).unwrap())
        .options(Options {
            ignore_case: flag("ignore_case"),
            utf16: flag("utf16"),
            utf16be: flag("utf16be"),
            encodings: Encodings::parse(options["encodings"].as_str().unwrap_or_default()).unwrap(),
            xor: flag("xor"),
            base64: flag("base64"),
            regex_length_bytes_max: size("regex_max_length", 65_536)? as usize,
            ..Options::default()
        })
        .planning(Planning {
            direct: flag("direct"),
            workers: count("workers"),
            readers: count("readers"),
            buffers: count("buffers"),
            buffer_bytes: size("buffer_size", 0)? as usize,
            ..Planning::default()
        })
        .aligned(size("aligned", 1)?);
    Ok(match options["range"].as_array() {
        Some(range) => search.range(range[0].as_u64().unwrap()..range[1].as_u64().unwrap()),
        None => search,
    })
}

fn found(folder: &Path, case: &Value) -> quarrier::Result<Vec<Value>> {
    let search = request(case)?;
    let (machine, stop) = (Machine::unknown(), AtomicBool::new(false));
    let opener = opener(case["options"]["direct"].as_bool().unwrap_or(false));
    let mut rows = Vec::new();
    for opened in Sources::of([named(folder, case)]).open_packed(&opener, search.packed()) {
        let mut opened = opened?;
        check_notice(case, &opened);
        let name = shortened(folder, opened.name());
        let mut running = search.start(&machine, Some(&opened.place()), &stop)?;
        let mut take = |_: &Chunk<'_>, findings: &[Finding]| {
            rows.extend(findings.iter().map(|finding| {
                let pattern = &search.patterns()[finding.pattern as usize].text;
                json!([name, finding.offset, finding.length, pattern])
            }));
            ControlFlow::Continue(())
        };
        running.search(opened.place(), &stop, &mut take)?;
    }
    Ok(rows)
}

pub(crate) fn shortened(folder: &Path, name: &str) -> String {
    Path::new(name).strip_prefix(folder).unwrap().to_str().unwrap().to_string()
}

struct Rows(std::sync::Mutex<Vec<Row>>);

impl Watch for Rows {
    fn files(&self, mut rows: Vec<Row>, _: Option<u64>) -> std::io::Result<()> {
        self.0.lock().unwrap().append(&mut rows);
        Ok(())
    }
}

fn carved(folder: &Path, case: &Value) -> quarrier::Result<Vec<Value>> {
    let mut opened = opener(false).open(&Sources::only(named(folder, case))?)?;
    check_notice(case, &opened);
    let (request, machine, stop) = (Carve::new(), Machine::unknown(), AtomicBool::new(false));
    let rows = Rows(std::sync::Mutex::default());
    match request.start(opened.place(), &machine, &stop)? {
        Begin::Carving(carving) => carving.run(&rows)?,
        Begin::Finished => unreachable!("there is no folder"),
    };
    let rows = rows.0.into_inner().unwrap();
    let row = |row: &Row| {
        let name = shortened(folder, &row.source);
        json!([name, row.kind, row.offset, row.length, row.status.name()])
    };
    Ok(rows.iter().map(row).collect())
}

/// Checks that a source has the notice of its case, or none.
fn check_notice(case: &Value, opened: &Opened) {
    let line = opened.notice_line().unwrap_or_default();
    match case["notice"].as_str() {
        Some(notice) => assert!(line.contains(notice), "{}: {line}", case["name"]),
        None => assert_eq!(line, "", "{}", case["name"]),
    }
}

/// Compares an answer with the table.
pub(crate) fn check(case: &Value, answered: Result<Vec<Value>, Error>) {
    let name = &case["name"];
    match (answered, case["error"].as_str()) {
        (Ok(rows), None) => assert_eq!(json!(rows), case["rows"], "{name}"),
        (Ok(rows), Some(error)) => panic!("{name}: {rows:?} instead of {error}"),
        (Err(error), None) => panic!("{name}: {error}"),
        (Err(error), Some(expected)) => {
            let message = error.to_string();
            assert!(message.contains(expected), "{name}: {message}");
            let is_told = case["never"].as_str().is_some_and(|secret| message.contains(secret));
            assert!(!is_told, "{name}: {message}");
        }
    }
}

#[test]
fn searches_of_the_table() {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let folder = files(&table);
    for case in table["search"].as_array().unwrap() {
        check(case, found(folder.path(), case));
    }
}

#[test]
fn carvings_of_the_table() {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let folder = files(&table);
    for case in table["carve"].as_array().unwrap() {
        check(case, carved(folder.path(), case));
    }
}
