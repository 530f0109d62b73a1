//! Reads rule files, and the files that they include.

use std::collections::HashMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::AtomicBool;

use quarrier_core::name;
use quarrier_rules::{RULE_BYTES_MAX, RuleFile, Rules};

use crate::{Error, Result, read_bounded};

/// Compiles the rules of files, all in one namespace; `-` is standard input. A file may include others in
/// its folder, or below it.
///
/// # Errors
/// The system's error if a file cannot be read, [`Error::Rules`] for the first invalid rule, and
/// [`Error::Stopped`] soon after `stop` becomes true.
pub fn read_rules(paths: &[PathBuf], stop: &AtomicBool) -> Result<Rules> {
    let mut folders = HashMap::new();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        files.push(file(path, stop)?);
        folders.insert(name(path), path.clone());
    }
    let mut include = |including: &str, included: &str| -> std::result::Result<RuleFile, String> {
        let beside = folders.get(including).ok_or("standard input has no folder")?;
        let path = included_path(beside, included)?;
        let bytes = read_bounded(&path, "rules", RULE_BYTES_MAX as u64, stop);
        let bytes = bytes.map_err(|error| error.to_string())?;
        let file = RuleFile { name: name(&path), bytes };
        folders.insert(file.name.clone(), path);
        Ok(file)
    };
    Rules::compile(&files, &mut include, stop).map_err(|error| match error {
        quarrier_rules::Error::Stopped => {
            let name = files.first().map(|file| file.name.clone()).unwrap_or_default();
            Error::Stopped { name, offset: 0 }
        }
        error => Error::Rules(error),
    })
}

fn file(path: &Path, stop: &AtomicBool) -> Result<RuleFile> {
    let bytes = read_bounded(path, "rules", RULE_BYTES_MAX as u64, stop)?;
    Ok(RuleFile { name: name(path), bytes })
}

fn name(path: &Path) -> String {
    name::of_path(path)
}

/// The path of an included file, which must be in the folder of the including file, or below it.
fn included_path(including: &Path, included: &str) -> std::result::Result<PathBuf, String> {
    let elsewhere = || {
        "only files beside a file of rules, and below its folder, are included; copy it there, or give \
         it with --rules"
            .to_string()
    };
    if including == Path::new("-") {
        return Err("standard input has no folder".to_string());
    }
    // Rules written on Windows use its separator.
    let included = included.replace('\\', "/");
    let is_beside = Path::new(&included)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_beside {
        return Err(elsewhere());
    }
    let folder = match including.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let path = folder.join(included);
    let real = |path: &Path| path.canonicalize().map_err(|error: io::Error| error.to_string());
    match real(&path)?.starts_with(real(&folder)?) {
        true => Ok(path),
        false => Err(elsewhere()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn read(path: &Path) -> std::result::Result<usize, String> {
        let rules = read_rules(&[path.to_path_buf()], &AtomicBool::new(false));
        rules.map(|rules| rules.rules().len()).map_err(|error| error.to_string())
    }

    #[test]
    fn files_beside_and_below_are_included_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let rule = |name: &str| format!("rule {name} {{ condition: true }}\n");
        put(folder.path(), "r/below/c.yar", &format!("include \"d.yar\"\n{}", rule("c")));
        put(folder.path(), "r/below/d.yar", &rule("d"));
        put(folder.path(), "outside.yar", &rule("x"));
        std::os::unix::fs::symlink("../outside.yar", folder.path().join("r/link.yar")).unwrap();
        let sound = "include \"./below\\c.yar\"\nrule a { condition: c and d }";
        assert_eq!(read(&put(folder.path(), "r/a.yar", sound)), Ok(3));
        for wrong in ["../outside.yar", "/etc/passwd", "link.yar"] {
            let text = format!("\ninclude \"{wrong}\"");
            let said = read(&put(folder.path(), "r/b.yar", &text)).unwrap_err();
            assert!(said.contains("r/b.yar: line 2, column 1: cannot include"), "{said}");
            assert!(said.contains("beside a file of rules"), "{said}");
        }
        let said = read(&put(folder.path(), "r/e.yar", "include \"none.yar\"")).unwrap_err();
        assert!(said.contains("No such file"), "{said}");
    }
}
