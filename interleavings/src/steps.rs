//! The mark up to which the log can be read.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Horizon {
    pub(crate) end: u64,
}
