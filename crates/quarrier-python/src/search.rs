//! `quarrier.search`.

use std::ffi::CString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeWarning, PyTypeError};
use pyo3::prelude::*;
use quarrier::rules::Scopes;
use quarrier::search::{Feature, Planning, Running};
use quarrier::{OpenOptions, Place, Search, Sources};
use quarrier_core::pipeline::{Access, Chunk};
use quarrier_gpu::DeviceChoice;
use quarrier_search::{Encodings, EngineName, Finding, Options};

use crate::count::{AutoSize, Count, Size};
use crate::errors::{of_facade, of_search, of_units, raise, warn};
use crate::findings::{Findings, SearchResult};
use crate::host;
use crate::interrupt::interruptible;
use crate::pattern;
use crate::rules::{self, RuleRequest};
use crate::source::carry_out;
use crate::units;

/// Finds every occurrence of patterns in a file, device or bytes-like object.
///
/// With `rules`, the path of a file of YARA rules or a list of paths, it evaluates these rules
/// instead, as `quarrier search --rules` does, and returns `RuleFindings`:
/// `quarrier.search("disk.img", rules=["malware.yar"], scopes="source,files,members")`. Rules take
/// the options `rules_max_size`, `rules_timeout` (in seconds), `max_count`, and those of the
/// machine.
#[pyfunction]
#[pyo3(
    signature = (
        source, patterns=None, *, ignore_case=false, utf16=false, max_count=None, range=None,
        aligned=Size(1), regex_max_length=Size(65536), workers=None, readers=None, buffers=None,
        buffer_size=None, access="auto", direct=false, engine="auto", device="cpu", word=false,
        utf16be=false, encodings="", xor=false, base64=false, features="", rules=None,
        scopes="source,files", rules_max_size=Size(1 << 30), rules_timeout=60.0,
    ),
    text_signature = "(source, patterns=None, *, ignore_case=False, utf16=False, max_count=None, \
        range=None, aligned=1, regex_max_length=65536, workers=None, readers=None, buffers=None, \
        buffer_size=None, access='auto', direct=False, engine='auto', device='cpu', word=False, \
        utf16be=False, encodings='', xor=False, base64=False, features='', rules=None, \
        scopes='source,files', rules_max_size=1073741824, rules_timeout=60.0)"
)]
#[expect(clippy::too_many_arguments, reason = "the options of the command line, by keyword only")]
pub(crate) fn search<'py>(
    source: &Bound<'py, PyAny>,
    patterns: Option<&Bound<'py, PyAny>>,
    ignore_case: bool,
    utf16: bool,
    max_count: Option<u64>,
    range: Option<(u64, u64)>,
    aligned: Size,
    regex_max_length: Size,
    workers: Option<Count>,
    readers: Option<Count>,
    buffers: Option<Count>,
    buffer_size: Option<AutoSize>,
    access: &str,
    direct: bool,
    engine: &str,
    device: &str,
    word: bool,
    utf16be: bool,
    encodings: &str,
    xor: bool,
    base64: bool,
    features: &str,
    rules: Option<&Bound<'py, PyAny>>,
    scopes: &str,
    rules_max_size: Size,
    rules_timeout: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let refuse = |message: &str| raise(py, "PlanError", (message,));
    if rules.is_some() {
        let of_patterns = [
            ("patterns", patterns.is_some()),
            ("ignore_case", ignore_case),
            ("utf16", utf16),
            ("range", range.is_some()),
            ("aligned", aligned.0 != 1),
            ("word", word),
            ("utf16be", utf16be),
            ("encodings", !encodings.is_empty()),
            ("xor", xor),
            ("base64", base64),
            ("features", !features.is_empty()),
        ];
        if let Some((name, _)) = of_patterns.into_iter().find(|(_, is_given)| *is_given) {
            let message = format!(
                "{name} cannot be combined with rules; search for patterns in a separate call"
            );
            return Err(refuse(&message));
        }
    }
    let (Size(aligned), Size(regex_max_length)) = (aligned, regex_max_length);
    if aligned == 0 || regex_max_length == 0 {
        return Err(refuse("aligned and regex_max_length must be at least 1"));
    }
    let range = range.unwrap_or((0, u64::MAX));
    if range.0 > range.1 {
        return Err(refuse(&format!("the range {}..{} ends before it begins", range.0, range.1)));
    }
    let planning = Planning {
        workers: Count::or_auto(workers),
        readers: Count::or_auto(readers),
        buffers: Count::or_auto(buffers),
        buffer_bytes: buffer_size.map_or(0, |AutoSize(bytes)| bytes),
        access: parse_access(access).map_err(|message| refuse(&message))?,
        direct,
    };
    let engine = engine.parse::<EngineName>().map_err(|error| of_search(py, &error))?;
    let device = device_choice(device).map_err(|message| raise(py, "DeviceError", (message,)))?;
    if let Some(rules) = rules {
        let request = RuleRequest {
            paths: rules::paths(rules)?,
            scopes: scopes.parse::<Scopes>().map_err(|message| refuse(&message))?,
            scope_bytes_max: rules_max_size.0,
            scope_time_max: Duration::try_from_secs_f64(rules_timeout)
                .map_err(|error| refuse(&format!("rules_timeout: {error}")))?,
            rows_max: max_count.unwrap_or(u64::MAX),
            planning,
            engine,
            device,
        };
        return Ok(Bound::new(py, rules::judge(source, &request)?)?.into_any());
    }
    let mut patterns = match patterns {
        Some(patterns) => pattern::collect(patterns)?,
        None if !features.is_empty() => Vec::new(),
        None => return Err(PyTypeError::new_err("search needs patterns, features or rules")),
    };
    if word {
        let words = patterns.into_iter().map(quarrier_search::Pattern::word);
        patterns = words.collect::<Result<_, _>>().map_err(|error| of_search(py, &error))?;
    }
    let features = match features {
        "" => Vec::new(),
        list => Feature::parse(list).map_err(|message| refuse(&message))?,
    };
    let request = Search::new(patterns)
        .features(&features)
        .map_err(|error| of_facade(py, &error))?
        .options(Options {
            ignore_case,
            utf16,
            utf16be,
            encodings: Encodings::parse(encodings).map_err(|message| refuse(&message))?,
            xor,
            base64,
            regex_length_bytes_max: usize::try_from(regex_max_length)?,
            ..Options::default()
        })
        .engine(engine)
        .device(device)
        .aligned(aligned)
        .findings_max(max_count.unwrap_or(u64::MAX))
        .range(range.0..range.1)
        .planning(planning);
    let Gathered { found, lost, notices } = of_source(source, &request, direct)?;
    warn(py, "SourceWarning", notices)?;
    for lost in lost {
        let message = CString::new(format!("{lost}; the CPU searched its part"))?;
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)?;
    }
    Ok(Bound::new(py, Findings::new(found))?.into_any())
}

/// The findings, and the lines to issue as warnings.
struct Gathered {
    found: SearchResult,
    /// Devices that failed, a line each.
    lost: Vec<String>,
    /// Notices of sources, a line each.
    notices: Vec<String>,
}

/// Searches a unit, an open source, a path or URL, or bytes.
fn of_source(source: &Bound<'_, PyAny>, request: &Search, direct: bool) -> PyResult<Gathered> {
    let py = source.py();
    if let Some(unit) = units::unit_of(source)? {
        let found = interruptible(py, |stop| units::rows(request, &unit, direct, stop))?;
        let (found, notice) = found.map_err(|error| of_units(py, &error))?;
        let notices = notice.into_iter().collect();
        return Ok(Gathered { found, lost: Vec::new(), notices });
    }
    let run_named = |path: PathBuf, stop: &Arc<AtomicBool>| in_sources(request, path, direct, stop);
    carry_out(source, run_named, |place, stop| in_place(request, place, stop))
}

/// Searches each source of a path or URL, in order.
fn in_sources(
    request: &Search,
    name: PathBuf,
    direct: bool,
    stop: &Arc<AtomicBool>,
) -> quarrier::Result<Gathered> {
    let opener = host::opener(OpenOptions::default().direct(direct), stop);
    let sources = Sources::of([name]);
    let mut running = None;
    let mut found = SearchResult::of(request.patterns());
    let mut notices = Vec::new();
    for opened in sources.open_packed(&opener, request.packed()) {
        let mut opened = opened?;
        notices.extend(opened.notice_line());
        let running = match &mut running {
            Some(running) => running,
            None => running.insert(request.start(host::machine(), Some(&opened.place()), stop)?),
        };
        gather(running, opened.place(), stop, &mut found)?;
        if running.is_full() || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(Gathered { notices, ..finish(running.as_ref(), found) })
}

fn in_place(request: &Search, place: Place<'_>, stop: &AtomicBool) -> quarrier::Result<Gathered> {
    let mut running = request.start(host::machine(), Some(&place), stop)?;
    let mut found = SearchResult::of(request.patterns());
    gather(&mut running, place, stop, &mut found)?;
    Ok(finish(Some(&running), found))
}

/// Adds the findings of one source.
fn gather(
    running: &mut Running<'_>,
    place: Place<'_>,
    stop: &AtomicBool,
    found: &mut SearchResult,
) -> quarrier::Result<()> {
    let name = place.name().to_string();
    let mut take = |chunk: &Chunk<'_>, findings: &[Finding]| {
        found.add(chunk, findings);
        ControlFlow::Continue(())
    };
    let searched = running.search(place, stop, &mut take)?;
    found.sources.push((name, found.findings.len()));
    found.unreadable.extend(searched.run.unreadable);
    Ok(())
}

/// Ends a search and adds the devices that failed.
fn finish(running: Option<&Running<'_>>, mut found: SearchResult) -> Gathered {
    found.engine = running.map_or_else(String::new, Running::engine_name);
    let lost = running.map_or_else(Vec::new, Running::lost_devices);
    Gathered { found, lost, notices: Vec::new() }
}

/// Parses the value of `device=`.
fn device_choice(text: &str) -> Result<DeviceChoice, String> {
    text.parse()
        .map_err(|_| format!("no device '{text}'; there are: auto, cpu, gpu, gpu:0, gpu:1 …, all"))
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
