//! Decompresses files that were compressed together.

use std::cell::Cell;
use std::io::Read;
use std::ops::Range;

use bzip2::read::BzDecoder;
use flate2::read::DeflateDecoder;
use lzma_rust2::LzmaReader;
use lzma_rust2::filter::bcj2::Bcj2Reader;
use ppmd_rust::{PPMD7_MAX_ORDER, PPMD7_MIN_MEM_SIZE, PPMD7_MIN_ORDER, Ppmd7Decoder};

use super::header::{Coder, Folder};
use crate::crc32::Crc32;
use crate::unpack::filter::{Code, Filter, dictionary, lzma2, lzma2_dictionary};
use crate::unpack::{
    DECODER_FUEL, DICTIONARY_BYTES_MAX, ENCRYPTED, Failed, OVER_LIMIT, Shared, TOO_LARGE, Tap,
    UNKNOWN, drain,
};
use crate::view::View;

const COPY: &[u8] = &[0x00];
const LZMA2: &[u8] = &[0x21];
const LZMA: &[u8] = &[0x03, 0x01, 0x01];
const PPMD: &[u8] = &[0x03, 0x04, 0x01];
const BCJ2: &[u8] = &[0x03, 0x03, 0x01, 0x1B];
const DEFLATE: &[u8] = &[0x04, 0x01, 0x08];
const BZIP2: &[u8] = &[0x04, 0x02, 0x02];
/// The first byte of encryption methods.
const ENCRYPTIONS: u8 = 0x06;
/// Filters by their original identifiers in 7-Zip.
const FILTERS: [(&[u8], Code); 6] = [
    (&[0x03, 0x03, 0x01, 0x03], Code::X86),
    (&[0x03, 0x03, 0x02, 0x05], Code::PowerPc),
    (&[0x03, 0x03, 0x04, 0x01], Code::Ia64),
    (&[0x03, 0x03, 0x05, 0x01], Code::Arm),
    (&[0x03, 0x03, 0x07, 0x01], Code::ArmThumb),
    (&[0x03, 0x03, 0x08, 0x05], Code::Sparc),
];
const WRONG: Failed = Failed::Wrong("packed data");
/// Maximum memory for the dictionaries and models of all coders of a folder, in bytes: filters
/// split code into a long stream and short ones.
pub(super) const MEMORY_BYTES_MAX: u64 = DICTIONARY_BYTES_MAX + (16 << 20);

/// Compares the contents of `folder` with the checksums of its files.
pub(super) fn verify(
    view: &mut View<'_>,
    folder: &Folder,
    packed: &[Range<u64>],
) -> Result<(), Failed> {
    let mut files = folder.files.iter();
    let mut file = files.next();
    let (mut crc, mut whole, mut left) =
        (Crc32::new(), Crc32::new(), file.map_or(0, |file| file.0));
    let mut is_right = true;
    let place = Cell::new(0);
    let mut take = |mut bytes: &[u8]| {
        whole.update(bytes);
        // An empty file ends where it begins.
        while let Some((_, stated)) = file {
            let (mine, rest) =
                bytes.split_at(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
            crc.update(mine);
            left -= mine.len() as u64;
            bytes = rest;
            if left > 0 {
                break;
            }
            is_right &= stated.is_none_or(|stated| stated == crc.value());
            file = files.next();
            (crc, left) = (Crc32::new(), file.map_or(0, |file| file.0));
        }
    };
    read(view, folder, packed, &place, &mut take)?;
    // Empty files may follow the last one with bytes.
    take(&[]);
    let is_whole = folder.crc.is_none_or(|stated| stated == whole.value());
    match is_right && is_whole && file.is_none() {
        true => Ok(()),
        false => Err(Failed::Wrong("CRC of a file")),
    }
}

/// Decompresses `folder`, whose compressed bytes are in `packed`. Stores the progress in the first
/// of these ranges in `place`.
pub(super) fn read(
    view: &mut View<'_>,
    folder: &Folder,
    packed: &[Range<u64>],
    place: &Cell<u64>,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), Failed> {
    check(folder, MEMORY_BYTES_MAX)?;
    view.spend(DECODER_FUEL * folder.coders.len() as u64);
    let places: Vec<_> = packed.iter().map(|_| Cell::new(0)).collect();
    let shared = Shared::new(view);
    let wired = Wired { folder, packed, places: &places, shared: &shared };
    let mut reader = wired.reader()?;
    let count = drain(&shared, &mut *reader, folder.bytes(), take);
    drop(reader);
    place.set(places.first().map_or(0, Cell::get));
    match count.ok() == Some(folder.bytes()) {
        true => Ok(()),
        false => Err(WRONG),
    }
}

/// Checks that `folder` can be decompressed with at most `memory_bytes_max` bytes of memory.
///
/// # Errors
/// If it is encrypted, or needs more.
pub(super) fn check(folder: &Folder, memory_bytes_max: u64) -> Result<(), Failed> {
    if folder.coders.iter().any(|coder| coder.method.first() == Some(&ENCRYPTIONS)) {
        return Err(Failed::NotRead(ENCRYPTED));
    }
    let sizes = folder.coders.iter().zip(&folder.sizes);
    let needs = sizes
        .map(|(coder, bytes)| memory_bytes(coder, *bytes))
        .fold(0u64, |sum, bytes| sum.saturating_add(bytes));
    match needs {
        _ if needs > MEMORY_BYTES_MAX => Err(Failed::NotRead(TOO_LARGE)),
        _ if needs > memory_bytes_max => Err(Failed::NotRead(OVER_LIMIT)),
        _ => Ok(()),
    }
}

/// Returns where the contents of `folder` begin in the archive, if they are not compressed.
pub(super) fn stored_at(folder: &Folder, packed: &[Range<u64>]) -> Option<u64> {
    match (&folder.coders[..], packed) {
        ([coder], [range]) if coder.method == COPY && range.end - range.start == folder.bytes() => {
            Some(range.start)
        }
        _ => None,
    }
}

/// Returns the size of the dictionary or model of a coder that yields at most `bytes` bytes.
fn memory_bytes(coder: &Coder, bytes: u64) -> u64 {
    let stated = match coder.properties[..] {
        [_, a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => 0,
    };
    match &coder.method[..] {
        LZMA2 => lzma2_dictionary(&coder.properties).unwrap_or(0).min(bytes),
        LZMA => bytes.min(stated),
        PPMD => stated,
        _ => 0,
    }
}

/// The coders of a folder, each of which reads the output of others.
pub(super) struct Wired<'w, 'v, 's> {
    pub(super) folder: &'w Folder,
    pub(super) packed: &'w [Range<u64>],
    /// The read position in each packed range.
    pub(super) places: &'w [Cell<u64>],
    pub(super) shared: &'w Shared<'v, 's>,
}

impl<'w> Wired<'w, '_, '_> {
    /// Returns the contents of the folder, which has passed the [`check`].
    pub(super) fn reader(&self) -> Result<Box<dyn Read + 'w>, Failed> {
        self.output(self.folder.last().ok_or(WRONG)?, 0)
    }

    /// Returns the output of a coder that is `depth` levels below the last one.
    fn output(&self, coder: usize, depth: usize) -> Result<Box<dyn Read + 'w>, Failed> {
        // Coders that read each other in a cycle would never yield anything.
        if depth >= self.folder.coders.len() {
            return Err(WRONG);
        }
        let before: usize = self.folder.coders[..coder].iter().map(|coder| coder.inputs).sum();
        let one = &self.folder.coders[coder];
        let inputs = (before..before + one.inputs).map(|input| self.input(input, depth + 1));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        decoder(one, inputs, self.folder.sizes[coder])
    }

    fn input(&self, input: usize, depth: usize) -> Result<Box<dyn Read + 'w>, Failed> {
        if let Some((_, coder)) = self.folder.bound.iter().find(|(bound, _)| *bound == input) {
            return self.output(*coder, depth);
        }
        let index = self.folder.packed.iter().position(|packed| *packed == input).ok_or(WRONG)?;
        let range = self.packed.get(index).ok_or(WRONG)?.clone();
        Ok(Box::new(Tap::new(self.shared, range, &self.places[index])))
    }
}

/// Makes a decoder that yields `bytes` bytes from the `inputs`.
fn decoder<'r>(
    coder: &Coder,
    mut inputs: Vec<Box<dyn Read + 'r>>,
    bytes: u64,
) -> Result<Box<dyn Read + 'r>, Failed> {
    if coder.method == BCJ2 {
        return match Bcj2Reader::try_new(inputs, bytes) {
            Ok(reader) => Ok(Box::new(reader)),
            Err(_) => Err(WRONG),
        };
    }
    let (Some(input), true) = (inputs.pop(), inputs.is_empty()) else {
        return Err(Failed::NotRead(UNKNOWN));
    };
    let properties = &coder.properties[..];
    match &coder.method[..] {
        COPY => Ok(input),
        LZMA => lzma(input, properties, bytes),
        LZMA2 => lzma2(input, properties, bytes),
        PPMD => ppmd(input, properties, bytes),
        DEFLATE => Ok(Box::new(DeflateDecoder::new(input))),
        BZIP2 => Ok(Box::new(BzDecoder::new(input))),
        method => match filter(method, properties) {
            Some(filter) => Ok(filter.undo(input)),
            None => Err(Failed::NotRead(UNKNOWN)),
        },
    }
}

fn filter(method: &[u8], properties: &[u8]) -> Option<Filter> {
    if let [number] = method {
        return Filter::numbered((*number).into(), properties);
    }
    let (_, code) = FILTERS.iter().find(|(name, _)| *name == method)?;
    Some(Filter::Code(*code, 0))
}

fn lzma<'r>(
    input: Box<dyn Read + 'r>,
    properties: &[u8],
    bytes: u64,
) -> Result<Box<dyn Read + 'r>, Failed> {
    let [first, size @ ..] = properties else { return Err(WRONG) };
    let size = u32::from_le_bytes(size.try_into().map_err(|_| WRONG)?);
    let size = dictionary(size.into(), bytes)?;
    let mut reader =
        LzmaReader::new_with_props(input, bytes, *first, size, None).map_err(|_| WRONG)?;
    // The input has no end mark, but must end as an encoder ends it.
    reader.set_relaxed_end_condition(false);
    Ok(Box::new(reader))
}

fn ppmd<'r>(
    input: Box<dyn Read + 'r>,
    properties: &[u8],
    bytes: u64,
) -> Result<Box<dyn Read + 'r>, Failed> {
    let [order, memory @ ..] = properties else { return Err(WRONG) };
    let (order, memory) =
        (u32::from(*order), u32::from_le_bytes(memory.try_into().map_err(|_| WRONG)?));
    if u64::from(memory) > DICTIONARY_BYTES_MAX {
        return Err(Failed::NotRead(TOO_LARGE));
    }
    if !(PPMD7_MIN_ORDER..=PPMD7_MAX_ORDER).contains(&order) || memory < PPMD7_MIN_MEM_SIZE {
        return Err(WRONG);
    }
    let reader = Ppmd7Decoder::new(input, order, memory).map_err(|_| WRONG)?;
    // The stream does not state its end, and its last bytes are arbitrary if no symbol needs them.
    Ok(Box::new(reader.take(bytes)))
}
