//! Rejected messages: counts all, reports the first, and lists them in a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::tables::reject_row;
use crate::{Error, Result};

/// A rejected message.
#[derive(Debug)]
pub(super) struct Reject {
    /// The offset in the current bytes.
    pub(super) at: usize,
    /// The number of lines in these bytes that start before it.
    pub(super) line: u64,
    pub(super) reason: String,
    /// The bytes of the message, or the first of them.
    pub(super) bytes: Box<[u8]>,
}

/// The list of rejects as a file, one JSON object a line. The file gets its name only when complete.
pub(super) struct List {
    path: PathBuf,
    /// The temporary name; `None` if the target is a pipe or a device.
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

    /// The current length of the list in bytes, for a later [`back_to`](Self::back_to).
    ///
    /// # Errors
    /// [`Error::Rejects`].
    pub(super) fn length(&mut self) -> Result<u64> {
        let length = self.out.stream_position();
        self.checked(length)
    }

    /// Removes the entries added since the list had this length.
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
            // Removes the incomplete list; no caller is left to take an error.
            let _ = fs::remove_file(part);
        }
    }
}

/// The rejected messages of one source.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct SourceRejects {
    /// The number of rejected messages.
    pub count: u64,
    /// The number of messages, rejected ones included.
    pub messages: u64,
    /// The line of the first rejected message, from 1, and the reason.
    pub first: Option<(u64, String)>,
}

impl SourceRejects {
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
