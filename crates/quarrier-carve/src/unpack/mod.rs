//! Decompresses data of xz and 7z, with decoders that own their input.
//!
//! A library's decoder takes a reader, and several of them are chained, so that they share the
//! view. Their input costs fuel as always, and [`drain`] pays for their output.

pub(crate) mod filter;

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::view::View;

/// Maximum memory for dictionaries and models, in bytes. xz uses no more, and 7-Zip uses more only
/// for larger files.
pub(crate) const DICTIONARY_BYTES_MAX: u64 = 64 << 20;
/// The cost of a decoder in bytes of fuel: it has some 30 KB of tables, and buffers.
pub(crate) const DECODER_FUEL: u64 = 16 << 10;
/// The size of reads, and of decompressed pieces.
const PIECE_BYTES: usize = 64 << 10;

/// The reason if a dictionary would be too large.
pub(crate) const TOO_LARGE: &str = "data that take more than 64 MiB to unpack were not read";
/// The reason if a caller allows less.
pub(crate) const OVER_LIMIT: &str =
    "data that take more memory to unpack than the limit were not read";
/// The reason for an unknown method.
pub(crate) const UNKNOWN: &str = "data compressed by an unsupported method were not read";
/// The reason if a password is needed.
pub(crate) const ENCRYPTED: &str = "encrypted data were not read";

/// Why data are not decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The data cannot be read here, but may be valid.
    NotRead(&'static str),
    /// The data are invalid.
    Wrong(&'static str),
}

/// The `stop` flag of readers that cannot be interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A view that several readers share.
pub(crate) struct Shared<'v, 's> {
    view: RefCell<&'v mut View<'s>>,
    stop: &'v AtomicBool,
}

impl<'v, 's> Shared<'v, 's> {
    pub(crate) fn new(view: &'v mut View<'s>) -> Self {
        Shared::until(view, &NEVER)
    }

    /// Makes a shared view whose readers fail soon after `stop` becomes true.
    pub(crate) fn until(view: &'v mut View<'s>, stop: &'v AtomicBool) -> Self {
        Shared { view: RefCell::new(view), stop }
    }

    /// Pays for work besides reading.
    ///
    /// # Errors
    /// If the fuel has run out.
    pub(crate) fn spend(&self, bytes: u64) -> io::Result<()> {
        let mut view = self.view.borrow_mut();
        view.spend(bytes);
        match view.is_starved() {
            true => Err(ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

/// Reads a range of a shared view.
pub(crate) struct Tap<'t, 'v, 's> {
    shared: &'t Shared<'v, 's>,
    /// The place of the next byte that has not been read.
    place: &'t Cell<u64>,
    end: u64,
    buffer: Vec<u8>,
    taken: usize,
}

impl<'t, 'v, 's> Tap<'t, 'v, 's> {
    /// Reads `range`, and stores its progress in `place`.
    pub(crate) fn new(shared: &'t Shared<'v, 's>, range: Range<u64>, place: &'t Cell<u64>) -> Self {
        place.set(range.start);
        Tap { shared, place, end: range.end, buffer: Vec::new(), taken: 0 }
    }
}

impl Read for Tap<'_, '_, '_> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        let at = self.place.get();
        if self.taken == self.buffer.len() {
            let most = self.end.saturating_sub(at).min(PIECE_BYTES as u64);
            if self.shared.stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            let mut view = self.shared.view.borrow_mut();
            let bytes = view.run(at, most as usize);
            self.buffer.clear();
            self.buffer.extend_from_slice(bytes);
            self.taken = 0;
        }
        let rest = &self.buffer[self.taken..];
        let count = rest.len().min(output.len());
        output[..count].copy_from_slice(&rest[..count]);
        self.taken += count;
        self.place.set(at + count as u64);
        Ok(count)
    }
}

/// Passes all output of `reader` to `take`, and pays for it. Returns its size.
///
/// # Errors
/// The reader's error, or an error if it yields more than `most` bytes, or if the fuel has run out.
pub(crate) fn drain(
    shared: &Shared<'_, '_>,
    reader: &mut dyn Read,
    most: u64,
    take: &mut dyn FnMut(&[u8]),
) -> io::Result<u64> {
    let mut output = vec![0; PIECE_BYTES];
    let mut count = 0u64;
    loop {
        let got = match reader.read(&mut output) {
            Ok(0) => return Ok(count),
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        count += got as u64;
        if count > most {
            return Err(ErrorKind::InvalidData.into());
        }
        shared.spend(got as u64)?;
        take(&output[..got]);
    }
}
