//! Several sources carved into one folder, each into its own subfolder.
//!
//! ```text
//! FOLDER/disk.img-0c1f…    all that a run over this source alone writes: files by type, reports, case.json
//! FOLDER/sources.jsonl     the options, then a line for each finished source: its subfolder, bytes, hashes
//! FOLDER/report.jsonl      the rows of all sources, with paths from FOLDER on
//! FOLDER/case.json         the run, with the hashes of all that was written
//! ```
//!
//! The name of a subfolder consists of its source's name and a hash of the full name, so a source finds
//! its subfolder again among any others. A source without a carved file has no subfolder.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use quarrier_carve::folder::{REPORT, Row, fingerprint, write_new};
use quarrier_core::name;
use serde_json::{Value, json};

use super::Carve;
use crate::case::{self, CASE, Output, Run};
use crate::source::shown;
use crate::{Error, Named, Result, Sources};

/// The list of finished sources.
const LIST: &str = "sources.jsonl";
/// Maximum length of a source's name within its subfolder's name, and the number of hash digits after
/// it.
const NAME_BYTES_MAX: usize = 60;
const HASH_DIGITS: usize = 16;
/// Maximum length of a line in the list.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// An output folder for several sources, or none in a dry run.
pub struct Several<'c> {
    carve: &'c Carve,
    list: Option<List>,
    started: SystemTime,
}

/// The folder's list of finished sources, open and locked.
struct List {
    folder: PathBuf,
    file: File,
    done: HashMap<String, Entry>,
    /// Whether a source was added by this run.
    has_grown: bool,
}

/// A finished source.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    /// The key that finds the source again.
    part: String,
    /// The number of carved files; the subfolder exists if there are any.
    files: u64,
    /// The source, as in its case file.
    source: Value,
}

impl Carve {
    /// Creates the folder for several sources, or opens the folder of an earlier run to resume. `names`
    /// are the sources as the user named them.
    ///
    /// # Errors
    /// [`Error::Request`] if the folder holds anything else, belongs to a run with other options, is in use,
    /// or lies in a folder to carve; [`Error::Folder`] if it cannot be written.
    pub fn several(&self, names: &[OsString]) -> Result<Several<'_>> {
        let list = match &self.folder {
            None => None,
            Some(folder) => {
                refuse_folder_inside(folder, names)?;
                let options = self.settings(&None);
                Some(List::open(folder, &options, self.resume)?)
            }
        };
        Ok(Several { carve: self, list, started: SystemTime::now() })
    }
}

impl Several<'_> {
    /// Whether an earlier run has finished this source.
    pub fn is_done(&self, named: &Named) -> bool {
        self.list.as_ref().is_some_and(|list| list.done.contains_key(&part_of(named)))
    }

    /// The request for one source: the same options, with its own subfolder.
    pub fn request(&self, named: &Named) -> Carve {
        let part = part_of(named);
        let mut request = self.carve.clone();
        request.folder = self.list.as_ref().map(|list| list.folder.join(&part));
        request.part = Some(part);
        request
    }

    /// Adds a completed source to the list. Removes its subfolder if it holds no files.
    ///
    /// # Errors
    /// [`Error::Folder`] with the system's error.
    pub fn finished(&mut self, named: &Named) -> Result<()> {
        let Some(list) = &mut self.list else { return Ok(()) };
        let folder = list.folder.clone();
        list.add(named).map_err(|error| Error::Folder { folder, error })
    }

    /// Writes the report of all sources and, if the run `is_complete`, the case file.
    ///
    /// # Errors
    /// [`Error::Folder`] with the system's error.
    pub fn finish(self, sources: &Sources, is_complete: bool) -> Result<()> {
        let Some(list) = self.list else { return Ok(()) };
        let parts: Vec<String> = sources.iter().map(part_of).collect();
        let options = self.carve.settings(&None);
        let folder = list.folder.clone();
        let run = Run {
            verb: "carve",
            notes: &self.carve.notes,
            options: options.clone(),
            started: self.started,
        };
        let written = list.write(&parts, &options, is_complete.then_some(run), self.carve.hashes);
        written.map_err(|error| Error::Folder { folder, error })
    }
}

fn part_of(named: &Named) -> String {
    part_name(&named.name().unwrap_or_default())
}

/// The name of the subfolder of a source with this name.
pub(super) fn part_name(name: &OsStr) -> String {
    // Cut a URL at its query, which may hold a signature.
    let text = shown(&name.to_string_lossy());
    let last = text.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '#');
    let plain = last.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.skip_while(|&c| c == '.').take(NAME_BYTES_MAX).collect();
    let hash = fingerprint(name.as_bytes());
    let plain = if plain.is_empty() { "source" } else { &plain };
    format!("{plain}-{}", &hash[..HASH_DIGITS])
}

/// Refuses an output folder below a source folder: its files would be sources of the next run.
fn refuse_folder_inside(folder: &Path, names: &[OsString]) -> Result<()> {
    let beside = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let whole = folder
        .canonicalize()
        .or_else(|_| Ok(beside.unwrap_or(Path::new(".")).canonicalize()?.join("new")));
    let whole: io::Result<PathBuf> = whole;
    let Ok(whole) = whole else { return Ok(()) };
    for name in names {
        let path = name::path_of(name);
        if path.is_dir() && path.canonicalize().is_ok_and(|source| whole.starts_with(source)) {
            return Err(Error::Request(format!(
                "{}: is in {}, which is carved; name a folder elsewhere",
                name::of_path(folder),
                name::of_path(path)
            )));
        }
    }
    Ok(())
}

/// Refuses a folder that has this entry.
pub(super) fn refuse_full<T>(folder: &Path, entry: &fs::DirEntry) -> Result<T> {
    let name = entry.file_name();
    let name = name::of_path(name);
    refused(folder, &format!("is not empty: it has '{name}'; name a new folder"))
}

fn refused<T>(folder: &Path, why: &str) -> Result<T> {
    Err(Error::Request(format!("{}: {why}", folder.display())))
}

impl List {
    /// Creates `folder` with an empty list, or reads the list of an earlier run.
    fn open(folder: &Path, options: &Value, resume: bool) -> Result<List> {
        let failed = |error: io::Error| Error::Folder { folder: folder.to_path_buf(), error };
        if !folder.is_dir() {
            fs::create_dir(folder).map_err(failed)?;
        }
        let first = fs::read_dir(folder).map_err(failed)?.next().transpose().map_err(failed)?;
        let path = folder.join(LIST);
        let is_begun = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file());
        match first {
            Some(_) if is_begun && !resume => {
                return refused(folder, "holds a run over several sources; --resume continues it");
            }
            Some(entry) if !is_begun => return refuse_full(folder, &entry),
            _ => {}
        }
        if !is_begun {
            write_new(folder, LIST, |out| writeln!(out, "{}", header(options))).map_err(failed)?;
        }
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(failed)?;
        if file.try_lock().is_err() {
            return refused(folder, "another process carves into it");
        }
        let mut list =
            List { folder: folder.to_path_buf(), file, done: HashMap::new(), has_grown: false };
        let begun = list.read().map_err(failed)?;
        match begun {
            Some(before) if before == header(options) => Ok(list),
            Some(before) => {
                let (before, now) = (&before["options"], options);
                let reason = format!("was started with other options: {before}, now {now}");
                refused(folder, &reason)
            }
            None => refused(folder, "its list of sources cannot be read; use a new folder"),
        }
    }

    /// Reads the finished sources; returns the header, `None` if it is damaged. A line that a killed
    /// process left unfinished is cut off.
    fn read(&mut self) -> io::Result<Option<Value>> {
        let mut reader = BufReader::new(File::open(self.folder.join(LIST))?);
        let (mut header, mut whole_bytes) = (None, 0u64);
        loop {
            let mut line = Vec::new();
            let read = io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
            let value = line.strip_suffix(b"\n").and_then(|text| serde_json::from_slice(text).ok());
            let Some(value) = value else { break };
            whole_bytes += read as u64;
            if header.is_none() {
                header = Some(value);
            } else if let Some((name, entry)) = Entry::of(&value) {
                self.done.insert(name, entry);
            }
        }
        if header.is_some() {
            self.file.set_len(whole_bytes)?;
        }
        Ok(header)
    }

    /// Adds a finished source.
    fn add(&mut self, named: &Named) -> io::Result<()> {
        let part = part_of(named);
        let folder = self.folder.join(&part);
        let files = rows(&folder)?.try_fold(0u64, |count, row| row.map(|_| count + 1))?;
        let source = match read_case(&folder)? {
            Some(case) => case["source"].clone(),
            None => json!({"name": shown(&name::of_path(named.name().unwrap_or_default()))}),
        };
        let entry = Entry { part, files, source };
        self.file.write_all(format!("{}\n", entry.to_json()).as_bytes())?;
        if files == 0 {
            // It holds only empty reports.
            fs::remove_dir_all(&folder)?;
        }
        self.has_grown = true;
        self.done.insert(entry.part.clone(), entry);
        Ok(())
    }

    /// Writes list and report in the order of `parts`, and then the case file.
    fn write(
        self,
        parts: &[String],
        options: &Value,
        run: Option<Run<'_>>,
        hashes: quarrier_files::HashKinds,
    ) -> io::Result<()> {
        let folder = &self.folder;
        if !self.has_grown && folder.join(CASE).exists() {
            return Ok(());
        }
        // Sources of an earlier run that this run does not name come last.
        let mut others: Vec<&String> = self.done.keys().collect();
        others.sort_unstable();
        // The same source may be named twice.
        let mut seen = HashSet::new();
        let all = parts.iter().chain(others).filter(|part| seen.insert(part.as_str()));
        let entries: Vec<&Entry> = all.filter_map(|part| self.done.get(part)).collect();
        replace(folder, REPORT, |out| {
            let begun = parts.iter().filter(|part| {
                !self.done.contains_key(*part) && folder.join(part).join(REPORT).exists()
            });
            let listed = entries.iter().filter(|entry| entry.files > 0);
            for part in listed.map(|entry| &entry.part).chain(begun) {
                for row in rows(&folder.join(part))? {
                    let mut row = row?;
                    row.path = format!("{part}/{}", row.path);
                    writeln!(out, "{}", row.to_json())?;
                }
            }
            Ok(())
        })?;
        let Some(run) = run else { return Ok(()) };
        replace(folder, LIST, |out| {
            writeln!(out, "{}", header(options))?;
            entries.iter().try_for_each(|entry| writeln!(out, "{}", entry.to_json()))
        })?;
        let sources: Vec<&Value> = entries.iter().map(|entry| &entry.source).collect();
        let of_file = |path: String| {
            let (bytes, digests) = case::of_file(File::open(folder.join(&path))?, hashes)?;
            Ok(Output::new(path, bytes, &digests, hashes))
        };
        let reports = [REPORT, LIST].map(|name| of_file(name.to_string()));
        let of_parts = entries.iter().filter(|entry| entry.files > 0).flat_map(|entry| {
            let part = &entry.part;
            let listed = read_case(&folder.join(part)).map(|case| {
                let outputs = case.iter().flat_map(|case| case["outputs"].as_array());
                let outputs = outputs.flatten().filter_map(|output| Output::of_part(part, output));
                outputs.collect::<Vec<_>>()
            });
            let listed = match listed {
                Ok(listed) => listed.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            let case = folder.join(part).join(CASE).exists();
            listed.into_iter().chain(case.then(|| of_file(format!("{part}/{CASE}"))))
        });
        // The case file of an earlier run covers fewer sources.
        let _ = fs::remove_file(folder.join(CASE));
        case::write_run(
            folder,
            &run,
            ("sources", json!(sources)),
            reports.into_iter().chain(of_parts),
        )
    }
}

impl Entry {
    fn to_json(&self) -> String {
        let folder = (self.files > 0).then_some(&self.part);
        json!({"source": self.source, "files": self.files, "folder": folder, "key": self.part})
            .to_string()
    }

    /// Parses the output of [`to_json`](Self::to_json), `None` for anything else.
    fn of(line: &Value) -> Option<(String, Entry)> {
        let part = line["key"].as_str()?.to_string();
        let is_name = !part.starts_with('.') && !part.contains('/');
        let entry = Entry {
            part: part.clone(),
            files: line["files"].as_u64()?,
            source: line["source"].clone(),
        };
        is_name.then_some((part, entry))
    }
}

fn header(options: &Value) -> Value {
    json!({"quarrier": env!("CARGO_PKG_VERSION"), "options": options})
}

/// The rows in the report of a subfolder.
fn rows(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<Row>> + use<>> {
    let lines = BufReader::new(File::open(folder.join(REPORT))?).lines();
    let damaged = || io::Error::other("the report is damaged");
    Ok(lines.map(move |line| Row::from_json(&line?).ok_or_else(damaged)))
}

/// The case file of a subfolder, if there is one.
fn read_case(folder: &Path) -> io::Result<Option<Value>> {
    match fs::read(folder.join(CASE)) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file of the folder; it replaces an earlier one only once it is complete.
fn replace(
    folder: &Path,
    name: &str,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let part = format!("{name}.part");
    // A killed process may have left a partial file.
    let _ = fs::remove_file(folder.join(&part));
    write_new(folder, &part, fill)?;
    fs::rename(folder.join(&part), folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_subfolders_are_harmless_and_differ() {
        let of = |name: &str| part_of(&Named::Path(name.into()));
        assert!(of("a/disk.img").starts_with("disk.img-"));
        assert_ne!(of("a/disk.img"), of("b/disk.img"));
        for name in ["/", "..", "a/.hidden", "a\nb", "ä", ""] {
            let part = of(name);
            assert!(part.is_ascii() && !part.starts_with('.') && !part.contains('/'), "{part}");
        }
        let url = Named::Url("https://me:secret@host/d.img?sig=secret".to_string());
        assert!(!part_of(&url).contains("secret"), "{}", part_of(&url));
    }
}
