//! `quarrier.search`.

use std::ffi::CString;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use quarrier_core::pipeline::{Access, Chunk, Pipeline};
use quarrier_core::region::AsData;
use quarrier_core::source::{self, ChangingMemory};
use quarrier_gpu::Wish;
use quarrier_remote::Remote;
use quarrier_search::{EngineName, Finding, Options, Sample, Searcher};

use crate::buffer::Buffer;
use crate::count::Count;
use crate::device::{self, OnDevices};
use crate::errors::{of_core, of_remote, of_search, raise};
use crate::findings::{Findings, Found};
use crate::interrupt::interruptible;
use crate::pattern;
use crate::source::{Failed, Opened, Source, environment, files_of, remote_name};

/// The name of a source that is bytes in memory.
pub(crate) const MEMORY_NAME: &str = "<bytes>";

/// What a search is asked for beside source and patterns.
struct Wishes {
    options: Options,
    engine: EngineName,
    max_count: usize,
    range: Range<u64>,
    aligned_bytes: u64,
    workers: usize,
    readers: usize,
    buffers: usize,
    buffer_bytes: usize,
    access: Option<Access>,
    device: Wish,
}

/// Why a search gave nothing.
enum Failure {
    Core(quarrier_core::Error),
    Remote(quarrier_remote::Error),
    Search(quarrier_search::Error),
}

/// Finds every occurrence of patterns in a file, device or bytes-like object.
#[pyfunction]
#[pyo3(signature = (
    source, patterns, *, ignore_case=false, utf16=false, max_count=None, range=None, aligned=1,
    regex_max_length=65536, workers=None, readers=None, buffers=None,
    buffer_size=None,
    access="auto", direct=false, engine="auto", device="cpu",
))]
#[expect(clippy::too_many_arguments, reason = "the options of the command line, by keyword only")]
pub(crate) fn search(
    source: &Bound<'_, PyAny>,
    patterns: &Bound<'_, PyAny>,
    ignore_case: bool,
    utf16: bool,
    max_count: Option<usize>,
    range: Option<(u64, u64)>,
    aligned: u64,
    regex_max_length: usize,
    workers: Option<Count>,
    readers: Option<Count>,
    buffers: Option<Count>,
    buffer_size: Option<Count>,
    access: &str,
    direct: bool,
    engine: &str,
    device: &str,
) -> PyResult<Findings> {
    let py = source.py();
    let refuse = |message: &str| raise(py, "PlanError", (message,));
    if aligned == 0 || regex_max_length == 0 {
        return Err(refuse("aligned and regex_max_length must be at least 1"));
    }
    let range = range.unwrap_or((0, u64::MAX));
    if range.0 > range.1 {
        return Err(refuse(&format!("the range {}..{} ends before it begins", range.0, range.1)));
    }
    let access = match (access, direct) {
        ("auto", true) => Some(Access::Uring),
        _ => parse_access(access).map_err(|message| refuse(&message))?,
    };
    let wishes = Wishes {
        options: Options { ignore_case, utf16, regex_length_bytes_max: regex_max_length },
        engine: engine.parse().map_err(|error| of_search(py, &error))?,
        max_count: max_count.unwrap_or(usize::MAX),
        range: range.0..range.1,
        aligned_bytes: aligned,
        workers: Count::chosen(workers).unwrap_or(0),
        readers: Count::chosen(readers).unwrap_or(0),
        buffers: Count::chosen(buffers).unwrap_or(0),
        buffer_bytes: Count::chosen(buffer_size).unwrap_or(0),
        access,
        device: device::wish(device).map_err(|message| raise(py, "DeviceError", (message,)))?,
    };
    let patterns = pattern::collect(patterns)?;
    let found = if let Some(opened) = opened(source)? {
        let mut failed = None;
        let found = interruptible(py, |stop| {
            let told = Arc::new(Failed::stopped_by(stop));
            failed = Some(Arc::clone(&told));
            let source = Python::attach(|py| Opened::new(py, opened, told));
            run(&source, patterns, &wishes, source.sample(), stop)
        })?;
        match (found, failed) {
            (Err(Failure::Core(error)), Some(failed)) => return Err(failed.raised(py, &error)),
            (found, _) => found,
        }
    } else if let Some(path) = path_of(source)? {
        interruptible(py, |stop| match remote_name(&path) {
            Some(url) => search_remote(url, patterns, &wishes, stop),
            None => search_files(&path, direct, patterns, wishes, stop),
        })?
    } else {
        let buffer = Buffer::of(source)?;
        let memory = ChangingMemory::new(MEMORY_NAME, buffer.shown());
        let sample = Some(Sample::take(&memory));
        interruptible(py, |stop| run(&memory, patterns, &wishes, sample, stop))?
    };
    let (found, lost) = found.map_err(|failure| match failure {
        Failure::Core(error) => of_core(py, &error),
        Failure::Remote(error) => of_remote(py, &error),
        Failure::Search(error) => of_search(py, &error),
    })?;
    for lost in lost {
        let message = CString::new(format!("{lost}; the CPU did its part"))?;
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)?;
    }
    Ok(Findings::new(found))
}

/// Searches a URL, over connections of its own.
fn search_remote(
    url: &str,
    patterns: Vec<quarrier_search::Pattern>,
    wishes: &Wishes,
    stop: &Arc<AtomicBool>,
) -> Result<(Found, Vec<String>), Failure> {
    let mut options = quarrier_remote::Options::of_environment(&environment());
    options.stop = Some(Arc::clone(stop));
    let remote = Remote::new(options).map_err(Failure::Remote)?;
    let source = remote.open(url).map_err(Failure::Remote)?;
    source.announce(wishes.range.clone());
    // A sample would cost requests.
    run(&source, patterns, wishes, None, stop)
}

/// Searches the files that a path stands for, one after another.
fn search_files(
    path: &Path,
    direct: bool,
    patterns: Vec<quarrier_search::Pattern>,
    mut wishes: Wishes,
    stop: &AtomicBool,
) -> Result<(Found, Vec<String>), Failure> {
    let mut all: Option<(Found, Vec<String>)> = None;
    for file in files_of(path).map_err(Failure::Core)? {
        if all.is_some() && wishes.max_count == 0 || stop.load(Ordering::Relaxed) {
            break;
        }
        let open = if direct { quarrier_ewf::open_direct } else { quarrier_ewf::open };
        let source = open(&file).map_err(Failure::Core)?;
        let (found, lost) =
            run(&*source, patterns.clone(), &wishes, Some(Sample::take(&*source)), stop)?;
        wishes.max_count -= found.findings.len();
        match &mut all {
            None => all = Some((found, lost)),
            Some((before, lost_before)) => {
                before.append(found);
                lost_before.extend(lost);
            }
        }
    }
    // A path stands for at least one file.
    all.ok_or_else(|| Failure::Core(quarrier_core::Error::BadPlan("no source".to_string())))
}

/// What `quarrier.open` opened, where `source` is that.
fn opened(source: &Bound<'_, PyAny>) -> PyResult<Option<Py<Source>>> {
    let class = source.py().import("quarrier._file")?.getattr("SourceFile")?;
    if !source.is_instance(&class)? {
        return Ok(None);
    }
    Ok(Some(source.call_method0("_native")?.cast_into::<Source>()?.unbind()))
}

/// The path that `source` is, or `None` where it is bytes.
pub(crate) fn path_of(source: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if source.is_instance_of::<PyString>() || source.hasattr("__fspath__")? {
        return Ok(Some(source.extract()?));
    }
    // SAFETY: the object is alive.
    if unsafe { pyo3::ffi::PyObject_CheckBuffer(source.as_ptr()) } == 0 {
        return Err(PyTypeError::new_err(format!(
            "a source is a path or a bytes-like object, not '{}'",
            source.get_type().name()?
        )));
    }
    Ok(None)
}

fn parse_access(text: &str) -> Result<Option<Access>, String> {
    let all = [Access::Window, Access::Read, Access::Queue, Access::Uring];
    match all.into_iter().find(|access| access.name() == text) {
        None if text != "auto" => {
            Err(format!("no access '{text}'; there are: auto, window, read, queue, uring"))
        }
        found => Ok(found),
    }
}

/// Compiles the patterns for this source, which looks like `sample`, and runs them over it; also says which devices failed.
fn run(
    source: &dyn source::Source,
    patterns: Vec<quarrier_search::Pattern>,
    wishes: &Wishes,
    taken: Option<Sample>,
    stop: &AtomicBool,
) -> Result<(Found, Vec<String>), Failure> {
    let sample = taken.clone().unwrap_or_default();
    let searcher = Searcher::builder()
        .options(wishes.options)
        .engine(wishes.engine)
        .aligned(wishes.aligned_bytes)
        .sample(sample.clone())
        .build(patterns)
        .map_err(Failure::Search)?;
    let searcher = Arc::new(searcher);
    let slots = (wishes.buffers, wishes.workers);
    let on = OnDevices::choose(wishes.device, &searcher, &sample, slots);
    let on = on.map_err(Failure::Search)?;
    let range = wishes.range.start..wishes.range.end.min(source.length());
    // SAFETY: a searcher compares bytes, on devices copies of them, and the sink looks at none.
    let promise = unsafe { AsData::promised() };
    let mut pipeline = Pipeline::new(source)
        .show_changing(promise)
        .workers(wishes.workers)
        .readers(wishes.readers)
        .buffers(wishes.buffers)
        .buffer_bytes(match wishes.buffer_bytes {
            0 => taken.and_then(|taken| searcher.buffer_bytes_max(&taken)).unwrap_or(0),
            bytes => bytes,
        })
        .range(wishes.range.start..range.end.max(wishes.range.start))
        .stop(stop);
    if let Some(access) = wishes.access {
        pipeline = pipeline.access(access);
    }
    let length = range.end.saturating_sub(range.start);
    if let Some(on) = &on {
        let sizes = (wishes.access, wishes.buffer_bytes);
        pipeline = on.pipeline(pipeline, source, sizes, length);
    }
    let mut findings: Vec<Finding> = Vec::new();
    let most = wishes.max_count;
    let mut sink = searcher.sink(|_: &Chunk<'_>, some: &[Finding]| {
        let room = most - findings.len();
        findings.extend_from_slice(&some[..some.len().min(room)]);
        if findings.len() >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let memory = |bytes: usize| on.as_ref().map(|on| on.searcher.buffer(bytes));
    let ran = match &on {
        Some(on) => pipeline.memory(&memory).run(&on.searcher, &mut sink),
        None => pipeline.run(&*searcher, &mut sink),
    };
    let too_long = sink.too_long();
    drop(sink);
    let ran = ran.map_err(Failure::Core)?;
    match too_long {
        Some(error) if findings.len() < most => Err(Failure::Search(error)),
        _ => {
            let engine = on.as_ref().map_or_else(|| searcher.engine_name(), OnDevices::engine_name);
            let found = Found {
                sources: vec![(source.name().to_string(), findings.len())],
                patterns: searcher.patterns().to_vec(),
                engine,
                unreadable: ran.unreadable,
                findings,
            };
            Ok((found, on.map_or_else(Vec::new, |on| on.searcher.lost())))
        }
    }
}
