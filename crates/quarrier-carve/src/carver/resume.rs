//! The state of an earlier run, from which another resumes.

use std::ops::Range;

use serde_json::{Value, json};

use super::{Allowance, BrokenFile, Carver, SkimmedRange};
use crate::carved::Carved;
use crate::format::Kind;

/// The numbers of files that begin at multiples of the usual block sizes of file systems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alignment {
    /// The number of files counted.
    pub seen: u64,
    /// The numbers of files at multiples of 64 KiB, 32 KiB … 512 bytes.
    pub aligned: [u64; 8],
}

/// The state of a partly finished stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Midway {
    /// The size of its next search in bytes.
    pub step_bytes: u64,
    /// The remaining fuel for its candidates.
    pub left: Allowance,
}

impl Midway {
    pub(crate) fn to_json(self) -> Value {
        json!([self.step_bytes, self.left.fuel_bytes, self.left.headers_left])
    }

    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let fuel = value.get(1)?.as_array()?.iter();
        let fuel: Vec<u64> = fuel.map(Value::as_u64).collect::<Option<_>>()?;
        let headers_left = u32::try_from(value.get(2)?.as_u64()?).ok()?;
        let left = Allowance { fuel_bytes: fuel.try_into().ok()?, headers_left };
        Some(Midway { step_bytes: value.get(0)?.as_u64()?, left })
    }
}

/// The results of an earlier run's strides. A run that resumes from them has the results that the
/// earlier run would have had.
#[derive(Debug, Clone, Default)]
pub struct EarlierResults {
    /// All bytes before this offset are done.
    pub position: u64,
    /// The whole files, as in [`Stride::whole`](super::Stride::whole).
    pub whole: Vec<Carved>,
    /// The broken files, as in [`Stride::broken`](super::Stride::broken).
    pub broken: Vec<BrokenFile>,
    /// Ranges that could not be read, in order.
    pub unreadable: Vec<Range<u64>>,
    /// Ranges that were examined less closely, as in [`Stride::skimmed`](super::Stride::skimmed).
    pub skimmed: Vec<SkimmedRange>,
    /// The alignment after the last stride, as in [`Stride::alignment`](super::Stride::alignment).
    pub alignment: Alignment,
    /// The state of the last stride, if it is not finished, as in
    /// [`Stride::midway`](super::Stride::midway).
    pub midway: Option<Midway>,
}

impl Carver<'_> {
    /// Finds the format named `format`, and its kind named `kind`. A [`BrokenFile`] refers to both,
    /// and a journal has only their names.
    pub fn known_as(&self, format: &str, kind: &str) -> Option<(&'static str, Kind)> {
        let found = self.formats.iter().find(|known| known.kinds()[0].name == format)?;
        let kind = found.kinds().iter().find(|known| known.name == kind)?;
        Some((found.kinds()[0].name, *kind))
    }
}
