//! The oracle: every position, every needle, byte by byte. Obviously right, and slow.

use crate::finding::Finding;
use crate::pattern::Needles;

/// Adds every occurrence of every needle that starts in `own`.
pub(crate) fn search(
    needles: &Needles,
    text: &[u8],
    own: std::ops::Range<usize>,
    mut found: impl FnMut(Finding),
) {
    for start in own {
        for needle in needles.iter() {
            if let Some(there) = text.get(start..start + needle.len())
                && there.iter().zip(needle.mask).zip(needle.value).all(|((t, m), v)| t & m == *v)
            {
                let length = needle.len() as u32;
                found(Finding { offset: start as u64, pattern: needle.pattern, length });
            }
        }
    }
}
