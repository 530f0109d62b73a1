//! Filter: finds the messages for which a condition is true.

use std::ffi::{c_char, c_int, c_void};
use std::io;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use quarrier::filter::{Conditions, Done, Filtered, Form, Header, Rows, Watch};
use quarrier::{Filter, Sources};
use quarrier_messages::Format;

use crate::error::{Error, Failure, Status};
use crate::guard::run;
use crate::host;
use crate::input::{Sized, optional_text, structure, text};
use crate::report::Report;
use crate::stop::Stop;
use crate::text::{c_text, file_name, path};

/// Options of a filter. `quarrier_filter_options options = {.struct_bytes = sizeof options};` sets every
/// field to its default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FilterOptions {
    /// sizeof(quarrier_filter_options).
    pub struct_bytes: usize,
    /// "ndjson", "fix", "nvfix", "csv" or "xml"; NULL to detect the format of each source.
    pub format: *const c_char,
    /// The columns of an Arrow stream, such as "side,qty"; NULL for those of the first messages.
    pub columns: *const c_char,
    /// The path of a file that lists rejected messages, one JSON object a line, or NULL.
    pub rejects: *const c_char,
    /// Maximum number of messages; 0 for no limit.
    pub matches_max: u64,
    /// The number of threads; 0 for one per CPU.
    pub workers: usize,
}

impl Default for FilterOptions {
    fn default() -> Self {
        let none = std::ptr::null();
        FilterOptions {
            struct_bytes: size_of::<Self>(),
            format: none,
            columns: none,
            rejects: none,
            matches_max: 0,
            workers: 0,
        }
    }
}

// SAFETY: the fields are numbers and pointers, so any bytes are a value; the first is a `usize`; the
// structure ends without padding.
unsafe impl Sized for FilterOptions {}

/// A message. All pointers are valid until the callback returns.
#[repr(C)]
pub struct Message {
    /// The name of the source.
    pub source: *const c_char,
    /// The offset of the message, after decompression.
    pub offset: u64,
    /// The bytes of the message, without the line ending.
    pub data: *const c_void,
    /// The number of bytes.
    pub length: usize,
}

/// Receives a message. Return 0 to continue, any other value to end the run. Messages arrive in the order of
/// their source, one at a time, on any thread. The callback must not throw, nor leave by longjmp().
pub type MessageCallback =
    Option<unsafe extern "C" fn(message: *const Message, context: *mut c_void) -> c_int>;

/// Passes to callback the messages of the source that a name refers to for which an SQL-92 condition is
/// true, verbatim. Without a callback they are only counted. options, stop and report may be NULL.
/// Returns QUARRIER_STATUS_STOPPED if the callback or stop ended the run; report is set then, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_filter(
    name: *const c_char,
    condition: *const c_char,
    options: *const FilterOptions,
    stop: *const Stop,
    callback: MessageCallback,
    context: *mut c_void,
    report: *mut *mut Report,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `report` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte;
    // `condition` and `name` are NULL or end with a zero byte; `stop` is NULL or alive, and all
    // threads share it as a pointer to const during the call.
    unsafe {
        run(error, || {
            let options = structure(options, "options")?;
            let form = if callback.is_some() { Form::Messages } else { Form::Count };
            let filter = filter(text(condition, "condition")?, &options)?.form(form);
            let sources = Sources::of([file_name(name, "name")?]);
            let report_of_run = Report::default();
            let mut messages =
                Messages { callback, context, is_refused: false, report: report_of_run };
            let ran = filtered(&filter, &sources, stop, &mut messages);
            let ran = ended(ran, messages.report, report);
            if messages.is_refused { Err(Failure::Stopped) } else { ran }
        })
    }
}

/// Like quarrier_filter(), but returns the messages as rows: stores an Arrow stream in stream, which the
/// caller must release. All rows are in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_filter_stream(
    name: *const c_char,
    condition: *const c_char,
    options: *const FilterOptions,
    stop: *const Stop,
    stream: *mut FFI_ArrowArrayStream,
    report: *mut *mut Report,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `report` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte;
    // `condition` and `name` are NULL or end with a zero byte; `stop` is NULL or alive, and all
    // threads share it as a pointer to const during the call. `stream` is not NULL, as was checked,
    // and the caller gives it to be written to.
    unsafe {
        run(error, || {
            if stream.is_null() {
                return Err(Failure::Argument("stream", "it is NULL"));
            }
            let options = structure(options, "options")?;
            let filter = filter(text(condition, "condition")?, &options)?.form(Form::Arrow);
            let sources = Sources::of([file_name(name, "name")?]);
            let mut batches = Batches::default();
            let ran = filtered(&filter, &sources, stop, &mut batches);
            let Batches { schema, batches, report: report_of_run } = batches;
            ended(ran, report_of_run, report)?;
            let schema = schema.unwrap_or_else(|| Arc::new(arrow_schema::Schema::empty()));
            let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
            stream.write(FFI_ArrowArrayStream::new(Box::new(reader)));
            Ok(())
        })
    }
}

/// # Safety
/// The pointers in `given` are NULL or point to text that ends with a zero byte.
unsafe fn filter(condition: &str, given: &FilterOptions) -> Result<Filter, Failure> {
    // SAFETY: the caller promises that all three are NULL or end with a zero byte, and that they
    // outlive this call.
    let (format, columns, rejects) = unsafe {
        (
            optional_text(given.format, "format")?,
            optional_text(given.columns, "columns")?,
            path(given.rejects, "rejects")?,
        )
    };
    let columns = columns.map(|list| list.split(',').map(|name| name.trim().to_string()).collect());
    let filter = Filter::new(Conditions::one(condition))
        .format(Format::named(format.unwrap_or("auto"))?)
        .columns(columns)
        .rejects(rejects)
        .workers(given.workers);
    Ok(match given.matches_max {
        0 => filter,
        messages => filter.matches_max(messages),
    })
}

/// # Safety
/// `stop` is NULL or valid, and no thread has exclusive use of it.
unsafe fn filtered(
    filter: &Filter,
    sources: &Sources,
    stop: *const Stop,
    watch: &mut dyn Watch,
) -> Result<Filtered, quarrier::Error> {
    // SAFETY: the caller promises what `Stop::flag` requires.
    let flag = unsafe { Stop::flag(stop) };
    filter.run(sources, &host::opener(&flag), &flag, watch)
}

/// Stores the report, and returns how the run ended.
///
/// # Safety
/// `place` is NULL or writable.
unsafe fn ended(
    ran: Result<Filtered, quarrier::Error>,
    mut report: Report,
    place: *mut *mut Report,
) -> Result<(), Failure> {
    let ended = match ran {
        Ok(filtered) => {
            report.add_rows(filtered.counts.first().copied().unwrap_or(0));
            report.add_rejected(filtered.rejected);
            if filtered.is_stopped { Err(Failure::Stopped) } else { Ok(()) }
        }
        Err(error) => Err(error.into()),
    };
    // SAFETY: the caller promises that `place` is NULL or writable.
    unsafe { report.hand_out(place) };
    ended
}

/// Passes messages to the caller's callback.
struct Messages {
    callback: MessageCallback,
    context: *mut c_void,
    is_refused: bool,
    report: Report,
}

// SAFETY: this type never dereferences `context`; it only passes it to the callback, and the header
// says that callbacks run on any thread. All other fields are `Send`.
unsafe impl Send for Messages {}

impl Watch for Messages {
    fn rows(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        let Some(callback) = self.callback else { return Ok(()) };
        let source = c_text(rows.source());
        for message in rows.messages() {
            let shown = Message {
                source: source.as_ptr(),
                offset: message.offset,
                data: message.bytes.as_ptr().cast(),
                length: message.bytes.len(),
            };
            // SAFETY: the header gives the signature of the callback and tells the caller what it may
            // do. `shown` and all that it points to (`source`, the bytes of the message) outlive the
            // call.
            if unsafe { callback(&raw const shown, self.context) } != 0 {
                self.is_refused = true;
                return Err(io::Error::other("the callback ended the run"));
            }
        }
        Ok(())
    }

    fn notice(&mut self, notice: &str) {
        self.report.add_notices([notice.to_string()]);
    }

    fn done(&mut self, done: &Done<'_>) {
        add(&mut self.report, done);
    }
}

/// Collects rows.
#[derive(Default)]
struct Batches {
    schema: Option<SchemaRef>,
    batches: Vec<RecordBatch>,
    report: Report,
}

impl Watch for Batches {
    fn open(&mut self, header: &Header) -> io::Result<()> {
        self.schema.clone_from(&header.schema);
        Ok(())
    }

    fn rows(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        self.batches.extend(rows.batch());
        Ok(())
    }

    fn notice(&mut self, notice: &str) {
        self.report.add_notices([notice.to_string()]);
    }

    fn done(&mut self, done: &Done<'_>) {
        add(&mut self.report, done);
    }
}

fn add(report: &mut Report, done: &Done<'_>) {
    report.add(done.name, done.run.bytes, done.run.elapsed, &done.run.unreadable);
}
