//! The number of workers: 0 is planned, in every request and in every crate below.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::filter::{Conditions, Rows};
use quarrier::search::Planning;
use quarrier::{Filter, Machine, Place, Search, Sources, Tables};
use quarrier_carve::Carver;
use quarrier_core::parallel::{Cut, available_workers, init};
use quarrier_core::pipeline::{Chunk, Need, Pipeline};
use quarrier_core::source::Memory;
use quarrier_filter::sql::statement;
use quarrier_filter::{Scan, Scanner};
use quarrier_messages::{Format, Load, Table};
use quarrier_search::{Finding, Pattern};

use crate::doors::opener;

const LINES: &[u8] = b"{\"id\":1}\n{\"id\":2}\n";

fn of_pipeline(workers: usize) -> usize {
    let source = Memory::new("memory", vec![0; 1 << 16]);
    Pipeline::new(&source).workers(workers).plan(Need::default()).unwrap().workers
}

fn of_carver(workers: usize) -> usize {
    Carver::new().memory_bytes_max(u64::MAX).workers(workers).workers_count()
}

fn of_scan(workers: usize) -> usize {
    let table = table(workers);
    Scan::new(&table, &[]).workers(workers).explain().workers
}

fn of_tables(workers: usize) -> usize {
    Tables::new().workers(workers).load(Vec::new(), &AtomicBool::new(false)).unwrap().workers
}

fn of_filter(workers: usize) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.ndjson");
    std::fs::write(&path, LINES).unwrap();
    let filter = Filter::new(Conditions::one("id > 1")).workers(workers);
    let stop = Arc::new(AtomicBool::new(false));
    let mut take = |_: &Rows<'_>| Ok(());
    let filtered = filter.run(&Sources::of([path]), &opener(false), &stop, &mut take).unwrap();
    assert_eq!(filtered.counts, [1]);
    filtered.runs[0].plan.workers
}

fn of_search(workers: usize) -> usize {
    let planning = Planning { workers, ..Planning::default() };
    let search = Search::new(vec![Pattern::literal("id").unwrap()]).planning(planning);
    let source = Memory::new("memory", LINES.to_vec());
    let machine = Machine::unknown();
    let mut running = search.start(&machine, Some(&Place::Local(&source)), &false.into()).unwrap();
    let mut take = |_: &Chunk<'_>, _: &[Finding]| std::ops::ControlFlow::Continue(());
    let stop = AtomicBool::new(false);
    running.search(Place::Local(&source), &stop, &mut take).unwrap().run.plan.workers
}

/// Loads, combines and filters a table with this many workers.
fn table(workers: usize) -> Table {
    let memory = Memory::new("memory", LINES.to_vec());
    let loaded = Load::new(Format::Json).workers(workers).run(&[&memory]).unwrap();
    let table = Table::concat(&[loaded.table], workers).take(&[1, 0], &[0], workers);
    assert_eq!(table.rows(), 2);
    table
}

#[test]
fn no_workers_are_as_many_as_there_are_cpus_everywhere() {
    type Workers = fn(usize) -> usize;
    let all: [(&str, Workers); 6] = [
        ("Pipeline", of_pipeline),
        ("Carver", of_carver),
        ("Scan", of_scan),
        ("Tables", of_tables),
        ("Filter", of_filter),
        ("Search", of_search),
    ];
    for (what, workers) in all {
        for (asked, expected) in [(0, available_workers()), (1, 1), (3, 3)] {
            assert_eq!(workers(asked), expected, "{what} asked for {asked}");
        }
    }
}

#[test]
fn what_does_not_say_how_many_worked_works_with_none() {
    let mut out = [0; 100];
    init(&mut out, Cut::default(), |part: &mut [i32], _| part.fill(7)).unwrap();
    assert_eq!(out, [7; 100]);
    let table = Arc::new(table(0));
    let query = statement("SELECT count(*) FROM m", "m", table.schema()).unwrap();
    let answer = Scanner::start(table, 0).unwrap().submit(query).wait().unwrap();
    assert_eq!(answer.count, 2);
}
