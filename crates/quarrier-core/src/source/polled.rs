//! A stream whose reads return after a while even without data.

use std::io::{self, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a read waits for bytes before it returns `WouldBlock`.
const IDLE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A reader that returns [`io::ErrorKind::WouldBlock`] if no bytes arrive for a tenth of a second,
/// so that the pipeline can emit its results until then, or stop.
#[derive(Debug)]
pub struct Polled<R>(R);

impl<R: Read + AsFd> Polled<R> {
    /// Wraps a pipe, terminal, or file.
    pub fn new(reader: R) -> Self {
        Polled(reader)
    }
}

impl<R: Read + AsFd> Read for Polled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut waited_for = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut waited_for, Some(&IDLE)) {
            Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
            Err(rustix::io::Errno::INTR) => Err(io::ErrorKind::Interrupted.into()),
            // If polling fails, the read reports the cause.
            Ok(_) | Err(_) => self.0.read(buffer),
        }
    }
}
