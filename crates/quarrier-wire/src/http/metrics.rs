//! `/metrics`: metrics in Prometheus' text format.

use std::fmt::Write;

use crate::shared::Shared;

pub(super) fn text(shared: &Shared) -> String {
    let mut out = String::new();
    for counter in shared.board.counts.all() {
        sample(&mut out, counter.name, counter.help, None, counter.total as f64);
    }
    let clients = shared.board.client_count() as f64;
    sample(&mut out, "connections", "Clients of PostgreSQL's protocol.", None, clients);
    let running = shared.board.running().len() as f64;
    sample(&mut out, "statements_running", "Running statements.", None, running);
    let up = shared.since.elapsed().as_secs_f64();
    sample(&mut out, "up_seconds", "Time since the start.", None, up);
    let mut tables = shared.answers.tables();
    tables.retain(|table| table.rows.is_some());
    for table in &tables {
        let rows = table.rows.unwrap_or_default() as f64;
        let label = Some(("table", table.name.as_str()));
        sample(&mut out, "table_rows", "Rows of a table.", label, rows);
    }
    for own in shared.answers.samples() {
        let label = own.label.as_ref().map(|(name, value)| (*name, value.as_str()));
        sample(&mut out, own.name, own.help, label, own.value);
    }
    out
}

fn sample(out: &mut String, name: &str, help: &str, label: Option<(&str, &str)>, value: f64) {
    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
    let head = format!("# HELP quarrier_{name} ");
    // A write to a String cannot fail.
    if !out.contains(&head) {
        let _ = write!(out, "{head}{help}\n# TYPE quarrier_{name} {kind}\n");
    }
    let _ = match label {
        None => writeln!(out, "quarrier_{name} {value}"),
        Some((label, of)) => {
            let of = of.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            writeln!(out, "quarrier_{name}{{{label}=\"{of}\"}} {value}")
        }
    };
}
