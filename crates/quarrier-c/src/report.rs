//! The account of a run.

use std::ffi::{CString, c_char};
use std::ops::Range;
use std::time::Duration;

use quarrier::source::Notes;

use crate::guard::value;
use crate::input::{free, put};
use crate::span::Span;
use crate::text::c_text;

/// The account of a search, a carving run or a filter.
#[derive(Default)]
pub struct Report {
    bytes: u64,
    rows: u64,
    rejected: u64,
    elapsed: Duration,
    unreadable: Vec<(CString, Span)>,
    notes: Notes,
    /// The notices, once the report is handed out.
    notices: Vec<CString>,
}

impl Report {
    /// Adds a run over one source.
    pub(crate) fn add(&mut self, source: &str, bytes: u64, elapsed: Duration, lost: &[Range<u64>]) {
        self.bytes += bytes;
        self.elapsed += elapsed;
        let spans = lost.iter().map(|range| Span {
            offset: range.start,
            length: range.end.saturating_sub(range.start),
        });
        let name = c_text(source);
        self.unreadable.extend(spans.map(|span| (name.clone(), span)));
    }

    /// Adds notices of sources, a line each that begins with the name of the source.
    pub(crate) fn add_notices(&mut self, lines: impl IntoIterator<Item = String>) {
        self.notes.add_notices(lines);
    }

    /// Counts rows that were passed on.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// Counts rejected messages.
    pub(crate) fn add_rejected(&mut self, rejected: u64) {
        self.rejected += rejected;
    }

    /// Stores the report if the caller wants it.
    ///
    /// # Safety
    /// The pointer is NULL or writable.
    pub(crate) unsafe fn hand_out(mut self, place: *mut *mut Report) {
        self.notices = self.notes.take_notices().iter().map(|line| c_text(line)).collect();
        if !place.is_null() {
            // SAFETY: it is not NULL, and the caller promises that it is writable.
            unsafe { place.write(Box::into_raw(Box::new(self))) };
        }
    }
}

/// Returns the bytes of the sources that were processed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_report_bytes(report: *const Report) -> u64 {
    // SAFETY: the header requires that `report` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { report.as_ref() }.map_or(0, |report| report.bytes)
}

/// Returns the number of findings, files or messages that were passed to the callback or counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_report_rows(report: *const Report) -> u64 {
    // SAFETY: the header requires that `report` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { report.as_ref() }.map_or(0, |report| report.rows)
}

/// Returns the number of rejected messages: those that do not parse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_report_rejected(report: *const Report) -> u64 {
    // SAFETY: the header requires that `report` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { report.as_ref() }.map_or(0, |report| report.rejected)
}

/// Returns the duration of the run in seconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_report_seconds(report: *const Report) -> f64 {
    // SAFETY: the header requires that `report` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    unsafe { report.as_ref() }.map_or(0.0, |report| report.elapsed.as_secs_f64())
}

/// Stores the unreadable range number index, from 0: its source, which is valid as long as the report, and
/// the range. Returns false if there are no more. No row includes such bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_report_unreadable(
    report: *const Report,
    index: usize,
    source: *mut *const c_char,
    span: *mut Span,
) -> bool {
    // SAFETY: the header requires that `source` and `span` are NULL or writable; `report` is NULL
    // or alive, and all threads share it as a pointer to const during the call.
    value(false, || unsafe {
        let lost = report.as_ref().and_then(|report| report.unreadable.get(index));
        let Some((name, range)) = lost else { return false };
        put(source, name.as_ptr());
        put(span, *range);
        true
    })
}

/// Returns notice number index, from 0, which is valid as long as the report; NULL if there are no more.
/// It is a line to read before trusting the rows: a missing segment of an image, a skipped partition,
/// a damaged file system. It begins with the name of the source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_report_notice(
    report: *const Report,
    index: usize,
) -> *const c_char {
    // SAFETY: the header requires that `report` is NULL or alive, and all threads share it as a
    // pointer to const during the call.
    let notice = unsafe { report.as_ref() }.and_then(|report| report.notices.get(index));
    notice.map_or(std::ptr::null(), |notice| notice.as_ptr())
}

/// Frees a report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quarrier_report_free(report: *mut Report) {
    // SAFETY: the header requires that `report` is NULL or comes from this library, and the caller
    // frees it once.
    value((), || unsafe { free(report) });
}
