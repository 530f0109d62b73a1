//! Tests the facade against the rows of the doors table that read messages or gauge.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use quarrier::filter::{Conditions, Form, Rows};
use quarrier::{Filter, Gauge, Machine, Sources, Tables};
use quarrier_messages::Format;
use serde_json::{Value, json};

use crate::doors::{TABLE, check, files, named, opener};

/// A source of the table by its name, or a pipe that supplies its bytes.
struct NamedSource {
    name: String,
    writer: Option<JoinHandle<()>>,
}

impl NamedSource {
    fn of(folder: &Path, case: &Value) -> NamedSource {
        let name = named(folder, case);
        if case["stream"] != true {
            return NamedSource { name, writer: None };
        }
        let pipe = format!("{name}.pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let bytes = std::fs::read(name).unwrap();
        let to = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(to, bytes).unwrap());
        NamedSource { name: pipe, writer: Some(writer) }
    }

    /// Asserts that the pipe was read.
    fn end(self) {
        if let Some(writer) = self.writer {
            writer.join().unwrap();
            std::fs::remove_file(self.name).unwrap();
        }
    }
}

fn format_of(case: &Value) -> quarrier::Result<Option<Format>> {
    Ok(Format::named(case["format"].as_str().unwrap_or("auto"))?)
}

fn filtered(name: &str, case: &Value) -> quarrier::Result<Vec<Value>> {
    let columns = case["columns"].as_array().unwrap().iter();
    let columns: Vec<String> = columns.map(|name| name.as_str().unwrap().to_string()).collect();
    let filter = Filter::new(Conditions::one(case["condition"].as_str().unwrap()))
        .format(format_of(case)?)
        .form(Form::Json)
        .columns(Some(columns.clone()));
    let stop = Arc::new(AtomicBool::new(false));
    let mut lines = Vec::new();
    let mut take = |rows: &Rows<'_>| {
        assert_eq!(rows.messages().count(), rows.len());
        lines.extend_from_slice(rows.text());
        Ok(())
    };
    let filtered = filter.run(&Sources::of([name]), &opener(false), &stop, &mut take)?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let row = |line| {
        let row: Value = serde_json::from_slice(line).unwrap();
        json!(columns.iter().map(|name| &row[name]).collect::<Vec<_>>())
    };
    let rows: Vec<Value> = lines.map(row).collect();
    assert_eq!(filtered.counts, [rows.len() as u64]);
    Ok(rows)
}

fn loaded(name: &str, case: &Value) -> quarrier::Result<Vec<Value>> {
    let stop = Arc::new(AtomicBool::new(false));
    let tables = Tables::new().format(format_of(case)?);
    let loaded = tables.load_all(&Sources::of([name]), &opener(false), &stop)?;
    assert_eq!(json!(loaded.rejected), case["rejected"], "{}", case["name"]);
    assert_eq!(loaded.rejects.len() as u64, loaded.rejected, "{}", case["name"]);
    let value = |row, column| match loaded.table.value(row, column) {
        quarrier_messages::Value::Integer(number) => json!(number),
        quarrier_messages::Value::Text(text) => json!(text),
        other => panic!("{other:?}"),
    };
    let columns = loaded.table.columns().len();
    let row = |row| json!((0..columns).map(|column| value(row, column)).collect::<Vec<_>>());
    Ok((0..loaded.table.rows()).map(row).collect())
}

fn ask(part: &str, answer: fn(&str, &Value) -> quarrier::Result<Vec<Value>>) {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let folder = files(&table);
    for case in table[part].as_array().unwrap() {
        let asked = NamedSource::of(folder.path(), case);
        check(case, answer(&asked.name, case));
        asked.end();
    }
}

#[test]
fn filters_of_the_table() {
    ask("filter", filtered);
}

#[test]
fn tables_of_the_table() {
    ask("tables", loaded);
}

#[test]
fn gauges_of_the_table() {
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let folder = files(&table);
    for case in table["gauge"].as_array().unwrap() {
        let names = case["areas"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let path = folder.path().join(case["folder"].as_str().unwrap_or("."));
        let areas = Gauge::areas_named(names);
        let gauged = areas.and_then(|areas| {
            let gauge = Gauge::new().areas(areas).quick(true).folder(path);
            gauge.run(&Machine::unknown(), &mut (), &AtomicBool::new(false))
        });
        check(case, gauged.map(|gauged| vec![json!(gauged.report.readings.len())]));
    }
}
