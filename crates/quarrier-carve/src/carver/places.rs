//! Precedence among candidates if not all can be kept: the first of every place, then the second of
//! each, and so on.

/// The size of a place, whose candidates share their allowance.
pub(super) const PLACE_BYTES: u64 = 64 << 10;

/// Returns which of the ascending `offsets` are among the first `most` in that precedence.
pub(super) fn first_of_places(offsets: &[u64], most: usize) -> Vec<bool> {
    if offsets.len() <= most {
        return vec![true; offsets.len()];
    }
    let mut by_rank = Vec::with_capacity(offsets.len());
    for place in offsets.chunk_by(|one, next| one / PLACE_BYTES == next / PLACE_BYTES) {
        let before = by_rank.len();
        by_rank.extend((0..place.len()).map(|rank| (rank, before + rank)));
    }
    by_rank.sort_unstable();
    let mut is_among = vec![false; offsets.len()];
    by_rank.into_iter().take(most).for_each(|(_, index)| is_among[index] = true);
    is_among
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_in_one_place_take_nothing_from_the_others() {
        let crowd = 0..1000u64;
        let alone = [5 * PLACE_BYTES, 9 * PLACE_BYTES + 7];
        let offsets: Vec<u64> = crowd.chain(alone).collect();
        let chosen = first_of_places(&offsets, 5);
        let chosen: Vec<usize> = (0..offsets.len()).filter(|index| chosen[*index]).collect();
        assert_eq!(chosen, [0, 1, 2, 1000, 1001]);
        assert_eq!(first_of_places(&offsets[..3], 3), [true; 3]);
    }
}
