//! Entries of tapes (tar), read as a stream.
//!
//! POSIX.1-2017, *pax*; GNU's long names.

use std::io::{ErrorKind, Read};

use super::Walker;
use crate::format::tar::header::{BLOCK_BYTES, content_bytes, is_header};

/// Maximum length in bytes of a name in a separate entry.
const LONG_NAME_BYTES_MAX: u64 = 64 << 10;
const ENDS_EARLY: &str = "the archive ends early";

/// Passes on each file of the tape in `tape`, from the current position to its end, or to the first
/// invalid header. If the outermost archive contains its bytes verbatim, they begin at `base`
/// there.
pub(super) fn walk(walker: &mut Walker<'_>, tape: &mut dyn Read, base: Option<u64>, depth: usize) {
    let mut name: Option<Vec<u8>> = None;
    let mut size: Option<u64> = None;
    let mut header = [0; BLOCK_BYTES];
    // The offset of the next header.
    let mut at = 0u64;
    loop {
        match read_block(tape, &mut header) {
            Ok(true) if is_header(&header) => {}
            Ok(_) => return,
            Err(()) => return walker.damaged(ENDS_EARLY),
        }
        let Some(stated) = content_bytes(&header) else {
            return walker.damaged("an entry has no length");
        };
        let bytes = size.take().unwrap_or(stated);
        let content_at = at.saturating_add(BLOCK_BYTES as u64);
        let place = base.and_then(|base| base.checked_add(content_at));
        let mut content = (&mut *tape).take(bytes);
        match header[156] {
            b'L' => name = Some(short(&mut content)),
            b'x' => {
                let records = short(&mut content);
                name = pax(&records, b"path").map(<[u8]>::to_vec).or(name);
                size = pax(&records, b"size")
                    .and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
            }
            b'0' | b'7' | 0 => {
                let name = name.take().unwrap_or_else(|| header_name(&header));
                if !walker.member(&name, &mut content, place, depth) {
                    return;
                }
            }
            _ => name = None,
        }
        let left = content.limit();
        // The next header is at a multiple of 512.
        let padding = bytes.wrapping_neg() % BLOCK_BYTES as u64;
        let rest = left.saturating_add(padding);
        if !walker.pass(tape, rest) {
            return walker.damaged(ENDS_EARLY);
        }
        if !walker.may_continue() {
            return;
        }
        at = content_at.saturating_add(bytes).saturating_add(padding);
    }
}

/// Fills `block`. Returns false if the tape ends here, or within the block.
///
/// # Errors
/// If the tape cannot be unpacked.
fn read_block(tape: &mut dyn Read, block: &mut [u8]) -> Result<bool, ()> {
    let mut count = 0;
    while count < block.len() {
        match tape.read(&mut block[count..]) {
            Ok(0) => return Ok(false),
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(()),
        }
    }
    Ok(true)
}

/// Reads the content of an entry that describes the next entry, up to its end or a zero byte.
fn short(content: &mut dyn Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = content.take(LONG_NAME_BYTES_MAX).read_to_end(&mut bytes);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

/// Finds the value of a record: `LENGTH KEY=VALUE` and a newline.
fn pax<'r>(mut records: &'r [u8], wanted: &[u8]) -> Option<&'r [u8]> {
    loop {
        let space = records.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&records[..space]).ok()?.parse().ok()?;
        let record = records.get(space + 1..length.checked_sub(1)?)?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        if &record[..equals] == wanted {
            return Some(&record[equals + 1..]);
        }
        records = records.get(length..)?;
    }
}

/// Joins the prefix and the name in a header.
fn header_name(header: &[u8; BLOCK_BYTES]) -> Vec<u8> {
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        field[..end].to_vec()
    };
    let (prefix, name) = (text(&header[345..500]), text(&header[..100]));
    let is_posix = header[262] == 0;
    match is_posix && !prefix.is_empty() {
        true => [&prefix[..], b"/", &name].concat(),
        false => name,
    }
}
