//! Carve: recovers files from raw bytes.

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier::carve::{Begin, Carved, Signatures, Watch};
use quarrier::source::line_of;
use quarrier::{Carve, Place, Sources};
use quarrier_carve::folder::Row;
use quarrier_core::sync::{into_inner, lock};

use crate::error::{Error, Failure, Status};
use crate::guard::run;
use crate::host;
use crate::input::{Sized, object, optional_text, structure};
use crate::report::Report;
use crate::source::Source;
use crate::span::Span;
use crate::stop::Stop;
use crate::text::{c_text, file_name, path};

/// The types to carve, and the output folder. `quarrier_carve_options options = {.struct_bytes = sizeof options};` sets every field
/// to its default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CarveOptions {
    /// sizeof(quarrier_carve_options).
    pub struct_bytes: usize,
    /// The folder to write files into, new or empty; NULL to write nothing.
    pub folder: *const c_char,
    /// The types to carve, such as "jpg,png"; NULL for all.
    pub types: *const c_char,
    /// A file with signatures of more types, or NULL.
    pub signatures: *const c_char,
    /// The first offset to carve.
    pub range_start: u64,
    /// The offset after the last byte to carve; 0 for the end of the source.
    pub range_end: u64,
    /// Maximum length of a file in bytes; 0 for no limit.
    pub file_bytes_max: u64,
    /// Maximum memory for reassembling files, in bytes; 0 for 1 GiB.
    pub memory_bytes_max: u64,
    /// The number of threads; 0 for one per CPU.
    pub workers: usize,
    /// Whether to resume the earlier run that the folder holds.
    pub resume: u8,
    /// Whether to keep only valid files.
    pub valid_only: u8,
    /// Whether to carve files inside archives, too.
    pub embedded: u8,
    /// Whether to carve only space that file systems report as free.
    pub unallocated: u8,
    /// Whether to search exhaustively for fragments.
    pub thorough: u8,
    /// Whether to omit the SHA-256 of rows, which costs a read of all bytes. The report of a folder
    /// always has it.
    pub no_digests: u8,
}

impl Default for CarveOptions {
    fn default() -> Self {
        let none = std::ptr::null();
        CarveOptions {
            struct_bytes: size_of::<Self>(),
            folder: none,
            types: none,
            signatures: none,
            range_start: 0,
            range_end: 0,
            file_bytes_max: 0,
            memory_bytes_max: 0,
            workers: 0,
            resume: 0,
            valid_only: 0,
            embedded: 0,
            unallocated: 0,
            thorough: 0,
            no_digests: 0,
        }
    }
}

// SAFETY: the fields are numbers and pointers, so any bytes are a value; the first is a `usize`;
// version 0.1.0 is the first one, so no field lies in the padding of an earlier one.
unsafe impl Sized for CarveOptions {}

/// A carved file. All pointers are valid until the callback returns.
#[repr(C)]
pub struct CarvedFile {
    /// The name of the source.
    pub source: *const c_char,
    /// The type of the file, such as "jpg".
    pub kind: *const c_char,
    /// The offset of its first byte in the source; inside an archive, that of the archive.
    pub offset: u64,
    /// The length of the file in bytes.
    pub length: u64,
    /// The ranges of the source that hold its bytes; none inside an archive.
    pub extents: *const Span,
    /// The number of extents.
    pub extent_count: usize,
    /// "valid", "partial" or "header".
    pub status: *const c_char,
    /// Why the file is not valid; empty if it is.
    pub reason: *const c_char,
    /// The SHA-256 in hexadecimal, or empty.
    pub sha256: *const c_char,
    /// The path of the file, relative to the folder; without a folder, the path it would have.
    pub path: *const c_char,
    /// The path to it from the outermost archive, or NULL.
    pub container: *const c_char,
}

/// Receives a carved file. Return 0 to continue, any other value to end the run. Files arrive one at a
/// time, on any thread, approximately in the order of their offsets. The callback must not throw, nor
/// leave by longjmp().
pub type CarvedCallback =
    Option<unsafe extern "C" fn(file: *const CarvedFile, context: *mut c_void) -> c_int>;

/// Carves the source that a name refers to: a path, an image, a URL. options, stop, callback and report may
/// be NULL. Returns QUARRIER_STATUS_STOPPED if the callback or stop ended the run; report is set then, too,
/// and a folder can be resumed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_carve(
    name: *const c_char,
    options: *const CarveOptions,
    stop: *const Stop,
    callback: CarvedCallback,
    context: *mut c_void,
    report: *mut *mut Report,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `report` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte;
    // `name` is NULL or ends with a zero byte; `stop` is NULL or alive, and all threads share it as
    // a pointer to const during the call.
    unsafe {
        run(error, || {
            let request = request(&structure(options, "options")?)?;
            let flag = Stop::flag(stop);
            let opener = host::opener(&flag);
            let mut opened = opener.open(&Sources::only(file_name(name, "name")?)?)?;
            let mut sum = Report::default();
            sum.add_notices(opened.notice_line());
            let rows = Rows::new(callback, context);
            carve(&request, opened.place(), rows, &flag, (sum, report))
        })
    }
}

/// Carves an open source, like quarrier_carve().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_carve_source(
    source: *const Source,
    options: *const CarveOptions,
    stop: *const Stop,
    callback: CarvedCallback,
    context: *mut c_void,
    report: *mut *mut Report,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `report` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte;
    // `source` and `stop` are NULL or alive, and all threads share them as pointers to const during
    // the call.
    unsafe {
        run(error, || {
            let request = request(&structure(options, "options")?)?;
            let source = object(source, "source")?;
            let mut sum = Report::default();
            sum.add_notices(source.notice());
            let rows = Rows::new(callback, context);
            carve(&request, source.place()?, rows, &Stop::flag(stop), (sum, report))
        })
    }
}

/// # Safety
/// The pointers in `given` are NULL or point to text that ends with a zero byte.
unsafe fn request(given: &CarveOptions) -> Result<Carve, Failure> {
    // SAFETY: the caller promises that all three are NULL or end with a zero byte, and that they
    // outlive this call.
    let (folder, types, signatures) = unsafe {
        (
            path(given.folder, "folder")?,
            optional_text(given.types, "types")?,
            path(given.signatures, "signatures")?,
        )
    };
    let read = |path: std::path::PathBuf| Signatures::read(&path, &AtomicBool::new(false));
    let types = types.map(|list| list.split(',').map(|kind| kind.trim().to_string()).collect());
    let range = given.range_start..if given.range_end == 0 { u64::MAX } else { given.range_end };
    if range.start > range.end {
        return Err(Failure::Argument("range_start", "the range ends before it begins"));
    }
    let request = Carve::new()
        .folder(folder)
        .types(types)
        .signatures(signatures.map(read).transpose()?)
        .range(range)
        .file_bytes_max(Some(given.file_bytes_max).filter(|&bytes| bytes > 0))
        .workers(given.workers)
        .resume(given.resume != 0)
        .keep_broken(given.valid_only == 0)
        .embedded(given.embedded != 0)
        .unallocated(given.unallocated != 0)
        .thorough(given.thorough != 0)
        .digests(given.no_digests == 0);
    Ok(match given.memory_bytes_max {
        0 => request,
        bytes => request.memory_bytes_max(bytes),
    })
}

/// # Safety
/// `report` is NULL or writable.
unsafe fn carve(
    request: &Carve,
    place: Place<'_>,
    rows: Rows,
    stop: &AtomicBool,
    (mut sum, report): (Report, *mut *mut Report),
) -> Result<(), Failure> {
    let source = place.name().to_string();
    let carved = match request.start(place, host::machine(), stop)? {
        Begin::Finished => None,
        Begin::Carving(carving) => {
            let lines = carving.notices().iter().chain(carving.damages());
            sum.add_notices(lines.map(|line| line_of(&source, line)));
            Some(carving.run(&rows))
        }
    };
    let Rows { is_refused, given, .. } = rows;
    sum.add_rows(into_inner(given));
    let is_refused = is_refused.load(Ordering::Relaxed);
    let ended = match carved {
        None => Ok(()),
        Some(Ok(Carved { summary, elapsed, .. })) => {
            sum.add(&source, summary.bytes, elapsed, &summary.unreadable);
            if summary.stopped { Err(Failure::Stopped) } else { Ok(()) }
        }
        Some(Err(_)) if is_refused => Err(Failure::Stopped),
        Some(Err(error)) => Err(error.into()),
    };
    // SAFETY: the caller promises that `report` is NULL or writable.
    unsafe { sum.hand_out(report) };
    ended
}

/// Passes files to the caller's callback, one at a time.
struct Rows {
    callback: CarvedCallback,
    context: *mut c_void,
    /// The number of files passed on. The thread that runs the callback holds the lock.
    given: Mutex<u64>,
    is_refused: AtomicBool,
}

// SAFETY: this type never dereferences `context`; it only passes it to the callback, under the lock
// of `given`, and the header says that callbacks run on any thread, one at a time. All other fields
// are `Sync`.
unsafe impl Sync for Rows {}

impl Rows {
    fn new(callback: CarvedCallback, context: *mut c_void) -> Self {
        let (given, is_refused) = (Mutex::new(0), AtomicBool::new(false));
        Rows { callback, context, given, is_refused }
    }

    /// Calls back with one file, and returns whether the caller wants more.
    fn hand(
        &self,
        row: &Row,
        callback: unsafe extern "C" fn(*const CarvedFile, *mut c_void) -> c_int,
    ) -> bool {
        let extents: Vec<Span> = row
            .extents
            .iter()
            .map(|extent| Span { offset: extent.offset, length: extent.length })
            .collect();
        let strings =
            [&row.source, &row.kind, row.status.name(), &row.reason, &row.sha256, &row.path]
                .map(c_text);
        let [source, kind, status, reason, sha256, path] = &strings;
        let container = row.container.as_deref().map(c_text);
        let file = CarvedFile {
            source: source.as_ptr(),
            kind: kind.as_ptr(),
            offset: row.offset,
            length: row.length,
            extents: extents.as_ptr(),
            extent_count: extents.len(),
            status: status.as_ptr(),
            reason: reason.as_ptr(),
            sha256: sha256.as_ptr(),
            path: path.as_ptr(),
            container: container.as_ref().map_or(std::ptr::null(), |text| text.as_ptr()),
        };
        // SAFETY: the header gives the signature of the callback and tells the caller what it may do.
        // `file` and all that it points to (`strings`, `container`, `extents`) outlive the call.
        unsafe { callback(&raw const file, self.context) == 0 }
    }
}

impl Watch for Rows {
    fn files(&self, rows: Vec<Row>, _: Option<u64>) -> io::Result<()> {
        let mut given = lock(&self.given);
        for row in &rows {
            if self.is_refused.load(Ordering::Relaxed) {
                return Err(io::Error::other("the callback ended the run"));
            }
            *given += 1;
            if let Some(callback) = self.callback
                && !self.hand(row, callback)
            {
                self.is_refused.store(true, Ordering::Relaxed);
            }
        }
        match self.is_refused.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the callback ended the run")),
            false => Ok(()),
        }
    }
}
