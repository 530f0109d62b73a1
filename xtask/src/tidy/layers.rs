//! The layering: which crates may use which, and which alone may name a heavy dependency.

use super::Problem;
use super::manifest::{Dependency, Kind, Manifest};
use super::table::{self, Table};
use super::tree::{Tree, last_part};

/// Checks every manifest against the table in ARCHITECTURE.md.
///
/// Dev-dependencies reach only the tests of one crate, so they may be heavy and may point sideways;
/// they may not point at a crate that builds on this one.
pub(crate) fn layers(tree: &Tree) -> Vec<Problem> {
    let text = tree.text(table::PATH).unwrap_or_default();
    let (table, mut problems) = Table::parse(&text);
    let workspace = Manifest::parse(&tree.text("Cargo.toml").unwrap_or_default());
    for folder in tree.crate_folders() {
        let path = format!("{folder}/Cargo.toml");
        let manifest = Manifest::parse(&tree.text(&path).unwrap_or_default());
        let name = last_part(folder);
        let checks_edges = !table.rows.is_empty() && name != "xtask";
        if checks_edges && !table.rows.contains_key(name) {
            let what = format!("{name} has no row in {}", table::PATH);
            let remedy = "add one under `## Allowed edges`";
            problems.push(Problem::new(&path, 1, what, remedy));
        }
        for dependency in manifest.dependencies(&workspace) {
            let problem = if name == "xtask" {
                Some(in_xtask(&dependency))
            } else if checks_edges {
                wrong_edge(&table, name, &dependency)
            } else {
                None
            };
            problems.extend(
                problem.map(|(what, remedy)| Problem::new(&path, dependency.line, what, remedy)),
            );
        }
    }
    problems
}

/// The problem, and the remedy.
type Finding = (String, String);

fn in_xtask(dependency: &Dependency) -> Finding {
    (
        format!("xtask depends on {}", dependency.package),
        "use the standard library: xtask builds first and must build in seconds".into(),
    )
}

fn wrong_edge(table: &Table, name: &str, dependency: &Dependency) -> Option<Finding> {
    let package = dependency.package.as_str();
    match dependency.kind {
        Kind::Dev if table.above(package, name) => Some((
            format!("the tests of {name} use {package}, which builds on {name}"),
            format!("move those tests to {package}"),
        )),
        Kind::Dev => None,
        Kind::Normal if table::is_ours(package) => {
            // A crate without a row has been reported already.
            let row = table.rows.get(name)?;
            let finding = (
                format!("{name} may not use {package}"),
                format!(
                    "move the code to a crate that may use both, or change line {} of {} and say why",
                    row.line,
                    table::PATH
                ),
            );
            (!row.may_use.contains(package)).then_some(finding)
        }
        Kind::Normal => {
            let owners = table.owners(package);
            let finding = (
                format!("{name} names the heavy dependency {package}"),
                format!("use it through {}", owners.join(" or ")),
            );
            (!owners.is_empty() && !owners.contains(&name)).then_some(finding)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const TABLE: &str = "## Allowed edges\n\
        | crate | may use | heavy dependencies it alone names |\n|---|---|---|\n\
        | `quarrier-core` | – | `io-uring`, `rustix` |\n\
        | `quarrier-search` | `quarrier-core` | `memchr` |\n\
        | `quarrier-carve` | `quarrier-core`, `quarrier-search` | – |\n\
        | `quarrier-later` | `quarrier-carve` | `arrow` |\n\
        | `quarrier-python` | `quarrier-core` | `arrow` |\n";

    fn check(name: &str, manifest: &str, expected: &[&str]) {
        let folder = if name == "xtask" { name.into() } else { format!("crates/{name}") };
        let path = format!("{folder}/Cargo.toml");
        let files = [
            ("ARCHITECTURE.md", TABLE),
            (
                "Cargo.toml",
                "[workspace.dependencies]\nuring = { package = \"io-uring\", version = \"1\" }",
            ),
            (&path, manifest),
        ];
        assert_eq!(places(layers, &files), expected);
    }

    #[test]
    fn allowed_edges_and_own_heavy_dependencies_pass() {
        check(
            "quarrier-search",
            "[dependencies]\nquarrier-core.workspace = true\nmemchr = \"2\"\nserde = \"1\"",
            &[],
        );
        check(
            "quarrier-core",
            "[target.'cfg(target_os = \"linux\")'.dependencies]\nuring.workspace = true",
            &[],
        );
    }

    #[test]
    fn edges_that_the_table_does_not_allow_fail() {
        check(
            "quarrier-core",
            "[dependencies]\nquarrier-search = \"0\"\nxtask = \"0\"\n\
             [build-dependencies]\nquarrier-unknown.workspace = true",
            &[
                "crates/quarrier-core/Cargo.toml:2",
                "crates/quarrier-core/Cargo.toml:3",
                "crates/quarrier-core/Cargo.toml:5",
            ],
        );
    }

    #[test]
    fn a_heavy_dependency_of_another_crate_fails_under_any_name() {
        check(
            "quarrier-search",
            "[dependencies]\nrustix = \"1\"\nnick = { package = \"io_uring\", version = \"1\" }\n\
             [target.'cfg(unix)'.dependencies]\nuring.workspace = true\narrow = \"1\"",
            &[
                "crates/quarrier-search/Cargo.toml:2",
                "crates/quarrier-search/Cargo.toml:3",
                "crates/quarrier-search/Cargo.toml:5",
                "crates/quarrier-search/Cargo.toml:6",
            ],
        );
    }

    #[test]
    fn a_heavy_dependency_in_two_rows_may_be_named_by_both() {
        for name in ["quarrier-later", "quarrier-python"] {
            check(name, "[dependencies]\narrow = \"1\"", &[]);
        }
    }

    #[test]
    fn dev_dependencies_may_be_heavy_but_may_not_point_upwards() {
        check(
            "quarrier-core",
            "[dev-dependencies]\nmemchr = \"2\"\nquarrier-carve.workspace = true",
            &["crates/quarrier-core/Cargo.toml:3"],
        );
        check(
            "quarrier-carve",
            "[dev-dependencies]\nquarrier-python = \"0\"\nquarrier-core = \"0\"",
            &[],
        );
    }

    #[test]
    fn a_crate_without_a_row_fails_once() {
        check(
            "quarrier-new",
            "[dependencies]\nquarrier-core.workspace = true",
            &["crates/quarrier-new/Cargo.toml:1"],
        );
    }

    #[test]
    fn without_a_table_only_the_table_is_a_problem() {
        let files =
            [("crates/quarrier-core/Cargo.toml", "[dependencies]\nquarrier-search = \"0\"")];
        assert_eq!(places(layers, &files), ["ARCHITECTURE.md:1"]);
    }

    #[test]
    fn xtask_uses_the_standard_library_only() {
        check("xtask", "[package]\nname = \"xtask\"", &[]);
        check(
            "xtask",
            "[dependencies]\nserde = \"1\"\n[dev-dependencies]\nproptest = \"1\"",
            &["xtask/Cargo.toml:2", "xtask/Cargo.toml:4"],
        );
    }
}
