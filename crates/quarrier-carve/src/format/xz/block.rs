//! Decompresses the blocks of a stream.

use std::cell::Cell;
use std::io::Read;

use quarrier_core::varint;

use super::NUMBER_BYTES_MAX;
use super::check::Check;
use super::index::Record;
use crate::unpack::filter::{Filter, lzma2};
use crate::unpack::{DECODER_FUEL, Failed, Shared, Tap, UNKNOWN, drain};
use crate::view::View;

/// The maximum number of filters of a block, the last of which is LZMA2.
const FILTERS_MAX: usize = 4;
const LZMA2: u64 = 0x21;
const UNKNOWN_CHECK: &str = "checks of an unsupported type were not compared";

/// The header of a block.
struct Header {
    bytes: u64,
    packed: Option<u64>,
    unpacked: Option<u64>,
    /// In the order in which they were applied.
    filters: Vec<Filter>,
    /// The properties of LZMA2.
    properties: Vec<u8>,
}

/// Decompresses the block at `at`, whose check has the type `check`. Stores the progress in
/// `place`.
///
/// # Errors
/// If the block is invalid, or cannot be read here.
pub(super) fn read(
    view: &mut View<'_>,
    at: u64,
    record: Record,
    check: u8,
    place: &Cell<u64>,
) -> Result<(), Failed> {
    place.set(at);
    view.spend(DECODER_FUEL);
    let header = header(view, at)?;
    let wrong = Failed::Wrong("a block's lengths");
    let rest = record.bytes.checked_sub(header.bytes + Check::bytes(check)).ok_or(wrong)?;
    let fits = header.packed.is_none_or(|bytes| bytes == rest)
        && header.unpacked.is_none_or(|bytes| bytes == record.unpacked);
    if !fits {
        return Err(wrong);
    }
    let data = at + header.bytes..at + header.bytes + rest;
    let mut running = Check::of_type(check);
    let shared = Shared::new(view);
    let tap = Tap::new(&shared, data.clone(), place);
    let mut reader: Box<dyn Read + '_> = lzma2(Box::new(tap), &header.properties, record.unpacked)?;
    for filter in header.filters.iter().rev() {
        reader = filter.undo(reader);
    }
    let count = drain(&shared, &mut *reader, record.unpacked, &mut |bytes| running.update(bytes));
    drop(reader);
    if count.ok() != Some(record.unpacked) || place.get() != data.end {
        return Err(Failed::Wrong("packed data"));
    }
    ending(view, data.end, running, check)
}

/// Reads the bytes after the compressed data: up to four zeros, and the check.
fn ending(view: &mut View<'_>, at: u64, running: Check, check: u8) -> Result<(), Failed> {
    let filling = at.next_multiple_of(4) - at;
    let zeros = view.take(at, filling as usize);
    if zeros.is_none_or(|zeros| zeros.iter().any(|byte| *byte != 0)) {
        return Err(Failed::Wrong("the padding of a block"));
    }
    let stated = view.take(at + filling, Check::bytes(check) as usize);
    match stated.and_then(|stated| running.ends(stated)) {
        Some(true) => Ok(()),
        Some(false) => Err(Failed::Wrong("check of a block")),
        None => Err(Failed::NotRead(UNKNOWN_CHECK)),
    }
}

/// Reads the header at `at` and verifies its checksum.
fn header(view: &mut View<'_>, at: u64) -> Result<Header, Failed> {
    let wrong = Failed::Wrong("a block's header");
    let bytes = view.byte(at).map(|size| (u64::from(size) + 1) * 4).ok_or(wrong)?;
    let fields = view.take(at, bytes as usize - 4).ok_or(wrong)?;
    let flags = *fields.get(1).ok_or(wrong)?;
    let mut fields = &fields[2..];
    let size = |is_there: bool, fields: &mut &[u8]| match is_there {
        true => varint::take(NUMBER_BYTES_MAX, fields).map(Some).ok_or(wrong),
        false => Ok(None),
    };
    let packed = size(flags & 0x40 != 0, &mut fields)?;
    let unpacked = size(flags & 0x80 != 0, &mut fields)?;
    let count = usize::from(flags & 3) + 1;
    let mut header =
        Header { bytes, packed, unpacked, filters: Vec::new(), properties: Vec::new() };
    for index in 0..count.min(FILTERS_MAX) {
        let id = varint::take(NUMBER_BYTES_MAX, &mut fields).ok_or(wrong)?;
        let length = varint::take(NUMBER_BYTES_MAX, &mut fields)
            .and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= fields.len()).ok_or(wrong)?;
        let (properties, rest) = fields.split_at(length);
        fields = rest;
        match id {
            LZMA2 if index + 1 == count => header.properties = properties.to_vec(),
            _ if index + 1 == count => return Err(Failed::NotRead(UNKNOWN)),
            id => {
                let filter = Filter::numbered(id, properties);
                header.filters.push(filter.ok_or(Failed::NotRead(UNKNOWN))?);
            }
        }
    }
    match flags & 0x3C == 0 && fields.iter().all(|byte| *byte == 0) {
        true => Ok(header),
        false => Err(Failed::NotRead(UNKNOWN)),
    }
}
