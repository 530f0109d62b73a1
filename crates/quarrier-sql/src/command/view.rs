//! The prompt's settings for the output of answers.

use std::cell::Cell;

/// Settings that persist from one statement to the next.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Whether each answer is followed by its number of rows.
    pub(super) is_counted: Cell<bool>,
    /// Whether each answer is followed by its time.
    pub(super) is_timed: Cell<bool>,
    /// Whether each value gets a line, rather than each row.
    pub(super) is_expanded: Cell<bool>,
    /// Whether answers larger than the screen go to a pager.
    pub(super) is_paged: Cell<bool>,
    /// The terminal that an answer should fit; `None` without a terminal.
    pub(super) screen: Cell<Option<Screen>>,
}

/// The size of a terminal, in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl View {
    /// The screen size above which an answer goes to a pager.
    pub(super) fn page(&self) -> Option<Screen> {
        self.screen.get().filter(|_| self.is_paged.get())
    }
}
