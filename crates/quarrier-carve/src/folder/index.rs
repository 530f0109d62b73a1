//! A compact index of the rows; the rows themselves are in the journal.

use std::collections::{HashMap, HashSet};

use super::Row;
use super::journal::Line;
use crate::carved::Carved;

/// The rows of all files, which are sorted at the end.
#[derive(Default)]
pub(super) struct Index {
    /// Numbers of types, in the order of their appearance.
    kinds: HashMap<String, u32>,
    /// Offset, number inside the archive there, type, and the place of the row in the journal.
    entries: Vec<(u64, u32, u32, Line)>,
    /// Offset and type of files whose writing has begun.
    claimed: HashSet<(u64, u32)>,
}

impl Index {
    pub(super) fn add(&mut self, row: &Row, line: Line) {
        let kind = self.number_of(&row.kind);
        self.entries.push((row.offset, row.number(), kind, line));
    }

    /// Returns whether this file is the first of its type at its offset: another one would have the
    /// same name.
    pub(super) fn claim(&mut self, carved: &Carved) -> bool {
        let kind = self.number_of(&carved.kind);
        self.claimed.insert((carved.offset(), kind))
    }

    fn number_of(&mut self, kind: &str) -> u32 {
        if let Some(number) = self.kinds.get(kind) {
            return *number;
        }
        let number = self.kinds.len() as u32;
        self.kinds.insert(kind.to_string(), number);
        number
    }

    /// Returns all rows, sorted by offset, then by the name of their type.
    pub(super) fn sorted(&mut self) -> Vec<Line> {
        let mut names: Vec<&String> = self.kinds.keys().collect();
        names.sort();
        let mut rank = vec![0; names.len()];
        for (place, name) in names.into_iter().enumerate() {
            rank[self.kinds[name] as usize] = place;
        }
        self.entries
            .sort_by_key(|(offset, number, kind, _)| (*offset, *number, rank[*kind as usize]));
        self.entries.iter().map(|(_, _, _, line)| *line).collect()
    }
}
