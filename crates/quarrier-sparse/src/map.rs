//! All leaves of a file, in order: finds, inserts and removes bytes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Span;
use crate::leaf::{BYTES_MAX, Leaf, RUNS_MAX};

/// The held bytes of a file.
///
/// `keys[i]` is the offset of the first byte of `leaves[i]`. Leaves are in order and do not
/// overlap; the last run of one may end where the next leaf begins.
#[derive(Debug)]
pub(crate) struct Map {
    keys: Vec<u64>,
    #[allow(clippy::vec_box, reason = "an insertion at the front moves 8 bytes per leaf, not 120")]
    leaves: Vec<Box<Leaf>>,
    bytes: u64,
    wipe: bool,
}

/// A held byte: its leaf, its run, and the bytes from it to the end of the run.
#[derive(Clone, Copy)]
pub(crate) struct Place<'m> {
    pub(crate) leaf: &'m Leaf,
    pub(crate) run: usize,
    pub(crate) bytes: &'m [u8],
}

impl Map {
    pub(crate) fn new(wipe: bool) -> Self {
        let (keys, leaves) = (Vec::new(), Vec::new());
        Map { keys, leaves, bytes: 0, wipe }
    }

    /// Returns the number of held bytes.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn leaf_count(&self) -> usize {
        self.leaves.len()
    }

    pub(crate) fn leaves(&self) -> impl Iterator<Item = (u64, &Leaf)> {
        self.keys.iter().copied().zip(self.leaves.iter().map(|leaf| &**leaf))
    }

    /// Returns the bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(|leaf| leaf.memory_bytes()).sum();
        size_of::<Map>() + 8 * (self.keys.capacity() + self.leaves.capacity()) + leaves
    }

    /// Finds the byte at `offset`, if it is held. Reads usually continue where the previous one
    /// ended: `guess` records that place, and is updated.
    #[inline]
    pub(crate) fn find(&self, offset: u64, guess: &AtomicU64) -> Option<Place<'_>> {
        let guessed = guess.load(Relaxed);
        let (last_index, last_run) = ((guessed >> 32) as usize, guessed as u32 as usize);
        let index = self.leaf_upto(offset, last_index)?;
        let (leaf, at) = (&self.leaves[index], offset - self.keys[index]);
        let run = leaf.run_upto(at, if index == last_index { last_run } else { 0 });
        if (index, run) != (last_index, last_run) {
            guess.store((index as u64) << 32 | run as u64, Relaxed);
        }
        let bytes = leaf.run_bytes(run);
        let skip = at - leaf.start(run);
        (skip < bytes.len() as u64).then(|| Place { leaf, run, bytes: &bytes[skip as usize..] })
    }

    /// Returns the last leaf that begins at or before `offset`: leaf `guess`, the next one, or
    /// another.
    #[inline]
    fn leaf_upto(&self, offset: u64, guess: usize) -> Option<usize> {
        for guess in [guess, guess + 1] {
            let begins = self.keys.get(guess).is_some_and(|&key| key <= offset);
            if begins && self.keys.get(guess + 1).is_none_or(|&key| offset < key) {
                return Some(guess);
            }
        }
        self.keys.partition_point(|&key| key <= offset).checked_sub(1)
    }

    /// As `leaf_upto`, but checks the last leaf first: writes usually append.
    fn leaf_of(&self, offset: u64) -> Option<usize> {
        self.leaf_upto(offset, self.keys.len().saturating_sub(1))
    }

    /// Calls `each` with start and end of every run that overlaps `from..to`, in order. Runs in
    /// adjacent leaves may touch.
    #[inline]
    pub(crate) fn for_each_run(&self, from: u64, to: u64, mut each: impl FnMut(u64, u64)) {
        let first = self.leaf_of(from).unwrap_or(0);
        for index in first..self.leaves.len() {
            let (key, leaf) = (self.keys[index], &self.leaves[index]);
            if key >= to {
                return;
            }
            let mut run = 0;
            if key <= from {
                run = leaf.runs_upto(from - key) - 1;
                if key + leaf.end(run) <= from {
                    run += 1;
                }
            }
            if run < leaf.runs() {
                leaf.for_each_run(run, to - key, |start, end| each(key + start, key + end));
            }
        }
    }

    /// Returns the leaves that may hold bytes between `from` and `to`, with their keys.
    pub(crate) fn leaves_between(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &Leaf)> {
        let first = self.leaf_of(from).unwrap_or(0);
        let leaves = self.keys[first..].iter().copied().zip(&self.leaves[first..]);
        leaves.take_while(move |&(key, _)| key < to).map(|(key, leaf)| (key, &**leaf))
    }

    /// Returns the offset of the next held byte at or after `offset`.
    pub(crate) fn next_held(&self, offset: u64) -> Option<u64> {
        let Some(index) = self.leaf_of(offset) else { return self.keys.first().copied() };
        let (key, leaf) = (self.keys[index], &self.leaves[index]);
        if offset - key >= leaf.last_end() {
            return self.keys.get(index + 1).copied();
        }
        let run = leaf.runs_upto(offset - key);
        if key + leaf.end(run - 1) > offset {
            return Some(offset);
        }
        Some(key + leaf.start(run))
    }

    /// Returns the offset after the last held byte, or 0.
    pub(crate) fn held_end(&self) -> u64 {
        self.keys.last().zip(self.leaves.last()).map_or(0, |(key, leaf)| key + leaf.last_end())
    }

    /// Overwrites bytes, all of which must be held.
    pub(crate) fn overwrite(&mut self, mut offset: u64, mut data: &[u8], stamp: u64) {
        while !data.is_empty() {
            let Some(index) = self.leaf_of(offset) else { return };
            let (leaf, at) = (&mut self.leaves[index], offset - self.keys[index]);
            let run = leaf.runs_upto(at) - 1;
            let skip = (at - leaf.start(run)) as usize;
            let held = &mut leaf.run_bytes_mut(run)[skip..];
            let count = held.len().min(data.len());
            held[..count].copy_from_slice(&data[..count]);
            leaf.use_run(run, stamp);
            offset += count as u64;
            data = &data[count..];
        }
    }

    /// Inserts bytes, none of which may be held. The leaves that they fill get consecutive stamps
    /// from `stamp` on.
    pub(crate) fn insert(&mut self, mut offset: u64, mut data: &[u8], mut stamp: u64) {
        self.bytes += data.len() as u64;
        while !data.is_empty() {
            let count = self.insert_some(offset, data, stamp);
            stamp += (count == BYTES_MAX) as u64;
            offset += count as u64;
            data = &data[count..];
        }
    }

    /// Inserts the first of the bytes, and returns how many; 0 if it had to make room first.
    fn insert_some(&mut self, offset: u64, data: &[u8], stamp: u64) -> usize {
        let Some(index) = self.leaf_of(offset) else {
            return self.insert_in_front(offset, data, stamp);
        };
        let (leaf, at) = (&mut self.leaves[index], offset - self.keys[index]);
        if at >= leaf.last_end() {
            return self.insert_after(index, offset, data, stamp);
        }
        let run = leaf.runs_upto(at);
        let joins = leaf.end(run - 1) == at || leaf.start(run) == at + data.len() as u64;
        let fits = leaf.has_room_to_join(data.len()) && (joins || leaf.runs() < RUNS_MAX);
        if fits {
            leaf.insert(run, at, data, stamp);
            return data.len();
        }
        let (key, tail) = leaf.split();
        self.insert_leaf(index + 1, self.keys[index] + key, tail);
        0
    }

    /// Inserts bytes before all others.
    fn insert_in_front(&mut self, offset: u64, data: &[u8], stamp: u64) -> usize {
        if let (Some(first), Some(key)) = (self.leaves.first_mut(), self.keys.first_mut()) {
            let by = *key - offset;
            let joins = by == data.len() as u64;
            let fits = first.has_room_to_join(data.len()) && (joins || first.runs() < RUNS_MAX);
            if fits && first.can_shift(by) {
                first.shift(by);
                *key = offset;
                first.insert(0, 0, data, stamp);
                return data.len();
            }
        }
        self.insert_new_leaf(0, offset, data, stamp)
    }

    /// Inserts bytes after the last run of a leaf.
    fn insert_after(&mut self, index: usize, offset: u64, data: &[u8], stamp: u64) -> usize {
        let (leaf, at) = (&mut self.leaves[index], offset - self.keys[index]);
        if at == leaf.last_end() {
            let room = BYTES_MAX - leaf.len_bytes();
            let count = room.min(data.len());
            if count > 0 {
                leaf.append(&data[..count], stamp);
                return count;
            }
        } else if leaf.has_room(at, data.len()) {
            leaf.insert(leaf.runs(), at, data, stamp);
            return data.len();
        }
        self.insert_new_leaf(index + 1, offset, data, stamp)
    }

    fn insert_new_leaf(&mut self, index: usize, offset: u64, data: &[u8], stamp: u64) -> usize {
        let count = data.len().min(BYTES_MAX);
        self.insert_leaf(index, offset, Leaf::new(&data[..count], self.wipe, stamp));
        count
    }

    fn insert_leaf(&mut self, index: usize, key: u64, leaf: Leaf) {
        self.keys.insert(index, key);
        self.leaves.insert(index, Box::new(leaf));
    }

    /// Removes the held bytes of `span` and returns their number.
    pub(crate) fn remove(&mut self, span: Span) -> u64 {
        let (from, to) = (span.offset, span.end());
        if from >= to {
            return 0;
        }
        let first = self.leaf_of(from).unwrap_or(0);
        let after = self.keys.partition_point(|&key| key < to);
        let mut removed = 0;
        // Remove leaves within the span as a whole, and those at its ends in part.
        let is_within = |keys: &[u64], leaves: &[Box<Leaf>], i: usize| {
            keys[i] >= from && keys[i] + leaves[i].last_end() <= to
        };
        let whole: Vec<usize> =
            (first..after).filter(|&i| is_within(&self.keys, &self.leaves, i)).collect();
        let mut ends = vec![first, after.max(1) - 1];
        ends.dedup();
        ends.retain(|&i| i < after && !is_within(&self.keys, &self.leaves, i));
        for index in ends {
            let (key, leaf) = (self.keys[index], &mut self.leaves[index]);
            removed += leaf.remove(from.saturating_sub(key), to - key) as u64;
            self.keys[index] += leaf.settle_key();
        }
        if let (Some(&from), Some(&last)) = (whole.first(), whole.last()) {
            self.keys.drain(from..=last);
            let gone = self.leaves.drain(from..=last);
            removed += gone.map(|leaf| leaf.len_bytes() as u64).sum::<u64>();
        }
        self.bytes -= removed;
        // Removing bytes from the middle of a run splits it, which may exceed the maximum.
        if self.leaves.get(first).is_some_and(|leaf| leaf.runs() > RUNS_MAX) {
            let (key, tail) = self.leaves[first].split();
            self.insert_leaf(first + 1, self.keys[first] + key, tail);
        }
        for index in (first.saturating_sub(1)..=first + 1).rev() {
            self.merge_small(index);
        }
        removed
    }

    /// Removes whole leaves by their sorted indexes. Returns the number of bytes removed.
    pub(crate) fn remove_leaves(&mut self, indexes: &[usize]) -> u64 {
        let before = self.bytes;
        let mut going = indexes.iter().copied().peekable();
        let mut is_going = (0..self.leaves.len()).map(|i| going.next_if_eq(&i).is_some());
        let goes: Vec<bool> = is_going.by_ref().collect();
        let mut of_key = goes.iter();
        self.keys.retain(|_| of_key.next() == Some(&false));
        let mut of_leaf = goes.iter();
        self.leaves.retain(|leaf| {
            let stays = of_leaf.next() == Some(&false);
            self.bytes -= if stays { 0 } else { leaf.len_bytes() as u64 };
            stays
        });
        before - self.bytes
    }

    /// Merges a leaf with the next one if both are small, so that erasures do not accumulate nearly
    /// empty leaves.
    fn merge_small(&mut self, index: usize) {
        let (Some(leaf), Some(next)) = (self.leaves.get(index), self.leaves.get(index + 1)) else {
            return;
        };
        let by = self.keys[index + 1] - self.keys[index];
        let reach = by.saturating_add(next.last_end());
        let fits = leaf.len_bytes() + next.len_bytes() <= BYTES_MAX / 4
            && leaf.runs() + next.runs() <= RUNS_MAX / 4
            && reach <= u64::from(u32::MAX);
        if fits {
            self.keys.remove(index + 1);
            let next = self.leaves.remove(index + 1);
            self.leaves[index].absorb(by, *next);
        }
    }

    /// Adds `by` to the times of all uses.
    pub(crate) fn shift_uses(&mut self, by: u64) {
        self.leaves.iter_mut().for_each(|leaf| leaf.shift_uses(by));
    }

    /// Checks the invariants.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert_eq!(self.keys.len(), self.leaves.len());
        let mut end = None;
        for (key, leaf) in self.leaves() {
            assert!(end.is_none_or(|end| end <= key) && leaf.start(0) == 0);
            assert!(leaf.len_bytes() <= BYTES_MAX && leaf.runs() <= RUNS_MAX);
            for run in 0..leaf.runs() {
                assert!(leaf.end(run) > leaf.start(run));
                assert!(run == 0 || leaf.end(run - 1) < leaf.start(run));
            }
            end = Some(key + leaf.last_end());
        }
        assert_eq!(self.bytes, self.leaves().map(|(_, leaf)| leaf.len_bytes() as u64).sum());
    }
}
