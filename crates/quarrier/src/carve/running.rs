//! A carving under way: the folder is open, the ground is known.

use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use quarrier_carve::folder::{Folder, Inside, REPORT, Resumed, Row, Skipped};
use quarrier_carve::mend::Effort;
use quarrier_carve::{Carver, Summary};
use quarrier_core::region::AsData;
use quarrier_core::source::Source;
use serde_json::json;

use super::ground::{Free, Ground};
use super::keeper::{Keeper, Kept};
use super::signatures;
use super::target::Target;
use super::{Carve, Watch};
use crate::source::only_in_order;
use crate::{Error, Machine, Place, Result};

/// How a carving begins.
pub enum Begin<'c> {
    /// There is work to do.
    Carving(Box<Carving<'c>>),
    /// The folder that was to be resumed is finished.
    Finished,
}

/// A request that is ready to run over one source.
pub struct Carving<'c> {
    carve: &'c Carve,
    source: &'c dyn Source,
    carver: Carver<'c>,
    target: Target,
    range: Range<u64>,
    free: Option<Free>,
    notices: Vec<String>,
}

/// What a run over one source came to.
#[derive(Debug)]
pub struct Carved {
    /// Bytes, stages, files by status, what could not be read.
    pub summary: Summary,
    /// Members of archives that were not looked at.
    pub skipped: Option<Skipped>,
    /// The time it took.
    pub elapsed: Duration,
}

impl Carve {
    /// Opens the folder and finds the ground.
    ///
    /// # Errors
    /// [`Error::Range`] for a range past the end, [`Error::Unsupported`] for a stream,
    /// [`Error::Carve`] for types, a folder or a file system that cannot serve, [`Error::Write`]
    /// where the folder cannot be written.
    pub fn start<'c, 'p: 'c>(
        &'c self,
        place: Place<'p>,
        machine: &Machine,
        stop: &'c AtomicBool,
    ) -> Result<Begin<'c>> {
        let Some(source) = place.source() else {
            return Err(only_in_order(place.name().to_string()));
        };
        let range = place.range(&self.range)?;
        place.announce(&range);
        let ground = Ground::of(self, source, range.clone())?;
        let mut carver = self.carver(&ground, stop)?;
        let target = match &self.folder {
            None => {
                let (source_name, is_digested) = (source.name().to_string(), self.is_digested);
                Target::Rows { source_name, is_digested }
            }
            Some(path) => match self.open_folder(path, source, &carver, &self.settings(&ground))? {
                Resumed::Finished => return Ok(Begin::Finished),
                Resumed::Begun(folder, begun) => {
                    carver = carver.resume(*begun);
                    Target::Folder(folder)
                }
            },
        };
        if let Place::Local(source) = place
            && let Some(rates) = machine.rates(source, &range)
        {
            carver = carver.rates(rates);
        }
        let Ground { free, notices, .. } = ground;
        let carve = self;
        let carving = Carving { carve, source, carver, target, range, free, notices };
        Ok(Begin::Carving(Box::new(carving)))
    }

    fn carver<'c>(&'c self, ground: &Ground, stop: &'c AtomicBool) -> Result<Carver<'c>> {
        // SAFETY: quarrier-carve documents that its formats tolerate bytes that change under them;
        // `Target` only writes and hashes the bytes of a file.
        let promise = unsafe { AsData::promised() };
        let mut carver = Carver::new()
            .formats(signatures::all(self.signatures.as_ref()))
            .show_changing(promise)
            .embedded(self.embedded)
            .ranges(ground.ranges.clone())
            .keep_broken(self.keeps_broken)
            .memory_bytes_max(self.memory_bytes_max)
            .workers(self.workers)
            .stop(stop);
        if let Some(types) = &self.types {
            // An archive may hold files of a requested type without being of one: `Inside` selects.
            let chosen = carver.kinds(types.clone())?;
            carver = if self.embedded { chosen.all_kinds() } else { chosen };
        }
        if let Some(bytes) = self.file_bytes_max {
            carver = carver.file_bytes_max(bytes);
        }
        if self.thorough {
            carver = carver.effort(Effort::THOROUGH).reads_all(true);
        }
        Ok(carver)
    }

    /// The options that say what is found: only with the same ones a run goes on.
    fn settings(&self, ground: &Ground) -> String {
        let mut types = self.types.clone();
        types.iter_mut().for_each(|types| types.sort());
        json!({
            "types": types,
            "signatures": self.signatures.as_ref().map(|own| own.fingerprint.as_str()),
            "embedded": self.embedded,
            "keep": if self.keeps_broken { "all" } else { "valid" },
            "max-size": self.file_bytes_max,
            "range": [self.range.start, self.range.end],
            "unallocated": ground.fingerprint,
            "thorough": self.thorough,
            "max-memory": self.memory_bytes_max,
        })
        .to_string()
    }

    fn open_folder(
        &self,
        path: &Path,
        source: &dyn Source,
        carver: &Carver<'_>,
        settings: &str,
    ) -> Result<Resumed> {
        refuse_folder_on_source(path, source)?;
        let opened = match self.resume {
            true => Folder::resume(path, source, settings, carver),
            false => Folder::create(path, source, settings)
                .map(|folder| Resumed::Begun(Box::new(folder), Box::default())),
        };
        opened.map_err(|error| match error {
            quarrier_carve::Error::Keep(error) => {
                Error::Folder { folder: path.to_path_buf(), error }
            }
            error => error.into(),
        })
    }
}

impl Carving<'_> {
    /// The offsets that are carved.
    pub fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// How much of them is free, where only that is carved.
    pub fn free(&self) -> Option<&Free> {
        self.free.as_ref()
    }

    /// What is not looked at, and what is damaged: a line each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Carves, to the end or until it is stopped; a folder keeps what it needs to go on.
    ///
    /// # Errors
    /// [`Error::Carve`] when the source fails as a whole; [`Error::Write`] when files cannot be
    /// written, or the watcher says that it takes no more. Those of before are whole.
    pub fn run(self, watch: &dyn Watch) -> Result<Carved> {
        let carve = self.carve;
        let inside = carve.embedded.then(|| {
            let workers = self.carver.workers_count();
            Inside::new(carve.types.clone(), carve.memory_bytes_max, workers)
        });
        let statuses = match self.target {
            Target::Folder(_) => None,
            Target::Rows { .. } => carve.statuses.as_deref(),
        };
        let kept = Mutex::new(Kept::default());
        let keeper = Keeper { target: &self.target, inside, statuses, watch, kept };
        let started = Instant::now();
        let ran = self.carver.run(self.source, &keeper).and_then(|summary| {
            keeper.flush(None).map_err(quarrier_carve::Error::Keep)?;
            Ok(summary)
        });
        let is_complete = ran.as_ref().is_ok_and(|summary| !summary.stopped);
        let finished = self.target.finish(is_complete);
        let elapsed = started.elapsed();
        let kept = std::mem::take(&mut *keeper.lock());
        let write = |error: io::Error, report: Option<io::Error>| Error::Write {
            folder: carve.folder.clone().unwrap_or_else(|| Path::new(".").to_path_buf()),
            files: kept.files,
            error,
            report,
        };
        match ran {
            Ok(summary) => {
                finished.map_err(|error| write(error, None))?;
                Ok(Carved { summary, skipped: kept.skipped, elapsed })
            }
            Err(quarrier_carve::Error::Keep(error)) => Err(write(error, finished.err())),
            Err(error) => Err(error.into()),
        }
    }
}

/// What is written to the file system of the device that is carved replaces what is to be found.
fn refuse_folder_on_source(folder: &Path, source: &dyn Source) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let beside = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let holder =
        std::fs::metadata(folder).or_else(|_| std::fs::metadata(beside.unwrap_or(Path::new("."))));
    let device = std::fs::metadata(source.name());
    let (Ok(device), Ok(holder)) = (device, holder) else { return Ok(()) };
    match device.rdev() != 0 && device.rdev() == holder.dev() {
        true => Err(Error::Request(format!(
            "{}: is on {}, the device to carve; name a folder on another disk",
            folder.display(),
            source.name()
        ))),
        false => Ok(()),
    }
}

/// The rows of the report in a folder.
///
/// # Errors
/// [`Error::Source`] where there is no report, or a damaged one.
pub fn reported(folder: &Path) -> Result<Vec<Row>> {
    let path = folder.join(REPORT);
    let read = || -> io::Result<Vec<Row>> {
        let lines = BufReader::new(std::fs::File::open(&path)?).lines();
        let rows = lines.map(|line| {
            Row::from_json(&line?).ok_or_else(|| io::Error::other("the report is damaged"))
        });
        rows.collect()
    };
    let name = || path.display().to_string();
    read().map_err(|error| quarrier_core::Error::io(name(), "read", error).into())
}
