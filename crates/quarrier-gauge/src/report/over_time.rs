//! The rate of a long run over time.

use super::figure::Group;
use super::quantity;
use crate::reading::{Reading, Timeline, Unit};
use crate::statistics::differ;

/// Maximum number of drawn windows: a report from elsewhere may have any number.
const WINDOWS_MOST: usize = 600;

/// Whether the readings of this measurement are long runs.
pub(crate) fn is_over_time(group: &Group<'_>) -> bool {
    group.readings.iter().any(|reading| reading.timeline.is_some())
}

/// Says in a few words how the rate of a long run changed before its value.
pub(crate) fn remark(reading: &Reading, timeline: &Timeline) -> String {
    match timeline.steady_after_seconds {
        None => "still changing".to_string(),
        Some(_) if !differ(timeline.initial, reading.value) => "steady".to_string(),
        Some(_) => format!(
            "after {} at {}",
            quantity::value(timeline.initial_seconds, Unit::Seconds),
            quantity::value(timeline.initial, reading.unit)
        ),
    }
}

/// Says whether the rate of a long run changed, and when.
pub(crate) fn summary(reading: &Reading, timeline: &Timeline) -> String {
    let time = |seconds: f64| quantity::value(seconds, Unit::Seconds);
    let first = format!(
        "{} in the first {}",
        quantity::value(timeline.initial, reading.unit),
        time(timeline.initial_seconds)
    );
    match timeline.steady_after_seconds {
        None => format!("{first}, still changing after {}", time(seconds(timeline))),
        Some(_) if !differ(timeline.initial, reading.value) => {
            format!("the same over {}", time(seconds(timeline)))
        }
        Some(after) => format!("{first}, steady after {}", time(after)),
    }
}

/// The length of all windows in seconds.
pub(crate) fn seconds(timeline: &Timeline) -> f64 {
    timeline.window_seconds * timeline.rates.len() as f64
}

/// The middle of each drawn window in seconds, and its rate: the mean of several if there are too many.
pub(crate) fn windows(timeline: &Timeline) -> Vec<(f64, f64)> {
    let every = timeline.rates.len().div_ceil(WINDOWS_MOST).max(1);
    let mut start = 0.0;
    let drawn = timeline.rates.chunks(every).map(|rates| {
        let length = rates.len() as f64;
        let middle = (start + length / 2.0) * timeline.window_seconds;
        start += length;
        (middle, rates.iter().sum::<f64>() / length)
    });
    drawn.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_windows_are_drawn_as_means_of_several() {
        let rates: Vec<f64> = (0..1201).map(f64::from).collect();
        let timeline = Timeline { window_seconds: 2.0, rates, ..Timeline::default() };
        let drawn = windows(&timeline);
        assert_eq!(drawn.len(), 401);
        assert_eq!((drawn[0], drawn[1]), ((3.0, 1.0), (9.0, 4.0)));
        assert_eq!(drawn[400], (2401.0, 1200.0));
        assert_eq!(seconds(&timeline), 2402.0);
        assert_eq!(windows(&Timeline::default()), []);
    }
}
