//! A model of the time that units take on several nodes: a simulation, not a measurement.
//!
//! ```text
//!  scheduler: a unit each `dispatch_seconds` ─→ nodes, each at its rate ─→ all of them share the store's rate
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// What a run on several nodes consists of.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// The bytes of each unit, in the order in which they are handed out.
    pub unit_bytes: Vec<u64>,
    /// Number of nodes; each runs one unit at a time.
    pub nodes: usize,
    /// The rate of a node, in bytes per second.
    pub bytes_per_second: f64,
    /// The rate of the store for all nodes together, in bytes per second; None for no limit.
    pub store_bytes_per_second: Option<f64>,
    /// Time to hand out a unit, in seconds; one at a time.
    pub dispatch_seconds: f64,
    /// Times at which a node dies, in seconds, in order. Each loses its unit, if it has one, and does not return.
    pub deaths: Vec<f64>,
    /// Time until the death of a node is noticed and its unit is handed out again, in seconds.
    pub detection_seconds: f64,
}

/// What determines the time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The rate of the nodes: more nodes would be faster.
    Nodes,
    /// The rate of the store.
    Store,
    /// The time to hand out units: larger units would be faster.
    Scheduler,
    /// The number of units: smaller units would be faster.
    Units,
}

impl Limit {
    /// Returns its name in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limit::Nodes => "nodes",
            Limit::Store => "store",
            Limit::Scheduler => "scheduler",
            Limit::Units => "units",
        }
    }
}

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Simulated {
    /// The time until the last unit has ended, in seconds; infinite if all nodes died before.
    pub seconds: f64,
    /// What determines it.
    pub limit: Limit,
    /// Number of units that were begun, again where a node died.
    pub begun: u64,
}

/// A number in a queue: finite, and compared as a number.
#[derive(Clone, Copy, PartialEq)]
struct Key(f64);

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// The state of a simulation. All running units advance at the same rate, so a unit ends when the bytes that each
/// running unit has received since the start, `received`, reach a number that is known when it begins.
struct Run<'m> {
    model: &'m Model,
    now: f64,
    received: f64,
    waiting: VecDeque<u64>,
    /// When units of dead nodes can be handed out again.
    lost: BinaryHeap<Reverse<(Key, u64)>>,
    idle: usize,
    /// The running units by the number of bytes at which they end, and by their number.
    running: BTreeMap<(Key, u64), u64>,
    /// When the scheduler is free.
    free: f64,
    begun: u64,
}

impl Model {
    /// Makes a model of nodes with this rate, in bytes per second, a store without a limit, and units that are handed
    /// out in no time.
    #[must_use]
    pub fn new(unit_bytes: Vec<u64>, nodes: usize, bytes_per_second: f64) -> Self {
        Model { unit_bytes, nodes, bytes_per_second, ..Model::default() }
    }

    /// Simulates the run: an event for each unit that begins or ends, and each node that dies.
    #[must_use]
    pub fn simulate(&self) -> Simulated {
        let mut run = Run {
            model: self,
            now: 0.0,
            received: 0.0,
            waiting: self.unit_bytes.iter().copied().collect(),
            lost: BinaryHeap::new(),
            idle: self.nodes,
            running: BTreeMap::new(),
            free: 0.0,
            begun: 0,
        };
        let mut deaths = self.deaths.iter().copied().peekable();
        let seconds = loop {
            if run.is_done() {
                break run.now;
            }
            let death = deaths.peek().copied();
            let Some(next) = [run.next_end(), run.next_begin(), run.next_lost(), death]
                .into_iter()
                .flatten()
                .min_by(f64::total_cmp)
            else {
                break f64::INFINITY;
            };
            run.advance(next);
            if death == Some(next) {
                deaths.next();
                run.die();
            } else if run.next_end().is_some_and(|end| end <= next) {
                run.end();
            } else {
                run.hand_out();
            }
        };
        Simulated { seconds, limit: self.limit(), begun: run.begun }
    }

    /// Returns the time without deaths by a formula, in seconds, for units of one size: the greatest of the times
    /// that the nodes, the store and the scheduler take.
    #[must_use]
    pub fn bound(&self) -> f64 {
        self.bounds().into_iter().map(|(seconds, _)| seconds).fold(0.0, f64::max)
    }

    fn limit(&self) -> Limit {
        let bounds = self.bounds().into_iter();
        bounds.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Limit::Nodes, |(_, limit)| limit)
    }

    /// Returns the least time that each part takes.
    fn bounds(&self) -> [(f64, Limit); 4] {
        let bytes: f64 = self.unit_bytes.iter().map(|bytes| *bytes as f64).sum();
        let longest = self.unit_bytes.iter().max().map_or(0.0, |bytes| *bytes as f64);
        let units = self.unit_bytes.len() as f64;
        let nodes = (self.nodes as f64).min(units).max(1.0);
        let each = self.bytes_per_second;
        let share = if self.nodes as f64 > units { Limit::Units } else { Limit::Nodes };
        [
            (longest / each, Limit::Units),
            (bytes / each / nodes, share),
            (self.store_bytes_per_second.map_or(0.0, |rate| bytes / rate), Limit::Store),
            (units * self.dispatch_seconds, Limit::Scheduler),
        ]
    }
}

impl Run<'_> {
    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.lost.is_empty() && self.running.is_empty()
    }

    /// The rate of each running unit.
    fn rate(&self) -> f64 {
        let share = |rate: f64| rate / self.running.len().max(1) as f64;
        let each = self.model.bytes_per_second;
        self.model.store_bytes_per_second.map_or(each, |rate| share(rate).min(each))
    }

    fn next_end(&self) -> Option<f64> {
        let ((end, _), _) = self.running.first_key_value()?;
        Some(self.now + (end.0 - self.received).max(0.0) / self.rate())
    }

    fn next_begin(&self) -> Option<f64> {
        let can = self.idle > 0 && !self.waiting.is_empty();
        can.then(|| self.now.max(self.free))
    }

    fn next_lost(&self) -> Option<f64> {
        self.lost.peek().map(|Reverse((at, _))| self.now.max(at.0))
    }

    fn advance(&mut self, to: f64) {
        if !self.running.is_empty() {
            self.received += (to - self.now) * self.rate();
        }
        self.now = to;
    }

    fn end(&mut self) {
        if let Some(((end, _), _)) = self.running.pop_first() {
            // Without this, rounding could leave a rest that is never received.
            self.received = self.received.max(end.0);
            self.idle += 1;
        }
    }

    fn hand_out(&mut self) {
        while self.next_lost().is_some_and(|at| at <= self.now) {
            self.waiting.extend(self.lost.pop().map(|Reverse((_, bytes))| bytes));
        }
        if self.next_begin().is_some_and(|at| at <= self.now)
            && let Some(bytes) = self.waiting.pop_front()
        {
            self.idle -= 1;
            self.free = self.now + self.model.dispatch_seconds;
            self.begun += 1;
            let end = Key(self.received + bytes as f64);
            self.running.insert((end, self.begun), bytes);
        }
    }

    /// A node dies: one that runs a unit, if any does, since that costs most.
    fn die(&mut self) {
        match self.running.pop_first() {
            Some((_, bytes)) => {
                let noticed = Key(self.now + self.model.detection_seconds);
                self.lost.push(Reverse((noticed, bytes)));
            }
            None => self.idle = self.idle.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(units: usize, nodes: usize) -> Model {
        Model { unit_bytes: vec![1 << 30; units], nodes, bytes_per_second: 1e9, ..Model::default() }
    }

    fn is_near(one: f64, other: f64) -> bool {
        (one - other).abs() <= other.abs() * 1e-6 + 1e-9
    }

    #[test]
    fn equal_units_take_the_time_of_the_formula() {
        for nodes in [1, 2, 3, 4, 7, 100, 1000] {
            let run = Model { ..model(nodes * 5, nodes) };
            let simulated = run.simulate();
            assert!(is_near(simulated.seconds, run.bound()), "{nodes}: {simulated:?}");
            assert_eq!((simulated.limit, simulated.begun), (Limit::Nodes, nodes as u64 * 5));
        }
        // A unit that does not fill a round costs a whole one.
        let seconds = model(5, 4).simulate().seconds;
        assert!(is_near(seconds, 2.0 * (1u64 << 30) as f64 / 1e9), "{seconds}");
        let few = model(3, 10).simulate();
        assert!(is_near(few.seconds, model(1, 1).bound()) && few.limit == Limit::Units, "{few:?}");
        assert_eq!(model(0, 4).simulate().seconds, 0.0);
    }

    #[test]
    fn the_store_and_the_scheduler_are_ceilings() {
        for nodes in [1, 4, 100, 1000] {
            let store = Model { store_bytes_per_second: Some(50e9), ..model(3000, nodes) };
            let simulated = store.simulate();
            let expected = if nodes > 50 { Limit::Store } else { Limit::Nodes };
            assert_eq!(simulated.limit, expected, "{nodes}");
            // The last round is the only one that may be incomplete.
            let round = (1u64 << 30) as f64 / 1e9;
            let over = simulated.seconds - store.bound();
            assert!((-1e-6..=round + 1e-6).contains(&over), "{nodes}: {simulated:?}");
        }
        let scheduler = Model { dispatch_seconds: 0.01, ..model(10_000, 1000) };
        let simulated = scheduler.simulate();
        assert_eq!(simulated.limit, Limit::Scheduler);
        let last = (1u64 << 30) as f64 / 1e9;
        assert!(is_near(simulated.seconds, 9_999.0 * 0.01 + last), "{simulated:?}");
    }

    #[test]
    fn a_petabyte_on_a_thousand_nodes_takes_the_time_of_the_formula() {
        let run = Model { store_bytes_per_second: Some(500e9), ..model(1 << 20, 1000) };
        let simulated = run.simulate();
        assert!(simulated.seconds >= run.bound() * (1.0 - 1e-6), "{simulated:?}");
        assert!(simulated.seconds <= run.bound() * 1.001, "{simulated:?} of {}", run.bound());
    }

    /// Whatever dies, every unit ends, and the time is between that without deaths and a bound.
    #[test]
    fn nodes_that_die_cost_their_units_and_no_more() {
        let mut seed = 7_u64;
        let mut below = |end: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % end
        };
        for _ in 0..500 {
            let nodes = 2 + below(9) as usize;
            let mut run = model(1 + below(60) as usize, nodes);
            run.unit_bytes.iter_mut().for_each(|bytes| *bytes = 1 + below(1 << 30));
            run.store_bytes_per_second = (below(2) == 0).then_some(2.5e9);
            run.detection_seconds = below(20) as f64;
            let undisturbed = run.simulate();
            let died = below(nodes as u64) as usize;
            let mut deaths: Vec<f64> = (0..died).map(|_| below(20_000) as f64 / 1e3).collect();
            deaths.sort_by(f64::total_cmp);
            run.deaths = deaths;
            let simulated = run.simulate();
            let lost = simulated.begun - run.unit_bytes.len() as u64;
            assert!(
                lost as usize <= died && simulated.seconds.is_finite(),
                "{run:?} {simulated:?}"
            );
            // One node alone, which does all of it after the last death was noticed, is slower.
            let bytes: f64 = run.unit_bytes.iter().map(|bytes| *bytes as f64).sum();
            let most = 20.0 + run.detection_seconds + 2.0 * bytes / run.bytes_per_second;
            assert!(simulated.seconds <= most, "{run:?} {simulated:?}");
            assert!(died > 0 || simulated == undisturbed, "{run:?} {simulated:?}");
        }
        let all = Model { deaths: vec![0.1; 4], ..model(9, 4) };
        assert_eq!(all.simulate().seconds, f64::INFINITY);
    }
}
