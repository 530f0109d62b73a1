//! The folder that a log lies in, as little of it as a log needs, so that a twin can fail and crash
//! at any call.

mod faulty;
mod real;

use std::io;

pub use faulty::{Fault, FaultyDisk, Moment};
pub use real::RealDisk;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// A folder of files. What is written is durable after [`DiskFile::sync`], the names of files after
/// [`Disk::sync_folder`], and nothing before.
pub trait Disk: Send + Sync {
    /// The names in the folder, in no order.
    ///
    /// # Errors
    /// Those of the system, as for all methods here.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Makes a file of `bytes` zeros that have their room on the disk, in place of one that may
    /// have this name, and opens it for writing.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where there is no room.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] where it is not.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, in place of one that may have it.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes names durable: those of files made, renamed and removed.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_folder(&self) -> io::Result<()>;

    /// Where a file of this name is, for people.
    fn path(&self, name: &str) -> String;

    /// Microseconds since 1970-01-01 00:00:00 UTC, by a clock that may step back.
    fn now_us(&self) -> i64;

    /// A number that nobody can foresee.
    ///
    /// # Errors
    /// Where the system gives none.
    fn random(&self) -> io::Result<u64>;
}

/// An open file. Its methods may be called from many threads.
pub trait DiskFile: Send + Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// Those of the system, as for all methods here.
    fn length(&self) -> io::Result<u64>;

    /// The least that the device writes at once, a power of two of 512 to 4,096 bytes: writes begin
    /// and end at multiples of it.
    fn block_bytes(&self) -> u64;

    /// Reads at `offset`, perhaps less than asked for; 0 at the end of the file.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes at `offset`, perhaps less than given.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Makes the file `bytes` long, with zeros and room for them.
    ///
    /// # Errors
    /// [`io::ErrorKind::StorageFull`] where there is no room.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Cuts the file off.
    ///
    /// # Errors
    /// Those of the system.
    fn truncate(&self, bytes: u64) -> io::Result<()>;

    /// Makes durable what was written, and the file's length.
    ///
    /// # Errors
    /// After one, nobody knows what is on the disk, and a second call would not tell.
    fn sync(&self) -> io::Result<()>;
}
