//! `quarrier.carve`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use quarrier::carve::{Begin, Signatures, Watch, reported};
use quarrier::source::line_of;
use quarrier::{Carve, OpenOptions, Place, Sources};
use quarrier_carve::Summary;
use quarrier_carve::folder::Row;
use quarrier_core::sync::{into_inner, lock};

use crate::carved::{Carved, CarvedFiles};
use crate::count::{Count, Size};
use crate::errors::{of_facade, raise, warn};
use crate::host;
use crate::source::carry_out;

/// Recovers files from a disk image, device, URL or bytes-like object into a folder, or only lists
/// them (`dry_run=True`, without a folder).
#[pyfunction]
#[pyo3(
    signature = (
        source, folder=None, *, types=None, signatures=None, keep="all", max_size=None, range=None,
        embedded=false, unallocated=false, dry_run=false, resume=false, thorough=false,
        workers=None, max_memory=Size(1 << 30),
    ),
    text_signature = "(source, folder=None, *, types=None, signatures=None, keep='all', \
        max_size=None, range=None, embedded=False, unallocated=False, dry_run=False, \
        resume=False, thorough=False, workers=None, max_memory=1073741824)"
)]
#[expect(clippy::too_many_arguments, reason = "the options of the command line, by keyword only")]
pub(crate) fn carve(
    source: &Bound<'_, PyAny>,
    folder: Option<PathBuf>,
    types: Option<Vec<String>>,
    signatures: Option<PathBuf>,
    keep: &str,
    max_size: Option<Size>,
    range: Option<(u64, u64)>,
    embedded: bool,
    unallocated: bool,
    dry_run: bool,
    resume: bool,
    thorough: bool,
    workers: Option<Count>,
    max_memory: Size,
) -> PyResult<CarvedFiles> {
    let py = source.py();
    let refuse = |message: &str| raise(py, "PlanError", (message,));
    if !matches!(keep, "all" | "valid") {
        return Err(refuse(&format!("keep is 'all' or 'valid', not '{keep}'")));
    }
    match (&folder, dry_run) {
        (None, false) => return Err(refuse("pass a folder for the files, or dry_run=True")),
        (Some(_), true) => return Err(refuse("a dry run writes nothing: leave the folder out")),
        (None, true) if resume => return Err(refuse("a dry run has nothing to resume")),
        _ => {}
    }
    let max_size = max_size.map(|Size(bytes)| bytes);
    if max_size == Some(0) {
        return Err(refuse("max_size must be at least 1"));
    }
    let range = range.unwrap_or((0, u64::MAX));
    if range.0 > range.1 {
        return Err(refuse(&format!("the range {}..{} ends before it begins", range.0, range.1)));
    }
    let signatures = signatures
        .as_deref()
        .map(|path| Signatures::read(path, &AtomicBool::new(false)))
        .transpose();
    let request = Carve::new()
        .folder(folder.clone())
        .resume(resume)
        .types(types)
        .signatures(signatures.map_err(|error| of_facade(py, &error))?)
        .keep_broken(keep == "all")
        .file_bytes_max(max_size)
        .range(range.0..range.1)
        .embedded(embedded)
        .unallocated(unallocated)
        .thorough(thorough)
        .workers(Count::or_auto(workers))
        .memory_bytes_max(max_memory.0);
    let folder = folder.as_deref();
    let run_named = |path: PathBuf, stop: &Arc<AtomicBool>| {
        let opener = host::opener(OpenOptions::default(), stop);
        let mut opened = opener.open(&Sources::only(path)?)?;
        let notice = opened.notice_line();
        let ran = run(&request, folder, opened.place(), stop);
        ran.map(|ran| CarveOutcome { notice, ..ran })
    };
    let ran = carry_out(source, run_named, |place, stop| run(&request, folder, place, stop))?;
    let CarveOutcome { carved, notice, damages } = ran;
    warn(py, "SourceWarning", notice)?;
    warn(py, "UnreadableWarning", damages)?;
    Ok(CarvedFiles::new(carved))
}

/// The results of a run, and the lines to issue as warnings.
struct CarveOutcome {
    carved: Carved,
    /// The notice of the source.
    notice: Option<String>,
    /// Damage to file systems, a line each.
    damages: Vec<String>,
}

/// Carves and returns the rows; with a folder, the rows of its report.
fn run(
    request: &Carve,
    folder: Option<&Path>,
    place: Place<'_>,
    stop: &AtomicBool,
) -> quarrier::Result<CarveOutcome> {
    let source = place.name().to_string();
    let mut damages = Vec::new();
    let begin = request.start(place, host::machine(), stop)?;
    let rows = Rows { are_gathered: folder.is_none(), rows: Mutex::default() };
    let (unreadable, skimmed, skipped): (_, _, Vec<String>) = match begin {
        Begin::Finished => (Vec::new(), Vec::new(), Vec::new()),
        Begin::Carving(carving) => {
            let notices = carving.notices().to_vec();
            damages.extend(carving.damages().iter().map(|damage| line_of(&source, damage)));
            let carved = carving.run(&rows)?;
            let members = carved.skipped.map(|skipped| skipped.describe());
            let Summary { unreadable, skimmed, .. } = carved.summary;
            (unreadable, skimmed, notices.into_iter().chain(members).collect())
        }
    };
    let rows = match folder {
        Some(path) => reported(path)?,
        None => into_inner(rows.rows),
    };
    let skipped = (!skipped.is_empty()).then(|| skipped.join("; "));
    let carved = Carved { source, unreadable, skimmed, rows, skipped };
    Ok(CarveOutcome { carved, notice: None, damages })
}

/// Collects rows in memory when no folder holds them.
struct Rows {
    are_gathered: bool,
    rows: Mutex<Vec<Row>>,
}

impl Watch for Rows {
    fn files(&self, mut rows: Vec<Row>, _: Option<u64>) -> io::Result<()> {
        if self.are_gathered {
            lock(&self.rows).append(&mut rows);
        }
        Ok(())
    }
}
