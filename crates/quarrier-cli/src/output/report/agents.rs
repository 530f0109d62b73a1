//! The agents of a run as lanes, in natural order and limited in number.

use quarrier_core::pipeline::{Span, Stage, Timeline};
use quarrier_report::Colour;

use super::SourceRun;

/// Maximum number of lanes on the page; beyond it, neighbouring agents share a lane.
const LANES_PAGE_MAX: usize = 512;
/// Minimum and maximum number of lanes of one source.
const LANES: (usize, usize) = (8, 64);
/// Maximum number of spans that are drawn individually.
const RECTANGLES_MAX: usize = 1500;
/// Maximum number of bins over all lanes of the page, if spans are too many to draw.
const CELLS_MAX: usize = 6000;
/// Minimum and maximum number of bins of one lane.
const BINS: (usize, usize) = (24, 400);
/// Bins of charts over the whole page, and the minimum and maximum of one chart: each bin has a title.
const CHART_BINS: usize = 1800;
const CHART_BINS_EACH: (usize, usize) = (60, 200);

/// How finely to draw lanes, so that the page stays small for any run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    lanes_max: usize,
    /// Bins of a lane whose spans are not drawn individually.
    pub(super) lane_bins: usize,
    /// Bins of every other chart.
    pub(super) load_bins: usize,
    /// Whether spans are drawn individually.
    pub(super) is_exact: bool,
}

impl Budget {
    pub(super) fn of(sources: &[&SourceRun<'_>]) -> Self {
        let lanes_max = (LANES_PAGE_MAX / sources.len().max(1)).clamp(LANES.0, LANES.1);
        let agents = || sources.iter().map(|source| &source.timeline.agents);
        let lanes: usize = agents().map(|agents| agents.len().min(lanes_max)).sum();
        let spans: usize = agents().flatten().map(|(_, spans)| spans.len()).sum();
        Budget {
            lanes_max,
            lane_bins: (CELLS_MAX / lanes.max(1)).clamp(BINS.0, BINS.1),
            load_bins: (CHART_BINS / sources.len().max(1))
                .clamp(CHART_BINS_EACH.0, CHART_BINS_EACH.1),
            is_exact: spans <= RECTANGLES_MAX,
        }
    }
}

/// The stages of a run, in the order of flow; those of devices only if one took part.
pub(super) fn stages(timeline: &Timeline) -> &'static [Stage] {
    if timeline.has_device() { &Stage::WITH_DEVICE } else { &Stage::ALL }
}

/// The colour of a stage in all charts.
pub(super) fn colour(stage: Stage) -> Colour {
    match stage {
        Stage::Read => Colour::BLUE,
        Stage::Work => Colour::ORANGE,
        Stage::Sink => Colour::GREEN,
        Stage::Copy => Colour::PALE_BLUE,
        Stage::Kernel => Colour::RUST,
        Stage::Collect => Colour::YELLOW,
    }
}

/// One agent, or a few of one type.
pub(super) struct Lane<'a> {
    pub(super) name: String,
    pub(super) agents: Vec<&'a [Span]>,
}

impl Lane<'_> {
    /// Time that all agents of the lane spent in `stage`, in seconds.
    pub(super) fn busy_seconds(&self, stage: Stage) -> f64 {
        self.spans(stage).map(|span| span.busy.as_secs_f64()).sum()
    }

    /// Bytes that the lane read.
    pub(super) fn bytes_read(&self) -> u64 {
        self.spans(Stage::Read).map(|span| span.bytes).sum()
    }

    /// Bytes that the lane processed, on this thread or on its device.
    pub(super) fn bytes_worked(&self) -> u64 {
        let spans = self.agents.iter().copied().flatten();
        spans.filter(|span| span.stage.is_work()).map(|span| span.bytes).sum()
    }

    fn spans(&self, stage: Stage) -> impl Iterator<Item = &Span> {
        self.agents.iter().copied().flatten().filter(move |span| span.stage == stage)
    }
}

/// The agents of `timeline`, readers before workers, `worker 2` before `worker 10`.
pub(super) fn lanes(timeline: &Timeline, budget: Budget) -> Vec<Lane<'_>> {
    let mut agents: Vec<(&str, Option<u64>, &[Span])> = timeline
        .agents
        .iter()
        .map(|(name, spans)| {
            let (kind, number) = split(name);
            (kind, number, spans.as_slice())
        })
        .collect();
    agents.sort_by_key(|(kind, number, _)| (*kind, *number));
    let a_lane = agents.len().div_ceil(budget.lanes_max).max(1);
    agents
        .chunk_by(|a, b| a.0 == b.0)
        .flat_map(|kind| kind.chunks(a_lane))
        .map(|group| Lane { name: name(group), agents: group.iter().map(|g| g.2).collect() })
        .collect()
}

/// `worker 12` as (`worker`, 12).
fn split(name: &str) -> (&str, Option<u64>) {
    match name.rsplit_once(' ') {
        Some((kind, number)) => match number.parse() {
            Ok(number) => (kind, Some(number)),
            Err(_) => (name, None),
        },
        None => (name, None),
    }
}

fn name(group: &[(&str, Option<u64>, &[Span])]) -> String {
    match (group.first(), group.last()) {
        (Some((kind, Some(first), _)), Some((_, Some(last), _))) if first != last => {
            format!("{kind} {first}–{last}")
        }
        (Some((kind, Some(number), _)), _) => format!("{kind} {number}"),
        (Some((kind, None, _)), _) => (*kind).to_string(),
        (None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(names: &[String]) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.agents = names.iter().map(|name| (name.clone(), Vec::new())).collect();
        timeline
    }

    fn names(names: &[String], lanes_max: usize) -> Vec<String> {
        let budget = Budget { lanes_max, lane_bins: 1, load_bins: 1, is_exact: true };
        lanes(&timeline(names), budget).into_iter().map(|lane| lane.name).collect()
    }

    #[test]
    fn agents_stand_in_the_order_of_their_numbers() {
        let given = ["worker 1", "worker 10", "worker 2", "reader 1", "other"].map(String::from);
        let expected = ["other", "reader 1", "worker 1", "worker 2", "worker 10"];
        assert_eq!(names(&given, 64), expected);
    }

    #[test]
    fn too_many_agents_share_lanes_with_their_kind() {
        let workers = (1..=10).map(|n| format!("worker {n}"));
        let given: Vec<String> = workers.chain(["reader 1".to_string()]).collect();
        let expected = ["reader 1", "worker 1–3", "worker 4–6", "worker 7–9", "worker 10"];
        assert_eq!(names(&given, 4), expected);
    }
}
