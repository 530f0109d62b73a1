//! Sources: files, devices, split images and remote objects, read at offsets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use quarrier::source::{Announced, Opened as OpenedSource, open_url};
use quarrier::{Environment, Error, Named, OpenOptions, Place};
use quarrier_core::source::{self, ChangingMemory, Source as _, read_full_at};
use quarrier_core::sync::lock;
use quarrier_remote::{FirstBytes, Header, Remote, RemoteSource};

use crate::buffer::Buffer;
use crate::count::{Count, Size};
use crate::errors::{of_core, of_facade, of_io, of_remote, warn};
use crate::host;
use crate::interrupt::interruptible;
use crate::sparse::Number;

/// The name of a source in memory.
pub(crate) const MEMORY_NAME: &str = "<bytes>";

/// A source of bytes at offsets; `quarrier.open` makes a file object of it.
#[pyclass(frozen, module = "quarrier")]
pub(crate) struct Source {
    kind: Kind,
}

enum Kind {
    Local(Box<dyn source::Source>),
    Remote {
        source: RemoteSource,
        /// Keeps alive the thread that sends its requests.
        _remote: Arc<Remote>,
    },
}

/// The options of remote sources. Sources with the same options share a thread, the limit on
/// requests, and the memory.
#[derive(Clone, PartialEq)]
struct Settings {
    options: OpenOptions,
    environment: Environment,
    /// Part of the key because a forked child has none of its parent's threads.
    process: u32,
}

/// Opens a path or URL; with `raw`, as its own bytes. The request that opens a raw URL asks for its `first`
/// bytes: an offset and a length, or no offset and a length at the end.
#[pyfunction]
#[pyo3(signature = (name, *, cache=None, memory=None, requests=None, raw=false, headers=None, first=None))]
#[expect(clippy::too_many_arguments, reason = "one for each keyword argument of Python")]
pub(crate) fn open_source(
    py: Python<'_>,
    name: PathBuf,
    cache: Option<PathBuf>,
    memory: Option<Size>,
    requests: Option<Count>,
    raw: bool,
    headers: Option<BTreeMap<String, String>>,
    first: Option<(Option<Number>, Number)>,
) -> PyResult<Source> {
    let memory = memory.map(|Size(bytes)| bytes);
    let options = OpenOptions::default()
        .cache(cache)
        .memory_bytes_max(memory)
        .requests_max(Count::or_auto(requests))
        .headers(headers_of(headers.unwrap_or_default())?);
    let first = first.map(|(offset, Number(length))| match offset {
        Some(Number(offset)) => FirstBytes::From { offset, length },
        None => FirstBytes::Last(length),
    });
    let opened = interruptible(py, |stop| match raw {
        true => open_raw(name, options, first, stop),
        false => open(name, options, stop),
    })?;
    let (kind, notice) = opened.map_err(|error| of_facade(py, &error))?;
    warn(py, "SourceWarning", notice)?;
    Ok(Source { kind })
}

fn headers_of(headers: BTreeMap<String, String>) -> PyResult<Vec<Header>> {
    let parsed = headers.iter().map(|(name, value)| Header::new(name, value));
    let wrong = |error| PyValueError::new_err(format!("headers: {error}"));
    parsed.collect::<Result<_, _>>().map_err(wrong)
}

/// Opens a source. Also returns the line of its notice.
fn open(
    name: PathBuf,
    options: OpenOptions,
    stop: &Arc<AtomicBool>,
) -> quarrier::Result<(Kind, Option<String>)> {
    let named = host::opener(options.clone(), stop).only(name)?;
    let Named::Url(url) = &named else {
        return local(host::opener(options, stop).open(&named)?);
    };
    let remote = remote_of(options)?;
    match open_url(&remote, url, &host::environment(), stop)? {
        OpenedSource::Remote(source) => Ok((Kind::Remote { source, _remote: remote }, None)),
        image => local(image),
    }
}

/// Opens a file or an object as its own bytes.
fn open_raw(
    name: PathBuf,
    options: OpenOptions,
    first: Option<FirstBytes>,
    stop: &Arc<AtomicBool>,
) -> quarrier::Result<(Kind, Option<String>)> {
    let named = Named::exactly(name);
    let Named::Url(url) = &named else {
        return local(host::opener(options, stop).open_raw(&named)?);
    };
    let remote = remote_of(options)?;
    let source = match first {
        Some(first) => remote.open_reading(url, first, stop)?,
        None => remote.open_unless(url, stop)?,
    };
    Ok((Kind::Remote { source, _remote: remote }, None))
}

fn local(opened: OpenedSource) -> quarrier::Result<(Kind, Option<String>)> {
    let notice = opened.notice_line();
    Ok((Kind::Local(opened.at_offsets()?), notice))
}

/// The request owners in use, and the last one: loading the certificates again for each file would
/// take longer than opening it.
struct Remotes {
    used: Vec<(Settings, Weak<Remote>)>,
    last: Option<Arc<Remote>>,
}

/// Returns the request owner for these options: the existing one, or a new one.
fn remote_of(options: OpenOptions) -> quarrier::Result<Arc<Remote>> {
    static REMOTES: Mutex<Remotes> = Mutex::new(Remotes { used: Vec::new(), last: None });
    let environment = Environment::of_process();
    let settings = Settings { options, environment, process: std::process::id() };
    let mut remotes = lock(&REMOTES);
    remotes.used.retain(|(_, remote)| remote.strong_count() > 0);
    let known = remotes.used.iter().find(|(known, _)| *known == settings);
    if let Some(remote) = known.and_then(|(_, remote)| remote.upgrade()) {
        return Ok(remote);
    }
    let remote = Arc::new(settings.options.client(&settings.environment)?);
    remotes.used.push((settings, Arc::downgrade(&remote)));
    remotes.last = Some(Arc::clone(&remote));
    Ok(remote)
}

#[pymethods]
impl Source {
    /// The path or URL, without secrets.
    #[getter]
    fn name(&self) -> String {
        match &self.kind {
            Kind::Local(source) => source.name().to_string(),
            Kind::Remote { source, .. } => source.name().to_string(),
        }
    }

    /// The length in bytes when the source was opened.
    #[getter]
    fn length(&self) -> u64 {
        match &self.kind {
            Kind::Local(source) => source.length(),
            Kind::Remote { source, .. } => source.length(),
        }
    }

    /// The cost of reads of a remote source so far; None for a local source.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Kind::Remote { source, .. } = &self.kind else { return Ok(None) };
        let counters = source.counters();
        let dict = PyDict::new(py);
        dict.set_item("requests", counters.requests)?;
        dict.set_item("bytes_fetched", counters.bytes_fetched)?;
        dict.set_item("bytes_asked", counters.bytes_asked)?;
        dict.set_item("bytes_from_disk", counters.bytes_from_disk)?;
        dict.set_item("retries", counters.retries)?;
        Ok(Some(dict))
    }

    /// The ETag and the Last-Modified date of a remote source, if the server sends them.
    fn validators(&self) -> (Option<&str>, Option<&str>) {
        match &self.kind {
            Kind::Local(_) => (None, None),
            Kind::Remote { source, .. } => (source.etag(), source.last_modified()),
        }
    }

    /// Reads each (offset, length), with fewer bytes at the end. Fetches the missing bytes of a remote source
    /// by few concurrent requests.
    fn read_ranges<'py>(
        &self,
        py: Python<'py>,
        ranges: Vec<(Number, Number)>,
    ) -> PyResult<Bound<'py, PyList>> {
        let length = self.length();
        let spans: Vec<Range<u64>> = ranges
            .into_iter()
            .map(|(Number(offset), Number(count))| {
                offset.min(length)..offset.saturating_add(count).min(length)
            })
            .collect();
        let found = PyList::empty(py);
        let mut left = &spans[..];
        while !left.is_empty() {
            let group;
            (group, left) = left.split_at(count_at_once(left));
            py.check_signals()?;
            let mut buffers = buffers_of(group).map_err(|error| of_io(py, error, &self.name()))?;
            self.fill(py, group, &mut buffers)?;
            for buffer in &buffers {
                found.append(PyBytes::new(py, buffer))?;
            }
        }
        Ok(found)
    }

    /// Reads at `offset` until `buffer` is full or the source ends, and returns the number of bytes
    /// read.
    fn read_into(&self, offset: Number, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = buffer.py();
        let mut target = Buffer::writable(buffer)?;
        let bytes = target.bytes_mut();
        let read = match &self.kind {
            Kind::Local(source) => py.detach(|| read_full_at(&**source, offset.0, bytes)),
            Kind::Remote { source, .. } => return self.read_remote(py, source, offset.0, bytes),
        };
        read.map_err(|error| of_io(py, error, &self.name()))
    }

    fn __repr__(&self) -> String {
        format!("<quarrier source {:?}, {} bytes>", self.name(), self.length())
    }
}

/// The maximum number of bytes, and of ranges, that are read at once: the bytes are in memory twice, and
/// those of a remote source are pinned.
const GROUP_BYTES_MAX: u64 = 32 << 20;
const GROUP_RANGES_MAX: usize = 1000;

/// How many of the first ranges are read at once: at least one, if there is any.
fn count_at_once(spans: &[Range<u64>]) -> usize {
    let mut bytes = 0u64;
    let fits = |span: &&Range<u64>| {
        bytes = bytes.saturating_add(span.end - span.start);
        bytes <= GROUP_BYTES_MAX
    };
    let count = spans.iter().take(GROUP_RANGES_MAX).take_while(fits).count();
    count.max(1).min(spans.len())
}

/// Allocates a buffer for each range.
fn buffers_of(spans: &[Range<u64>]) -> std::io::Result<Vec<Vec<u8>>> {
    let buffer_of = |span: &Range<u64>| {
        let length = usize::try_from(span.end - span.start);
        let length = length.map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(length).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
        buffer.resize(length, 0);
        Ok(buffer)
    };
    spans.iter().map(buffer_of).collect()
}

impl Source {
    /// Reads each range into its buffer, which becomes shorter if the source has shrunk.
    fn fill(&self, py: Python<'_>, spans: &[Range<u64>], buffers: &mut [Vec<u8>]) -> PyResult<()> {
        let offsets = spans.iter().map(|span| span.start);
        match &self.kind {
            Kind::Local(source) => py
                .detach(|| {
                    offsets.zip(buffers).try_for_each(|(offset, buffer)| {
                        let count = read_full_at(&**source, offset, buffer)?;
                        buffer.truncate(count);
                        Ok(())
                    })
                })
                .map_err(|error| of_io(py, error, &self.name())),
            // A single large range does not have to be in memory at once.
            Kind::Remote { source, .. } if spans.len() == 1 => {
                let (offset, buffer) = (spans[0].start, &mut buffers[0]);
                let count = self.read_remote(py, source, offset, buffer)?;
                buffer.truncate(count);
                Ok(())
            }
            Kind::Remote { source, .. } => {
                let mut reads: Vec<_> =
                    offsets.zip(buffers.iter_mut().map(Vec::as_mut_slice)).collect();
                let are_held = spans.iter().all(|span| source.holds(span.clone()));
                let read = if are_held {
                    py.detach(|| source.read_many_unless(&mut reads, &AtomicBool::new(false)))
                } else {
                    interruptible(py, |stop| source.read_many_unless(&mut reads, stop))?
                };
                read.map_err(|error| of_remote(py, &error))
            }
        }
    }

    /// Reads on another thread if the bytes are not cached, so that Ctrl-C ends a read that waits
    /// for the network. A read of cached bytes is not worth a thread.
    fn read_remote(
        &self,
        py: Python<'_>,
        source: &RemoteSource,
        offset: u64,
        bytes: &mut [u8],
    ) -> PyResult<usize> {
        let end = offset.saturating_add(bytes.len() as u64);
        let read = if source.holds(offset..end) {
            py.detach(|| source.read_unless(offset, bytes, &AtomicBool::new(false)))
        } else {
            interruptible(py, |stop| source.read_unless(offset, bytes, stop))?
        };
        read.map_err(|error| of_remote(py, &error))
    }
}

/// The errors of an [`Opened`] source's readers, and the flag that stops them.
#[derive(Default)]
pub(crate) struct Failed {
    stop: Arc<AtomicBool>,
    remote: Mutex<Option<quarrier_remote::Error>>,
}

impl Failed {
    /// Makes readers give up once `stop` is true.
    pub(crate) fn stopped_by(stop: &Arc<AtomicBool>) -> Self {
        Failed { stop: Arc::clone(stop), remote: Mutex::default() }
    }

    /// Makes reads that wait for a network end soon.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Returns the exception for `error`: the network's own, if that is the cause.
    pub(crate) fn raised(&self, py: Python<'_>, error: &quarrier_core::Error) -> PyErr {
        let remote = lock(&self.remote).take();
        remote.map_or_else(|| of_core(py, error), |remote| of_remote(py, &remote))
    }
}

/// A [`Source`] for the pipeline's threads.
pub(crate) struct Opened {
    source: Py<Source>,
    failed: Arc<Failed>,
}

impl Opened {
    pub(crate) fn new(source: Py<Source>, failed: Arc<Failed>) -> Self {
        Opened { source, failed }
    }

    /// The source as the place of a request.
    pub(crate) fn place(&self) -> Place<'_> {
        match self.kind() {
            Kind::Local(_) => Place::Local(self),
            Kind::Remote { .. } => Place::Remote(self),
        }
    }

    fn kind(&self) -> &Kind {
        &self.source.get().kind
    }
}

impl Announced for Opened {
    fn announce(&self, range: Range<u64>) {
        if let Kind::Remote { source, .. } = self.kind() {
            source.announce(range);
        }
    }
}

impl source::Source for Opened {
    fn name(&self) -> &str {
        match self.kind() {
            Kind::Local(source) => source.name(),
            Kind::Remote { source, .. } => source.name(),
        }
    }

    fn length(&self) -> u64 {
        match self.kind() {
            Kind::Local(source) => source.length(),
            Kind::Remote { source, .. } => source.length(),
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        let stop = &self.failed.stop;
        if stop.load(Ordering::Relaxed) {
            return Err(std::io::ErrorKind::ConnectionAborted.into());
        }
        let source = match self.kind() {
            Kind::Local(source) => return source.read_at(offset, buffer),
            Kind::Remote { source, .. } => source,
        };
        source.read_unless(offset, buffer, stop).map_err(|error| {
            let mut remote = lock(&self.failed.remote);
            let kind = std::io::Error::from(error.clone());
            *remote = Some(error);
            kind
        })
    }

    fn sector_bytes(&self) -> usize {
        match self.kind() {
            Kind::Local(source) => source.sector_bytes(),
            Kind::Remote { source, .. } => source.sector_bytes(),
        }
    }
}

/// Runs a request: by `in_place` over an open source or bytes, by `run_named` over a path or URL.
///
/// # Errors
/// The exceptions of sources and of the request, and the exception of a signal handler.
pub(crate) fn carry_out<T: Send>(
    source: &Bound<'_, PyAny>,
    run_named: impl FnOnce(PathBuf, &Arc<AtomicBool>) -> quarrier::Result<T> + Send,
    in_place: impl FnOnce(Place<'_>, &Arc<AtomicBool>) -> quarrier::Result<T> + Send,
) -> PyResult<T> {
    let py = source.py();
    let done = if let Some(opened) = opened(source)? {
        let mut failed = None;
        let done = interruptible(py, |stop| {
            let reported = Arc::new(Failed::stopped_by(stop));
            failed = Some(Arc::clone(&reported));
            let source = Opened::new(opened, reported);
            in_place(source.place(), stop)
        })?;
        match (done, failed) {
            (Err(Error::Source(error)), Some(failed)) => return Err(failed.raised(py, &error)),
            (done, _) => done,
        }
    } else if let Some(path) = path_of(source)? {
        interruptible(py, |stop| run_named(path, stop))?
    } else {
        let buffer = Buffer::of(source)?;
        let memory = ChangingMemory::new(MEMORY_NAME, buffer.changing_bytes());
        interruptible(py, |stop| in_place(Place::Local(&memory), stop))?
    };
    done.map_err(|error| of_facade(py, &error))
}

/// Returns the source that `quarrier.open` returned, if `source` is one.
fn opened(source: &Bound<'_, PyAny>) -> PyResult<Option<Py<Source>>> {
    let class = source.py().import("quarrier._file")?.getattr("SourceFile")?;
    if !source.is_instance(&class)? {
        return Ok(None);
    }
    Ok(Some(source.call_method0("_native")?.cast_into::<Source>()?.unbind()))
}

/// Returns the path in `source`, or `None` if it is bytes.
pub(crate) fn path_of(source: &Bound<'_, PyAny>) -> PyResult<Option<PathBuf>> {
    if source.is_instance_of::<PyString>() || source.hasattr("__fspath__")? {
        return Ok(Some(source.extract()?));
    }
    // SAFETY: `source` is a live object, and its type shows that this thread is attached to the
    // interpreter.
    if unsafe { pyo3::ffi::PyObject_CheckBuffer(source.as_ptr()) } == 0 {
        return Err(PyTypeError::new_err(format!(
            "a source is a path or a bytes-like object, not '{}'",
            source.get_type().name()?
        )));
    }
    Ok(None)
}
