//! Resolves overlapping pieces of files by rank.

use std::collections::BTreeSet;

use super::{Piece, Rank};

/// Sorts pieces and resolves overlaps by rank.
pub(super) fn disjoint(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.retain(|piece| piece.start < piece.end);
    pieces.sort_unstable_by_key(|piece| (piece.start, piece.rank, piece.file));
    let mut done = Vec::with_capacity(pieces.len());
    let mut rest = &pieces[..];
    while let Some(first) = rest.first() {
        let mut end = first.end;
        let together = rest[1..].iter().take_while(|piece| {
            let is_in = piece.start < end;
            end = end.max(piece.end);
            is_in
        });
        let count = 1 + together.count();
        match count {
            1 => done.push(*first),
            _ => decided(&rest[..count], &mut done),
        }
        rest = &rest[count..];
    }
    done
}

/// Sweeps over the borders of overlapping pieces.
fn decided(pieces: &[Piece], done: &mut Vec<Piece>) {
    let mut ends: Vec<(u64, usize)> =
        pieces.iter().enumerate().map(|(index, piece)| (piece.end, index)).collect();
    ends.sort_unstable();
    let (mut starts, mut ends) =
        (pieces.iter().enumerate().peekable(), ends.into_iter().peekable());
    let mut open: BTreeSet<(Rank, u32, usize)> = BTreeSet::new();
    let key = |index: usize| (pieces[index].rank, pieces[index].file, index);
    while let Some(&(end, _)) = ends.peek() {
        let at = starts.peek().map_or(end, |(_, piece)| piece.start.min(end));
        while let Some((index, _)) = starts.next_if(|(_, piece)| piece.start == at) {
            open.insert(key(index));
        }
        while let Some((_, index)) = ends.next_if(|(end, _)| *end == at) {
            open.remove(&key(index));
        }
        let Some(&(end, _)) = ends.peek() else { break };
        let next = starts.peek().map_or(end, |(_, piece)| piece.start.min(end));
        let Some(&(rank, file, _)) = open.first() else { continue };
        match done.last_mut() {
            Some(last) if last.end == at && last.file == file && last.rank == rank => {
                last.end = next;
            }
            _ => done.push(Piece { start: at, end: next, file, rank }),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use proptest::prelude::*;

    use super::super::{Piece, Rank};
    use super::disjoint;

    const RANKS: [Rank; 5] =
        [Rank::Inline, Rank::InlineDeleted, Rank::Allocated, Rank::Slack, Rank::Deleted];

    proptest! {
        #[test]
        fn every_byte_goes_to_the_first_of_those_that_claim_it(
            claims in prop::collection::vec((0..60u64, 0..20u64, 0..5usize), 0..30),
        ) {
            let pieces: Vec<Piece> = (0..)
                .zip(&claims)
                .map(|(file, &(start, length, rank))| {
                    Piece { start, end: start + length, file, rank: RANKS[rank] }
                })
                .collect();
            let decided = disjoint(pieces.clone());
            prop_assert!(decided.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for at in 0..100 {
                let has = |piece: &&Piece| piece.start <= at && at < piece.end;
                let expected = pieces.iter().filter(has).map(|piece| (piece.rank, piece.file)).min();
                let found = decided.iter().find(has).map(|piece| (piece.rank, piece.file));
                prop_assert_eq!(found, expected, "byte {}", at);
            }
        }
    }
}
