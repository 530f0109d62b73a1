//! The first messages of a source, which determine its columns and their types.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memchr::{memchr_iter, memrchr};
use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_messages::frame::Reader;
use quarrier_messages::{Format, FormatReader, Limits, Load, Opening, Schema};

use super::kind;
use crate::Result;
use crate::source::Failing;

/// Size of a sample; it grows only if it holds no complete message.
const SAMPLE_BYTES: usize = 1 << 20;

/// Maximum time to wait for a slow stream; then the bytes so far must do. A fast stream fills a sample
/// in much less time, so its inferred types do not depend on timing.
const LISTEN_MAX: Duration = Duration::from_secs(1);

/// The source of a sample.
#[derive(Clone, Copy)]
pub(super) struct Subject<'s> {
    pub(super) name: &'s str,
    pub(super) requested: Option<&'s Format>,
    pub(super) limits: &'s Limits,
}

impl Subject<'_> {
    /// Whether the bytes hold a complete message; errors in them are reported by the reader of the
    /// whole source.
    fn has_message(&self, bytes: &[u8]) -> bool {
        let Ok(format) = kind::format_of(self.name, bytes, self.requested) else {
            return !bytes.is_empty();
        };
        let reader = FormatReader::new(&format, self.limits, &Opening::default());
        let first = open(&format, &reader, bytes, false);
        first.is_some_and(|first| reader.end(&bytes[first..], false) > 0)
    }

    /// The size from which a sample is no longer searched for a message.
    fn bytes_max(&self) -> usize {
        self.limits.message_bytes_max + SAMPLE_BYTES
    }
}

/// The start of the first message, as in [`Reader::open`]. The first records of CSV are enough if no
/// more have arrived yet.
fn open(format: &Format, reader: &FormatReader, bytes: &[u8], is_all: bool) -> Option<usize> {
    let first = reader.open(bytes, is_all);
    if first.is_some() || !matches!(format, Format::Csv(_)) {
        return first;
    }
    let lines = &bytes[..memrchr(b'\n', bytes)? + 1];
    // An odd number of quotes may mean that a line ends within quotes.
    let is_outside = memchr_iter(b'"', lines).count().is_multiple_of(2);
    reader.open(lines, is_outside).filter(|&first| first + 1 < lines.len())
}

/// The first bytes of a source.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    /// Whether they are the whole source.
    pub(super) is_all: bool,
    /// The error that ends the stream after these bytes.
    pub(super) error: Option<io::Error>,
}

impl Sample {
    /// Takes a sample of a source with a length. The reader of the whole source reports errors.
    pub(super) fn of_source(source: &dyn Source, subject: Subject<'_>) -> Self {
        let mut sample = Sample::default();
        let mut wanted = SAMPLE_BYTES;
        while !sample.is_all {
            let length = usize::try_from(source.length()).unwrap_or(usize::MAX).min(wanted);
            sample.bytes.resize(length, 0);
            let read = read_full_at(source, 0, &mut sample.bytes);
            let Ok(read) = read else {
                sample.bytes.clear();
                break;
            };
            sample.bytes.truncate(read);
            sample.is_all = read as u64 == source.length();
            if sample.is_enough(wanted, subject) {
                break;
            }
            wanted = (wanted * 4).min(subject.bytes_max());
        }
        sample
    }

    /// Takes a sample of a stream, which then continues after the sample. Once a message is complete,
    /// does not wait for a slow or pausing stream.
    pub(super) fn of_stream(
        stream: &mut dyn Read,
        subject: Subject<'_>,
        stop: &AtomicBool,
    ) -> Self {
        let mut sample = Sample::default();
        let mut wanted = SAMPLE_BYTES;
        let mut buffer = vec![0; 64 << 10];
        let mut looked = Instant::now();
        while !sample.is_all && sample.error.is_none() && !stop.load(Ordering::Relaxed) {
            let mut is_pause = false;
            match stream.read(&mut buffer) {
                Ok(0) => sample.is_all = true,
                Ok(count) => sample.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => is_pause = true,
                Err(error) => sample.error = Some(error),
            }
            if sample.bytes.len() >= wanted {
                if sample.is_enough(wanted, subject) {
                    break;
                }
                wanted = (wanted * 4).min(subject.bytes_max());
            } else if is_pause || looked.elapsed() > LISTEN_MAX {
                if subject.has_message(&sample.bytes) {
                    break;
                }
                looked = Instant::now();
            }
        }
        sample
    }

    /// The stream from its start.
    pub(super) fn with<'r>(&'r mut self, stream: impl Read + Send + 'r) -> impl Read + Send + 'r {
        let failure = Failing(self.error.take());
        Cursor::new(&self.bytes).chain(failure).chain(stream)
    }

    fn is_enough(&self, wanted: usize, subject: Subject<'_>) -> bool {
        wanted >= subject.bytes_max() || subject.has_message(&self.bytes)
    }

    /// The columns of the messages, the opening state for the rest, and the start of the first message.
    ///
    /// # Errors
    /// [`Error::Messages`](crate::Error::Messages) if they cannot be loaded.
    pub(super) fn opened(
        &self,
        format: &Format,
        limits: &Limits,
    ) -> Result<(Schema, Opening, usize)> {
        let opening = Opening::default();
        let reader = FormatReader::new(format, limits, &opening);
        let first = open(format, &reader, &self.bytes, self.is_all).unwrap_or(self.bytes.len());
        let end = match self.is_all {
            true => self.bytes.len(),
            false => first + reader.end(&self.bytes[first..], false),
        };
        let whole = Memory::new("sample", &self.bytes[..end]);
        let loaded = Load::new(format.clone()).workers(1).limits(limits.clone()).run(&[&whole])?;
        Ok((loaded.table.schema().clone(), opening, first))
    }
}
