//! Search: finds every occurrence of patterns.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::search::{Feature, Planning, Running, copy_match};
use quarrier::{Place, Sources};
use quarrier_core::pipeline::Chunk;
use quarrier_gpu::DeviceChoice;
use quarrier_search::{Encodings, EngineName, Options, Pattern};

use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::host;
use crate::input::{
    Sized, bytes, free, object, object_mut, optional_text, put_new, structure, text,
};
use crate::report::Report;
use crate::source::Source;
use crate::stop::{Stop, unless};
use crate::text::{c_text, file_name, path};

/// Patterns, and the options of a search for them.
pub struct Search {
    patterns: Vec<Pattern>,
    settings: Settings,
}

/// The parsed options.
struct Settings {
    is_word: bool,
    options: Options,
    engine: EngineName,
    device: DeviceChoice,
    features: Vec<&'static Feature>,
    aligned: u64,
    findings_max: u64,
    range: std::ops::Range<u64>,
    planning: Planning,
}

/// Options of a search. `quarrier_search_options options = {.struct_bytes = sizeof options};` sets every
/// field to its default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SearchOptions {
    /// sizeof(quarrier_search_options).
    pub struct_bytes: usize,
    /// Report only findings at multiples of this; 0 for any offset.
    pub aligned: u64,
    /// Maximum number of findings; 0 for no limit.
    pub findings_max: u64,
    /// The first offset to search.
    pub range_start: u64,
    /// The offset after the last byte to search; 0 for the end of the source.
    pub range_end: u64,
    /// Maximum length of a regex match in bytes; 0 for 64 KiB. A longer match is an error.
    pub regex_length_max: usize,
    /// The number of threads; 0 for one per CPU.
    pub workers: usize,
    /// The engine for literals and hex patterns; NULL for the best one.
    pub engine: *const c_char,
    /// "cpu", "gpu", "gpu:1", "auto" or "all"; NULL: "cpu".
    pub device: *const c_char,
    /// Code pages in which to search for literals too, such as "windows-1251,koi8-r", or NULL.
    pub encodings: *const c_char,
    /// Built-in scanners, such as "email,iban", or NULL. They are numbered after the patterns.
    pub features: *const c_char,
    /// Whether to ignore case.
    pub ignore_case: u8,
    /// Whether to search for literals as UTF-16LE, too.
    pub utf16: u8,
    /// Whether to search for literals as UTF-16BE, too.
    pub utf16be: u8,
    /// Whether to search for literals under XOR with one byte, too.
    pub xored: u8,
    /// Whether to search for literals within base64, too.
    pub base64: u8,
    /// Whether to report only whole words.
    pub word: u8,
}

impl Default for SearchOptions {
    fn default() -> Self {
        let none = std::ptr::null();
        SearchOptions {
            struct_bytes: size_of::<Self>(),
            aligned: 0,
            findings_max: 0,
            range_start: 0,
            range_end: 0,
            regex_length_max: 0,
            workers: 0,
            engine: none,
            device: none,
            encodings: none,
            features: none,
            ignore_case: 0,
            utf16: 0,
            utf16be: 0,
            xored: 0,
            base64: 0,
            word: 0,
        }
    }
}

// SAFETY: the fields are numbers and pointers, so any bytes are a value; the first is a `usize`;
// version 0.1.0 is the first one, so no field lies in the padding of an earlier one.
unsafe impl Sized for SearchOptions {}

/// A finding. All pointers are valid until the callback returns.
#[repr(C)]
pub struct Finding {
    /// The name of the source.
    pub source: *const c_char,
    /// The offset of the match in the source.
    pub offset: u64,
    /// The length of the match in bytes.
    pub length: u64,
    /// The number of the pattern, from 0, in the order in which patterns were added.
    pub pattern: usize,
    /// The name of the pattern, or the pattern as written.
    pub pattern_name: *const c_char,
    /// The bytes found, at most 4,096 of them.
    pub found: *const c_void,
    /// The number of bytes in found.
    pub found_length: usize,
}

/// Receives a finding. Return 0 to continue, any other value to end the search. Findings arrive in the
/// order of their offsets, one at a time, on any thread. The callback must not throw, nor leave by
/// longjmp().
pub type FindingCallback =
    Option<unsafe extern "C" fn(finding: *const Finding, context: *mut c_void) -> c_int>;

impl Settings {
    /// # Safety
    /// The pointers in `given` are NULL or point to text that ends with a zero byte.
    unsafe fn of(given: &SearchOptions) -> Result<Settings, Failure> {
        let refused = Failure::Refused;
        // SAFETY: the caller promises that all four are NULL or end with a zero byte, and that they
        // outlive this call.
        let (engine, device, encodings, features) = unsafe {
            (
                optional_text(given.engine, "engine")?.unwrap_or("auto"),
                optional_text(given.device, "device")?.unwrap_or("cpu"),
                optional_text(given.encodings, "encodings")?.unwrap_or(""),
                optional_text(given.features, "features")?.unwrap_or(""),
            )
        };
        let defaults = Options::default();
        let options = Options {
            ignore_case: given.ignore_case != 0,
            utf16: given.utf16 != 0,
            utf16be: given.utf16be != 0,
            xor: given.xored != 0,
            base64: given.base64 != 0,
            encodings: Encodings::parse(encodings).map_err(refused)?,
            regex_length_bytes_max: match given.regex_length_max {
                0 => defaults.regex_length_bytes_max,
                bytes => bytes,
            },
            ..defaults
        };
        let range =
            given.range_start..if given.range_end == 0 { u64::MAX } else { given.range_end };
        if range.start > range.end {
            return Err(Failure::Argument("range_start", "the range ends before it begins"));
        }
        Ok(Settings {
            is_word: given.word != 0,
            options,
            engine: engine.parse()?,
            device: device
                .parse()
                .map_err(|_| Failure::Refused(format!("no device '{device}'")))?,
            features: match features {
                "" => Vec::new(),
                list => Feature::parse(list).map_err(refused)?,
            },
            aligned: given.aligned.max(1),
            findings_max: if given.findings_max == 0 { u64::MAX } else { given.findings_max },
            range,
            planning: Planning { workers: given.workers, ..Planning::default() },
        })
    }
}

impl Search {
    fn add(&mut self, pattern: Pattern, name: Option<&str>) -> Result<(), Failure> {
        let pattern = if self.settings.is_word { pattern.word()? } else { pattern };
        self.patterns.push(name.into_iter().fold(pattern, |pattern, name| pattern.named(name)));
        Ok(())
    }

    /// Creates the facade's request.
    fn request(&self) -> Result<quarrier::Search, Failure> {
        let settings = &self.settings;
        Ok(quarrier::Search::new(self.patterns.clone())
            .features(&settings.features)?
            .options(settings.options)
            .engine(settings.engine)
            .device(settings.device)
            .aligned(settings.aligned)
            .findings_max(settings.findings_max)
            .range(settings.range.clone())
            .planning(settings.planning))
    }
}

/// Creates a search without patterns. options may be NULL. Free it with quarrier_search_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_new(
    options: *const SearchOptions,
    search: *mut *mut Search,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `search` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte.
    unsafe {
        run(error, || {
            let settings = Settings::of(&structure(options, "options")?)?;
            put_new(search, "search", Search { patterns: Vec::new(), settings })
        })
    }
}

/// Frees a search.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_free(search: *mut Search) {
    // SAFETY: the header requires that `search` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(search) });
}

/// Adds a string as a literal. name may be NULL: the pattern is then its own name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_add_text(
    search: *mut Search,
    pattern: *const c_char,
    name: *const c_char,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `pattern` and `name` are NULL
    // or end with a zero byte; `search` is NULL or alive, and only this thread uses it, as it is
    // passed without const.
    unsafe {
        run(error, || {
            let pattern = Pattern::literal(text(pattern, "pattern")?)?;
            object_mut(search, "search")?.add(pattern, optional_text(name, "name")?)
        })
    }
}

/// Adds bytes as a literal. name may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_add_bytes(
    search: *mut Search,
    data: *const c_void,
    length: usize,
    name: *const c_char,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `name` is NULL or ends with a
    // zero byte; `search` is NULL or alive, and only this thread uses it, as it is passed without
    // const; `data` holds `length` bytes that nobody changes during the call.
    unsafe {
        run(error, || {
            let data = bytes(data, length, "data")?;
            let pattern = Pattern::bytes(data, &data.escape_ascii().to_string())?;
            object_mut(search, "search")?.add(pattern, optional_text(name, "name")?)
        })
    }
}

/// Adds a pattern in hexadecimal: "FF D8 ?? 4? [4-6] (89|50)". name may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_add_hex(
    search: *mut Search,
    pattern: *const c_char,
    name: *const c_char,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `pattern` and `name` are NULL
    // or end with a zero byte; `search` is NULL or alive, and only this thread uses it, as it is
    // passed without const.
    unsafe {
        run(error, || {
            let pattern = Pattern::hex(text(pattern, "pattern")?)?;
            object_mut(search, "search")?.add(pattern, optional_text(name, "name")?)
        })
    }
}

/// Adds a regex over bytes. name may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_add_regex(
    search: *mut Search,
    pattern: *const c_char,
    name: *const c_char,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `pattern` and `name` are NULL
    // or end with a zero byte; `search` is NULL or alive, and only this thread uses it, as it is
    // passed without const.
    unsafe {
        run(error, || {
            let pattern = Pattern::regex(text(pattern, "pattern")?)?;
            object_mut(search, "search")?.add(pattern, optional_text(name, "name")?)
        })
    }
}

/// Adds the patterns of a file, one a line; see docs/patterns.md.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_add_file(
    search: *mut Search,
    file: *const c_char,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `file` is NULL or ends with a
    // zero byte; `search` is NULL or alive, and only this thread uses it, as it is passed without
    // const.
    unsafe {
        run(error, || {
            let search = object_mut(search, "search")?;
            let file = path(file, "file")?.ok_or(Failure::Argument("file", "it is NULL"))?;
            let patterns = quarrier::search::read_patterns(&file, &AtomicBool::new(false))?;
            patterns.into_iter().try_for_each(|pattern| search.add(pattern, None))
        })
    }
}

/// Searches the source that a name refers to: a path, a folder, a glob, an image, a URL. callback, stop and
/// report may be NULL; without a callback the findings are only counted. Returns QUARRIER_STATUS_STOPPED if
/// the callback or stop ended the search; report is set then, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_run(
    search: *const Search,
    name: *const c_char,
    stop: *const Stop,
    callback: FindingCallback,
    context: *mut c_void,
    report: *mut *mut Report,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `report` are NULL or writable; `name` is NULL or
    // ends with a zero byte; `search` and `stop` are NULL or alive, and all threads share them as
    // pointers to const during the call.
    unsafe {
        run(error, || {
            let request = object(search, "search")?.request()?;
            let sources = Sources::of([file_name(name, "name")?]);
            let mut found = FindingSink::new(&request, Stop::flag(stop), callback, context);
            let ran = found.in_sources(&request, &sources);
            found.report.hand_out(report);
            ran.and_then(|()| found.is_ended.map_or(Ok(()), Err))
        })
    }
}

/// Searches an open source, like quarrier_search_run().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_search_run_source(
    search: *const Search,
    source: *const Source,
    stop: *const Stop,
    callback: FindingCallback,
    context: *mut c_void,
    report: *mut *mut Report,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `report` are NULL or writable; `search`,
    // `source` and `stop` are NULL or alive, and all threads share them as pointers to const during
    // the call.
    unsafe {
        run(error, || {
            let request = object(search, "search")?.request()?;
            let source = object(source, "source")?;
            let place = source.place()?;
            let mut found = FindingSink::new(&request, Stop::flag(stop), callback, context);
            found.report.add_notices(source.notice());
            let ran = found.in_place(&request, place);
            found.report.hand_out(report);
            ran.and_then(|()| found.is_ended.map_or(Ok(()), Err))
        })
    }
}

/// Passes findings to the caller's callback.
struct FindingSink {
    stop: Arc<AtomicBool>,
    names: Vec<CString>,
    callback: FindingCallback,
    context: Context,
    report: Report,
    is_ended: Option<Failure>,
}

/// A pointer of the caller's that is passed on and never dereferenced.
#[derive(Clone, Copy)]
struct Context(*mut c_void);

impl Context {
    /// A method, so that closures capture the whole value, which is `Send`, and not its pointer.
    fn get(self) -> *mut c_void {
        self.0
    }
}

// SAFETY: nothing here dereferences the pointer, and the header says that callbacks run on any
// thread.
unsafe impl Send for Context {}
// SAFETY: a shared reference gives only a copy of the pointer, which nothing here dereferences.
unsafe impl Sync for Context {}

impl FindingSink {
    fn new(
        request: &quarrier::Search,
        stop: Arc<AtomicBool>,
        callback: FindingCallback,
        context: *mut c_void,
    ) -> FindingSink {
        let names = request.patterns().iter().map(|pattern| c_text(pattern.label())).collect();
        let (context, report) = (Context(context), Report::default());
        FindingSink { stop, names, callback, context, report, is_ended: None }
    }

    fn in_sources(&mut self, request: &quarrier::Search, sources: &Sources) -> Result<(), Failure> {
        let opener = host::opener(&self.stop);
        let mut running = None;
        for opened in sources.open_packed(&opener, request.packed()) {
            let mut opened = opened?;
            self.report.add_notices(opened.notice_line());
            let running = match &mut running {
                Some(running) => running,
                None => {
                    let place = opened.place();
                    running.insert(request.start(host::machine(), Some(&place), &self.stop)?)
                }
            };
            self.search(running, opened.place())?;
            if self.is_ended.is_some() || running.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn in_place(&mut self, request: &quarrier::Search, place: Place<'_>) -> Result<(), Failure> {
        let stop = Arc::clone(&self.stop);
        let mut running = request.start(host::machine(), Some(&place), &stop)?;
        self.search(&mut running, place)
    }

    fn search(&mut self, running: &mut Running<'_>, place: Place<'_>) -> Result<(), Failure> {
        let source = place.name().to_string();
        let stop = Arc::clone(&self.stop);
        let shown = c_text(&source);
        let (mut rows, mut is_refused, mut copy) = (0, false, Vec::new());
        let (names, callback, context) = (&self.names, self.callback, self.context);
        let mut take = |chunk: &Chunk<'_>, findings: &[quarrier_search::Finding]| {
            let Some(callback) = callback else {
                rows += findings.len() as u64;
                return ControlFlow::Continue(());
            };
            for finding in findings {
                copy_match(chunk, finding, &mut copy);
                let name = names.get(finding.pattern as usize);
                let shown = Finding {
                    source: shown.as_ptr(),
                    offset: finding.offset,
                    length: finding.length.into(),
                    pattern: finding.pattern as usize,
                    pattern_name: name.map_or(c"".as_ptr(), |name| name.as_ptr()),
                    found: copy.as_ptr().cast(),
                    found_length: copy.len(),
                };
                rows += 1;
                // SAFETY: the header gives the signature of the callback and tells the caller what
                // it may do. `shown` and all that it points to (the name of the source, `names`,
                // `copy`) outlive the call.
                if unsafe { callback(&raw const shown, context.get()) } != 0 {
                    is_refused = true;
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        };
        let searched = running.search(place, &stop, &mut take);
        self.report.add_rows(rows);
        if is_refused || stop.load(Ordering::Relaxed) {
            self.is_ended = Some(Failure::Stopped);
        }
        let run = searched?.run;
        self.report.add(&source, run.bytes, run.elapsed, &run.unreadable);
        if is_refused { Ok(()) } else { unless(&stop).or(Ok(())) }
    }
}
