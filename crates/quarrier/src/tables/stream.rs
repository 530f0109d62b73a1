//! Streams: their first bytes tell the format, and they are waited for.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quarrier_messages::Format;

use crate::source::Failing;

/// A reader that is asked again as long as it has nothing at hand, until `stop` becomes true.
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

/// As many bytes tell the format.
const BYTES: u64 = 4 << 10;

/// The format of a stream, and the stream from its start.
pub(crate) fn told<'r>(
    name: &str,
    mut stream: Box<dyn Read + Send + 'r>,
) -> (Format, Box<dyn Read + Send + 'r>) {
    let mut head = Vec::new();
    let read = stream.by_ref().take(BYTES).read_to_end(&mut head);
    let format = Format::told_by(name, &head).unwrap_or_else(|| Format::guessed(&head));
    // What is damaged says so, and where, when it is loaded.
    let failing = Failing(read.err());
    (format, Box::new(Cursor::new(head).chain(failing).chain(stream)))
}
