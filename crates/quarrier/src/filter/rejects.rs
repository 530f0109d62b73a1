//! Messages that are left out: counted, the first one told, all of them listed in a file.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::tables::reject_row;
use crate::{Error, Result};

/// A message that was left out.
#[derive(Debug)]
pub(super) struct Reject {
    /// Its place in the bytes at hand.
    pub(super) at: usize,
    /// How many lines of these bytes started before its own.
    pub(super) line: u64,
    pub(super) reason: String,
    /// Its bytes, or the first of them.
    pub(super) bytes: Box<[u8]>,
}

/// The file in which they are listed, one JSON object a line.
pub(super) struct List {
    path: PathBuf,
    out: BufWriter<File>,
}

impl List {
    /// # Errors
    /// [`Error::Rejects`].
    pub(super) fn create(path: &Path) -> Result<Self> {
        let path = path.to_path_buf();
        match File::create(&path) {
            Ok(file) => Ok(List { path, out: BufWriter::new(file) }),
            Err(error) => Err(Error::Rejects { path, error }),
        }
    }

    fn add(&mut self, source: &str, line: u64, offset: u64, reject: &Reject) -> Result<()> {
        let row = reject_row(source, (line, offset), &reject.reason, &reject.bytes);
        let written = writeln!(self.out, "{row}");
        self.checked(written)
    }

    fn checked<T>(&self, written: io::Result<T>) -> Result<T> {
        written.map_err(|error| Error::Rejects { path: self.path.clone(), error })
    }

    /// How long the list is, for who may have to go [`back_to`](Self::back_to).
    ///
    /// # Errors
    /// [`Error::Rejects`].
    pub(super) fn length(&mut self) -> Result<u64> {
        let length = self.out.stream_position();
        self.checked(length)
    }

    /// Takes back what came after the list had this length.
    ///
    /// # Errors
    /// [`Error::Rejects`].
    pub(super) fn back_to(&mut self, length: u64) -> Result<()> {
        let cut = self.out.seek(SeekFrom::Start(length));
        let cut = cut.and_then(|_| self.out.get_ref().set_len(length));
        self.checked(cut)
    }

    /// # Errors
    /// [`Error::Rejects`].
    pub(super) fn finish(mut self) -> Result<()> {
        let flushed = self.out.flush();
        self.checked(flushed)
    }
}

/// Messages of one source that were left out.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LeftOut {
    /// How many.
    pub count: u64,
    /// Of so many messages.
    pub messages: u64,
    /// The line of the first, from 1, and why it was left out.
    pub first: Option<(u64, String)>,
}

impl LeftOut {
    /// Adds rejects from bytes that start at `offset` of the source, before which `lines` lines
    /// started.
    pub(super) fn add(
        &mut self,
        source: &str,
        (offset, lines): (u64, u64),
        rejects: &[Reject],
        list: &mut Option<List>,
    ) -> Result<()> {
        for reject in rejects {
            let line = 1 + lines + reject.line;
            if self.first.is_none() {
                self.first = Some((line, reject.reason.clone()));
            }
            if let Some(list) = list {
                list.add(source, line, offset + reject.at as u64, reject)?;
            }
        }
        Ok(())
    }
}
