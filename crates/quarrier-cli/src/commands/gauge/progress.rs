//! Shows the current measurement on a terminal. No thread animates it, because a drawing thread would
//! be measured too.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use quarrier_gauge::{Area, Parameters, Reading, Unit, report};
use quarrier_report::visible;

use crate::complain;

/// The interval between two lines of a log: in the first minute, and later.
const LINES_EVERY: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(30)];

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    /// If standard error is not a terminal: when the last line was printed, or the measurement began.
    printed: Option<Instant>,
    started: Instant,
    readings: usize,
    /// The current visit, and the number of visits.
    visit: (u32, u32),
    /// The current measurement.
    place: String,
    /// How far it is, and its rate now; empty unless it takes long.
    now: String,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let bar = (!quiet && is_terminal).then(ProgressBar::new_spinner);
        if let Some(bar) = &bar
            && let Ok(style) = ProgressStyle::with_template("{wide_msg}")
        {
            bar.set_style(style);
        }
        let place = "the start".to_string();
        Progress {
            bar,
            printed: (!quiet && !is_terminal).then(Instant::now),
            started: Instant::now(),
            readings: 0,
            visit: (1, 1),
            place,
            now: String::new(),
        }
    }

    /// Removes the line from the terminal and returns the current measurement.
    pub(super) fn end(self) -> String {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        self.place
    }

    /// Prints the current measurement at intervals, so that the reader of a log sees progress.
    fn print(&mut self) {
        let [first, later] = LINES_EVERY;
        let every = if self.started.elapsed() < Duration::from_secs(60) { first } else { later };
        if self.printed.is_some_and(|printed| printed.elapsed() >= every) {
            self.printed = Some(Instant::now());
            complain(&self.line());
        }
    }

    fn line(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        let (readings, (visit, visits)) = (self.readings, self.visit);
        let (place, now) = (&self.place, &self.now);
        format!("{seconds:>4} s  visit {visit} of {visits}  {readings:>4} readings  {place}{now}")
    }

    fn show(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.line());
            bar.tick();
        }
    }
}

impl quarrier_gauge::Progress for Progress {
    fn visit(&mut self, number: u32, of: u32) {
        (self.visit, self.readings) = ((number, of), 0);
    }

    fn begin(&mut self, area: Area, measurement: &str, parameters: &Parameters) {
        let words: Vec<String> =
            parameters.iter().map(|(name, value)| report::parameter(name, value)).collect();
        let words = words.join(", ");
        self.place = visible(&format!("{}: {measurement} ({words})", area.name())).into_owned();
        self.print();
        self.show();
    }

    fn during(&mut self, rate: f64, unit: Unit, (seconds, all): (f64, f64)) {
        let rate = report::value(rate, unit);
        self.now = format!("  {seconds:.0} of {all:.0} s: {rate}");
        self.print();
        self.show();
    }

    fn reading(&mut self, _: &Reading) {
        self.readings += 1;
        self.now.clear();
        self.show();
    }
}
