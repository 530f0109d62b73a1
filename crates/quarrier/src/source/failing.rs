//! Repeats the failure of a stream after the bytes read before it.

use std::io::{self, Read};

/// The failure of a stream, as a reader; ends without an error if there is none.
pub(crate) struct Failing(pub(crate) Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
