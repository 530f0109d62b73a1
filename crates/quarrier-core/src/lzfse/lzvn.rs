//! LZVN: opcodes with a number of literals, and the length and distance of a match.

use std::io;

use super::output::Output;
use super::{cut, invalid};

/// A decoded opcode.
struct Step {
    /// Its size in bytes, with its operands.
    bytes: usize,
    literals: usize,
    length: usize,
    /// `None` to reuse the previous distance.
    distance: Option<usize>,
}

/// Decompresses a block into `out`, up to `end`. The end marker may be missing if `is_open`.
///
/// # Errors
/// If the block is damaged or has another length.
pub(super) fn unpack(
    mut packed: &[u8],
    out: &mut Output<'_>,
    end: usize,
    is_open: bool,
) -> io::Result<()> {
    let mut distance = 0;
    while !(is_open && out.filled() == end)
        && let Some(step) = step(packed)?
    {
        packed = &packed[step.bytes..];
        let (now, later) = packed.split_at_checked(step.literals).ok_or_else(cut)?;
        if out.filled() + step.literals + step.length > end {
            return Err(invalid("a block is longer than its header states"));
        }
        out.literals(now)?;
        distance = step.distance.unwrap_or(distance);
        out.copy(distance, step.length)?;
        packed = later;
    }
    match out.filled() == end {
        true => Ok(()),
        false => Err(invalid("a block is shorter than its header states")),
    }
}

/// Decodes the opcode at the start of `packed`; `None` for the end marker.
fn step(packed: &[u8]) -> io::Result<Option<Step>> {
    let byte = |at: usize| packed.get(at).map(|&byte| usize::from(byte)).ok_or_else(cut);
    let first = byte(0)?;
    let only = |bytes, literals, length| Step { bytes, literals, length, distance: None };
    let undefined = || Err(invalid("it has an undefined opcode"));
    let (literals, length) = (first >> 6, (first >> 3 & 7) + 3);
    Ok(Some(match first {
        0x06 => return Ok(None),
        0x0E | 0x16 => only(1, 0, 0),
        0x70..=0x7F | 0xD0..=0xDF => return undefined(),
        0xE0 => only(2, byte(1)? + 16, 0),
        0xE1..=0xEF => only(1, first & 0xF, 0),
        0xF0 => only(2, 0, byte(1)? + 16),
        0xF1..=0xFF => only(1, 0, first & 0xF),
        0xA0..=0xBF => {
            let more = byte(1)? | byte(2)? << 8;
            Step {
                bytes: 3,
                literals: first >> 3 & 3,
                length: ((first & 7) << 2 | more & 3) + 3,
                distance: Some(more >> 2),
            }
        }
        // Without literals, these opcodes are the end marker, a no-op, and undefined ones.
        _ if first & 7 == 6 && literals == 0 => return undefined(),
        _ if first & 7 == 6 => only(1, literals, length),
        _ if first & 7 == 7 => {
            Step { bytes: 3, literals, length, distance: Some(byte(1)? | byte(2)? << 8) }
        }
        _ => Step { bytes: 2, literals, length, distance: Some((first & 7) << 8 | byte(1)?) },
    }))
}
