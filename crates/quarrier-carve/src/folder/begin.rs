//! Begins a folder, or resumes an earlier one.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use quarrier_core::source::Source;
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::index::Index;
use super::journal::{Journal, JournalContents};
use super::place::{JOURNAL, Place, STATE};
use super::reserve::Reserve;
use super::{Folder, Inner, REPORT, identity};
use crate::carver::{Carver, EarlierResults};
use crate::error::{Error, Result};

/// Number of attempts to lock a journal that another process has locked, and the pause between
/// them.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The state of a folder in which a run should resume.
pub enum Resumed {
    /// Continue: give this to [`Carver::resume`].
    Begun(Box<Folder>, Box<EarlierResults>),
    /// The earlier run has finished.
    Finished,
}

impl Folder {
    /// Begins a run in the folder `path`, which must be empty or missing. `settings` describes the
    /// run in any form: only a run with the same settings can resume it.
    ///
    /// # Errors
    /// [`Error::Folder`] if it is not empty, [`Error::Keep`] with the operating system's error.
    pub fn create(path: &Path, source: &dyn Source, settings: &str) -> Result<Folder> {
        let root = Place::root(path).map_err(Error::Keep)?;
        let names = Place::names(root.as_fd()).map_err(Error::Keep)?;
        if names.iter().any(|name| name == STATE) {
            return refused(path, "has an unfinished run; --resume continues it");
        }
        if let Some(name) = names.first() {
            return refused(path, &format!("is not empty: it has '{name}'; name a new folder"));
        }
        let place = Place::new(root).map_err(Error::Keep)?;
        begun(place, source, settings).map_err(Error::Keep)
    }

    /// Resumes the run in the folder `path`, or begins one there. `carver` has the formats.
    ///
    /// # Errors
    /// As [`create`](Folder::create); [`Error::Folder`] if the earlier run had another source or
    /// other settings, or if another process works on the folder.
    pub fn resume(
        path: &Path,
        source: &dyn Source,
        settings: &str,
        carver: &Carver<'_>,
    ) -> Result<Resumed> {
        let root = Place::root(path).map_err(Error::Keep)?;
        let names = Place::names(root.as_fd()).map_err(Error::Keep)?;
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        if !has(STATE) {
            return match has(REPORT) {
                true => Ok(Resumed::Finished),
                false => Self::create(path, source, settings).map(fresh_start),
            };
        }
        let place = Place::new(root).map_err(Error::Keep)?;
        let opened = match place.open_in_state(JOURNAL) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map_err(Error::Keep)?),
        };
        if let Some(file) = &opened
            && !is_locked_soon(file)
        {
            return refused(path, "another process carves into it");
        }
        let opened = opened.map(|file| Journal::open(file, carver)).transpose();
        match opened.map_err(Error::Keep)?.flatten() {
            Some((journal, contents)) => {
                check(path, &contents, &header(source, settings))?;
                place.clear_state().map_err(Error::Keep)?;
                let JournalContents { begun, files, .. } = contents;
                let known = files.into_iter().collect();
                let folder = with(place, source, journal, known).map_err(Error::Keep)?;
                Ok(Resumed::Begun(Box::new(folder), Box::new(begun)))
            }
            // The earlier run was killed before it had written its header. The folder is accepted
            // only if it has no other contents.
            None if names.len() == 1 => {
                begun(place, source, settings).map(fresh_start).map_err(Error::Keep)
            }
            None => {
                refused(path, "the journal of the interrupted run cannot be read; use a new folder")
            }
        }
    }
}

/// Locks the journal, with retries: a killed process may hold its lock for a moment longer.
fn is_locked_soon(file: &std::fs::File) -> bool {
    for _ in 0..LOCK_TRIES {
        if flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            return true;
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    false
}

fn fresh_start(folder: Folder) -> Resumed {
    Resumed::Begun(Box::new(folder), Box::default())
}

fn begun(place: Place, source: &dyn Source, settings: &str) -> io::Result<Folder> {
    let file = place.create_in_state(JOURNAL)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let journal = Journal::new(file, &header(source, settings))?;
    with(place, source, journal, HashMap::new())
}

fn with(
    place: Place,
    source: &dyn Source,
    journal: Journal,
    known: HashMap<String, super::journal::Line>,
) -> io::Result<Folder> {
    let mut reserve = Reserve::new(&place)?;
    reserve.grow(0)?;
    let inner = Mutex::new(Inner { journal, reserve, index: Index::default(), known });
    Ok(Folder { place, source_name: source.name().to_string(), inner, annotate: None })
}

/// Describes the source and the settings.
fn header(source: &dyn Source, settings: &str) -> String {
    json!({
        "quarrier": env!("CARGO_PKG_VERSION"),
        "settings": settings,
        "source": source.name(),
        "length": source.length(),
        "samples": identity::samples(source),
    })
    .to_string()
}

/// Fails if this run differs from the earlier one.
fn check(path: &Path, contents: &JournalContents, now: &str) -> Result<()> {
    if contents.header == now {
        return Ok(());
    }
    let field = |header: &str, name: &str| {
        let value: Option<serde_json::Value> = serde_json::from_str(header).ok();
        value.and_then(|value| value.get(name).cloned()).unwrap_or_default()
    };
    for (name, words) in [
        ("quarrier", "another version of quarrier"),
        ("source", "another source"),
        ("length", "a source of another length"),
        ("samples", "a source with other bytes"),
        ("settings", "other options"),
    ] {
        let (before, now) = (field(&contents.header, name), field(now, name));
        if before != now {
            let reason = format!("was started with {words}: {before}, now {now}");
            return refused(path, &reason);
        }
    }
    refused(path, "was started in another way")
}

fn refused<T>(path: &Path, reason: &str) -> Result<T> {
    Err(Error::Folder(format!("{}: {reason}", path.display())))
}
