//! Presents one segment as a log.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use crate::log::disk::{Access, Disk, DiskFile, RealDisk};
use crate::log::segment::{HEAD_BYTES, Head, mark_of, name};

/// A folder with one segment, whatever its file is called and whatever else the real folder contains.
pub(super) struct OneSegment {
    disk: RealDisk,
    file: String,
    name: String,
}

impl OneSegment {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The operating system's error.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let disk = RealDisk::open(folder.unwrap_or(Path::new(".")))?;
        let file = path.file_name().and_then(OsStr::to_str);
        let file = file.ok_or(io::ErrorKind::InvalidInput)?.to_string();
        let mut head = vec![0; HEAD_BYTES as usize];
        let read = disk.open(&file, Access::Read)?.read_at(0, &mut head)?;
        let said = Head::from_bytes(&head[..read]).map(|(head, _)| head.first_mark);
        let name = name(said.or_else(|| mark_of(&file)).unwrap_or(1));
        Ok(OneSegment { disk, file, name })
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for OneSegment {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(vec![self.name.clone()])
    }

    fn create(&self, _name: &str, _bytes: u64) -> io::Result<Box<dyn DiskFile>> {
        refused()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        match (name == self.name, access) {
            (true, Access::Read) => self.disk.open(&self.file, Access::Read),
            (true, Access::Write) => refused(),
            (false, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        refused()
    }

    fn sync_folder(&self) -> io::Result<()> {
        refused()
    }

    fn path(&self, _name: &str) -> String {
        self.disk.path(&self.file)
    }

    fn now_us(&self) -> i64 {
        self.disk.now_us()
    }

    fn random(&self) -> io::Result<u64> {
        self.disk.random()
    }
}
