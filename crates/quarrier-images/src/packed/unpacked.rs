//! A source whose bytes are unpacked in order, once, into a temporary file.
//!
//! ```text
//!  read at an offset ──→ unpacked already? ──→ from the temporary file
//!                          └ no ──→ unpacked further, by one of the readers that wait
//! ```

use std::io::{self, Read};
use std::sync::{Condvar, Mutex};

use quarrier_core::scratch::ScratchFile;
use quarrier_core::source::Source;
use quarrier_core::sync::{lock, wait};
use quarrier_core::{Error, Result};

use crate::fault::{damaged_inside, invalid};
use crate::scratch::ScratchFolder;

/// Bytes unpacked at a time.
const STEP_BYTES: usize = 1 << 20;

pub(super) struct Unpacked {
    name: String,
    /// With one byte more than there are, which cannot be read, if damage was found before the file was
    /// opened.
    length: u64,
    file: ScratchFile,
    folder: ScratchFolder,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Where to go on; `None` while a reader unpacks, and at the end.
    unpacking: Option<Unpacking>,
    has_ended: bool,
    /// Why no more can be read.
    failure: Option<(io::ErrorKind, String)>,
}

struct Unpacking {
    reader: Box<dyn Read + Send>,
    step: Vec<u8>,
}

impl Unpacked {
    /// The bytes of `reader`. If it has `length` bytes, they are unpacked when they are read; if that is
    /// unknown, they are unpacked now, and the error of the reader cuts them off.
    ///
    /// # Errors
    /// If there is no space for the temporary file, or the folder's stop flag is set.
    pub(super) fn new(
        name: &str,
        reader: Box<dyn Read + Send>,
        length: Option<u64>,
        folder: &ScratchFolder,
    ) -> Result<Self> {
        let failed = |error| Error::io(name, "unpack", error);
        let file = folder.file().map_err(failed)?;
        let unpacking = Unpacking { reader, step: Vec::new() };
        let state =
            Mutex::new(State { unpacking: Some(unpacking), has_ended: false, failure: None });
        let (name, folder, changed) = (name.to_string(), folder.clone(), Condvar::new());
        let mut unpacked =
            Unpacked { name, length: length.unwrap_or(u64::MAX), file, folder, state, changed };
        if length.is_none() {
            unpacked.unpack_all()?;
        }
        Ok(unpacked)
    }

    fn unpack_all(&mut self) -> Result<()> {
        while self.unpack_more(lock(&self.state)) {
            self.refuse_if_stopped().map_err(|error| Error::io(&self.name, "unpack", error))?;
        }
        let failure = lock(&self.state).failure.take();
        let end = self.file.length();
        let Some((kind, why)) = failure else {
            self.length = end;
            return Ok(());
        };
        if kind != io::ErrorKind::InvalidData || end == 0 {
            return Err(Error::io(&self.name, "unpack", io::Error::new(kind, why)));
        }
        self.length = end + 1;
        lock(&self.state).failure = Some((kind, why));
        Ok(())
    }

    /// Why bytes are missing at the end, if that is known.
    pub(super) fn damage(&self) -> Option<String> {
        lock(&self.state).failure.as_ref().map(|(_, why)| why.clone())
    }

    /// Unpacks one more step, or waits for the reader that does. Returns whether more may follow.
    fn unpack_more(&self, mut state: std::sync::MutexGuard<'_, State>) -> bool {
        if state.has_ended || state.failure.is_some() {
            return false;
        }
        let Some(unpacking) = state.unpacking.take() else {
            drop(wait(&self.changed, state));
            return true;
        };
        drop(state);
        let mut turn = Turn { of: self, outcome: None };
        turn.outcome = Some(self.step(unpacking));
        drop(turn);
        true
    }

    fn refuse_if_stopped(&self) -> io::Result<()> {
        match self.folder.is_stopped() {
            true => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "interrupted")),
            false => Ok(()),
        }
    }

    /// Unpacks one step; returns where to go on.
    fn step(&self, mut unpacking: Unpacking) -> io::Result<Option<Unpacking>> {
        let Unpacking { reader, step } = &mut unpacking;
        let start = self.file.length();
        let left = self.length - start;
        step.resize(STEP_BYTES.min(usize::try_from(left).unwrap_or(STEP_BYTES)), 0);
        let (filled, ended) = fill(reader, step);
        let end = start + filled as u64;
        let ended = match ended {
            Ok(_) if end == self.length => whole(reader),
            Ok(true) if self.length < u64::MAX => {
                Err(invalid(format!("it ends there, and should have {} bytes", self.length)))
            }
            ended => ended,
        };
        // If the end is wrong, a checksum may have been of these bytes.
        if ended.is_ok() || end < self.length {
            self.file.append(&step[..filled]).map_err(|error| no_file(&error))?;
        }
        match ended {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(unpacking)),
            Err(error) => Err(damaged_inside(&error, self.file.length())),
        }
    }
}

/// An error of the temporary file, without which no other range can be read: readers give up.
fn no_file(error: &io::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, error.to_string())
}

/// Fills `step`, and returns the number of bytes and whether the reader has ended.
fn fill(reader: &mut dyn Read, step: &mut [u8]) -> (usize, io::Result<bool>) {
    let mut filled = 0;
    while filled < step.len() {
        match reader.read(&mut step[filled..]) {
            Ok(0) => return (filled, Ok(true)),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(false))
}

/// Checks that nothing follows; decoders verify the last checksum only then.
fn whole(reader: &mut dyn Read) -> io::Result<bool> {
    match fill(reader, &mut [0]) {
        (0, Ok(_)) => Ok(true),
        (0, Err(error)) => Err(error),
        _ => Err(invalid("it is longer than it states")),
    }
}

/// Hands the unpacking back, also after a panic.
struct Turn<'u> {
    of: &'u Unpacked,
    outcome: Option<io::Result<Option<Unpacking>>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.of.state);
        match self.outcome.take() {
            Some(Ok(unpacking)) => {
                state.has_ended = unpacking.is_none();
                state.unpacking = unpacking;
            }
            Some(Err(error)) => state.failure = Some((error.kind(), error.to_string())),
            None => {
                let why = "the decoder panicked".to_string();
                state.failure = Some((io::ErrorKind::InvalidData, why));
            }
        }
        drop(state);
        self.of.changed.notify_all();
    }
}

impl Source for Unpacked {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn readable_end(&self) -> u64 {
        match lock(&self.state).failure {
            Some(_) => self.file.length(),
            None => self.length,
        }
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if offset >= self.length || buffer.is_empty() {
            return Ok(0);
        }
        let end = offset.saturating_add(buffer.len() as u64).min(self.length);
        loop {
            if self.file.length() >= end {
                return self.file.read_at(offset, buffer);
            }
            let state = lock(&self.state);
            if let Some((kind, why)) = &state.failure {
                // The bytes before it; the next read reports the error.
                return match self.file.length() > offset {
                    true => self.file.read_at(offset, buffer),
                    false => Err(io::Error::new(*kind, why.clone())),
                };
            }
            self.unpack_more(state);
            self.refuse_if_stopped()?;
        }
    }

    fn is_packed(&self) -> bool {
        true
    }
}
