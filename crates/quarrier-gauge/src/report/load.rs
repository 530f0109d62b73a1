//! Latency under load as a curve: the time of a load over the rate at which other threads read.

use super::figure::Group;
use crate::memory::{LATENCY_UNDER_LOAD, LOAD};
use crate::reading::Reading;

/// A point of the curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point<'r> {
    /// The rate of the other threads.
    pub(crate) load: &'r Reading,
    /// The time of a load meanwhile.
    pub(crate) latency: &'r Reading,
}

/// Whether this measurement is the load of such curves, which are shown with the latency.
pub(crate) fn is_load(group: &Group<'_>) -> bool {
    group.measurement == LOAD
}

/// Returns the points of each curve, in the order of their loads; none if `of` is another measurement, or
/// the loads are missing.
pub(crate) fn curves<'r>(of: &Group<'r>, groups: &[Group<'r>]) -> Vec<Vec<Point<'r>>> {
    if of.measurement != LATENCY_UNDER_LOAD {
        return Vec::new();
    }
    let loads = groups.iter().filter(|group| is_load(group)).flat_map(|group| &group.readings);
    let loads: Vec<&Reading> = loads.copied().collect();
    let mut curves: Vec<Vec<Point<'r>>> = Vec::new();
    for &latency in &of.readings {
        let Some(load) = loads.iter().find(|load| load.parameters == latency.parameters) else {
            continue;
        };
        let point = Point { load, latency };
        match curves.iter_mut().find(|curve| is_same_curve(curve, latency)) {
            Some(curve) => curve.push(point),
            None => curves.push(vec![point]),
        }
    }
    for curve in &mut curves {
        curve.sort_by(|a, b| a.load.value.total_cmp(&b.load.value));
    }
    curves
}

/// Whether only the pause differs.
fn is_same_curve(curve: &[Point<'_>], reading: &Reading) -> bool {
    let others = |reading: &Reading| {
        let all = reading.parameters.iter().filter(|(name, _)| *name != "pause_ns");
        all.map(|(name, value)| (name.to_owned(), value.clone())).collect::<Vec<_>>()
    };
    curve.first().is_some_and(|point| others(point.latency) == others(reading))
}
