//! A part of a source, addressed by offsets from its start.

use std::ops::Range;

use quarrier_core::source::{Source, read_full_at};

use crate::error::{Error, Result};

/// Bytes of a bitmap or table read at once: a whole number of 12-, 16- and 32-bit entries.
pub(crate) const STEP_BYTES: usize = 96 << 10;
/// Bytes needed to recognize most file systems.
pub(crate) const BOOT_BYTES: usize = 2048;

pub(crate) struct Part<'a> {
    source: &'a dyn Source,
    span: Range<u64>,
}

impl<'a> Part<'a> {
    pub(crate) fn whole(source: &'a dyn Source) -> Self {
        Part { source, span: 0..source.length() }
    }

    /// A subrange of this part, by offsets in the source.
    pub(crate) fn within(&self, span: Range<u64>) -> Part<'a> {
        Part { source: self.source, span }
    }

    pub(crate) fn span(&self) -> Range<u64> {
        self.span.clone()
    }

    pub(crate) fn length(&self) -> u64 {
        self.span.end - self.span.start
    }

    /// Converts an offset in this part to one in the source.
    pub(crate) fn place(&self, at: u64) -> u64 {
        self.span.start.saturating_add(at)
    }

    /// Fills `buffer` from `at`.
    ///
    /// # Errors
    /// [`Error::FileSystem`] beyond the part, [`Error::Source`] if it cannot be read.
    pub(crate) fn read(&self, at: u64, buffer: &mut [u8], what: &str) -> Result<()> {
        let end = at.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length()) {
            return Err(self.refused(at, &format!("{what} beyond the end")));
        }
        let read = read_full_at(self.source, self.place(at), buffer).map_err(|error| {
            let tried = format!("read {what} at byte {}", self.place(at));
            quarrier_core::Error::io(self.source.name(), tried, error)
        })?;
        if read < buffer.len() {
            return Err(self.refused(at, &format!("{what} is truncated")));
        }
        Ok(())
    }

    /// The first range of data at or after `at`, cut to this part; `None` if only holes follow. A source
    /// that cannot tell has no holes.
    pub(crate) fn next_data(&self, at: u64) -> Option<Range<u64>> {
        let from = self.place(at);
        let all = from..self.span.end;
        let data = self.source.next_data(from).unwrap_or(Some(all))?;
        let (start, end) = (data.start.max(from), data.end.min(self.span.end));
        (start < end).then(|| start - self.span.start..end - self.span.start)
    }

    /// The first bytes, padded with zeros if the part is shorter.
    pub(crate) fn boot(&self) -> Result<[u8; BOOT_BYTES]> {
        let mut boot = [0; BOOT_BYTES];
        let length = self.length().min(BOOT_BYTES as u64) as usize;
        self.read(0, &mut boot[..length], "the first sectors")?;
        Ok(boot)
    }

    /// Passes `bytes` bytes from `at` to `take`, in pieces of [`STEP_BYTES`].
    pub(crate) fn stream(
        &self,
        at: u64,
        bytes: u64,
        what: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; STEP_BYTES.min(usize::try_from(bytes).unwrap_or(STEP_BYTES))];
        let mut done = 0;
        while done < bytes {
            let step = buffer.len().min(usize::try_from(bytes - done).unwrap_or(usize::MAX));
            self.read(at.saturating_add(done), &mut buffer[..step], what)?;
            take(&buffer[..step])?;
            done += step as u64;
        }
        Ok(())
    }

    /// An error that stops the listing.
    pub(crate) fn too_much(&self, found: &str) -> Error {
        Error::TooMuch {
            source_name: self.source.name().to_string(),
            offset: self.place(0),
            found: found.to_string(),
        }
    }

    /// An error about the bytes at `at`.
    pub(crate) fn refused(&self, at: u64, found: &str) -> Error {
        Error::FileSystem {
            source_name: self.source.name().to_string(),
            offset: self.place(at),
            found: found.to_string(),
        }
    }
}

#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u16::from_be_bytes(*chunk))
}

#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u32::from_be_bytes(*chunk))
}

#[inline]
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |chunk| u64::from_be_bytes(*chunk))
}
