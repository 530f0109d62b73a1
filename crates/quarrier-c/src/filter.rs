//! Filter: messages for which a condition is true.

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

/// How messages are filtered. `quarrier_filter_options options = {.struct_bytes = sizeof options};` sets every field to its
/// default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FilterOptions {
    /// sizeof(quarrier_filter_options).
    pub struct_bytes: usize,
    /// "ndjson", "fix", "nvfix", "csv" or "xml"; NULL: each source tells.
    pub format: *const c_char,
    /// The columns of an Arrow stream, such as "side,qty", or NULL: those of the first messages.
    pub columns: *const c_char,
    /// A file for the messages that do not parse, one JSON object a line, or NULL.
    pub rejects: *const c_char,
    /// The run ends with so many messages; 0: any number.
    pub matches_max: u64,
    /// Threads; 0: as many as there are CPUs.
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

// SAFETY: numbers and pointers, of which the first is the size.
unsafe impl Sized for FilterOptions {}

/// A message. All pointers live as long as the callback that gets it.
#[repr(C)]
pub struct Message {
    /// The name of the source.
    pub source: *const c_char,
    /// Where it starts, after decompression.
    pub offset: u64,
    /// Its bytes, without the end of the line.
    pub data: *const c_void,
    /// How many these are.
    pub length: usize,
}

/// Takes a message. 0 goes on, anything else ends the run. Messages come in the order of their source, one at
/// a time, from any thread. It must not throw, nor leave by longjmp().
pub type MessageCallback =
    Option<unsafe extern "C" fn(message: *const Message, context: *mut c_void) -> c_int>;

/// Calls back with the messages of what a name stands for, for which an SQL-92 condition is true, as they
/// stand there. Without a callback they are counted. options, stop and report may be NULL.
/// QUARRIER_STATUS_STOPPED where the callback or stop ended it; report is there then, too.
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
    // SAFETY: the caller's pointers are as the header says.
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

/// As quarrier_filter(), but gives the messages as rows: stream, which the caller releases, gets an Arrow
/// stream of them. They are all in memory.
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
    // SAFETY: the caller's pointers are as the header says.
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
/// The pointers in the options are NULL or of text.
unsafe fn filter(condition: &str, given: &FilterOptions) -> Result<Filter, Failure> {
    // SAFETY: as the caller promises.
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
/// The pointer is NULL or valid.
unsafe fn filtered(
    filter: &Filter,
    sources: &Sources,
    stop: *const Stop,
    watch: &mut dyn Watch,
) -> Result<Filtered, quarrier::Error> {
    // SAFETY: as the caller promises.
    let flag = unsafe { Stop::flag(stop) };
    filter.run(sources, &host::opener(&flag), &flag, watch)
}

/// Hands the report out, and what the run came to otherwise.
///
/// # Safety
/// `place` is NULL or can be written to.
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
    // SAFETY: as the caller promises.
    unsafe { report.hand_out(place) };
    ended
}

/// Hands messages to the caller.
struct Messages {
    callback: MessageCallback,
    context: *mut c_void,
    is_refused: bool,
    report: Report,
}

// SAFETY: the context is handed on and not looked at; the header says that callbacks come from any thread.
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
            // SAFETY: the header says what the callback may do; its message lives until it returns.
            if unsafe { callback(&raw const shown, self.context) } != 0 {
                self.is_refused = true;
                return Err(io::Error::other("the callback wants no more"));
            }
        }
        Ok(())
    }

    fn done(&mut self, done: &Done<'_>) {
        add(&mut self.report, done);
    }
}

/// Gathers rows.
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

    fn done(&mut self, done: &Done<'_>) {
        add(&mut self.report, done);
    }
}

fn add(report: &mut Report, done: &Done<'_>) {
    report.add(done.name, done.run.bytes, done.run.elapsed, &done.run.unreadable);
}
