//! Records which rows of a table with a key were replaced or removed, and when, for subscribers.

/// Maximum number of deaths; beyond it, the older half is forgotten. 16 MiB. A request for forgotten ones
/// reads the log again.
const DEATHS_MAX: usize = 1 << 20;

/// The deaths of rows in order: the mark of the message that caused each, and the mark of the row.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// The history is complete for messages from this mark on.
    from: u64,
    deaths: Vec<(u64, u64)>,
}

impl History {
    /// Makes a history of the messages from a mark on.
    pub(super) fn since(from: u64) -> Self {
        History { from, deaths: Vec::new() }
    }

    /// Returns the first mark from which the history is complete.
    pub(super) fn from(&self) -> u64 {
        self.from
    }

    /// Returns the number of deaths.
    pub(super) fn len(&self) -> usize {
        self.deaths.len()
    }

    pub(super) fn note(&mut self, at: u64, old: u64) {
        if self.deaths.len() >= DEATHS_MAX {
            let forgotten = self.deaths.drain(..DEATHS_MAX / 2).next_back();
            self.from = forgotten.map_or(self.from, |(at, _)| at + 1);
        }
        if at >= self.from {
            self.deaths.push((at, old));
        }
    }

    /// Returns the deaths caused by messages with these marks.
    pub(super) fn of(&self, marks: std::ops::Range<u64>) -> &[(u64, u64)] {
        let first = self.deaths.partition_point(|(at, _)| *at < marks.start);
        let end = self.deaths.partition_point(|(at, _)| *at < marks.end);
        self.deaths.get(first..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_deaths_are_forgotten_and_the_rest_is_complete() {
        let mut history = History::since(5);
        history.note(4, 1);
        for at in 5..10 + DEATHS_MAX as u64 {
            history.note(at, at - 4);
        }
        assert!(history.len() <= DEATHS_MAX);
        assert_eq!(history.from(), 5 + DEATHS_MAX as u64 / 2);
        let from = history.from();
        assert_eq!(history.of(from..from + 2), [(from, from - 4), (from + 1, from - 3)]);
        assert_eq!(history.of(0..from), []);
    }
}
