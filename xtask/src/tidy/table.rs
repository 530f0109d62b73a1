//! Reads the table of allowed edges in ARCHITECTURE.md, the one place that defines the layering,
//! for people and for this tool.
//!
//! ```text
//! ## Allowed edges
//!
//! | crate | may use | heavy dependencies it alone names |
//! |---|---|---|
//! | `quarrier-core` | – | `rustix`, `io-uring` (Linux only) |
//! | `quarrier-cli` | `quarrier-core` | – |
//! ```
//!
//! Columns are found by their headings, so other columns may stand between them. A cell holds names
//! with commas between; quotes and the prefix `quarrier-` may be left out; text in parentheses is
//! for people. If two rows name the same heavy dependency, both crates may use it.

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;

/// The file that holds the table.
pub(crate) const PATH: &str = "ARCHITECTURE.md";
const HEADING: &str = "Allowed edges";
const PREFIX: &str = "quarrier-";
/// The crate through which programs and packages use the others.
const FACADE: &str = "quarrier";

/// The permissions of one crate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// The line of the row in ARCHITECTURE.md, counted from 1.
    pub(crate) line: usize,
    /// The crates of the workspace that may be its dependencies.
    pub(crate) may_use: BTreeSet<String>,
    /// The heavy dependencies of its row, which crates without them in their rows may not name.
    pub(crate) heavy: BTreeSet<String>,
}

/// The rows, by the name of their crate.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: BTreeMap<String, Row>,
}

impl Table {
    /// Reads the first table below the heading. Returns the valid rows, and the problems of the
    /// others.
    pub(crate) fn parse(text: &str) -> (Self, Vec<Problem>) {
        let mut table = Self::default();
        let mut lines = table_lines(text);
        let Some((heading_line, header)) = lines.next() else {
            let what = format!("no table under a heading `## {HEADING}`");
            let problem = Problem::new(PATH, 1, what, format!("add one with {COLUMNS}"));
            return (table, vec![problem]);
        };
        let Some(columns) = Columns::find(&cells(header)) else {
            let what = format!("the table under `## {HEADING}` lacks a column");
            let problem = Problem::new(PATH, heading_line, what, format!("give it {COLUMNS}"));
            return (table, vec![problem]);
        };
        let mut problems = Vec::new();
        for (line, text) in lines {
            if let Err(what) = table.add(line, &cells(text), &columns) {
                let remedy = "write names with commas between, or `–` for none";
                problems.push(Problem::new(PATH, line, what, remedy));
            }
        }
        problems.extend(table.circles());
        (table, problems)
    }

    fn add(&mut self, line: usize, cells: &[&str], columns: &Columns) -> Result<(), String> {
        let cell = |column: usize| {
            let cell = cells.get(column);
            cell.copied().ok_or_else(|| "the row lacks a cell".to_owned())
        };
        let crates = names(cell(columns.name)?)?;
        let row = Row {
            line,
            may_use: names(cell(columns.may_use)?)?.into_iter().map(full_name).collect(),
            heavy: names(cell(columns.heavy)?)?.into_iter().collect(),
        };
        let [name] = &crates[..] else {
            return Err(format!("the row names {} crates, not one", crates.len()));
        };
        let name = full_name(name.clone());
        if let Some(earlier) = self.rows.get(&name) {
            return Err(format!("{name} has a row already, on line {}", earlier.line));
        }
        self.rows.insert(name, row);
        Ok(())
    }

    /// Reports the rows that allow a crate to use itself, directly or through others.
    fn circles(&self) -> Vec<Problem> {
        let circular = self.rows.iter().filter(|(name, _)| self.above(name, name));
        circular
            .map(|(name, row)| {
                let what = format!("the table lets {name} use itself, directly or through others");
                Problem::new(PATH, row.line, what, "remove one of the edges")
            })
            .collect()
    }

    /// Whether `upper` may use `lower`, directly or through others.
    pub(crate) fn above(&self, upper: &str, lower: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut to_visit = vec![upper];
        while let Some(name) = to_visit.pop() {
            let Some(row) = self.rows.get(name) else {
                continue;
            };
            for used in &row.may_use {
                if used == lower {
                    return true;
                }
                if seen.insert(used) {
                    to_visit.push(used);
                }
            }
        }
        false
    }

    /// Returns the crates whose rows name `dependency` as heavy.
    pub(crate) fn owners(&self, dependency: &str) -> Vec<&str> {
        let same = |heavy: &String| heavy.replace('_', "-") == dependency.replace('_', "-");
        let owners = self.rows.iter().filter(|(_, row)| row.heavy.iter().any(same));
        owners.map(|(name, _)| name.as_str()).collect()
    }
}

const COLUMNS: &str = "the columns `crate | may use | heavy dependencies it alone names`";

/// The indexes of the three columns.
struct Columns {
    name: usize,
    may_use: usize,
    heavy: usize,
}

impl Columns {
    fn find(header: &[&str]) -> Option<Self> {
        let find = |start: &str| {
            let mut headings = header.iter();
            headings.position(|heading| heading.to_lowercase().starts_with(start))
        };
        Some(Self { name: find("crate")?, may_use: find("may use")?, heavy: find("heavy")? })
    }
}

/// Returns the header and the rows of the first table in the heading's section, with their line
/// numbers, without the ruler between them.
fn table_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let in_table = |line: &str| line.trim_start().starts_with('|');
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    lines
        .skip_while(|(_, line)| !is_heading(line))
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("# ") && !line.starts_with("## "))
        .skip_while(move |(_, line)| !in_table(line))
        .take_while(move |(_, line)| in_table(line))
        .filter(|(_, line)| line.chars().any(|c| !matches!(c, '|' | '-' | ':' | ' ')))
}

fn is_heading(line: &str) -> bool {
    line.strip_prefix("##").is_some_and(|title| title.trim().eq_ignore_ascii_case(HEADING))
}

fn cells(row: &str) -> Vec<&str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    row.split('|').map(str::trim).collect()
}

/// Returns the names in a cell.
fn names(cell: &str) -> Result<Vec<String>, String> {
    let cell = without_parentheses(cell);
    if matches!(cell.trim(), "" | "-" | "–" | "—" | "none") {
        return Ok(Vec::new());
    }
    let name = |text: &str| {
        let text = text.trim();
        let bare = text.strip_prefix('`').and_then(|t| t.strip_suffix('`'));
        let bare = bare.unwrap_or(text).trim();
        let in_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !bare.is_empty() && bare.chars().all(in_name) {
            Ok(bare.to_owned())
        } else {
            Err(format!("`{}` is not a name", bare.replace('`', "")))
        }
    };
    cell.split(',').map(name).collect()
}

fn without_parentheses(cell: &str) -> String {
    let mut depth = 0_usize;
    let mut kept = String::new();
    for c in cell.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(c),
            _ => {}
        }
    }
    kept
}

/// Adds the prefix that the names of all crates but xtask and the facade have.
fn full_name(name: String) -> String {
    if is_ours(&name) { name } else { format!("{PREFIX}{name}") }
}

/// Whether a dependency of this name is a crate of the workspace.
pub(crate) fn is_ours(package: &str) -> bool {
    package == "xtask" || package == FACADE || package.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "## Allowed edges\n\nWhy.\n\n\
        | crate | may use | heavy dependencies it alone names |\n|---|:---|---|\n";

    /// Checks the rows as `name > used > heavy`, and the lines of the problems.
    fn check(text: &str, rows: &[&str], problem_lines: &[usize]) {
        let (table, problems) = Table::parse(text);
        let joined = |names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            names.join(",")
        };
        let found: Vec<String> = table
            .rows
            .iter()
            .map(|(name, row)| format!("{name}>{}>{}", joined(&row.may_use), joined(&row.heavy)))
            .collect();
        assert_eq!(found, rows);
        let lines: Vec<usize> = problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, problem_lines, "{problems:?}");
    }

    #[test]
    fn rows_are_read_from_the_table_below_the_heading_only() {
        let text = format!(
            "# A\n\n| crate | may use |\n|---|---|\n| `quarrier-other` | `x` |\n\n{HEADER}\
             | `quarrier-core` | – | `rustix`, `io-uring` |\n\
             | `quarrier-cli` | `quarrier-core` | – |\n\n\
             | `quarrier-late` | – | – |\n\n## Next\n\n| a |\n"
        );
        let rows = ["quarrier-cli>quarrier-core>", "quarrier-core>>io-uring,rustix"];
        check(&text, &rows, &[]);
    }

    #[test]
    fn the_facade_has_no_prefix() {
        let text = format!("{HEADER}| `quarrier` | `core` | – |\n| `cli` | `quarrier` | – |\n");
        check(&text, &["quarrier>quarrier-core>", "quarrier-cli>quarrier>"], &[]);
    }

    #[test]
    fn short_names_bare_names_notes_and_other_columns_are_understood() {
        let text = "## allowed edges\n| Crate | is | May use (never the other way) | Heavy dependency |\n\
            |-|-|-|-|\n| core | the base, of all | - | rustix (unix, mostly) |\n\
            | `cli` | a | core | |\n| xtask | b | none | — |";
        let rows = ["quarrier-cli>quarrier-core>", "quarrier-core>>rustix", "xtask>>"];
        check(text, &rows, &[]);
    }

    #[test]
    fn a_missing_heading_table_or_column_is_a_problem() {
        check("# Architecture\n\n| crate | may use | heavy |\n", &[], &[1]);
        check("## Allowed edges\n\ntext\n\n## Next\n\n| crate |\n", &[], &[1]);
        check("## Allowed edges\n\n| crate | may use |\n|---|---|\n", &[], &[3]);
    }

    #[test]
    fn invalid_rows_are_problems_and_the_others_are_kept() {
        let text = format!(
            "{HEADER}| `a` | all but `b` | – |\n| `b` | – |\n| `c`, `d` | – | – |\n\
             | `e` | – | – |\n| `e` | – | – |\n"
        );
        check(&text, &["quarrier-e>>"], &[7, 8, 9, 11]);
    }

    #[test]
    fn a_cycle_is_a_problem_of_each_of_its_rows() {
        let text = format!(
            "{HEADER}| `a` | `b` | – |\n| `b` | `c` | – |\n| `c` | `a` | – |\n| `d` | `a` | – |"
        );
        let rows = [
            "quarrier-a>quarrier-b>",
            "quarrier-b>quarrier-c>",
            "quarrier-c>quarrier-a>",
            "quarrier-d>quarrier-a>",
        ];
        check(&text, &rows, &[7, 8, 9]);
    }
}
