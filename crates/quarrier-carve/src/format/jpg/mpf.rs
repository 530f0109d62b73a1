//! Pictures after the first one: the Multi-Picture Format, in which cameras store both views of a
//! scene, the parts of a panorama, or the gain map of a picture with high dynamic range.
//!
//! CIPA DC-007 (2009): an APP2 segment of the first picture holds an index, a TIFF directory with
//! the place and size of each picture in the file.

use super::super::tiff::{Directory, Order};
use super::Reader;
use crate::mend::{Reading, Step};
use crate::view::View;

/// The identifier of an APP2 segment with an index.
pub(super) const NAME: &[u8] = b"MPF\0";

/// The tag of the list of pictures.
const PICTURES: u16 = 0xB002;
/// Bytes per picture in that list.
const PICTURE_BYTES: u64 = 16;
/// Maximum number of pictures to read; cameras write two or three.
const PICTURES_MAX: u64 = 64;
/// Maximum number of bytes between two pictures: cameras pad them to a round offset.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// Returns the end of the last picture in the index at `index`; the first picture ends at `end`. If
/// a picture is missing, the file ends before it: many programs keep the index and drop the
/// pictures.
pub(super) fn end_of_all(view: &mut View<'_>, index: u64, mut end: u64) -> u64 {
    for start in starts(view, index).unwrap_or_default() {
        if start < end {
            continue;
        }
        if start - end > GAP_BYTES_MAX {
            break;
        }
        match Reader::starting_at(start).read_to(view, u64::MAX) {
            Step::Whole { length } => end = length,
            _ => break,
        }
    }
    end
}

/// Returns the starts of pictures in the index, in order. The first one has no entry.
fn starts(view: &mut View<'_>, index: u64) -> Option<Vec<u64>> {
    // In some real files, the first of the two equal bytes of the byte order is damaged.
    if !matches!(view.array::<4>(index)?, [_, b'I', 42, 0] | [_, b'M', 0, 42]) {
        return None;
    }
    let (order, directory) = Order::read(view, index)?;
    let list = *Directory::read(view, order, directory)?.entry(PICTURES)?;
    let mut starts = Vec::new();
    for picture in 0..(list.count / PICTURE_BYTES).min(PICTURES_MAX) {
        match order.u32(view, list.at.checked_add(picture * PICTURE_BYTES + 8)?)? {
            0 => {}
            offset => starts.push(index + offset),
        }
    }
    starts.sort_unstable();
    Some(starts)
}
