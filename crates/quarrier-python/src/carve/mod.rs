//! `quarrier.carve`.

mod writer;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use quarrier_carve::folder::{Folder, Inside, REPORT, Resumed, Row, fingerprint};
use quarrier_carve::format::ALL;
use quarrier_carve::mend::Effort;
use quarrier_carve::{Carver, Error, own, unallocated};
use quarrier_core::region::AsData;
use quarrier_core::source::{ChangingMemory, Source};
use quarrier_remote::{Options, Remote};

use crate::buffer::Buffer;
use crate::carved::{Carved, CarvedFiles};
use crate::count::Count;
use crate::errors::{of_carve, of_core, of_io, of_remote, raise};
use crate::interrupt::interruptible;
use crate::search::{MEMORY_NAME, path_of};
use crate::source::{environment, open_one, remote_name};

use writer::Writer;

/// What a carving is asked for beside source and folder.
struct Wishes {
    /// None for a dry run.
    folder: Option<PathBuf>,
    types: Option<Vec<String>>,
    /// Name and bytes of a file of signatures.
    signatures: Option<(String, Vec<u8>)>,
    keeps_broken: bool,
    file_bytes_max: Option<u64>,
    range: Range<u64>,
    embedded: bool,
    unallocated: bool,
    resume: bool,
    thorough: bool,
    workers: Option<usize>,
    memory_bytes_max: u64,
}

/// Why a carving gave nothing.
enum Failure {
    Core(quarrier_core::Error),
    Remote(quarrier_remote::Error),
    Carve(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Carve(error)
    }
}

/// Recovers files from a disk image, device, URL or bytes-like object into a folder; or only tells
/// what there is (`dry_run=True`, without a folder).
#[pyfunction]
#[pyo3(signature = (
    source, folder=None, *, types=None, signatures=None, keep="all", max_size=None, range=None,
    embedded=false, unallocated=false, dry_run=false, resume=false, thorough=false, workers=None,
    max_memory=1 << 30,
))]
#[expect(clippy::too_many_arguments, reason = "the options of the command line, by keyword only")]
pub(crate) fn carve(
    source: &Bound<'_, PyAny>,
    folder: Option<PathBuf>,
    types: Option<Vec<String>>,
    signatures: Option<PathBuf>,
    keep: &str,
    max_size: Option<u64>,
    range: Option<(u64, u64)>,
    embedded: bool,
    unallocated: bool,
    dry_run: bool,
    resume: bool,
    thorough: bool,
    workers: Option<Count>,
    max_memory: u64,
) -> PyResult<CarvedFiles> {
    let py = source.py();
    let refuse = |message: &str| raise(py, "PlanError", (message,));
    if !matches!(keep, "all" | "valid") {
        return Err(refuse(&format!("keep is 'all' or 'valid', not '{keep}'")));
    }
    match (&folder, dry_run) {
        (None, false) => return Err(refuse("name a folder for the files, or say dry_run=True")),
        (Some(_), true) => return Err(refuse("a dry run writes nothing: leave the folder out")),
        (None, true) if resume => return Err(refuse("a dry run has nothing to resume")),
        _ => {}
    }
    if max_size == Some(0) {
        return Err(refuse("max_size must be at least 1"));
    }
    let range = range.unwrap_or((0, u64::MAX));
    if range.0 > range.1 {
        return Err(refuse(&format!("the range {}..{} ends before it begins", range.0, range.1)));
    }
    let signatures = match signatures {
        None => None,
        Some(path) => {
            let name = path.display().to_string();
            let bytes = std::fs::read(&path).map_err(|error| of_io(py, error, &name))?;
            Some((name, bytes))
        }
    };
    let wishes = Wishes {
        folder,
        types,
        signatures,
        keeps_broken: keep == "all",
        file_bytes_max: max_size,
        range: range.0..range.1,
        embedded,
        unallocated,
        resume,
        thorough,
        workers: Count::chosen(workers),
        memory_bytes_max: max_memory,
    };
    let carved = if let Some(path) = path_of(source)? {
        interruptible(py, |stop| match remote_name(&path) {
            Some(url) => carve_remote(url, &wishes, stop),
            None => {
                let source = open_one(&path).map_err(Failure::Core)?;
                run(&*source, &wishes, stop)
            }
        })?
    } else {
        let buffer = Buffer::of(source)?;
        let memory = ChangingMemory::new(MEMORY_NAME, buffer.shown());
        interruptible(py, |stop| run(&memory, &wishes, stop))?
    };
    let carved = carved.map_err(|failure| match failure {
        Failure::Core(error) => of_core(py, &error),
        Failure::Remote(error) => of_remote(py, &error),
        Failure::Carve(error) => {
            of_carve(py, &error, wishes.folder.as_deref().unwrap_or(Path::new(".")))
        }
    })?;
    Ok(CarvedFiles::new(carved))
}

/// Carves what a URL names, over connections of its own.
fn carve_remote(url: &str, wishes: &Wishes, stop: &Arc<AtomicBool>) -> Result<Carved, Failure> {
    let mut options = Options::of_environment(&environment());
    options.stop = Some(Arc::clone(stop));
    let remote = Remote::new(options).map_err(Failure::Remote)?;
    let source = remote.open(url).map_err(Failure::Remote)?;
    source.announce(wishes.range.clone());
    run(&source, wishes, stop)
}

/// Carves into the folder, and reads what its report says.
fn run(source: &dyn Source, wishes: &Wishes, stop: &AtomicBool) -> Result<Carved, Failure> {
    let own = match &wishes.signatures {
        None => Vec::new(),
        Some((name, bytes)) => own::read(name, bytes)?,
    };
    let (ranges, mut notices) = ranges(source, wishes)?;
    let formats = ALL.iter().copied().chain(own.iter().map(|format| &**format));
    let settings = settings(wishes, &ranges);
    // SAFETY: these are formats of quarrier-carve, which says of all of them that they bear it; what
    // is kept is written and hashed.
    let promise = unsafe { AsData::promised() };
    let mut carver = Carver::new()
        .formats(formats.collect())
        .show_changing(promise)
        .ranges(ranges)
        .embedded(wishes.embedded)
        .keep_broken(wishes.keeps_broken)
        .memory_bytes_max(wishes.memory_bytes_max)
        .stop(stop);
    if let Some(types) = &wishes.types {
        // Who holds files that are wanted need not be wanted.
        let chosen = carver.kinds(types.clone())?;
        carver = if wishes.embedded { chosen.all_kinds() } else { chosen };
    }
    if let Some(bytes) = wishes.file_bytes_max {
        carver = carver.file_bytes_max(bytes);
    }
    if let Some(workers) = wishes.workers {
        carver = carver.workers(workers);
    }
    if wishes.thorough {
        carver = carver.effort(Effort::THOROUGH);
    }
    let folder = match &wishes.folder {
        None => None,
        Some(path) if wishes.resume => match Folder::resume(path, source, &settings, &carver)? {
            Resumed::Begun(folder, begun) => {
                carver = carver.resume(*begun);
                Some(folder)
            }
            Resumed::Finished => {
                let rows = reported(path)?;
                return Ok(Carved { rows, ..Carved::of(source) });
            }
        },
        Some(path) => Some(Box::new(Folder::create(path, source, &settings)?)),
    };
    let inside = wishes.embedded.then(|| {
        Inside::new(wishes.types.clone(), wishes.memory_bytes_max, carver.workers_count())
    });
    let writer = Writer::new(folder.as_deref(), source.name(), inside);
    let ran = carver.run(source, &writer);
    let told = writer.into_told();
    let is_complete = ran.as_ref().is_ok_and(|summary| !summary.stopped);
    let finished = folder.map_or(Ok(()), |folder| folder.finish(is_complete));
    let summary = ran?;
    finished.map_err(Error::Keep)?;
    let rows = match &wishes.folder {
        Some(path) => reported(path)?,
        None => told.rows,
    };
    notices.extend(told.skipped.map(|skipped| skipped.in_words()));
    let skipped = (!notices.is_empty()).then(|| notices.join("; "));
    Ok(Carved { unreadable: summary.unreadable, rows, skipped, ..Carved::of(source) })
}

/// Where files are looked for: all of the range, or what of it is free, with what there is to say of
/// that.
fn ranges(source: &dyn Source, wishes: &Wishes) -> Result<(Vec<Range<u64>>, Vec<String>), Error> {
    let span = &wishes.range;
    if !wishes.unallocated {
        return Ok((vec![span.clone()], Vec::new()));
    }
    let found = unallocated::find(source)?;
    let cut = |range: &Range<u64>| range.start.max(span.start)..range.end.min(span.end);
    let ranges = found.ranges.iter().map(cut).filter(|range| !range.is_empty()).collect();
    Ok((ranges, found.notices()))
}

/// The options that say what is found, in words: only with the same ones a run goes on.
fn settings(wishes: &Wishes, ranges: &[Range<u64>]) -> String {
    let mut types = wishes.types.clone();
    types.iter_mut().for_each(|types| types.sort());
    let signatures = wishes.signatures.as_ref().map(|(_, bytes)| fingerprint(bytes));
    // What is free tells whether the file system is as it was.
    let free = wishes.unallocated.then(|| fingerprint(format!("{ranges:?}").as_bytes()));
    format!(
        "{types:?} {signatures:?} {} {:?} {:?} {} {free:?} {} {}",
        wishes.keeps_broken,
        wishes.file_bytes_max,
        wishes.range,
        wishes.embedded,
        wishes.thorough,
        wishes.memory_bytes_max
    )
}

/// What the report in a folder says.
fn reported(folder: &Path) -> Result<Vec<Row>, Error> {
    let read = || -> io::Result<Vec<Row>> {
        let lines = BufReader::new(File::open(folder.join(REPORT))?).lines();
        let rows = lines.map(|line| {
            Row::from_json(&line?).ok_or_else(|| io::Error::other("the report is damaged"))
        });
        rows.collect()
    };
    read().map_err(Error::Keep)
}
