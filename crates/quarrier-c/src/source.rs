//! Sources: files, devices, images and remote objects, read at offsets.

use std::ffi::{CString, c_char, c_void};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier::{Environment, OpenOptions as Options, Opened, Opener, Place, Sources};
use quarrier_core::region::ChangingBytes;
use quarrier_core::source::{self, ChangingMemory, read_full_at};

use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::input::{
    Sized, check, fill, free, items, items_mut, object, put, put_new, structure, text,
};
use crate::span::Span;
use crate::text::{c_text, file_name, path};

/// An object with bytes at offsets. Several threads may read it at the same time.
pub struct Source {
    bytes: Bytes,
    name: CString,
    /// A line that people should read before they trust the bytes.
    notice: Option<CString>,
    /// The process that opened it: a forked child lacks its threads.
    process: u32,
}

enum Bytes {
    Local(Box<dyn source::Source>),
    /// The opener's thread makes the requests.
    Remote {
        opened: Opened,
        _opener: Arc<Opener>,
    },
}

/// Options for opening sources. `quarrier_open_options options = {.struct_bytes = sizeof options};` sets
/// every field to its default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// sizeof(quarrier_open_options).
    pub struct_bytes: usize,
    /// The folder that caches fetched bytes, for later runs and other processes, or NULL for none.
    pub cache: *const c_char,
    /// Maximum size of that folder in bytes; 0 for 10 GiB.
    pub cache_bytes_max: u64,
    /// Maximum memory for bytes of remote sources, in bytes; 0 for the default.
    pub memory_bytes_max: u64,
    /// Maximum number of concurrent requests; 0 for the default.
    pub requests_max: usize,
    /// Whether reads of local files bypass the page cache (O_DIRECT).
    pub direct: u8,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            struct_bytes: size_of::<Self>(),
            cache: std::ptr::null(),
            cache_bytes_max: 0,
            memory_bytes_max: 0,
            requests_max: 0,
            direct: 0,
        }
    }
}

// SAFETY: the fields are numbers and a pointer, so any bytes are a value; the first is a `usize`;
// version 0.1.0 is the first one, so no field lies in the padding of an earlier one.
unsafe impl Sized for OpenOptions {}

/// The cost of a remote source's reads so far. Set `quarrier_remote_counters counters = {.struct_bytes
/// = sizeof counters};` before a call fills it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RemoteCounters {
    /// sizeof(quarrier_remote_counters).
    pub struct_bytes: usize,
    /// The number of requests sent.
    pub requests: u64,
    /// The number of bytes received.
    pub bytes_fetched: u64,
    /// The number of bytes requested.
    pub bytes_asked: u64,
    /// The number of bytes read from the cache folder.
    pub bytes_from_disk: u64,
    /// The number of requests that were repeated.
    pub retries: u64,
}

// SAFETY: the fields are numbers, so any bytes are a value; the first is a `usize`; the structure ends
// without padding.
unsafe impl Sized for RemoteCounters {}

impl Source {
    /// The place for a request to work on.
    pub(crate) fn place(&self) -> Result<Place<'_>, Failure> {
        match &self.bytes {
            Bytes::Local(source) => Ok(Place::Local(&**source)),
            Bytes::Remote { opened, .. } => {
                self.check_process()?;
                match opened {
                    Opened::Remote(source) => Ok(Place::Remote(source)),
                    Opened::FarImage { image, .. } => Ok(Place::Remote(image)),
                    Opened::Local { source, .. } => Ok(Place::Local(&**source)),
                    Opened::Stream { .. } => Err(Failure::Internal("a stream is kept".to_string())),
                }
            }
        }
    }

    /// The notice of its image, if any.
    pub(crate) fn notice(&self) -> Option<String> {
        self.notice.as_ref().map(|notice| notice.to_string_lossy().into_owned())
    }

    fn source(&self) -> Result<&dyn source::Source, Failure> {
        let stream = || Failure::Internal("a stream is kept".to_string());
        self.place()?.source().ok_or_else(stream)
    }

    fn check_process(&self) -> Result<(), Failure> {
        match self.process == std::process::id() {
            true => Ok(()),
            false => Err(Failure::Forked),
        }
    }

    /// Reads until `buffer` is full or the source ends.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Failure> {
        if let Bytes::Remote { opened: Opened::Remote(source), .. } = &self.bytes {
            self.check_process()?;
            return Ok(source.read_unless(offset, buffer, &AtomicBool::new(false))?);
        }
        let source = self.source()?;
        if offset >= source.length() {
            return Ok(0);
        }
        let read = read_full_at(source, offset, buffer);
        read.map_err(|error| Failure::Read(source.name().to_string(), error))
    }
}

/// Opens a path or a URL: a file, a device, an image of any known format, or a remote object. Only the
/// ranges that are read are fetched. Free it with quarrier_source_free(). options may be NULL.
///
/// Returns QUARRIER_STATUS_UNUSABLE for a name that can only be read in order, such as a pipe.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_open(
    name: *const c_char,
    options: *const OpenOptions,
    source: *mut *mut Source,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `source` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte;
    // `name` is NULL or ends with a zero byte.
    unsafe {
        run(error, || {
            let options = structure(options, "options")?;
            let given = |bytes: u64| Some(bytes).filter(|&bytes| bytes > 0);
            let options = Options::default()
                .direct(options.direct != 0)
                .cache(path(options.cache, "cache")?)
                .cache_bytes_max(given(options.cache_bytes_max))
                .memory_bytes_max(given(options.memory_bytes_max))
                .requests_max(options.requests_max);
            let opened = open(file_name(name, "name")?, options)?;
            put_new(source, "source", opened)
        })
    }
}

fn open(name: std::ffi::OsString, options: Options) -> Result<Source, Failure> {
    let named = Sources::only(name)?;
    let opener = Opener::shared(options, &Environment::of_process());
    let opened = opener.open(&named)?;
    let name = c_text(opened.name());
    let notice = opened.notice_line().map(|line| c_text(&line));
    let bytes = match opened {
        Opened::Local { source, .. } => Bytes::Local(source),
        // Fails with advice.
        Opened::Stream { .. } => Bytes::Local(opened.at_offsets()?),
        remote @ (Opened::Remote(_) | Opened::FarImage { .. }) => {
            Bytes::Remote { opened: remote, _opener: opener }
        }
    };
    Ok(Source { bytes, name, notice, process: std::process::id() })
}

/// Creates a source of bytes in memory. The caller keeps the bytes, and must keep them valid until the
/// source is freed. Other threads may change them meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_of_memory(
    name: *const c_char,
    data: *const c_void,
    length: usize,
    source: *mut *mut Source,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `source` are NULL or writable, that `name` is
    // NULL or ends with a zero byte, and that `data` holds `length` bytes that stay until the
    // caller frees the source. `check` has found `data` neither NULL nor too long, and no slice is
    // made of bytes that may change; a source of 0 bytes reads nothing.
    unsafe {
        run(error, || {
            let name = text(name, "name")?;
            let data = match length {
                0 => ChangingBytes::new(std::ptr::NonNull::dangling().as_ptr(), 0),
                _ => {
                    // Only checks that the pointer is usable.
                    check(data.cast::<u8>(), length, "data")?;
                    ChangingBytes::new(data.cast::<u8>(), length)
                }
            };
            let memory = ChangingMemory::new(name, data);
            let bytes = Bytes::Local(Box::new(memory));
            let (name, process) = (c_text(name), std::process::id());
            let made = Source { bytes, name, notice: None, process };
            put_new(source, "source", made)
        })
    }
}

/// Frees a source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_free(source: *mut Source) {
    // SAFETY: the header requires that `source` is NULL or comes from this library, that no other
    // thread uses it any more, and that the caller frees it once. The reference of `as_ref` ends
    // before `free`.
    value((), || unsafe {
        // A forked child lacks the thread that would have to end.
        match source.as_ref() {
            Some(opened) if opened.check_process().is_err() => {}
            _ => free(source),
        }
    });
}

/// Returns the path or URL, without secrets. It is valid as long as the source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_name(source: *const Source) -> *const c_char {
    // SAFETY: the header requires that `source` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { source.as_ref() }.map_or(c"".as_ptr(), |source| source.name.as_ptr())
}

/// Returns a line to read before trusting the bytes, such as that a segment of an image is missing; NULL if
/// there is none. It is valid as long as the source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_notice(source: *const Source) -> *const c_char {
    // SAFETY: the header requires that `source` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    let notice = unsafe { source.as_ref() }.and_then(|source| source.notice.as_ref());
    notice.map_or(std::ptr::null(), |notice| notice.as_ptr())
}

/// Returns the length in bytes at the time of opening.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_length(source: *const Source) -> u64 {
    // SAFETY: the header requires that `source` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe {
        let source = object(source, "source").and_then(|source| source.source());
        source.map_or(0, |source| source.length())
    })
}

/// Reads at offset until buffer is full or the source ends; stores the number of bytes in read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_read(
    source: *const Source,
    offset: u64,
    buffer: *mut c_void,
    length: usize,
    read: *mut usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `read` are NULL or writable; `source` is NULL or
    // alive, and all threads share it as a pointer to const during the call; `buffer` has room for
    // `length` bytes that nobody else uses during the call.
    unsafe {
        run(error, || {
            let buffer = items_mut(buffer.cast::<u8>(), length, "buffer")?;
            put(read, object(source, "source")?.read(offset, buffer)?);
            Ok(())
        })
    }
}

/// Reads many ranges consecutively into buffer, whose length must be the sum of their lengths. Of a remote
/// source, the missing bytes of all ranges are fetched first: nearby ranges in one request, and requests
/// concurrently. Returns QUARRIER_STATUS_BEYOND_LENGTH if a range extends past the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_read_many(
    source: *const Source,
    spans: *const Span,
    span_count: usize,
    buffer: *mut c_void,
    length: usize,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `source` is NULL or alive, and
    // all threads share it as a pointer to const during the call; `spans` holds `span_count` values
    // that nobody changes during the call; `buffer` has room for `length` bytes that nobody else
    // uses during the call.
    unsafe {
        run(error, || {
            let source = object(source, "source")?;
            let spans = items(spans, span_count, "spans")?;
            let buffer = items_mut(buffer.cast::<u8>(), length, "buffer")?;
            read_many(source, spans, buffer)
        })
    }
}

fn read_many(source: &Source, spans: &[Span], mut buffer: &mut [u8]) -> Result<(), Failure> {
    let file_length = source.source()?.length();
    let mut sum = 0u64;
    for &Span { offset, length } in spans {
        let end = offset.checked_add(length).filter(|&end| end <= file_length);
        let beyond = quarrier_sparse::Error::BeyondLength { offset, length, file_length };
        end.ok_or(Failure::Sparse(beyond))?;
        sum = sum.saturating_add(length);
    }
    if sum != buffer.len() as u64 {
        let reason = "its length is not the sum of the ranges";
        return Err(Failure::Argument("buffer", reason));
    }
    if let Bytes::Remote { opened: Opened::Remote(remote), .. } = &source.bytes {
        let ranges = spans.iter().map(|span| span.offset..span.offset + span.length);
        remote.fetch_many(&ranges.collect::<Vec<Range<u64>>>())?;
    }
    for span in spans {
        let (here, rest) = buffer.split_at_mut(span.length as usize);
        buffer = rest;
        if source.read(span.offset, here)? < here.len() {
            let reason = std::io::ErrorKind::UnexpectedEof.into();
            return Err(Failure::Read(source.source()?.name().to_string(), reason));
        }
    }
    Ok(())
}

/// Stores the cost of a remote source's reads so far; zeros for a local source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_source_counters(
    source: *const Source,
    counters: *mut RemoteCounters,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `counters` is NULL or as long
    // as its `struct_bytes` says; `source` is NULL or alive, and all threads share it as a pointer
    // to const during the call.
    unsafe {
        run(error, || {
            let counts = match &object(source, "source")?.bytes {
                Bytes::Remote { opened, .. } => opened.counters().unwrap_or_default(),
                Bytes::Local(_) => Default::default(),
            };
            let counts = RemoteCounters {
                requests: counts.requests,
                bytes_fetched: counts.bytes_fetched,
                bytes_asked: counts.bytes_asked,
                bytes_from_disk: counts.bytes_from_disk,
                retries: counts.retries,
                ..RemoteCounters::default()
            };
            fill(counters, &counts, "counters")
        })
    }
}
