//! An inflater that can stop at any byte of its input; copies of it can continue from there.

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_HAS_MORE_INPUT, TINFL_FLAG_IGNORE_ADLER32, TINFL_FLAG_PARSE_ZLIB_HEADER,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// Maximum distance of a back-reference.
const WINDOW_BYTES: usize = 32 << 10;

/// The state of a stream: 43 KiB.
#[derive(Clone)]
pub(crate) struct Copyable {
    state: DecompressorOxide,
    window: Vec<u8>,
    at: usize,
    flags: u32,
}

/// The result of an inflater on its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InflateStep {
    /// It used all of the input.
    On,
    /// The stream ended after this many bytes of the input.
    Ended(usize),
    /// The input is damaged at or before this byte.
    Wrong(usize),
}

impl Copyable {
    /// Makes an inflater for streams without a header.
    pub(crate) fn new() -> Self {
        Self::with(TINFL_FLAG_HAS_MORE_INPUT)
    }

    /// Makes an inflater for streams with a zlib header, whose checksum is not verified.
    pub(crate) fn zlib() -> Self {
        let flags = TINFL_FLAG_PARSE_ZLIB_HEADER | TINFL_FLAG_IGNORE_ADLER32;
        Self::with(TINFL_FLAG_HAS_MORE_INPUT | flags)
    }

    fn with(flags: u32) -> Self {
        let state = DecompressorOxide::new();
        Copyable { state, window: vec![0; WINDOW_BYTES], at: 0, flags }
    }

    /// Becomes a copy of `other` without allocating.
    pub(crate) fn copy_from(&mut self, other: &Copyable) {
        self.state.clone_from(&other.state);
        self.window.copy_from_slice(&other.window);
        (self.at, self.flags) = (other.at, other.flags);
    }

    /// Inflates `input`, and passes the output to `take`.
    pub(crate) fn more(&mut self, input: &[u8], take: &mut dyn FnMut(&[u8])) -> InflateStep {
        let mut used = 0;
        loop {
            let (status, read, written) =
                decompress(&mut self.state, &input[used..], &mut self.window, self.at, self.flags);
            used += read;
            if written > 0 {
                take(&self.window[self.at..self.at + written]);
                self.at = (self.at + written) % WINDOW_BYTES;
            }
            match status {
                TINFLStatus::HasMoreOutput => {}
                TINFLStatus::NeedsMoreInput => return InflateStep::On,
                TINFLStatus::Done => return InflateStep::Ended(used),
                _ => return InflateStep::Wrong(used),
            }
        }
    }
}
