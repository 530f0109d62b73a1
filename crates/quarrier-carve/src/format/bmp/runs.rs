//! Pixels compressed by runs (RLE4 and RLE8).

use super::Header;
use crate::view::View;

/// Returns the end of the runs, after their end mark, or the byte at which they are invalid. Some
/// writers go beyond the end of a row, or beyond the last row, and readers tolerate that: such runs
/// are accepted if the end mark is at the end of the file by the header.
pub(super) fn end(view: &mut View<'_>, header: &Header) -> Result<u64, u64> {
    let (mut at, mut x, mut y) = (header.pixels_at, 0, 0);
    let mut beyond = None;
    // Four bytes per pixel: twice the size of runs of one pixel.
    let longest = header.pixels_at + 4 * (header.width + 2) * (header.height + 1);
    let pixels_of = |bytes: u64| if header.bits == 4 { 2 * bytes } else { bytes };
    loop {
        let Some([count, value]) = view.array::<2>(at) else { return Err(at) };
        at += 2;
        match (count, value) {
            (0, 0) => (x, y) = (0, y + 1),
            (0, 1) => {
                return match beyond {
                    Some(beyond) if at != header.file_bytes => Err(beyond),
                    _ => Ok(at),
                };
            }
            (0, 2) => {
                let Some([right, up]) = view.array::<2>(at) else { return Err(at) };
                at += 2;
                x += u64::from(right);
                y += u64::from(up);
            }
            (0, count) => {
                let count = u64::from(count);
                x += count;
                at += (count.div_ceil(pixels_of(1)) + 1) & !1;
            }
            (count, _) => x += u64::from(count),
        }
        // Runs may fill the last byte, and an end mark may follow the last row.
        if x > header.width + 1 || y > header.height || (y == header.height && x > 0) {
            let beyond = *beyond.get_or_insert(at);
            if at >= header.file_bytes.min(longest) {
                return Err(beyond);
            }
        }
    }
}
