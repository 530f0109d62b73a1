//! From SOURCE arguments to sources.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use quarrier_core::source::{self, FileSource, Source, SplitSource};

/// Something to be searched.
pub(super) enum Input {
    Source(Box<dyn Source>),
    /// Standard input.
    Stream,
}

impl Input {
    pub(super) fn name(&self) -> &str {
        match self {
            Input::Source(source) => source.name(),
            Input::Stream => "-",
        }
    }
}

/// Opens what the arguments name, each on its own: one that fails does not hide the others.
pub(super) fn expand(args: &[String], direct: bool) -> Vec<Result<Input, String>> {
    let mut inputs = Vec::new();
    // Parts that a split image has taken already: a shell expands image.0* to all of them.
    let mut taken: HashSet<PathBuf> = HashSet::new();
    for arg in args {
        if arg == "-" {
            inputs.push(Ok(Input::Stream));
        } else if let Some(reason) = not_yet(arg) {
            inputs.push(Err(format!("{arg}: {reason}")));
        } else if !Path::new(arg).exists() && arg.contains(['*', '?', '[']) {
            inputs.extend(expand_glob(arg, direct));
        } else if !taken.contains(Path::new(arg)) {
            if SplitSource::is_first_part(Path::new(arg)) {
                taken.extend(SplitSource::parts_from(Path::new(arg)));
            }
            inputs.push(open(Path::new(arg), direct));
        }
    }
    inputs
}

/// Kinds of sources that this build knows of but does not read.
fn not_yet(arg: &str) -> Option<&'static str> {
    let lower = arg.to_ascii_lowercase();
    if ["http://", "https://", "s3://"].iter().any(|scheme| lower.starts_with(scheme)) {
        return Some("this build reads no remote sources; fetch it first, or pipe it to '-'");
    }
    if lower.ends_with(".e01") || lower.ends_with(".ex01") {
        return Some("this build reads no EWF images; export it as raw first (ewfexport)");
    }
    None
}

fn open(path: &Path, direct: bool) -> Result<Input, String> {
    let opened = if direct { open_direct(path) } else { source::open(path) };
    opened.map(Input::Source).map_err(|error| error.to_string())
}

/// As [`source::open`], past the page cache.
fn open_direct(path: &Path) -> quarrier_core::Result<Box<dyn Source>> {
    if !SplitSource::is_first_part(path) {
        return Ok(Box::new(FileSource::open_direct(path)?));
    }
    let mut parts: Vec<Box<dyn Source>> = Vec::new();
    for part in SplitSource::parts_from(path) {
        parts.push(Box::new(FileSource::open_direct(&part)?));
    }
    Ok(Box::new(SplitSource::new(path.display().to_string(), parts)?))
}

/// A glob of numbered parts is one source; any other glob is its files.
fn expand_glob(pattern: &str, direct: bool) -> Vec<Result<Input, String>> {
    let paths: Vec<PathBuf> = match glob::glob(pattern) {
        Ok(paths) => paths.filter_map(Result::ok).filter(|path| path.is_file()).collect(),
        Err(error) => return vec![Err(format!("{pattern}: is not a glob: {error}"))],
    };
    if paths.is_empty() {
        return vec![Err(format!("{pattern}: no such file, and no file matches it as a glob"))];
    }
    let first = paths.iter().find(|path| SplitSource::is_first_part(path));
    if let Some(first) = first
        && SplitSource::parts_from(first).len() == paths.len()
    {
        return vec![open(first, direct)];
    }
    paths.iter().map(|path| open(path, direct)).collect()
}
