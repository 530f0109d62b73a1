//! The header is generated from the sources, and declares what the library exports.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::lab::{archive, crate_folder, library, run};

/// The header, as cbindgen generates it. A build script does not do this, because a review has to see a
/// header that changes.
fn generated() -> String {
    let folder = crate_folder();
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let made = cbindgen::Builder::new().with_crate(folder).with_config(config).generate().unwrap();
    let mut text = Vec::new();
    made.write(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn header_is_the_one_that_the_sources_make() {
    let path = crate_folder().join("include/quarrier.h");
    let generated = generated();
    if std::env::var_os("QUARRIER_WRITE_HEADER").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let first =
        written.lines().zip(generated.lines()).find(|(written, generated)| written != generated);
    assert!(
        written == generated,
        "include/quarrier.h is stale, first at {first:?}; QUARRIER_WRITE_HEADER=1 cargo test -p quarrier-c \
         --test c header writes it"
    );
}

#[test]
fn header_names_the_version() {
    let line = format!("#define QUARRIER_VERSION \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(generated().contains(&line), "cbindgen.toml has another version");
}

/// The functions that the header declares: names before a parenthesis, outside of comments.
fn declared() -> BTreeSet<String> {
    let text = std::fs::read_to_string(crate_folder().join("include/quarrier.h")).unwrap();
    let mut code = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("/*") {
        code.push_str(before);
        rest = after.split_once("*/").unwrap().1;
    }
    code.push_str(rest);
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices('(') {
        let before = &code[..at];
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        if before[start..].starts_with("quarrier_") {
            names.insert(before[start..].to_string());
        }
    }
    names
}

/// The names that a library exports.
fn exported(library: &Path, options: &[&str]) -> BTreeSet<String> {
    let output = run(Command::new("nm").args(options).arg("--defined-only").arg(library));
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| {
        let [_, _, name] = line.split_whitespace().collect::<Vec<_>>()[..] else { return None };
        Some(name.to_string())
    });
    names.collect()
}

#[test]
fn declared_functions_are_exported_and_nothing_else() {
    let declared = declared();
    assert!(declared.len() > 40, "{declared:?}");
    assert_eq!(exported(&library().join("libquarrier.so"), &["-D"]), declared);
    assert_eq!(exported(&library().join("libquarrier.a"), &["-g"]), declared);
    assert!(archive().is_file());
}

#[test]
fn shared_library_has_a_name() {
    let library = library().join("libquarrier.so");
    let output = run(Command::new("objdump").arg("-p").arg(&library));
    let text = String::from_utf8(output.stdout).unwrap();
    let name = text.lines().find(|line| line.trim_start().starts_with("SONAME"));
    assert!(name.is_some_and(|name| name.ends_with(" libquarrier.so.0")), "{name:?}");
}
