//! The patterns found in a scope.

use std::collections::BTreeMap;

/// Maximum number of distinct patterns to store for a scope: with more, all are assumed to occur.
const HITS_MAX: usize = 4096;
/// Maximum number of offsets to store for a pattern.
const PLACES_EACH_MAX: usize = 1 << 16;
/// Maximum number of offsets to store.
const PLACES_MAX: usize = 1 << 22;

/// The patterns found in a scope, by their index in [`Rules::patterns`](crate::Rules::patterns).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hits {
    /// Each pattern, with its offsets if they are stored: then there is at least one.
    patterns: BTreeMap<u32, Vec<u64>>,
    /// Whether to assume that every pattern occurs.
    all: bool,
    /// The number of stored offsets.
    places: usize,
}

impl Hits {
    /// Makes hits that assume that every pattern occurs.
    #[must_use]
    pub fn all() -> Self {
        Hits { all: true, ..Hits::default() }
    }

    /// Adds a pattern.
    pub fn add(&mut self, pattern: u32) {
        if !self.all && !self.patterns.contains_key(&pattern) {
            self.insert(pattern, Vec::new());
        }
    }

    /// Adds a pattern that was found at an offset of the scope. Either all occurrences are added with
    /// their offsets, or none.
    pub fn add_at(&mut self, pattern: u32, offset: u64) {
        match self.patterns.get_mut(&pattern) {
            _ if self.all => {}
            None => {
                self.places += 1;
                self.insert(pattern, vec![offset]);
            }
            // Too many.
            Some(places) if places.is_empty() => {}
            Some(places) if places.len() >= PLACES_EACH_MAX || self.places >= PLACES_MAX => {
                self.places -= places.len();
                *places = Vec::new();
            }
            Some(places) => {
                places.push(offset);
                self.places += 1;
            }
        }
    }

    fn insert(&mut self, pattern: u32, places: Vec<u64>) {
        self.patterns.insert(pattern, places);
        if self.patterns.len() > HITS_MAX {
            *self = Hits::all();
        }
    }

    /// Whether no pattern was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.all && self.patterns.is_empty()
    }

    /// Whether every pattern may occur.
    pub(crate) fn are_all(&self) -> bool {
        self.all
    }

    /// Returns the patterns, each with all of its offsets, or with none if they are not known.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (u32, &[u64])> {
        self.patterns.iter().map(|(pattern, places)| (*pattern, &**places))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_all_known_or_none() {
        let mut hits = Hits::default();
        assert!(hits.is_empty());
        for offset in 0..PLACES_EACH_MAX as u64 {
            hits.add_at(7, offset);
        }
        hits.add_at(3, 5);
        hits.add(1);
        let counts = |hits: &Hits| {
            hits.patterns().map(|(pattern, places)| (pattern, places.len())).collect::<Vec<_>>()
        };
        assert_eq!(counts(&hits), [(1, 0), (3, 1), (7, PLACES_EACH_MAX)]);
        hits.add_at(7, 1 << 40);
        hits.add_at(7, 1 << 41);
        assert_eq!(counts(&hits), [(1, 0), (3, 1), (7, 0)]);
        assert_eq!(hits.places, 1);
        for pattern in 10..10 + HITS_MAX as u32 {
            hits.add_at(pattern, 0);
        }
        assert_eq!(hits, Hits::all());
    }
}
