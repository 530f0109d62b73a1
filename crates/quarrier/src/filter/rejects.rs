//! Rejected messages: counted, the first one reported, all of them listed in a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::tables::reject_row;
use crate::{Error, Result};

/// A message that was left out.
#[derive(Debug)]
pub(super) struct Reject {
    /// Its place in the current bytes.
    pub(super) at: usize,
    /// How many lines of these bytes started before its own.
    pub(super) line: u64,
    pub(super) reason: String,
    /// Its bytes, or the first of them.
    pub(super) bytes: Box<[u8]>,
}

/// The file in which they are listed, one JSON object a line. It has its name when it is whole.
pub(super) struct List {
    path: PathBuf,
    /// Its temporary name; `None` if the target is a pipe or device rather than a regular file.
    part: Option<PathBuf>,
    out: BufWriter<File>,
}

impl List {
    /// # Errors
    /// [`Error::Rejects`].
    pub(super) fn create(path: &Path) -> Result<Self> {
        let is_special = fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        let part = (!is_special).then(|| {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".part-{}", std::process::id()));
            path.with_file_name(name)
        });
        let path = path.to_path_buf();
        match File::create(part.as_ref().unwrap_or(&path)) {
            Ok(file) => Ok(List { path, part, out: BufWriter::new(file) }),
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

    /// Removes the entries added after the list had this length.
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
        let kept = self.out.flush().and_then(|()| match &self.part {
            Some(part) => fs::rename(part, &self.path),
            None => Ok(()),
        });
        self.checked(kept)?;
        self.part = None;
        Ok(())
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Removes the incomplete list; nobody is left to report an error to.
            let _ = fs::remove_file(part);
        }
    }
}

/// Messages of one source that were left out.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LeftOut {
    /// How many.
    pub count: u64,
    /// The number of messages.
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
