//! Streams of compressed bytes: files that hold one each, and members of archives.

use std::io::Read;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use lzma_rust2::{LzmaReader, XzReader};
use zstd::stream::read::Decoder as ZstdDecoder;

use super::reader::{Pieces, Reader};
use super::{NAME_BYTES_MAX, UNREADABLE, Walker};
use crate::format::zst;
use crate::unpack::OVER_LIMIT;
use crate::view::View;

/// A compression of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Deflate,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
    /// LZMA as in zip archives, with its uncompressed length.
    Lzma(u64),
}

/// Memory of a decoder besides its dictionary, in bytes.
const OVERHEAD_BYTES: u64 = 1 << 20;
/// Binary logarithms of the least and the greatest memory of Zstandard's decoder.
const WINDOW_LOG_MIN: u32 = 10;
const WINDOW_LOG_MAX: u32 = 31;
/// The header of LZMA data in a zip archive: a version, the size of the properties, and these.
const LZMA_HEADER_BYTES: usize = 9;
const LZMA_PROPERTIES_BYTES: u8 = 5;

/// Returns the compression of files of this type, if each holds one compressed file.
fn method_of(kind: &str) -> Option<Method> {
    match kind {
        "gz" => Some(Method::Gzip),
        "bz2" => Some(Method::Bzip2),
        "xz" => Some(Method::Xz),
        "zst" => Some(Method::Zstd),
        _ => None,
    }
}

/// Whether a file of this type holds one compressed file.
pub(super) fn is_packed(kind: &str) -> bool {
    method_of(kind).is_some()
}

/// Passes on the file that the file of type `kind` in `view` holds.
pub(super) fn walk(walker: &mut Walker<'_>, kind: &str, view: &mut View<'_>, depth: usize) {
    let Some(method) = method_of(kind) else { return };
    let name = match method {
        Method::Gzip => gz_name(view),
        _ => None,
    };
    let name = name.unwrap_or_else(|| b"content".to_vec());
    let (stop, memory_bytes_max) = (walker.stop, walker.decoder_bytes_max(depth));
    let range = 0..view.length();
    match decoder(method, view, range, memory_bytes_max, stop) {
        Ok(reader) => walker.member(&name, &mut Pieces::new(reader, stop), None, depth),
        Err(reason) => walker.unread(&name, reason),
    };
}

/// Makes a decoder of the bytes of `range` of `view`, with a dictionary of at most
/// `memory_bytes_max` bytes.
///
/// # Errors
/// The reason, if the beginning of the data shows that they cannot be decompressed here.
pub(super) fn decoder<'r>(
    method: Method,
    view: &'r mut View<'_>,
    range: Range<u64>,
    memory_bytes_max: u64,
    stop: &'r AtomicBool,
) -> Result<Box<dyn Read + 'r>, &'static str> {
    let Range { start, end } = range;
    Ok(match method {
        Method::Deflate => Box::new(DeflateDecoder::new(Reader::range(view, start, end, stop))),
        Method::Gzip => Box::new(MultiGzDecoder::new(Reader::range(view, start, end, stop))),
        Method::Bzip2 => Box::new(MultiBzDecoder::new(Reader::range(view, start, end, stop))),
        Method::Xz => {
            let kib = (memory_bytes_max.saturating_add(OVERHEAD_BYTES)) >> 10;
            let kib = u32::try_from(kib).unwrap_or(u32::MAX);
            let input = Reader::range(view, start, end, stop);
            Box::new(XzReader::new_mem_limit(input, true, kib))
        }
        Method::Zstd => {
            let log = memory_bytes_max.max(1).ilog2().clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
            zst::check_frame(view, start, log)?;
            // The decoder reads through a buffer, a copy: the library is written in C, and another
            // process may change the file meanwhile.
            let decoder = ZstdDecoder::new(Reader::range(view, start, end, stop));
            let mut decoder = decoder.map_err(|_| OVER_LIMIT)?;
            decoder.window_log_max(log).map_err(|_| OVER_LIMIT)?;
            Box::new(decoder)
        }
        Method::Lzma(unpacked) => lzma(view, start..end, unpacked, memory_bytes_max, stop)?,
    })
}

/// Makes a decoder for LZMA data in a zip archive.
fn lzma<'r>(
    view: &'r mut View<'_>,
    range: Range<u64>,
    unpacked: u64,
    memory_bytes_max: u64,
    stop: &'r AtomicBool,
) -> Result<Box<dyn Read + 'r>, &'static str> {
    const DICTIONARY_BYTES_MIN: u64 = 4096;
    let header = view.array::<LZMA_HEADER_BYTES>(range.start).ok_or(UNREADABLE)?;
    let [_, _, LZMA_PROPERTIES_BYTES, 0, properties, a, b, c, d] = header else {
        return Err(UNREADABLE);
    };
    // A dictionary larger than the output is useless.
    let stated = u64::from(u32::from_le_bytes([a, b, c, d]));
    let bytes = stated.min(unpacked).max(DICTIONARY_BYTES_MIN);
    if bytes > memory_bytes_max {
        return Err(OVER_LIMIT);
    }
    let start = range.start + LZMA_HEADER_BYTES as u64;
    let input = Reader::range(view, start, range.end, stop);
    let size = u32::try_from(bytes).map_err(|_| OVER_LIMIT)?;
    let reader = LzmaReader::new_with_props(input, unpacked, properties, size, None);
    Ok(Box::new(reader.map_err(|_| UNREADABLE)?))
}

/// Returns the original name in a gzip file's header.
fn gz_name(view: &mut View<'_>) -> Option<Vec<u8>> {
    let is_named = view.byte(3).is_some_and(|flags| flags & (4 | 8) == 8);
    let end = is_named.then(|| view.find(10..10 + NAME_BYTES_MAX as u64, &[0])).flatten()?;
    view.take(10, (end - 10) as usize).map(<[u8]>::to_vec)
}
