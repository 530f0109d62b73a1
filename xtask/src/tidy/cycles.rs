//! The top modules of a crate depend on each other in one direction.
//!
//! A top module is a file or folder directly below `src`. It uses another one if it names an item
//! of it: by `crate::other`, by `super::` from its depth, or by a name that the crate's root
//! re-exports. Tests may use any module, and so may modules within one top module.

use std::collections::{BTreeMap, BTreeSet};

use super::Problem;
use super::code::{Token, tokens};
use super::tree::{Tree, last_part};

/// Known cycles, each a crate and its modules, in code that is being restructured. A cycle that no
/// longer exists must be removed from the list.
const KNOWN: [(&str, &[&str]); 5] = [
    ("quarrier-cli", &["args", "commands"]),
    ("quarrier-gauge", &["compare", "report"]),
    ("quarrier-python", &["findings", "stream"]),
    ("quarrier-search", &["gpu", "searcher"]),
    ("quarrier-search", &["multi", "naive", "pattern", "regex", "strategy"]),
];

const PATH: &str = "xtask/src/tidy/cycles.rs";

/// No two top modules use each other, directly or through others.
pub(crate) fn cycles(tree: &Tree) -> Vec<Problem> {
    cycles_but(tree, &KNOWN)
}

fn cycles_but(tree: &Tree, known: &[(&str, &[&str])]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for folder in tree.crate_folders() {
        let arrows = Arrows::of(tree, folder);
        let name = last_part(folder);
        let mut cycle_sets = arrows.cycle_sets();
        for (_, modules) in known.iter().filter(|(of, _)| *of == name) {
            let before = cycle_sets.len();
            cycle_sets.retain(|cycle| !cycle.iter().eq(modules.iter()));
            if cycle_sets.len() == before {
                let what = format!("{name} has no cycle of {}", modules.join(", "));
                problems.push(Problem::new(PATH, 1, what, "remove it from `KNOWN`"));
            }
        }
        problems.extend(cycle_sets.iter().map(|cycle| arrows.problem(cycle)));
    }
    problems
}

/// A place where a module names an item of another: the file and its line.
type Place = (String, usize);

/// Which top module uses which, and at which places.
#[derive(Default)]
struct Arrows(BTreeMap<(String, String), Vec<Place>>);

impl Arrows {
    /// Collects the uses in the crate in `folder`.
    fn of(tree: &Tree, folder: &str) -> Self {
        let source = format!("{folder}/src/");
        let files: Vec<(Vec<&str>, &str, String)> = tree
            .text_files(&["rs"])
            .filter_map(|(path, text)| {
                let module = path.strip_prefix(&source)?.strip_suffix(".rs")?;
                let module = module.strip_suffix("/mod").unwrap_or(module);
                Some((module.split('/').collect(), path, text.into_owned()))
            })
            .collect();
        let is_root = |module: &[&str]| matches!(module, ["lib" | "main"] | ["bin", ..]);
        let tops: BTreeSet<&str> = files
            .iter()
            .filter(|(module, ..)| !is_root(module))
            .map(|(module, ..)| module[0])
            .collect();
        let mut names: BTreeMap<String, &str> =
            tops.iter().map(|top| ((*top).to_owned(), *top)).collect();
        for (_, _, text) in files.iter().filter(|(module, ..)| is_root(module)) {
            for (path, _) in paths(&tokens(text)) {
                let mut parts = path.iter().skip_while(|part| *part == "crate" || *part == "self");
                if let (Some(first), Some(last)) = (parts.next(), path.last())
                    && let Some(&top) = tops.get(first.as_str())
                {
                    names.entry(last.clone()).or_insert(top);
                }
            }
        }
        let mut arrows = Arrows::default();
        for (module, file, text) in files.iter().filter(|(module, ..)| !is_root(module)) {
            for (path, line) in paths(&tokens(text)) {
                let named = named_at_root(&path, module.len());
                let Some(&other) = named.and_then(|name| names.get(name)) else { continue };
                if other != module[0] {
                    let key = (module[0].to_owned(), other.to_owned());
                    arrows.0.entry(key).or_default().push(((*file).to_owned(), line));
                }
            }
        }
        arrows
    }

    /// Returns the modules that a module uses.
    fn used_by<'a>(&'a self, module: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.keys().filter(move |(user, _)| user == module).map(|(_, used)| used.as_str())
    }

    /// Returns the shortest path from one module to another, both included; `None` if there is
    /// none.
    fn path_between<'a>(&'a self, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
        let mut seen = BTreeSet::new();
        let mut routes = std::collections::VecDeque::from([vec![from]]);
        while let Some(route) = routes.pop_front() {
            let last = *route.last()?;
            for used in self.used_by(last).filter(|used| seen.insert((*used).to_owned())) {
                let longer: Vec<&str> = route.iter().copied().chain([used]).collect();
                if used == to {
                    return Some(longer);
                }
                routes.push_back(longer);
            }
        }
        None
    }

    /// Returns the sets of modules that all reach each other, with their modules by name.
    fn cycle_sets(&self) -> Vec<Vec<&str>> {
        let modules: BTreeSet<&str> = self.0.keys().map(|(user, _)| user.as_str()).collect();
        let mut cycle_sets: Vec<Vec<&str>> = Vec::new();
        for &one in &modules {
            let is_in_one = cycle_sets.iter().any(|cycle| cycle.contains(&one));
            if !is_in_one && self.path_between(one, one).is_some() {
                let meets = |other: &&str| {
                    *other == one
                        || (self.path_between(one, other).is_some()
                            && self.path_between(other, one).is_some())
                };
                cycle_sets.push(modules.iter().copied().filter(meets).collect());
            }
        }
        cycle_sets
    }

    /// Reports a cycle at the use that is easiest to remove.
    fn problem(&self, cycle: &[&str]) -> Problem {
        let inside = self.0.iter().filter(|((user, used), _)| {
            cycle.contains(&user.as_str()) && cycle.contains(&used.as_str())
        });
        let weakest = inside.min_by_key(|(_, places)| places.len());
        let ((user, used), places) = weakest.expect("a cycle has arrows");
        let back = self.path_between(used, user).unwrap_or_default().join(" → ");
        let what = format!("the module {user} uses {used}, which builds on it: {user} → {back}");
        let remedy = "move the shared code into the lower one, or into a separate module";
        let (path, line) = &places[0];
        Problem::new(path, *line, what, remedy)
    }
}

/// Returns the name directly below the crate's root in a path, if the path leads there from a
/// module at this depth.
fn named_at_root(path: &[String], depth: usize) -> Option<&str> {
    let supers = path.iter().take_while(|part| *part == "super").count();
    let starts = path.first().is_some_and(|part| part == "crate");
    let above = if starts { 1 } else { supers };
    let leads_there = starts || (supers > 0 && supers == depth);
    path.get(above).filter(|_| leads_there).map(String::as_str)
}

/// Returns the paths in a file, in `use` and elsewhere, with their lines. Modules within the file
/// count as deep as the file.
fn paths(tokens: &[Token<'_>]) -> Vec<(Vec<String>, usize)> {
    let mut found = Vec::new();
    let mut inner: Vec<usize> = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(token) = tokens.get(at) {
        let line = token.line;
        let from = found.len();
        match token.text {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if inner.last() == Some(&depth) {
                    inner.pop();
                }
            }
            "mod" if tokens.get(at + 2).is_some_and(|token| token.text == "{") => inner.push(depth),
            "use" => {
                let end = tokens[at..].iter().position(|token| token.text == ";");
                let end = end.map_or(tokens.len(), |end| at + end);
                branches(&tokens[at + 1..end], &[], &mut found);
                at = end;
            }
            "crate" | "super" => {
                let length = path_length(&tokens[at..]);
                let parts = tokens[at..at + length].iter().step_by(2);
                found.push((parts.map(|part| part.text.to_owned()).collect(), line));
                at += length - 1;
            }
            _ => {}
        }
        for (path, _) in &mut found[from..] {
            let supers = path.iter().take_while(|part| *part == "super").count();
            path.drain(..supers.min(inner.len()));
        }
        at += 1;
    }
    found
}

/// Returns the number of tokens of the path that begins with the first one.
fn path_length(tokens: &[Token<'_>]) -> usize {
    let is_word =
        |token: &Token<'_>| token.text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let continues =
        tokens[1..].chunks_exact(2).take_while(|two| two[0].text == "::" && is_word(&two[1]));
    1 + 2 * continues.count()
}

/// Collects the paths of a tree of `use`, each after `stem`, with original names instead of
/// renames.
fn branches(tokens: &[Token<'_>], stem: &[String], found: &mut Vec<(Vec<String>, usize)>) {
    let mut path = stem.to_vec();
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "::" => {}
            "as" => break,
            "{" => {
                let end = tokens.len() - 1;
                for branch in split(&tokens[at + 1..end.max(at + 1)]) {
                    branches(branch, &path, found);
                }
                return;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
    }
    if let (Some(first), false) = (tokens.first(), path.is_empty()) {
        found.push((path, first.line));
    }
}

/// Splits tokens at the commas outside of braces.
fn split<'a, 't>(tokens: &'a [Token<'t>]) -> Vec<&'a [Token<'t>]> {
    let mut depth = 0_usize;
    let parts = tokens.split(|token| {
        match token.text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.text == ","
    });
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    /// Checks the problems of a crate with these files in `src`.
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let manifest = ("crates/one/Cargo.toml".to_owned(), "");
        let all: Vec<(String, &str)> = files
            .iter()
            .map(|(path, text)| (format!("crates/one/src/{path}"), *text))
            .chain([manifest])
            .collect();
        let all: Vec<(&str, &str)> =
            all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let expected: Vec<String> =
            expected.iter().map(|place| format!("crates/one/src/{place}")).collect();
        assert_eq!(places(cycles, &all), expected);
    }

    #[test]
    fn modules_in_a_line_pass() {
        check(
            &[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b/mod.rs", "mod c;")],
            &[],
        );
    }

    #[test]
    fn a_cycle_is_reported_at_its_rarest_use() {
        check(
            &[
                ("a.rs", "use crate::b::{B, C};\nfn f() { crate::b::f() }"),
                ("b/mod.rs", "mod inner;"),
                ("b/inner.rs", "\nuse crate::c::C;"),
                ("c.rs", "use std::io;\nuse {super::a::A, std::fmt};\nuse crate::a;"),
            ],
            &["b/inner.rs:2"],
        );
    }

    #[test]
    fn names_re_exported_by_the_root_belong_to_their_module() {
        let root = "mod a; mod b;\npub use b::{self, deep::{B}, C as D};";
        check(
            &[("lib.rs", root), ("a.rs", "use crate::B;"), ("b.rs", "use crate::a;")],
            &["a.rs:1"],
        );
    }

    #[test]
    fn tests_literals_and_comments_use_nothing() {
        let a = "//! crate::b\n#[cfg(test)] mod tests { use crate::b; }\nfn f() { \"crate::b\"; }";
        check(&[("a.rs", a), ("b.rs", "use crate::a;")], &[]);
    }

    #[test]
    fn super_leads_one_module_up_each_time() {
        let own = "use super::b;\nmod deep { use super::b; }";
        check(&[("a/mod.rs", "mod b;"), ("a/b/mod.rs", own), ("b.rs", "use crate::a;")], &[]);
        let root = "mod deep { use super::super::b; }";
        check(&[("a.rs", root), ("b.rs", "use crate::a::{self, A};")], &["a.rs:1"]);
        check(
            &[("a/c.rs", "fn f() { super::super::b::f() }"), ("b.rs", "use crate::a;")],
            &["a/c.rs:1"],
        );
    }

    #[test]
    fn a_known_cycle_passes_while_it_exists() {
        let tied = [
            ("crates/one/Cargo.toml", ""),
            ("crates/one/src/a.rs", "use crate::b;"),
            ("crates/one/src/b.rs", "use crate::a;"),
        ];
        let known: [(&str, &[&str]); 1] = [("one", &["a", "b"])];
        assert!(cycles_but(&Tree::of(&tied), &known).is_empty());
        let undone = cycles_but(&Tree::of(&tied[..2]), &known);
        assert_eq!(undone.len(), 1);
        assert_eq!(undone[0].path, PATH);
        assert!(cycles_but(&Tree::of(&[]), &known).is_empty());
    }
}
