//! Sequential reading of a source.

use std::io::{self, Read};
use std::sync::Arc;

use quarrier_core::source::Source;

pub(super) struct InOrder {
    file: Arc<dyn Source>,
    at: u64,
}

impl InOrder {
    pub(super) fn new(file: &Arc<dyn Source>) -> Self {
        InOrder::starting(file, 0)
    }

    pub(super) fn starting(file: &Arc<dyn Source>, at: u64) -> Self {
        InOrder { file: Arc::clone(file), at }
    }
}

impl Read for InOrder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}
