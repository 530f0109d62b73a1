//! The first messages of a source, by which columns and their kinds are known.

use std::io::{self, ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_core::source::{Memory, Source, read_full_at};
use quarrier_messages::frame::Reader;
use quarrier_messages::{Format, FormatReader, Limits, Load, Opening, Schema};

/// Bytes of a sample; more only where they hold no whole message.
const SAMPLE_BYTES: usize = 1 << 20;

/// Messages of a stream that are enough, where no more are there yet.
const ENOUGH_BYTES: usize = 64 << 10;

/// The first bytes of a source.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) bytes: Vec<u8>,
    /// Whether they are all of it.
    pub(super) is_all: bool,
}

impl Sample {
    /// Of a source with a length. What cannot be read is told by who reads all of it.
    pub(super) fn of_source(source: &dyn Source, limits: &Limits) -> Self {
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
            if sample.has_message() || wanted > limits.message_bytes_max {
                break;
            }
            wanted *= 4;
        }
        sample
    }

    /// Of a stream, which goes on behind it.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn of_stream(
        stream: &mut dyn Read,
        limits: &Limits,
        stop: &AtomicBool,
    ) -> io::Result<Self> {
        let mut sample = Sample::default();
        let mut wanted = SAMPLE_BYTES;
        let mut buffer = vec![0; 64 << 10];
        while !sample.is_all && !stop.load(Ordering::Relaxed) {
            match stream.read(&mut buffer) {
                Ok(0) => sample.is_all = true,
                Ok(count) => sample.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing more for now: what came is enough if it is a little.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if sample.has_message() || sample.bytes.len() >= ENOUGH_BYTES {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
            if sample.bytes.len() >= wanted {
                if sample.has_message() || wanted > limits.message_bytes_max {
                    break;
                }
                wanted *= 4;
            }
        }
        Ok(sample)
    }

    /// Whether a line ends in it; what is no line is long enough at once.
    fn has_message(&self) -> bool {
        memchr::memchr(b'\n', &self.bytes).is_some()
    }

    /// The columns that the messages show, what the first bytes say of the rest, and where the
    /// first message starts.
    ///
    /// # Errors
    /// In words.
    pub(super) fn opened(
        &self,
        format: &Format,
        limits: &Limits,
    ) -> Result<(Schema, Opening, usize), String> {
        let opening = Opening::default();
        let reader = FormatReader::new(format, limits, &opening);
        let first = reader.open(&self.bytes, self.is_all).unwrap_or(self.bytes.len());
        let end = match self.is_all {
            true => self.bytes.len(),
            false => first + reader.end(&self.bytes[first..], false),
        };
        let whole = Memory::new("sample", &self.bytes[..end]);
        let loaded = Load::new(format.clone()).workers(1).limits(limits.clone()).run(&[&whole]);
        let loaded = loaded.map_err(|error| error.to_string())?;
        Ok((loaded.table.schema().clone(), opening, first))
    }
}
