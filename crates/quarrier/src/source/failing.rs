//! Where a stream fails, once what was read of it before is read again.

use std::io::{self, Read};

/// What there is to read of a stream where it fails; nothing where it does not.
pub(crate) struct Failing(pub(crate) Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
