//! Tables: messages as columns in memory.

use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use quarrier::{Sources, Tables};
use quarrier_messages::Format;

use crate::error::{Error, Failure, Status};
use crate::guard::{run, value};
use crate::host;
use crate::input::{Sized, free, items, object, optional_text, put_new, structure, text};
use crate::stop::{Stop, unless};
use crate::text::{file_name, path};

/// Messages as columns, or the rows of an answer. A table never changes.
#[derive(Default)]
pub struct Table {
    table: quarrier_messages::Table,
    rejected: u64,
}

/// Options for loading messages. `quarrier_table_options options = {.struct_bytes = sizeof options};` sets
/// every field to its default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TableOptions {
    /// sizeof(quarrier_table_options).
    pub struct_bytes: usize,
    /// "ndjson", "fix", "nvfix", "csv", "xml" or "arrow"; NULL to detect the format of each source.
    pub format: *const c_char,
    /// The path of a QuickFIX data dictionary, or NULL.
    pub dictionary: *const c_char,
    /// The number of threads; 0 for one per CPU.
    pub workers: usize,
    /// Whether to add a column _message with each message verbatim.
    pub keep_bytes: u8,
}

impl Default for TableOptions {
    fn default() -> Self {
        let none = std::ptr::null();
        TableOptions {
            struct_bytes: size_of::<Self>(),
            format: none,
            dictionary: none,
            workers: 0,
            keep_bytes: 0,
        }
    }
}

// SAFETY: the fields are numbers and pointers, so any bytes are a value; the first is a `usize`;
// version 0.1.0 is the first one, so no field lies in the padding of an earlier one.
unsafe impl Sized for TableOptions {}

/// Loads the messages of the source that a name refers to: a path, all files of a glob, a URL;
/// compressed or not. options and stop may be NULL. Free the table with quarrier_table_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_load(
    name: *const c_char,
    options: *const TableOptions,
    stop: *const Stop,
    table: *mut *mut Table,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `table` are NULL or writable; `options` is NULL
    // or as long as its `struct_bytes` says, with strings that are NULL or end with a zero byte;
    // `name` is NULL or ends with a zero byte; `stop` is NULL or alive, and all threads share it as
    // a pointer to const during the call.
    unsafe {
        run(error, || {
            let options = structure(options, "options")?;
            let format = optional_text(options.format, "format")?.unwrap_or("auto");
            let request = Tables::new()
                .format(Format::named(format)?)
                .dictionary(path(options.dictionary, "dictionary")?)
                .keep_bytes(options.keep_bytes != 0)
                .workers(options.workers);
            let flag = Stop::flag(stop);
            let sources = Sources::of([file_name(name, "name")?]);
            let loaded = request.load_all(&sources, &host::opener(&flag), &flag)?;
            let made = Table { table: loaded.table, rejected: loaded.rejected };
            put_new(table, "table", made)
        })
    }
}

/// Copies an Arrow stream into packed columns. Takes over the stream and releases it, even if the call
/// fails. The buffers of the stream are trusted to match their types.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_import(
    stream: *mut FFI_ArrowArrayStream,
    stop: *const Stop,
    table: *mut *mut Table,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `table` are NULL or writable, and that `stop` is
    // NULL or alive and only shared. `stream` is not NULL, as was checked, and the header requires a
    // stream of the Arrow C stream interface. `from_raw` takes it over and leaves one that is released,
    // so nothing releases it twice.
    unsafe {
        run(error, || {
            if stream.is_null() {
                return Err(Failure::Argument("stream", "it is NULL"));
            }
            let flag = Stop::flag(stop);
            let reader = ArrowArrayStreamReader::from_raw(stream);
            let reader = reader.map_err(|error| Failure::Arrow(error.to_string()))?;
            let schema = reader.schema();
            let batches = reader.take_while(|_| !flag.load(Ordering::Relaxed));
            let read = quarrier_messages::Table::from_batches(&schema, batches, 0)?;
            unless(&flag)?;
            put_new(table, "table", Table { table: read, rejected: 0 })
        })
    }
}

/// Exports the rows as an Arrow stream, which the caller must release; the table may be freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_export(
    table: *const Table,
    stream: *mut FFI_ArrowArrayStream,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable; `table` is NULL or alive, and
    // all threads share it as a pointer to const during the call. `stream` is not NULL, as was
    // checked, and the caller gives it to be written to.
    unsafe {
        run(error, || {
            if stream.is_null() {
                return Err(Failure::Argument("stream", "it is NULL"));
            }
            let batches: Box<dyn RecordBatchReader + Send> =
                Box::new(object(table, "table")?.table.batches());
            stream.write(FFI_ArrowArrayStream::new(batches));
            Ok(())
        })
    }
}

/// Answers a statement about the table, whose name in it is m: SELECT … FROM m [WHERE …] [ORDER BY …]
/// [LIMIT … [OFFSET …]], or SELECT COUNT(*) FROM m [WHERE …]. The caller must free answer, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_query(
    table: *const Table,
    sql: *const c_char,
    stop: *const Stop,
    answer: *mut *mut Table,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` and `answer` are NULL or writable; `sql` is NULL or
    // ends with a zero byte; `table` and `stop` are NULL or alive, and all threads share them as
    // pointers to const during the call.
    unsafe {
        run(error, || {
            let (table, sql) = (object(table, "table")?, text(sql, "sql")?);
            let mut answers = answers(&table.table, &[sql], &Stop::flag(stop))?;
            put_new(answer, "answer", answers.pop().unwrap_or_default())
        })
    }
}

/// Answers many statements in one pass over the table. answers has room for one table for each
/// statement; the caller must free each of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_query_many(
    table: *const Table,
    sqls: *const *const c_char,
    count: usize,
    stop: *const Stop,
    answers: *mut *mut Table,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the header requires that `error` is NULL or writable, that `table` and `stop` are
    // NULL or alive, and that all threads share them as pointers to const during the call. `sqls`
    // holds `count` strings, each NULL or ended by a zero byte. `answers` is not NULL, as was
    // checked, and has room for `count` tables; there is one answer for each statement, so `place`
    // is less than `count`.
    unsafe {
        run(error, || {
            let table = object(table, "table")?;
            let statements = items(sqls, count, "sqls")?.iter().map(|&sql| text(sql, "sqls"));
            let statements = statements.collect::<Result<Vec<&str>, Failure>>()?;
            if answers.is_null() && count > 0 {
                return Err(Failure::Argument("answers", "it is NULL"));
            }
            let given = self::answers(&table.table, &statements, &Stop::flag(stop))?;
            for (place, answer) in given.into_iter().enumerate() {
                put_new(answers.add(place), "answers", answer)?;
            }
            Ok(())
        })
    }
}

fn answers(
    table: &quarrier_messages::Table,
    statements: &[&str],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Table>, Failure> {
    let answers = quarrier::tables::answer(table, "m", statements, 0, stop)?;
    Ok(answers.into_iter().map(|table| Table { table, rejected: 0 }).collect())
}

/// Returns the number of rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_rows(table: *const Table) -> u64 {
    // SAFETY: the header requires that `table` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { table.as_ref() }.map_or(0, |table| table.table.rows()))
}

/// Returns the number of columns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_columns(table: *const Table) -> usize {
    // SAFETY: the header requires that `table` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { table.as_ref() }.map_or(0, |table| table.table.columns().len()))
}

/// Returns the memory of the columns in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_memory_bytes(table: *const Table) -> usize {
    // SAFETY: the header requires that `table` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    value(0, || unsafe { table.as_ref() }.map_or(0, |table| table.table.nbytes()))
}

/// Returns the number of messages that were rejected during loading, because they do not parse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_rejected(table: *const Table) -> u64 {
    // SAFETY: the header requires that `table` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { table.as_ref() }.map_or(0, |table| table.rejected)
}

/// Frees a table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_table_free(table: *mut Table) {
    // SAFETY: the header requires that `table` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(table) });
}
