//! Fragmented files whose extents a file system still has.

use crate::view::Extent;

/// Maximum number of files to try for one first byte: several deleted entries may name the same
/// clusters.
const SAME_START_MAX: usize = 4;

/// Fragmented files, sorted by the offset of their first byte.
#[derive(Debug, Default)]
pub(super) struct FilesInPieces<'f> {
    /// Sorted by offset; none is empty.
    files: Vec<&'f [Extent]>,
}

impl<'f> FilesInPieces<'f> {
    pub(super) fn new(files: &'f [Box<[Extent]>]) -> Self {
        let mut files: Vec<&[Extent]> =
            files.iter().map(|extents| &**extents).filter(|extents| !extents.is_empty()).collect();
        let key = |extents: &[Extent]| -> Vec<(u64, u64)> {
            extents.iter().map(|extent| (extent.offset, extent.length)).collect()
        };
        files.sort_by(|one, other| {
            one[0].offset.cmp(&other[0].offset).then_with(|| key(one).cmp(&key(other)))
        });
        files.dedup();
        FilesInPieces { files }
    }

    /// Returns the extents of each file that begins at `offset`.
    pub(super) fn at(&self, offset: u64) -> impl Iterator<Item = &'f [Extent]> + '_ {
        let from = self.files.partition_point(|extents| extents[0].offset < offset);
        let here = self.files[from..].iter().take_while(move |one| one[0].offset == offset);
        here.take(SAME_START_MAX).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_first_byte_and_each_once() {
        let file = |places: &[(u64, u64)]| -> Box<[Extent]> {
            places.iter().map(|&(offset, length)| Extent { offset, length }).collect()
        };
        let (a, b, c) =
            (file(&[(8, 4), (0, 2)]), file(&[(8, 4), (20, 2)]), file(&[(0, 2), (40, 1)]));
        let files = [b.clone(), a.clone(), c.clone(), a.clone(), file(&[])];
        let files = FilesInPieces::new(&files);
        assert_eq!(files.at(8).collect::<Vec<_>>(), [&*a, &*b]);
        assert_eq!(files.at(0).collect::<Vec<_>>(), [&*c]);
        assert_eq!(files.at(9).count(), 0);
    }
}
