//! Compressed files that can only be read from the start.

use std::io::{BufReader, Read};
use std::sync::Arc;

use ::zstd::stream::read::Decoder;
use lzma_rust2::XzReader;
use quarrier_core::source::Source;
use quarrier_core::{Error, Result};

use super::in_order::InOrder;
use super::unpacked::Unpacked;
use crate::kind::Kind;
use crate::scratch::ScratchFolder;

/// 128 MiB, the limit of zstd itself.
pub(super) const WINDOW_LOG_MAX: u32 = 27;
/// Decoder memory limit in KiB: `xz -9` has a dictionary of 64 MiB.
pub(super) const XZ_MEMORY_KIB_MAX: u32 = 200 << 10;
const READ_BYTES: usize = 256 << 10;

/// A compressed file with parts too long to be held in memory. It is read from the start, or unpacked to
/// a temporary file.
pub struct Sequential {
    file: Arc<dyn Source>,
    kind: Kind,
    length: Option<u64>,
}

impl Sequential {
    /// A file of `length` bytes when unpacked, if it states that.
    pub(super) fn new(kind: Kind, file: &Arc<dyn Source>, length: Option<u64>) -> Self {
        Sequential { file: Arc::clone(file), kind, length }
    }

    /// Returns its bytes, from the start.
    ///
    /// # Errors
    /// If the decoder cannot be created.
    pub fn reader(&self) -> Result<Box<dyn Read + Send>> {
        let packed = BufReader::with_capacity(READ_BYTES, InOrder::new(&self.file));
        if self.kind == Kind::Xz {
            return Ok(Box::new(XzReader::new_mem_limit(packed, true, XZ_MEMORY_KIB_MAX)));
        }
        let failed = |error| Error::io(self.file.name(), "unpack", error);
        let mut decoder = Decoder::with_buffer(packed).map_err(failed)?;
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
        Ok(Box::new(decoder))
    }

    /// Returns its bytes with random access: they are unpacked in order, as far as they are read, into a
    /// temporary file. If it does not state its length, all of it is unpacked at once. Also returns a
    /// notice, if it is known to be damaged.
    ///
    /// # Errors
    /// If there is no space for the temporary file, it is damaged before its first byte, or was
    /// cancelled.
    pub fn unpacked(&self, folder: &ScratchFolder) -> Result<(Arc<dyn Source>, Option<String>)> {
        let unpacked = Unpacked::new(self.file.name(), self.reader()?, self.length, folder)?;
        let damage = unpacked.damage();
        Ok((Arc::new(unpacked), damage))
    }

    /// Its length when unpacked, if it states that.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether its first byte can be read.
    pub(super) fn begins(&self) -> bool {
        self.reader().is_ok_and(|mut reader| reader.read(&mut [0]).is_ok_and(|read| read == 1))
    }
}
