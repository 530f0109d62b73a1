//! A carving run in progress: the folder is open, the ranges are known.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use quarrier_carve::folder::{
    Annotate, Folder, REPORT, REPORT_DFXML, Resumed, Row, Skipped, UnpackSettings,
};
use quarrier_carve::mend::Effort;
use quarrier_carve::{Carver, JudgedStrides, Summary};
use quarrier_core::name;
use quarrier_core::region::AsData;
use quarrier_core::source::Source;
use quarrier_files::{HashKinds, Reach};
use serde_json::{Value, json};

use super::annotation::Annotation;
use super::ground::{Free, Ground};
use super::keeper::{Keeper, RunOutcome};
use super::signatures;
use super::target::Target;
use super::{Carve, Watch};
use crate::case::{self, Facts, Output, while_hashing};
use crate::files::reach_at;
use crate::source::{only_in_order, refuse_folder_on_source};
use crate::{Error, Machine, Place, Result};

/// The start of a carving run.
pub enum Begin<'c> {
    /// There is work to do.
    Carving(Box<Carving<'c>>),
    /// The folder to resume is finished already.
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
    damages: Vec<String>,
    /// Decides which files to leave out.
    skipping: Option<Arc<Annotation>>,
    /// The options that affect the findings.
    settings: Value,
    /// Whether reading the source again is nearly free.
    is_local: bool,
    stop: &'c AtomicBool,
}

/// The outcome of a run over one source.
#[derive(Debug)]
pub struct Carved {
    /// Bytes processed, stages, files by status, unreadable ranges.
    pub summary: Summary,
    /// Members of archives that were skipped.
    pub skipped: Option<Skipped>,
    /// The duration of the run.
    pub elapsed: Duration,
}

impl Carve {
    /// Opens the folder and determines the ranges to carve.
    ///
    /// # Errors
    /// [`Error::Range`] for a range past the end, [`Error::Unsupported`] for a stream and for an
    /// unusable file system, [`Error::Carve`] for unusable types or an unusable folder,
    /// [`Error::Write`] if the folder cannot be written.
    pub fn start<'c, 'p: 'c>(
        &'c self,
        place: Place<'p>,
        machine: &Machine,
        stop: &'c AtomicBool,
    ) -> Result<Begin<'c>> {
        let announced = 0..u64::MAX;
        self.start_reading(&announced, place, machine, stop)
    }

    /// Like [`start`](Self::start), for a process that reads only the bytes of `announced` from start to end, because
    /// it [judges](Carving::judge) those strides, or takes those of [others](Carving::run_with).
    ///
    /// # Errors
    /// Those of [`start`](Self::start).
    pub fn start_reading<'c, 'p: 'c>(
        &'c self,
        announced: &Range<u64>,
        place: Place<'p>,
        machine: &Machine,
        stop: &'c AtomicBool,
    ) -> Result<Begin<'c>> {
        let Some(source) = place.source() else {
            return Err(only_in_order(place.name().to_string()));
        };
        let range = place.range(&self.range)?;
        let within = |at: u64| at.clamp(range.start, range.end);
        place.announce(&(within(announced.start)..within(announced.end)));
        let reach = if self.locates { reach_at(&place, true) } else { Reach::Deleted };
        let ground = Ground::of(self, source, reach, range.clone(), stop)?;
        let annotation = Annotation::of(self, &ground);
        let annotate = || annotation.clone().map(|one| one as Arc<dyn Annotate>);
        let mut carver = self.carver(&ground, stop)?;
        let target = match &self.folder {
            None => {
                let (source_name, is_digested) = (source.name().to_string(), self.is_digested);
                Target::Rows { source_name, is_digested, annotation: annotate() }
            }
            Some(path) => match self.open_folder(
                path,
                source,
                &carver,
                &self.settings(&ground.fingerprint).to_string(),
            )? {
                Resumed::Finished => return Ok(Begin::Finished),
                Resumed::Begun(folder, begun) => {
                    carver = carver.resume(*begun);
                    Target::Folder(Box::new(folder.annotate(annotate())))
                }
            },
        };
        if let Place::Local(source) = place
            && let Some(rates) = machine.rates(source, &range)
        {
            carver = carver.rates(rates);
        }
        let Ground { free, notices, damages, fingerprint: ground_print, .. } = ground;
        let carve = self;
        let skipping = annotation.filter(|_| self.skips_known);
        let is_local = matches!(place, Place::Local(_));
        let settings = self.settings(&ground_print);
        let carving = Carving {
            carve,
            source,
            carver,
            target,
            range,
            free,
            notices,
            damages,
            skipping,
            settings,
            is_local,
            stop,
        };
        Ok(Begin::Carving(Box::new(carving)))
    }

    fn carver<'c>(&'c self, ground: &Ground, stop: &'c AtomicBool) -> Result<Carver<'c>> {
        // SAFETY: `Carver::show_changing` documents that the formats of quarrier-carve tolerate
        // bytes that change under them. `Target` only writes and hashes the bytes of a file.
        let promise = unsafe { AsData::promised() };
        let mut carver = Carver::new()
            .formats(signatures::all(self.signatures.as_ref()))
            .show_changing(promise)
            .embedded(self.embedded)
            .ranges(ground.ranges.clone())
            .clusters(ground.clusters.clone())
            .files_in_pieces(ground.in_pieces())
            .keep_broken(self.keeps_broken)
            .memory_bytes_max(self.memory_bytes_max)
            .workers(self.workers)
            .stop(stop);
        if let Some(types) = &self.types {
            // An archive of another type may hold files of a requested type: `UnpackSettings`
            // selects them.
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

    /// The options that affect the findings: a run can be resumed only with the same ones.
    pub(super) fn settings(&self, unallocated: &Option<String>) -> Value {
        let mut types = self.types.clone();
        types.iter_mut().for_each(|types| types.sort());
        json!({
            "types": types,
            "signatures": self.signatures.as_ref().map(|own| own.fingerprint.as_str()),
            "embedded": self.embedded,
            "keep": if self.keeps_broken { "all" } else { "valid" },
            "max-size": self.file_bytes_max,
            "range": [self.range.start, self.range.end],
            "unallocated": unallocated,
            "thorough": self.thorough,
            "where": self.locates,
            "known": self.known.as_ref().map(|known| known.fingerprint()),
            "skip-known": self.skips_known,
            "hash": self.hashes.names().collect::<Vec<_>>(),
            "max-memory": self.memory_bytes_max,
        })
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
    /// The range of offsets to carve.
    pub fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// The unallocated part of the range, if only that is carved.
    pub fn free(&self) -> Option<&Free> {
        self.free.as_ref()
    }

    /// Skipped ranges, a line each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Damage to file systems, a line each: files are missing from the list, so their bytes seem to
    /// belong to no file.
    pub fn damages(&self) -> &[String] {
        &self.damages
    }

    /// Ranges of whole strides, the pieces in which the carver searches, in order: each for a process that
    /// [judges](Self::judge) it, and of `bytes` bytes or somewhat more.
    pub fn strides(&self, bytes: u64) -> Vec<Range<u64>> {
        self.carver.strides(self.source, bytes)
    }

    /// Searches the strides of one of [`strides`](Self::strides), validates the files that may begin there, and passes
    /// each stride on, in order, with its start and as a line of JSON. Writes no files. Returns whether all bytes could
    /// be read.
    ///
    /// # Errors
    /// [`Error::Carve`] if the whole source fails; [`Error::Output`] with the error of `take`; [`Error::Stopped`].
    pub fn judge(
        &self,
        range: &Range<u64>,
        take: &mut (dyn FnMut(u64, &str) -> io::Result<()> + Send),
    ) -> Result<bool> {
        let mut take = |stride: &Range<u64>, line: &str| take(stride.start, line);
        let judged = self.carver.judge(self.source, range, &mut take);
        match judged {
            Ok(judged) if judged.is_complete => Ok(judged.is_readable),
            Ok(_) => {
                Err(Error::Stopped { name: self.source.name().to_string(), offset: range.start })
            }
            Err(quarrier_carve::Error::Keep(error)) => Err(Error::Output(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Carves to the end, or until stopped; the folder then keeps the state to resume.
    ///
    /// # Errors
    /// [`Error::Carve`] if the whole source fails; [`Error::Write`] if files cannot be written, or the
    /// watcher accepts no more. Files reported before the error are complete.
    pub fn run(self, watch: &dyn Watch) -> Result<Carved> {
        self.run_with(None, watch)
    }

    /// Like [`run`](Self::run), with strides that other processes judged by equal requests.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub fn run_with(self, judged: Option<&dyn JudgedStrides>, watch: &dyn Watch) -> Result<Carved> {
        let carve = self.carve;
        let inside = carve.embedded.then(|| {
            let workers = self.carver.workers_count();
            UnpackSettings::new(carve.types.clone(), carve.memory_bytes_max, workers)
        });
        let statuses = match self.target {
            Target::Folder(_) => None,
            Target::Rows { .. } => carve.statuses.as_deref(),
        };
        let kept = Mutex::new(RunOutcome::default());
        let skipping = self.skipping.as_deref();
        let part = carve.part.as_deref();
        let keeper = Keeper { target: &self.target, inside, statuses, watch, kept, skipping, part };
        let (started, begun) = (Instant::now(), SystemTime::now());
        let source = self.source;
        let carver = match judged {
            Some(judged) => self.carver.judged(judged),
            None => self.carver,
        };
        let is_hashed = self.is_local && self.range == (0..source.length());
        let hashed = Some(source).filter(|_| is_hashed && carve.folder.is_some());
        let hashes = carve.hashes;
        let (ran, source_digests) = while_hashing(hashed, hashes, self.stop, || {
            carver.run(source, &keeper).and_then(|summary| {
                keeper.flush(None).map_err(quarrier_carve::Error::Keep)?;
                Ok(summary)
            })
        });
        let is_complete = ran.as_ref().is_ok_and(|summary| !summary.stopped);
        let mut finished = self.target.finish(is_complete);
        if let (Ok(()), Ok(summary), Some(folder)) = (&finished, &ran, &carve.folder)
            && is_complete
        {
            let (notes, options) = (&carve.notes, self.settings);
            let facts = Facts {
                run: case::Run { verb: "carve", notes, options, started: begun },
                source_name: source.name(),
                source_bytes: source.length(),
                source_digests,
                hashes,
                range: self.range,
                unreadable: &summary.unreadable,
            };
            finished =
                outputs(folder, hashes).and_then(|outputs| case::write(folder, &facts, outputs));
        }
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

/// The files that a report in a folder lists, and the reports.
fn outputs(
    folder: &Path,
    hashes: HashKinds,
) -> io::Result<impl Iterator<Item = io::Result<Output>>> {
    let of_report = |name: &'static str| {
        let (bytes, digests) = case::of_file(File::open(folder.join(name))?, hashes)?;
        Ok(Output::new(name.to_string(), bytes, &digests, hashes))
    };
    let reports = [of_report(REPORT), of_report(REPORT_DFXML)];
    let lines = BufReader::new(File::open(folder.join(REPORT))?).lines();
    let files = lines.map(|line| {
        let row = Row::from_json(&line?);
        let row = row.ok_or_else(|| io::Error::other("the report is damaged"))?;
        let more = row.hashes.iter().map(|(name, hash)| (name, hash.to_string())).collect();
        Ok(Output { path: row.path, bytes: row.length, sha256: row.sha256, more })
    });
    Ok(reports.into_iter().chain(files))
}

/// Reads the rows of the report in a folder.
///
/// # Errors
/// [`Error::Source`] if there is no report, or a damaged one.
pub fn reported(folder: &Path) -> Result<Vec<Row>> {
    let path = folder.join(REPORT);
    let read = || -> io::Result<Vec<Row>> {
        let lines = BufReader::new(std::fs::File::open(&path)?).lines();
        let rows = lines.map(|line| {
            Row::from_json(&line?).ok_or_else(|| io::Error::other("the report is damaged"))
        });
        rows.collect()
    };
    let name = || name::of_path(&path);
    read().map_err(|error| quarrier_core::Error::io(name(), "read", error).into())
}
