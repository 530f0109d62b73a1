//! Pictures behind the first one: the Multi-Picture Format, in which cameras keep both views of a
//! scene, a panorama's parts, or the gain map of a picture of high dynamic range.
//!
//! CIPA DC-007 (2009): an APP2 segment of the first picture has an index, a directory as TIFF has
//! it, with the place and size of each picture in the file.

use super::Reader;
use crate::mend::{Reading, Step};
use crate::view::View;

/// What an APP2 segment with an index begins with.
pub(super) const NAME: &[u8] = b"MPF\0";

/// The tag of the list of pictures.
const PICTURES: u16 = 0xB002;
/// Bytes of a picture in that list.
const PICTURE_BYTES: u32 = 16;
/// More are not looked at; cameras write two or three.
const PICTURES_MAX: u32 = 64;
/// Directory entries that are looked at.
const TAGS_MAX: u16 = 16;
/// Most between two pictures, in bytes: cameras fill up to a round offset.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// Where the last of the pictures ends that the index at `index` tells of, the first of them ending
/// at `end`. Pictures that are not there are left out, with all behind them: many programs
/// keep the index and drop the pictures.
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

/// Where the index says that pictures begin, in order. The first one has none of its own.
fn starts(view: &mut View<'_>, index: u64) -> Option<Vec<u64>> {
    // Both bytes of the order are the same letter; files are about in which one is damaged.
    let is_little = match view.array::<4>(index)? {
        [_, b'I', 42, 0] => true,
        [_, b'M', 0, 42] => false,
        _ => return None,
    };
    let directory = index + u64::from(u32_of(view, index + 4, is_little)?);
    let count = u16_of(view, directory, is_little)?.min(TAGS_MAX);
    let (bytes, list) = (0..u64::from(count)).find_map(|tag| {
        let at = directory + 2 + tag * 12;
        (u16_of(view, at, is_little)? == PICTURES).then_some(())?;
        Some((u32_of(view, at + 4, is_little)?, u32_of(view, at + 8, is_little)?))
    })?;
    let mut starts = Vec::new();
    for picture in 0..(bytes / PICTURE_BYTES).min(PICTURES_MAX) {
        let at = index + u64::from(list) + u64::from(picture * PICTURE_BYTES) + 8;
        match u32_of(view, at, is_little)? {
            0 => {}
            offset => starts.push(index + u64::from(offset)),
        }
    }
    starts.sort_unstable();
    Some(starts)
}

fn u16_of(view: &mut View<'_>, at: u64, is_little: bool) -> Option<u16> {
    if is_little { view.u16_le(at) } else { view.u16_be(at) }
}

fn u32_of(view: &mut View<'_>, at: u64, is_little: bool) -> Option<u32> {
    if is_little { view.u32_le(at) } else { view.u32_be(at) }
}
