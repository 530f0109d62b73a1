//! From SOURCE arguments to sources.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Cursor, Read, Stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use quarrier_core::source::{Polled, Source};
use quarrier_ewf::{EwfSource, files, is_ewf, parts_from};
use quarrier_remote::{RemoteSource, is_remote, redacted};

use super::remote::Client;
use crate::complain;

/// Something to be searched.
pub(in crate::commands) enum Input {
    Source(Box<dyn Source>),
    Remote(RemoteSource),
    /// Standard input, a pipe, or a file that tells no length: it can only be read in order.
    Stream(String, Box<dyn Read + Send>),
}

/// Something that the arguments name, not opened yet: thousands of files are opened one by one.
#[derive(Debug)]
pub(in crate::commands) enum Named {
    Stdin,
    Path(PathBuf),
    Url(String),
    /// It cannot be searched, for this reason.
    Refused(String),
}

impl Input {
    pub(in crate::commands) fn name(&self) -> &str {
        match self {
            Input::Source(source) => source.name(),
            Input::Remote(source) => source.name(),
            Input::Stream(name, _) => name,
        }
    }
}

impl Named {
    /// Opens it.
    pub(in crate::commands) fn open(&self, direct: bool, client: &Client) -> Result<Input, String> {
        match self {
            Named::Stdin => Ok(Input::Stream("-".to_string(), Box::new(Polled::new(StdinReader)))),
            Named::Path(path) => open(path, direct),
            Named::Url(url) => client.open(url).map(Input::Remote),
            Named::Refused(reason) => Err(reason.clone()),
        }
    }

    /// Whether it can be opened twice: a pipe gives its bytes to the first who reads.
    pub(in crate::commands) fn is_seekable(&self) -> bool {
        let Named::Path(path) = self else { return false };
        std::fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() || meta.file_type().is_block_device())
    }

    /// The files that it would read.
    pub(in crate::commands) fn paths(&self) -> Vec<PathBuf> {
        match self {
            Named::Path(path) => parts_from(path).unwrap_or_else(|| vec![path.clone()]),
            Named::Stdin | Named::Url(_) | Named::Refused(_) => Vec::new(),
        }
    }
}

/// Standard input without the buffer of [`std::io::Stdin`], which polling would not see.
struct StdinReader;

impl AsFd for StdinReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Standard input is never closed by this program.
        static STDIN: OnceLock<Stdin> = OnceLock::new();
        STDIN.get_or_init(std::io::stdin).as_fd()
    }
}

impl Read for StdinReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        File::from(self.as_fd().try_clone_to_owned()?).read(buffer)
    }
}

/// What the arguments name.
pub(in crate::commands) fn expand(args: &[OsString]) -> Vec<Named> {
    let mut named = Vec::new();
    // Parts that a split image has taken already: a shell expands image.0* to all of them.
    let mut taken: HashSet<PathBuf> = HashSet::new();
    for arg in args {
        let path = Path::new(arg);
        let text = arg.to_string_lossy();
        if text == "-" {
            named.push(Named::Stdin);
        } else if let Some(reason) = not_yet(&text) {
            named.push(Named::Refused(format!("{}: {reason}", shown(&text))));
        } else if is_remote(&text) {
            named.push(Named::Url(text.into_owned()));
        } else if !path.exists() && text.contains(['*', '?', '[']) {
            match of_glob(&text) {
                Ok(paths) => paths.into_iter().for_each(|path| add(&mut named, &mut taken, path)),
                Err(reason) => named.push(Named::Refused(reason)),
            }
        } else {
            add(&mut named, &mut taken, path.to_path_buf());
        }
    }
    named
}

/// A file, unless it is a part of what is there already.
fn add(named: &mut Vec<Named>, taken: &mut HashSet<PathBuf>, path: PathBuf) {
    if !taken.contains(&path) {
        taken.extend(parts_from(&path).into_iter().flatten());
        named.push(Named::Path(path));
    }
}

/// Kinds of sources that this build knows of but does not read.
fn not_yet(arg: &str) -> Option<&'static str> {
    let mut lower = arg.to_ascii_lowercase();
    let is_remote = is_remote(arg);
    if is_remote && let Some(end) = lower.find(['?', '#']) {
        lower.truncate(end);
    }
    if is_remote && lower.ends_with(".e01") {
        return Some("EWF images are read from files only; fetch it first, with all its segments");
    }
    if lower.ends_with(".ex01") {
        return Some("EWF images of the second format are not read; export it as raw or E01 first");
    }
    None
}

/// What the user wrote, but no passwords and signatures.
pub(super) fn shown(text: &str) -> String {
    if is_remote(text) { redacted(text) } else { text.to_string() }
}

fn open(path: &Path, direct: bool) -> Result<Input, String> {
    if let Some(stream) = open_stream(path)? {
        return Ok(stream);
    }
    let opened = match (is_ewf(path), direct) {
        (true, _) => open_ewf(path),
        (false, true) => quarrier_core::source::open_direct(path),
        (false, false) => quarrier_core::source::open(path),
    };
    opened.map(Input::Source).map_err(|error| error.to_string())
}

/// Opens an EWF image; what of it there is can be read where segments are missing.
fn open_ewf(path: &Path) -> quarrier_core::Result<Box<dyn Source>> {
    let image = EwfSource::open(path)?;
    if let Some(why) = image.missing() {
        complain(&format!("{}: {why}", path.display()));
    }
    Ok(Box::new(image))
}

/// Opens what can only be read in order: a pipe (`<(zcat image.gz)`), or a file of the
/// kernel, which says that it is empty and is not.
fn open_stream(path: &Path) -> Result<Option<Input>, String> {
    let Ok(meta) = std::fs::metadata(path) else { return Ok(None) };
    let kind = meta.file_type();
    let in_order = kind.is_fifo();
    let seems_empty = meta.is_file() && meta.len() == 0;
    if !in_order && !seems_empty {
        return Ok(None);
    }
    let name = path.display().to_string();
    let mut file = File::open(path).map_err(|error| format!("{name}: cannot open: {error}"))?;
    if in_order {
        return Ok(Some(Input::Stream(name, Box::new(Polled::new(file)))));
    }
    let mut first = [0u8; 1];
    match file.read(&mut first) {
        Ok(1) => Ok(Some(Input::Stream(name, Box::new(Cursor::new(first).chain(file))))),
        // Empty indeed, or unreadable, which the ordinary way reports.
        Ok(_) | Err(_) => Ok(None),
    }
}

/// The files that a glob stands for.
fn of_glob(pattern: &str) -> Result<Vec<PathBuf>, String> {
    let paths = files(Path::new(pattern)).map_err(|reason| format!("{pattern}: {reason}"))?;
    match paths.is_empty() {
        true => Err(format!("{pattern}: no such file, and no file matches it as a glob")),
        false => Ok(paths),
    }
}
