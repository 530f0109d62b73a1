//! Deflate streams (RFC 1951): read as fast as possible, or in steps that can end at any byte.

mod copyable;

use std::ops::Range;

use flate2::{Decompress, FlushDecompress, Status};

use crate::view::View;

pub(crate) use copyable::{Copyable, InflateStep};

/// The size of the output buffer; its last 32 KiB, to which back-references refer, stay in the
/// CPU's cache.
const OUTPUT_BYTES: usize = 64 << 10;
/// Bytes of input per call of the decompressor.
const INPUT_BYTES: usize = 256 << 10;
/// Inflated bytes per byte of fuel.
const OUTPUT_PER_FUEL: u64 = 8;

/// The cost of a new [`Inflater`] in bytes of fuel: if many candidates need one, it takes most of
/// the time.
pub(crate) const INFLATER_FUEL: u64 = 4 << 10;

/// Inflates streams, one at a time. It takes 110 KiB of memory after its first use.
pub(crate) struct Inflater {
    decompress: Decompress,
    output: Vec<u8>,
    is_zlib: bool,
}

/// Why a stream was not inflated to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// It is invalid at this byte, or shortly before.
    At(u64),
    /// The receiver of the output refused more.
    Stopped,
}

impl Inflater {
    /// Makes an inflater for streams without a header.
    pub(crate) fn new() -> Self {
        Inflater { decompress: Decompress::new(false), output: Vec::new(), is_zlib: false }
    }

    /// Makes an inflater for streams with the header and the checksum of zlib (RFC 1950).
    pub(crate) fn zlib() -> Self {
        Inflater { decompress: Decompress::new(true), output: Vec::new(), is_zlib: true }
    }

    /// Begins another stream.
    pub(crate) fn begin(&mut self) {
        self.decompress.reset(self.is_zlib);
    }

    /// Inflates `input` until it is used up or the stream ends, and returns the number of bytes
    /// used in the latter case. `take` receives the output, and returns whether to continue.
    pub(crate) fn more(
        &mut self,
        input: &[u8],
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Option<usize>, Failed> {
        if self.output.is_empty() {
            self.output.resize(OUTPUT_BYTES, 0);
        }
        let mut used = 0;
        loop {
            let (before_in, before_out) = (self.decompress.total_in(), self.decompress.total_out());
            let status =
                self.decompress.decompress(&input[used..], &mut self.output, FlushDecompress::None);
            used += (self.decompress.total_in() - before_in) as usize;
            let count = (self.decompress.total_out() - before_out) as usize;
            if count > 0 && !take(&self.output[..count]) {
                return Err(Failed::Stopped);
            }
            match status {
                Ok(Status::StreamEnd) => return Ok(Some(used)),
                Ok(_) if count == self.output.len() => {}
                Ok(_) if used == input.len() => return Ok(None),
                Ok(_) if count > 0 => {}
                Ok(_) | Err(_) => return Err(Failed::At(used as u64)),
            }
        }
    }

    /// Inflates the stream that begins at `range.start` of `view` and ends at `range.end` at the
    /// latest. Returns its end.
    pub(crate) fn all(
        &mut self,
        view: &mut View<'_>,
        range: Range<u64>,
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<u64, Failed> {
        self.begin();
        let mut at = range.start;
        while at < range.end {
            let most = (range.end - at).min(INPUT_BYTES as u64) as usize;
            let mut count = 0u64;
            let input = view.run(at, most);
            if input.is_empty() {
                break;
            }
            let given = input.len() as u64;
            let result = self.more(input, &mut |bytes| {
                count += bytes.len() as u64;
                take(bytes)
            });
            view.spend(count / OUTPUT_PER_FUEL);
            match result {
                Ok(Some(used)) => {
                    // Members of an archive are much shorter than a read.
                    view.refund(given - used as u64);
                    return Ok(at + used as u64);
                }
                Ok(None) => at += given,
                Err(Failed::At(used)) => {
                    // The bytes after the fault were not read.
                    view.refund(given - used.min(given));
                    return Err(Failed::At(at + used));
                }
                Err(Failed::Stopped) => return Err(Failed::Stopped),
            }
        }
        Err(Failed::At(at))
    }
}
