//! `cargo xtask tidy`: rules that the compiler cannot check.
//!
//! | module | rule |
//! |---|---|
//! | `layers` | crates use only what the table in ARCHITECTURE.md allows |
//! | `crates` | manifests inherit from the workspace; crate roots begin with docs |
//! | `cycles` | the top modules of a crate depend on each other in one direction |
//! | `text` | no left-over marks, no overlong files, no paths of one machine |
//! | `links` | relative links in Markdown lead to a file |
//! | `words` | pages for users avoid the words that docs/writing.md rules out |
//!
//! A rule is a function from the [`Tree`] to its problems. To add one, write a function and add a
//! line to [`RULES`].

mod code;
mod crates;
mod cycles;
mod layers;
mod links;
mod manifest;
mod table;
mod text;
mod tree;
mod words;

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use tree::Tree;

const RULES: [fn(&Tree) -> Vec<Problem>; 9] = [
    layers::layers,
    crates::manifests,
    crates::root_docs,
    cycles::cycles,
    text::left_over_marks,
    text::file_lengths,
    text::machine_paths,
    links::relative_links,
    words::words,
];

/// A problem with its place and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    /// From the workspace's root, with `/` between folders.
    path: String,
    /// Counted from 1.
    line: usize,
    what: String,
    what_to_do: String,
}

impl Problem {
    fn new(
        path: impl Into<String>,
        line: usize,
        what: impl Into<String>,
        what_to_do: impl Into<String>,
    ) -> Self {
        Self { path: path.into(), line, what: what.into(), what_to_do: what_to_do.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, what_to_do } = self;
        write!(f, "{path}:{line}: {what}; {what_to_do}")
    }
}

/// Prints every problem of the tree to stderr, one per line; fails if there is any.
pub(crate) fn run(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::FAILURE;
        }
    };
    let problems = problems(&tree);
    for problem in &problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the problems of all rules, sorted by place.
fn problems(tree: &Tree) -> Vec<Problem> {
    let mut problems: Vec<Problem> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    problems.sort();
    problems.dedup();
    problems
}

/// Returns the places (`path:line`) of the problems that `rule` finds in a tree of `files`.
#[cfg(test)]
fn places(rule: fn(&Tree) -> Vec<Problem>, files: &[(&str, &str)]) -> Vec<String> {
    let mut problems = rule(&Tree::of(files));
    problems.sort();
    problems.iter().map(|problem| format!("{}:{}", problem.path, problem.line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_one_line_with_place_cause_and_remedy() {
        let problem = Problem::new("a/b.rs", 7, "it is wrong", "make it right");
        assert_eq!(problem.to_string(), "a/b.rs:7: it is wrong; make it right");
    }

    #[test]
    fn all_rules_are_run_and_their_problems_sorted() {
        let tree = Tree::of(&[("b.md", "[gone](gone.md)"), ("a.sh", concat!("# FIX", "ME later"))]);
        let found: Vec<String> = problems(&tree)
            .iter()
            .map(|problem| format!("{}:{}", problem.path, problem.line))
            .collect();
        assert_eq!(found, ["ARCHITECTURE.md:1", "a.sh:1", "b.md:1"]);
    }
}
