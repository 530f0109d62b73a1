//! Tables of text, and the format of figures in them.

use std::fmt;

use crate::measure::Spread;

pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(headings: &[&str]) -> Self {
        Table { rows: vec![headings.iter().map(|&heading| heading.to_string()).collect()] }
    }

    /// Adds a row with as many cells as there are headings.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    /// Formats aligned Markdown, which also reads well in a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (number, row) in self.rows.iter().enumerate() {
            for (cell, &width) in row.iter().zip(&widths) {
                write!(f, "| {cell:>width$} ")?;
            }
            writeln!(f, "|")?;
            if number == 0 {
                for width in &widths {
                    write!(f, "|{}:", "-".repeat(width + 1))?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Formats a rate in GB/s.
pub(crate) fn rate(bytes: u64, seconds: Option<Spread>) -> String {
    cell(seconds, |seconds| format!("{:.2}", bytes as f64 / seconds.median / 1e9))
}

pub(crate) fn ratio(ratio: Option<Spread>) -> String {
    cell(ratio, |ratio| format!("{:.2}", ratio.median))
}

pub(crate) fn share(share: Option<Spread>) -> String {
    cell(share, |share| format!("{:.0} %", 100.0 * share.median))
}

pub(crate) fn seconds(seconds: Option<Spread>) -> String {
    cell(seconds, |seconds| format!("{:.1} ms", 1e3 * seconds.median))
}

fn cell(spread: Option<Spread>, text: impl Fn(Spread) -> String) -> String {
    spread.map_or_else(|| "-".to_string(), text)
}
