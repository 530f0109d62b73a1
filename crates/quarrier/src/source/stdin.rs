//! Standard input, read in order.

use std::fs::File;
use std::io::{Read, Stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use quarrier_core::source::Polled;

/// Standard input, without blocking: a read fails with [`WouldBlock`](std::io::ErrorKind::WouldBlock)
/// if nothing has arrived for a tenth of a second.
#[must_use]
pub fn standard_input() -> impl Read + Send {
    Polled::new(StdinReader)
}

/// Standard input without the buffer of [`std::io::Stdin`], which polling would not see.
pub(super) struct StdinReader;

impl AsFd for StdinReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // This program never closes standard input.
        static STDIN: OnceLock<Stdin> = OnceLock::new();
        STDIN.get_or_init(std::io::stdin).as_fd()
    }
}

impl Read for StdinReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        File::from(self.as_fd().try_clone_to_owned()?).read(buffer)
    }
}
