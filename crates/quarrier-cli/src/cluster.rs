//! What a cluster does for the commands of this crate. The program `quarrier-cluster` implements it.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use quarrier_units::Unit;

/// The variable of the environment that names a cluster, as `--cluster` does.
pub const CLUSTER_VARIABLE: &str = "QUARRIER_CLUSTER";

/// The number of units that run first if a LIMIT may need no more of them.
const FIRST_UNITS: usize = 64;

/// The ranges of units that run one after another. If a limit may end the work early, only a few run first,
/// then four times as many, and so on; else all run at once.
pub fn waves(units: usize, is_limited: bool) -> impl Iterator<Item = Range<usize>> {
    let (mut start, mut count) = (0_usize, if is_limited { FIRST_UNITS } else { usize::MAX });
    std::iter::from_fn(move || {
        let wave = start..units.min(start.saturating_add(count));
        (start, count) = (wave.end, count.saturating_mul(4));
        (!wave.is_empty()).then_some(wave)
    })
}

/// Runs units on the workers of a cluster.
pub trait Cluster: Sync {
    /// Runs the units of a job, and passes on the answer for each of them once, in any order.
    ///
    /// # Errors
    /// A message for the user. Answers before the error were passed on.
    fn run(
        &self,
        at: &str,
        job: &ClusterJob<'_>,
        stop: &AtomicBool,
        take: &mut TakeAnswer<'_>,
    ) -> Result<(), String>;
}

/// Takes the answer for the unit with this index.
pub type TakeAnswer<'t> = dyn FnMut(usize, Answer<'_>) -> Result<(), String> + Send + 't;

/// A search or carving that is run unit by unit.
pub struct ClusterJob<'j> {
    /// The name of the job: [`UnitSearch::job`](quarrier_units::UnitSearch::job) or
    /// [`CarveUnits::job`](quarrier_units::CarveUnits::job).
    pub name: &'j str,
    /// The request, for [`PackedRequest::unpack`](crate::PackedRequest::unpack).
    pub request: Vec<u8>,
    /// Where workers store objects; `None` to send them back.
    pub to: Option<&'j OsStr>,
    /// The units, and the names by which workers open their sources.
    pub units: Vec<(Unit, OsString)>,
}

/// The answer for a unit. The bytes of an object come in several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The next bytes of the object; all earlier ones of the unit are void if it is the first part.
    Part {
        /// Whether these are the first bytes.
        is_first: bool,
        /// The bytes.
        bytes: &'a [u8],
        /// Whether these are the last bytes.
        is_last: bool,
    },
    /// The object is stored.
    Stored,
    /// The unit has to be run where its neighbours are known, or read again.
    Left,
    /// Each of several workers ended while it ran the unit.
    Refused,
}
