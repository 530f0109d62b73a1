//! The report on standard output: lines for people, rows for programs.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use quarrier_gauge::report::{Line, Report, Role, changes, table};
use quarrier_report::visible;
use serde_json::json;

use super::earlier::{self, Earlier};
use crate::args::Gauge;
use crate::commands::broken_output;
use crate::output::rows::{self, Column, Excerpt, Kind, Layout, Value};
use crate::output::{Format, colour};
use crate::{Outcome, StandardOutput};

const COLUMNS: &[Column] = &[
    Column { name: "area", kind: Kind::Text },
    Column { name: "measurement", kind: Kind::Text },
    Column { name: "parameters", kind: Kind::Json },
    Column { name: "value", kind: Kind::Number },
    Column { name: "unit", kind: Kind::Text },
    Column { name: "stddev", kind: Kind::Number },
    Column { name: "runs", kind: Kind::Unsigned },
    Column { name: "conditions", kind: Kind::Json },
    Column { name: "mean", kind: Kind::Number },
    Column { name: "best", kind: Kind::Number },
    Column { name: "dropped", kind: Kind::Unsigned },
    Column { name: "notes", kind: Kind::Json },
];

/// Width without a terminal, in columns.
const COLUMNS_WITHOUT_TERMINAL: usize = 140;

/// Writes the report, and the changes since earlier ones.
pub(super) fn show(gauge: &Gauge, report: &Report, earlier: &[Earlier]) -> Outcome {
    let written = match gauge.format {
        Format::Text => text(report, earlier),
        format => rows(format, report),
    };
    written.map_or_else(|error| broken_output(&error), |()| Outcome::Found)
}

fn text(report: &Report, earlier: &[Earlier]) -> io::Result<()> {
    let out = StandardOutput::new();
    let is_terminal = out.is_terminal();
    let mut out = io::BufWriter::new(out);
    let coloured = colour::is_wanted(is_terminal);
    let columns = match is_terminal {
        true => terminal_size::terminal_size().map_or(80, |(columns, _)| usize::from(columns.0)),
        false => COLUMNS_WITHOUT_TERMINAL,
    };
    for line in table(report, columns) {
        write_line(&mut out, &line, coloured)?;
    }
    let comparisons = earlier::comparisons(earlier, report);
    for (earlier, comparison) in earlier.iter().zip(&comparisons) {
        writeln!(out, "\ncompared with {}:", visible(earlier.name()))?;
        for line in changes(comparison) {
            write_line(&mut out, &line, coloured)?;
        }
    }
    out.flush()
}

fn write_line(out: &mut impl Write, line: &Line, coloured: bool) -> io::Result<()> {
    let mut text = String::new();
    for span in line {
        let style = if coloured { style(span.role) } else { Style::new() };
        text.push_str(&format!("{style}{}{style:#}", span.text));
    }
    writeln!(out, "{}", text.trim_end())
}

fn style(role: Role) -> Style {
    match role {
        Role::Plain => Style::new(),
        Role::Title => Style::new().bold(),
        Role::Soft => Style::new().dimmed(),
        Role::Value => Style::new().bold(),
        Role::Bar => AnsiColor::Cyan.on_default(),
        Role::Good => AnsiColor::Green.on_default(),
        Role::Bad => AnsiColor::Red.on_default(),
    }
}

/// A row for each reading.
fn rows(format: Format, report: &Report) -> io::Result<()> {
    let mut rows = rows::to_stdout(format, Layout::Number, COLUMNS)?;
    for reading in &report.readings {
        let parameters = json!(reading.parameters).to_string();
        let conditions = json!(reading.conditions).to_string();
        let notes = json!(reading.notes).to_string();
        let values = [
            Value::Text(reading.area.name()),
            Value::Text(&reading.measurement),
            Value::Json(&parameters),
            Value::Number(reading.value),
            Value::Text(reading.unit.name()),
            Value::Number(reading.stddev),
            Value::Unsigned(u64::from(reading.runs)),
            Value::Json(&conditions),
            Value::Number(reading.mean),
            Value::Number(reading.best),
            Value::Unsigned(u64::from(reading.dropped)),
            Value::Json(&notes),
        ];
        rows.row(&values, Excerpt::default())?;
    }
    rows.finish()
}
