//! Compiled kernels on disk, for drivers that cache none themselves.
//!
//! ```text
//!  quarrier-kernel 1 <bytes of the key> <bytes of the text> <checksum of both>\n key text
//! ```
//!
//! The key is everything that the text was made from. A reader ignores a file that is torn, was
//! changed or has another key. A writer writes a temporary file and renames it into place. No
//! failure here is an error: the driver compiles the kernel instead.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Result;

/// The first line of a file; the number changes with the layout.
const MAGIC: &str = "quarrier-kernel 1";
/// Larger than any kernel: the cache does not read a larger file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A folder of compiled kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A cache in a folder that only this user writes to; the first write creates the folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Cache { folder: folder.into() }
    }

    /// Returns the text cached under `key`; otherwise calls `make` and caches its result.
    ///
    /// # Errors
    /// The errors of `make`.
    pub fn get_or(&self, key: &str, make: impl FnOnce() -> Result<String>) -> Result<String> {
        let path = self.folder.join(format!("{:016x}.kernel", hash(&[key])));
        if let Some(text) = read(&path, key) {
            return Ok(text);
        }
        let text = make()?;
        // A cache that cannot be written only costs time.
        let _ = self.write(&path, key, &text);
        Ok(text)
    }

    fn write(&self, path: &Path, key: &str, text: &str) -> std::io::Result<()> {
        static WRITTEN: AtomicU32 = AtomicU32::new(0);
        make_folder(&self.folder)?;
        let nth = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let beside = path.with_extension(format!("{}-{nth}", std::process::id()));
        let written = fs::File::create_new(&beside).and_then(|mut file| {
            file.write_all(head(key, text).as_bytes())?;
            file.write_all(key.as_bytes())?;
            file.write_all(text.as_bytes())
        });
        let moved = written.and_then(|()| fs::rename(&beside, path));
        if moved.is_err() {
            let _ = fs::remove_file(&beside);
        }
        moved
    }
}

fn head(key: &str, text: &str) -> String {
    format!("{MAGIC} {} {} {:016x}\n", key.len(), text.len(), hash(&[key, text]))
}

/// Reads the text of a file that is intact and has this key.
fn read(path: &Path, key: &str) -> Option<String> {
    let mut content = String::new();
    fs::File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut content).ok()?;
    let (_, rest) = content.split_once('\n')?;
    let text = rest.strip_prefix(key)?;
    (content.strip_suffix(rest)? == head(key, text)).then(|| text.to_string())
}

/// Creates the folder for this user only, since the process runs the code in it.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// FNV-1a: names files and detects torn ones. It is not a defence against a deliberate change, since
/// anybody can compute it.
fn hash(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes());
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
