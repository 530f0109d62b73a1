//! Units of searches and of carving: the place of their rows (`--to`), and the plan (`--plan`).

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use quarrier_core::name;
use quarrier_units::{Model, Results, Simulated, Unit};

use crate::args::PlannedNodes;
use crate::output::Format;
use crate::output::rows::{self, Column, Excerpt, Kind, Layout, Value};

const PLAN_COLUMNS: &[Column] = &[
    Column { name: "units", kind: Kind::Unsigned },
    Column { name: "bytes", kind: Kind::Unsigned },
    Column { name: "seconds", kind: Kind::Number },
    Column { name: "units_done", kind: Kind::Unsigned },
    Column { name: "bytes_per_second", kind: Kind::Number },
];

/// Columns of a plan for several nodes.
const NODES_COLUMNS: &[Column] = &[
    PLAN_COLUMNS[0],
    PLAN_COLUMNS[1],
    PLAN_COLUMNS[2],
    PLAN_COLUMNS[3],
    PLAN_COLUMNS[4],
    Column { name: "nodes", kind: Kind::Unsigned },
    Column { name: "simulated_seconds", kind: Kind::Number },
    Column { name: "limited_by", kind: Kind::Text },
];

/// The work of a run, and the finished part of it.
#[derive(Clone, Default)]
pub(super) struct Planned {
    units: u64,
    /// The bytes of each unit that is not done.
    left: Vec<u64>,
    pub(super) bytes: u64,
    units_done: u64,
    pub(super) bytes_done: u64,
}

impl Planned {
    pub(super) fn add(&mut self, unit: &Unit, is_done: bool) {
        self.units += 1;
        self.bytes += unit.bytes();
        if is_done {
            self.units_done += 1;
            self.bytes_done += unit.bytes();
        } else {
            self.left.push(unit.bytes());
        }
    }

    /// Simulates the remaining units on several nodes.
    fn simulated(&self, nodes: PlannedNodes, bytes_per_second: f64) -> Simulated {
        let mut model = Model::new(self.left.clone(), nodes.count as usize, bytes_per_second);
        model.store_bytes_per_second = nodes.store_bytes_per_second.map(|rate| rate as f64);
        model.dispatch_seconds = nodes.dispatch.as_secs_f64();
        model.simulate()
    }

    /// Prints the plan, with the time that the remaining units take at a rate, and the simulated time on several
    /// nodes.
    pub(super) fn print(
        &self,
        format: Format,
        bytes_per_second: Option<f64>,
        nodes: Option<PlannedNodes>,
    ) -> io::Result<()> {
        let left = (self.bytes - self.bytes_done) as f64;
        let seconds = match left == 0.0 {
            true => Some(0.0),
            false => bytes_per_second.map(|rate| left / rate),
        };
        let simulated =
            nodes.map(|nodes| (nodes, bytes_per_second.map(|rate| self.simulated(nodes, rate))));
        let columns = if simulated.is_some() { NODES_COLUMNS } else { PLAN_COLUMNS };
        let mut out = rows::to_stdout(format, Layout::Planned, columns)?;
        let number = |value: Option<f64>| value.map_or(Value::Missing, Value::Number);
        let mut values = vec![
            Value::Unsigned(self.units),
            Value::Unsigned(self.bytes),
            number(seconds),
            Value::Unsigned(self.units_done),
            number(bytes_per_second),
        ];
        if let Some((nodes, simulated)) = simulated {
            values.push(Value::Unsigned(u64::from(nodes.count)));
            values.push(number(simulated.map(|it| it.seconds)));
            let limit = |it: Simulated| Value::Text(it.limit.name());
            values.push(simulated.map_or(Value::Missing, limit));
        }
        out.row(&values, Excerpt::default())?;
        out.finish()
    }
}

/// Refuses a place for rows inside a source: the next run would read its files.
pub(super) fn refuse_results_among_sources(
    results: &Results,
    sources: &[OsString],
) -> Result<(), String> {
    if let Some(source) = sources.iter().find(|source| results.is_within(&source.to_string_lossy()))
    {
        let source = name::of_path(source);
        return Err(format!("--to: is inside {source}, a source; use another folder for the rows"));
    }
    match results.folder() {
        Some(folder) => refuse_folder_among_sources(folder, sources),
        None => Ok(()),
    }
}

fn refuse_folder_among_sources(folder: &Path, sources: &[OsString]) -> Result<(), String> {
    let existing = folder.ancestors().find_map(|part| {
        let part = if part.as_os_str().is_empty() { Path::new(".") } else { part };
        part.canonicalize().ok()
    });
    let is_around = |source: &PathBuf| {
        source.is_dir()
            && source.canonicalize().is_ok_and(|source| {
                existing.as_ref().is_some_and(|existing| existing.starts_with(source))
            })
    };
    match sources.iter().map(name::path_of).find(is_around) {
        Some(source) => Err(format!(
            "{}: is inside {}, which is searched; use another folder for the rows",
            name::of_path(folder),
            name::of_path(source)
        )),
        None => Ok(()),
    }
}
