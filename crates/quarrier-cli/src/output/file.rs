//! Files that are either written whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes `bytes` to `path`. A regular file appears, or is replaced, only when all of it is on disk;
/// anything else (a pipe, a device) is written directly.
///
/// # Errors
/// The operating system's error; no partial file is left behind.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let is_special = fs::metadata(path).is_ok_and(|meta| !meta.is_file());
    if is_special {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".part-{}", std::process::id()));
    let part = path.with_file_name(name);
    let written = fs::File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    match written.and_then(|()| fs::rename(&part, path)) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = fs::remove_file(&part);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::write_whole;

    #[test]
    fn a_file_is_replaced_and_no_part_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_whole(&folder.path().join("no/such"), b"x").is_err());
    }
}
