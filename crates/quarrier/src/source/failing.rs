//! Repeats the error of a stream after the bytes read before it.

use std::io::{self, Read};

/// A reader that returns the error once; ends without an error if there is none.
pub(crate) struct Failing(pub(crate) Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
