//! The folder of a log, reduced to the operations that a log needs, so that a test double can fail and crash
//! at any call.

mod faulty;
mod real;

use std::io;

pub use faulty::{Fault, FaultyDisk, Moment};
pub use real::RealDisk;

/// The mode for opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// A folder of files. Written data is durable after [`DiskFile::sync`], and file names after
/// [`Disk::sync_folder`]; neither is before.
pub trait Disk: Send + Sync {
    /// Lists the names in the folder, in no order.
    ///
    /// # Errors
    /// The operating system's error, as for all methods here.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Creates a file of `bytes` zeros with its disk space allocated, replaces any file with this name, and
    /// opens it for writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] if there is not enough space.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Box<dyn DiskFile>>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if it does not exist.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Renames a file, and replaces any file with the new name.
    ///
    /// # Errors
    /// The operating system's error.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The operating system's error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes changes of names durable: of files created, renamed and removed.
    ///
    /// # Errors
    /// The operating system's error.
    fn sync_folder(&self) -> io::Result<()>;

    /// Returns the path of the file with this name, for display.
    fn path(&self, name: &str) -> String;

    /// Returns microseconds since 1970-01-01 00:00:00 UTC, by a clock that may step back.
    fn now_us(&self) -> i64;

    /// Returns an unpredictable random number.
    ///
    /// # Errors
    /// If the system provides none.
    fn random(&self) -> io::Result<u64>;
}

/// An open file. Its methods may be called from many threads.
pub trait DiskFile: Send + Sync {
    /// Returns its length in bytes.
    ///
    /// # Errors
    /// The operating system's error, as for all methods here.
    fn length(&self) -> io::Result<u64>;

    /// Returns the smallest unit that the device writes, a power of two of 512 to 4,096 bytes. Writes begin
    /// and end at multiples of it.
    fn block_bytes(&self) -> u64;

    /// Reads at `offset`, perhaps fewer bytes than requested; 0 at the end of the file.
    ///
    /// # Errors
    /// The operating system's error.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at `offset`, perhaps fewer bytes than given.
    ///
    /// # Errors
    /// The operating system's error.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Extends the file to `bytes`, with zeros whose space is allocated.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] if there is not enough space.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Truncates the file.
    ///
    /// # Errors
    /// The operating system's error.
    fn truncate(&self, bytes: u64) -> io::Result<()>;

    /// Makes the written data and the file's length durable.
    ///
    /// # Errors
    /// After an error, the contents of the disk are unknown, and another call would not reveal it.
    fn sync(&self) -> io::Result<()>;
}
