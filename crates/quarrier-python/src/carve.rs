//! `quarrier.carve`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use quarrier_carve::folder::{Folder, REPORT, Resumed, Row, fingerprint};
use quarrier_carve::format::ALL;
use quarrier_carve::mend::Effort;
use quarrier_carve::{Carver, Error, own};
use quarrier_core::source::{Memory, Source};
use quarrier_remote::Remote;

use crate::buffer::Buffer;
use crate::carved::{Carved, CarvedFiles};
use crate::errors::{of_carve, of_core, of_io, of_remote, raise};
use crate::interrupt::interruptible;
use crate::search::{MEMORY_NAME, path_of};
use crate::source::{environment, options_of, remote_name};

/// What a carving is asked for beside source and folder.
struct Wishes {
    folder: PathBuf,
    types: Option<Vec<String>>,
    /// Name and bytes of a file of signatures.
    signatures: Option<(String, Vec<u8>)>,
    keeps_broken: bool,
    file_bytes_max: Option<u64>,
    range: Range<u64>,
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

/// Recovers files from a disk image, device, URL or bytes-like object into a folder.
#[pyfunction]
#[pyo3(signature = (
    source, folder, *, types=None, signatures=None, keep="all", max_size=None, range=None, resume=false,
    thorough=false, workers=None, max_memory=1 << 30,
))]
#[expect(clippy::too_many_arguments, reason = "the options of the command line, by keyword only")]
pub(crate) fn carve(
    source: &Bound<'_, PyAny>,
    folder: PathBuf,
    types: Option<Vec<String>>,
    signatures: Option<PathBuf>,
    keep: &str,
    max_size: Option<u64>,
    range: Option<(u64, u64)>,
    resume: bool,
    thorough: bool,
    workers: Option<usize>,
    max_memory: u64,
) -> PyResult<CarvedFiles> {
    let py = source.py();
    let refuse = |message: &str| raise(py, "PlanError", (message,));
    if !matches!(keep, "all" | "valid") {
        return Err(refuse(&format!("keep is 'all' or 'valid', not '{keep}'")));
    }
    if max_size == Some(0) || workers == Some(0) {
        return Err(refuse("max_size and workers must be at least 1"));
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
        resume,
        thorough,
        workers,
        memory_bytes_max: max_memory,
    };
    let carved = if let Some(path) = path_of(source)? {
        interruptible(py, |stop| match remote_name(&path) {
            Some(url) => carve_remote(url, &wishes, stop),
            None => {
                let source = quarrier_ewf::open(&path).map_err(Failure::Core)?;
                run(&*source, &wishes, stop)
            }
        })?
    } else {
        let buffer = Buffer::of(source)?;
        let memory = Memory::new(MEMORY_NAME, buffer.shown());
        interruptible(py, |stop| run(&memory, &wishes, stop))?
    };
    let carved = carved.map_err(|failure| match failure {
        Failure::Core(error) => of_core(py, &error),
        Failure::Remote(error) => of_remote(py, &error),
        Failure::Carve(error) => of_carve(py, &error, &wishes.folder),
    })?;
    Ok(CarvedFiles::new(carved))
}

/// Carves what a URL names, over connections of its own.
fn carve_remote(url: &str, wishes: &Wishes, stop: &Arc<AtomicBool>) -> Result<Carved, Failure> {
    let mut options = options_of(&environment());
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
    let formats = ALL.iter().copied().chain(own.iter().map(|format| &**format));
    let mut carver = Carver::new()
        .formats(formats.collect())
        .ranges(vec![wishes.range.clone()])
        .keep_broken(wishes.keeps_broken)
        .memory_bytes_max(wishes.memory_bytes_max)
        .stop(stop);
    if let Some(types) = &wishes.types {
        carver = carver.kinds(types.clone())?;
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
    let path = &wishes.folder;
    let settings = settings(wishes);
    let (folder, begun) = match wishes.resume {
        false => (Box::new(Folder::create(path, source, &settings)?), Box::default()),
        true => match Folder::resume(path, source, &settings, &carver)? {
            Resumed::Begun(folder, begun) => (folder, begun),
            Resumed::Finished => return Ok(told(source, path, Vec::new())?),
        },
    };
    let ran = carver.resume(*begun).run(source, &*folder);
    let finished = folder.finish(ran.as_ref().is_ok_and(|summary| !summary.stopped));
    let summary = ran?;
    finished.map_err(Error::Keep)?;
    Ok(told(source, path, summary.unreadable)?)
}

/// The options that say what is found, in words: only with the same ones a run goes on.
fn settings(wishes: &Wishes) -> String {
    let mut types = wishes.types.clone();
    types.iter_mut().for_each(|types| types.sort());
    let signatures = wishes.signatures.as_ref().map(|(_, bytes)| fingerprint(bytes));
    format!(
        "{types:?} {signatures:?} {} {:?} {:?} {} {}",
        wishes.keeps_broken,
        wishes.file_bytes_max,
        wishes.range,
        wishes.thorough,
        wishes.memory_bytes_max
    )
}

/// What the report in a folder says.
fn told(source: &dyn Source, folder: &Path, unreadable: Vec<Range<u64>>) -> Result<Carved, Error> {
    let read = || -> io::Result<Vec<Row>> {
        let lines = BufReader::new(File::open(folder.join(REPORT))?).lines();
        let rows = lines.map(|line| {
            Row::from_json(&line?).ok_or_else(|| io::Error::other("the report is damaged"))
        });
        rows.collect()
    };
    let rows = read().map_err(Error::Keep)?;
    Ok(Carved { source: source.name().to_string(), unreadable, rows })
}
