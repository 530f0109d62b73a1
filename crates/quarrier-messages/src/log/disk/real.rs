//! A folder of the operating system, written with direct I/O (past the page cache) if the file system allows
//! it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use quarrier_core::region::PAGE_BYTES;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use super::{Access, Disk, DiskFile};

/// A folder.
#[derive(Debug)]
pub struct RealDisk {
    folder: PathBuf,
    handle: File,
}

impl RealDisk {
    /// Opens `folder`, and creates it durably if it does not exist.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open_or_create(folder: &Path) -> io::Result<Self> {
        if !folder.is_dir() {
            create_durably(folder)?;
        }
        RealDisk::open(folder)
    }

    /// Opens `folder`, which must exist.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = File::from(rustix::fs::open(folder, flags, Mode::empty())?);
        Ok(RealDisk { folder: folder.to_path_buf(), handle })
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<RealFile> {
        // Open without blocking, so that a named pipe in the folder is an error instead of a wait.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let open = |flags| rustix::fs::openat(&self.handle, name, flags, Mode::from(0o666));
        let plain = File::from(open(flags)?);
        if !plain.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let again = flags.difference(OFlags::CREATE | OFlags::TRUNC) | OFlags::DIRECT;
        let block = direct_block(&plain);
        // File systems without direct I/O refuse the flag.
        let direct = block.and_then(|_| open(again).ok()).map(File::from);
        let block_bytes = match &direct {
            Some(_) => block.unwrap_or(PAGE_BYTES as u64),
            // The page cache writes whole pages.
            None => PAGE_BYTES as u64,
        };
        Ok(RealFile { plain, direct, block_bytes })
    }
}

/// Creates a folder and its parents, and syncs each into its own parent.
fn create_durably(folder: &Path) -> io::Result<()> {
    let parent = match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    if !parent.is_dir() {
        create_durably(parent)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    File::open(parent)?.sync_all()
}

/// Returns the block size of direct I/O as reported by the system; None without direct I/O, or if its blocks
/// are larger than a page.
fn direct_block(file: &File) -> Option<u64> {
    let flags = StatxFlags::DIOALIGN;
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, flags).ok()?;
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        // An older system does not report it: a page suits every device.
        return Some(PAGE_BYTES as u64);
    }
    let (memory, offset) =
        (u64::from(stat.stx_dio_mem_align), u64::from(stat.stx_dio_offset_align));
    let block = offset.max(512);
    let is_usable = offset > 0
        && block.is_power_of_two()
        && block <= PAGE_BYTES as u64
        && memory <= PAGE_BYTES as u64;
    is_usable.then_some(block)
}

impl Disk for RealDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            // Skip names that are not UTF-8, since the log has none.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<Box<dyn DiskFile>> {
        let file = self.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?;
        if let Err(error) = file.allocate(bytes) {
            // An incomplete file would only take space.
            let _ = self.remove(name);
            return Err(error);
        }
        Ok(Box::new(file))
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
        };
        Ok(Box::new(self.file(name, flags)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn random(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// A file, opened twice: for direct I/O if possible, and for everything else.
#[derive(Debug)]
struct RealFile {
    plain: File,
    direct: Option<File>,
    block_bytes: u64,
}

impl RealFile {
    /// Returns the descriptor for direct I/O if offset, length and memory are aligned for it.
    fn direct(&self, offset: u64, bytes: &[u8]) -> Option<&File> {
        let is_aligned = offset.is_multiple_of(self.block_bytes)
            && (bytes.len() as u64).is_multiple_of(self.block_bytes)
            && bytes.as_ptr().addr().is_multiple_of(PAGE_BYTES);
        self.direct.as_ref().filter(|_| is_aligned)
    }
}

impl DiskFile for RealFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.plain.metadata()?.len())
    }

    fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self.direct(offset, buffer) {
            Some(direct) => direct.read_at(buffer, offset),
            None => self.plain.read_at(buffer, offset),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        match self.direct(offset, bytes) {
            Some(direct) => direct.write_at(bytes, offset),
            None => self.plain.write_at(bytes, offset),
        }
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.plain, FallocateFlags::empty(), 0, bytes) {
            // Without allocation, a full disk shows only at a write.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.plain.set_len(bytes),
            done => Ok(done?),
        }
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.plain.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        // One descriptor is enough: the sync covers the file and the device's cache.
        self.plain.sync_data()
    }
}
