//! Rules on every crate's manifest and root module.

use super::Problem;
use super::manifest::Manifest;
use super::tree::{Tree, last_part};

/// Each package has the name of its folder and, unless it is excluded from the workspace, inherits its settings.
pub(crate) fn manifests(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    let root = Manifest::parse(&tree.text("Cargo.toml").unwrap_or_default());
    let excluded = root.get(&["workspace", "exclude"]).map_or("", |entry| entry.value.as_str());
    for folder in tree.crate_folders() {
        let path = format!("{folder}/Cargo.toml");
        let manifest = Manifest::parse(&tree.text(&path).unwrap_or_default());
        let name = manifest.get(&["package", "name"]);
        let line = name.map_or(1, |entry| entry.line);
        let wanted = last_part(folder);
        if name.is_none_or(|entry| entry.value != wanted) {
            let what = format!("the package does not have the name of its folder, {wanted}");
            let remedy = format!("write `name = \"{wanted}\"` or rename the folder");
            problems.push(Problem::new(&path, line, what, remedy));
        }
        let inherited: [(&[&str], &str); 3] = [
            (&["lints", "workspace"], "[lints] workspace = true"),
            (&["package", "version", "workspace"], "version.workspace = true"),
            (&["package", "license", "workspace"], "license.workspace = true"),
        ];
        if excluded.contains(&format!("\"{folder}\"")) {
            continue;
        }
        for (key, statement) in inherited {
            if manifest.get(key).is_some_and(|entry| entry.value == "true") {
                continue;
            }
            let own = manifest.get(&key[..key.len() - 1]);
            problems.push(Problem::new(
                &path,
                own.map_or(line, |entry| entry.line),
                format!("{} is not inherited from the workspace", key[key.len() - 2]),
                format!("write `{statement}`"),
            ));
        }
    }
    problems
}

/// Each crate's root begins with docs that say what the crate is.
pub(crate) fn root_docs(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for folder in tree.crate_folders() {
        let manifest = tree.text(&format!("{folder}/Cargo.toml"));
        let manifest = Manifest::parse(&manifest.unwrap_or_default());
        let mut roots = vec!["src/lib.rs", "src/main.rs"];
        let named = manifest.all(&["lib", "path"]).chain(manifest.all(&["bin", "path"]));
        roots.extend(named.map(|entry| entry.value.as_str()));
        roots.sort_unstable();
        roots.dedup();
        for root in roots {
            let path = format!("{folder}/{root}");
            let text = tree.text(&path);
            if text.is_some_and(|text| !text.starts_with("//!")) {
                let what = "the crate's root does not start with docs";
                let remedy = "open it with `//!` and a sentence that says what the crate is";
                problems.push(Problem::new(path, 1, what, remedy));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const GOOD: &str = "[package]\nname = \"quarrier-core\"\nversion.workspace = true\n\
        license = { workspace = true }\n\n[lints]\nworkspace = true\n";

    fn check(manifest: &str, expected: &[&str]) {
        let files = [("crates/quarrier-core/Cargo.toml", manifest)];
        assert_eq!(places(manifests, &files), expected);
    }

    #[test]
    fn a_manifest_that_inherits_passes() {
        check(GOOD, &[]);
    }

    #[test]
    fn each_key_not_inherited_fails_at_its_line() {
        let line = |line: usize| format!("crates/quarrier-core/Cargo.toml:{line}");
        check(&GOOD.replace("-core", "-cor"), &[&line(2)]);
        check(&GOOD.replace("version.workspace = true", "version = \"1\""), &[&line(3)]);
        check(&GOOD.replace("{ workspace = true }", "\"MIT\""), &[&line(4)]);
        check(&GOOD.replace("\nworkspace = true", "\nworkspace = false"), &[&line(2)]);
        check("", &[&line(1), &line(1), &line(1), &line(1)]);
    }

    #[test]
    fn an_excluded_crate_cannot_inherit() {
        let root = "[workspace]\nexclude = [\"fuzz\", \"crates/quarrier-core\"]\n";
        let manifest = "[package]\nname = \"quarrier-core\"\nversion = \"1\"\n";
        let files = [("Cargo.toml", root), ("crates/quarrier-core/Cargo.toml", manifest)];
        assert!(places(manifests, &files).is_empty());
    }

    #[test]
    fn every_root_of_a_crate_begins_with_docs() {
        let manifest = "[[bin]]\npath = \"src/one.rs\"\n[[bin]]\npath = \"src/two.rs\"\n[lib]\npath = \"l.rs\"";
        let files = |text| {
            [
                ("crates/a/Cargo.toml", manifest),
                ("crates/a/l.rs", text),
                ("crates/a/src/lib.rs", text),
                ("crates/a/src/main.rs", text),
                ("crates/a/src/one.rs", text),
                ("crates/a/src/other.rs", "mod x;"),
                ("crates/a/src/two.rs", text),
            ]
        };
        assert!(places(root_docs, &files("//! Docs.\n\nmod x;")).is_empty());
        assert_eq!(
            places(root_docs, &files("mod x;\n//! Late.")),
            [
                "crates/a/l.rs:1",
                "crates/a/src/lib.rs:1",
                "crates/a/src/main.rs:1",
                "crates/a/src/one.rs:1",
                "crates/a/src/two.rs:1"
            ]
        );
    }
}
