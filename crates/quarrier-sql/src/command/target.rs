//! An output file that appears under its name only when it is complete.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// A file that has a temporary name until it is complete.
pub(super) struct Target {
    path: PathBuf,
    part: PathBuf,
    file: BufWriter<File>,
    is_kept: bool,
}

impl Target {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let failed = |error| failed(path, error);
        let is_special = std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        let part = if is_special {
            path.to_path_buf()
        } else {
            let mut name = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".part-{}", std::process::id()));
            path.with_file_name(name)
        };
        let file = File::options().write(true).create(true).truncate(!is_special).open(&part);
        let file = BufWriter::new(file.map_err(failed)?);
        Ok(Target { path: path.to_path_buf(), part, file, is_kept: is_special })
    }

    pub(super) fn out(&mut self) -> &mut (dyn Write + Send) {
        &mut self.file
    }

    /// Renames the file to its final name.
    pub(super) fn keep(mut self) -> Result<()> {
        let kept = self.file.flush().and_then(|()| {
            if self.part == self.path {
                return Ok(());
            }
            self.file.get_ref().sync_all()?;
            std::fs::rename(&self.part, &self.path)
        });
        kept.map_err(|error| failed(&self.path, error))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_kept {
            // Removes an incomplete answer; nobody is left to report an error to.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::Output { name: path.display().to_string(), error }
}
