//! The bytes found, copied only for rows.

use quarrier_core::pipeline::Chunk;
use quarrier_search::Finding;

/// Maximum number of a finding's bytes in its row.
pub const MATCH_BYTES_MAX: usize = 4096;

/// Replaces `copy` by the bytes of a finding of `chunk`, at most [`MATCH_BYTES_MAX`] of them.
///
/// A copy, because others may change the bytes of a chunk while they are converted to a string. A
/// finding outside of the chunk yields an empty copy.
pub fn copy_match(chunk: &Chunk<'_>, finding: &Finding, copy: &mut Vec<u8>) {
    copy.clear();
    let start = finding.offset.checked_sub(chunk.offset).map(usize::try_from);
    let Some(Ok(start)) = start else { return };
    let length = (finding.length as usize).min(MATCH_BYTES_MAX);
    let end = start.saturating_add(length).min(chunk.data.len());
    copy.extend_from_slice(chunk.data.get(start..end).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_finding_is_cut_and_one_outside_gives_nothing() {
        let data = vec![b'a'; 10_000];
        let chunk = Chunk { offset: 100, ..Chunk::whole(&data) };
        let mut copy = Vec::new();
        let mut of = |offset, length| {
            copy_match(&chunk, &Finding { offset, pattern: 0, length }, &mut copy);
            copy.len()
        };
        assert_eq!([of(100, 5), of(100, 5000), of(10_098, 5)], [5, MATCH_BYTES_MAX, 2]);
        assert_eq!([of(99, 5), of(20_000, 5)], [0, 0]);
    }
}
