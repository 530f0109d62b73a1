//! Streams: waits for the first bytes, and detects the format by them.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_messages::Format;

use crate::source::Failing;

/// A reader that retries while no bytes are available, until `stop` becomes true.
pub(crate) struct Patient {
    reader: Box<dyn Read + Send>,
    stop: Arc<AtomicBool>,
}

impl Patient {
    pub(crate) fn new(reader: Box<dyn Read + Send>, stop: &Arc<AtomicBool>) -> Self {
        Patient { reader, stop: Arc::clone(stop) }
    }
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            match self.reader.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// Number of bytes that the detection reads.
const BYTES: u64 = 4 << 10;

/// Detects the format of a stream; returns it with the stream from its start.
pub(crate) fn detect_format<'r>(
    name: &str,
    mut stream: Box<dyn Read + Send + 'r>,
) -> (Format, Box<dyn Read + Send + 'r>) {
    let mut head = Vec::new();
    let read = stream.by_ref().take(BYTES).read_to_end(&mut head);
    let format = Format::detect(name, &head).unwrap_or_else(|| Format::guessed(&head));
    // Loading reports the damage, with its offset.
    let failing = Failing(read.err());
    (format, Box::new(Cursor::new(head).chain(failing).chain(stream)))
}
