//! The state of an earlier run, from which another resumes.

use std::ops::Range;

use super::{Allowance, BrokenFile, Carver, SkimmedRange};
use crate::carved::Carved;
use crate::format::Kind;

/// The number of files at multiples of the block sizes that file systems have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alignment {
    /// Files that were counted.
    pub seen: u64,
    /// The files at multiples of 64 KiB, 32 KiB … 512 bytes.
    pub aligned: [u64; 8],
}

/// The state of a partly finished stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Midway {
    /// How much of it is searched next, in bytes.
    pub step_bytes: u64,
    /// The remaining fuel for its candidates.
    pub left: Allowance,
}

/// The results of an earlier run's strides; a run that resumes from them ends as that one would have.
#[derive(Debug, Clone, Default)]
pub struct Begun {
    /// Everything before this offset is done.
    pub position: u64,
    /// The files that are whole, as [`Stride::whole`](super::Stride::whole) had them.
    pub whole: Vec<Carved>,
    /// The files that are broken, as [`Stride::broken`](super::Stride::broken) had them.
    pub broken: Vec<BrokenFile>,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Ranges that were examined less closely, as in [`Stride::skimmed`](super::Stride::skimmed).
    pub skimmed: Vec<SkimmedRange>,
    /// As the last stride had it.
    pub alignment: Alignment,
    /// As the last stride had it.
    pub midway: Option<Midway>,
}

impl Carver<'_> {
    /// The format that calls itself `format`, and the one of its kinds that is called `kind`: what
    /// a [`BrokenFile`] has of them, from their names.
    pub fn known_as(&self, format: &str, kind: &str) -> Option<(&'static str, Kind)> {
        let found = self.formats.iter().find(|known| known.kinds()[0].name == format)?;
        let kind = found.kinds().iter().find(|known| known.name == kind)?;
        Some((found.kinds()[0].name, *kind))
    }
}
