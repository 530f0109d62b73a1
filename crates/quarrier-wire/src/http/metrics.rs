//! `/metrics`: figures in Prometheus' text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::shared::Shared;

pub(super) fn text(shared: &Shared) -> String {
    let counts = &shared.board.counts;
    let mut out = String::new();
    let grown: [(&str, &str, &AtomicU64); 12] = [
        ("connections_total", "Connections that came.", &counts.connections),
        ("connections_refused_total", "Connections that were refused.", &counts.refused),
        ("wrong_passwords_total", "Passwords that were wrong.", &counts.wrong_passwords),
        ("http_requests_total", "Requests over HTTP.", &counts.requests),
        ("statements_total", "Statements that were begun.", &counts.statements),
        ("statements_failed_total", "Statements that failed.", &counts.failures),
        ("statements_cancelled_total", "Statements cancelled or too long.", &counts.cancelled),
        ("rows_sent_total", "Rows that were sent.", &counts.rows),
        ("sent_bytes_total", "Bytes that were sent.", &counts.bytes_sent),
        ("received_bytes_total", "Bytes that came.", &counts.bytes_received),
        ("messages_total", "Messages that were taken.", &counts.messages),
        ("messages_rejected_total", "Messages that made no sense.", &counts.rejected),
    ];
    for (name, help, count) in grown {
        sample(&mut out, name, help, None, count.load(Ordering::Relaxed) as f64);
    }
    let clients = shared.board.client_count() as f64;
    sample(&mut out, "connections", "Clients of PostgreSQL's protocol.", None, clients);
    let running = shared.board.running().len() as f64;
    sample(&mut out, "statements_running", "Statements that run.", None, running);
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
    // A text takes whatever is written.
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
