//! Reads past bad sectors.

use std::io;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::ranges::push_merged;
use crate::source::{Source, is_gone};

/// Bytes to read sector by sector after an error, before trying large reads again.
const CAREFUL_BYTES: u64 = 64 * 1024;

/// Fills `buffer` from `offset`. Unreadable sectors become zeros and are added to `unreadable`;
/// everything around them is read.
///
/// # Errors
/// [`Error::Shrank`] if the source ends before the buffer is full, [`Error::Io`] if the device is
/// gone.
pub(super) fn fill(
    source: &dyn Source,
    offset: u64,
    buffer: &mut [u8],
    unreadable: &mut Vec<Range<u64>>,
) -> Result<()> {
    let mut filled = 0;
    let mut careful_until = 0u64;
    while filled < buffer.len() {
        let at = offset + filled as u64;
        let step = if at < careful_until {
            let sector = source.sector_bytes() as u64;
            ((sector - at % sector) as usize).min(buffer.len() - filled)
        } else {
            buffer.len() - filled
        };
        match source.read_at(at, &mut buffer[filled..filled + step]) {
            Ok(0) => {
                return Err(Error::Shrank {
                    source_name: source.name().to_string(),
                    opened_bytes: source.length(),
                    ended_at: at,
                });
            }
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_gone(&error) => {
                return Err(Error::io(source.name(), format!("read at byte {at}"), error));
            }
            Err(_) if at >= careful_until => careful_until = at + CAREFUL_BYTES,
            Err(_) => {
                buffer[filled..filled + step].fill(0);
                push_merged(unreadable, at..at + step as u64);
                filled += step;
            }
        }
    }
    Ok(())
}
