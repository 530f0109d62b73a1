//! Readings from each of several places to each other: CPUs, or NUMA nodes.

use std::collections::HashMap;

use super::figure::Group;
use super::words;
use crate::reading::Reading;

/// The names of the parameters that make rows and columns, and what a place is.
const KINDS: [(&str, &str, &str); 2] =
    [("from_cpu", "to_cpu", "CPU"), ("from_node", "to_node", "node")];

/// A matrix with more cells is not drawn. Reports of this version have at most 256 for CPUs.
const CELLS_MOST: usize = 4096;

/// A matrix of readings.
#[derive(Debug, Clone)]
pub(crate) struct Matrix<'r> {
    /// What rows and columns are: `CPU`.
    pub(crate) kind: &'static str,
    /// The numbers of the columns, in order.
    pub(crate) columns: Vec<u64>,
    /// The rows: a number, and a reading for each column, if there is one.
    pub(crate) rows: Vec<(u64, Vec<Option<&'r Reading>>)>,
}

impl<'r> Matrix<'r> {
    /// Returns the matrix of a measurement; `None` if its readings have no such parameters, if there is only
    /// one reading, or if the matrix would be too large to read.
    pub(crate) fn of(group: &Group<'r>) -> Option<Matrix<'r>> {
        let first = group.readings.first().filter(|_| group.readings.len() > 1)?;
        let (from, to, kind) =
            KINDS.into_iter().find(|(from, _, _)| first.parameters.integer(from).is_some())?;
        let mut found: HashMap<(u64, u64), &'r Reading> = HashMap::new();
        for &reading in &group.readings {
            let (row, column) =
                (reading.parameters.integer(from)?, reading.parameters.integer(to)?);
            found.entry((row, column)).or_insert(reading);
        }
        let columns = numbers(found.keys().map(|(_, to)| *to));
        let rows = numbers(found.keys().map(|(from, _)| *from));
        if rows.len() * columns.len() > CELLS_MOST {
            return None;
        }
        let row = |row| (row, columns.iter().map(|&to| found.get(&(row, to)).copied()).collect());
        let rows = rows.into_iter().map(row).collect();
        Some(Matrix { kind, columns, rows })
    }

    /// The name of a row: `from CPU 3`.
    pub(crate) fn row_name(&self, number: u64) -> String {
        format!("from {} {number}", self.kind)
    }

    /// The parameters that all readings share, in words.
    pub(crate) fn shared(&self) -> String {
        let places: Vec<&str> = KINDS.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        let first = self.rows.iter().flat_map(|(_, row)| row).flatten().next();
        let parameters = first.map(|reading| reading.parameters.iter());
        let shared = parameters.into_iter().flatten().filter(|(name, _)| !places.contains(name));
        shared.map(|(name, value)| words::parameter(name, value)).collect::<Vec<_>>().join(" · ")
    }
}

fn numbers(all: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut numbers: Vec<u64> = all.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
