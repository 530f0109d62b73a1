//! Shows the current measurement on a terminal. Nothing moves by itself, because a drawing thread would
//! be measured too.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use quarrier_gauge::{Area, Parameters, Reading, report};
use quarrier_report::visible;

pub(super) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    readings: usize,
    /// Which visit, and of how many.
    visit: (u32, u32),
    /// The last measurement that began.
    place: String,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(ProgressBar::new_spinner);
        if let Some(bar) = &bar
            && let Ok(style) = ProgressStyle::with_template("{wide_msg}")
        {
            bar.set_style(style);
        }
        let place = "the start".to_string();
        Progress { bar, started: Instant::now(), readings: 0, visit: (1, 1), place }
    }

    /// Removes the line from the terminal; returns the last measurement that began.
    pub(super) fn end(self) -> String {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
        self.place
    }

    fn show(&self) {
        if let Some(bar) = &self.bar {
            let seconds = self.started.elapsed().as_secs();
            let (readings, (visit, visits)) = (self.readings, self.visit);
            bar.set_message(format!(
                "{seconds:>4} s  visit {visit} of {visits}  {readings:>4} readings  {}",
                self.place
            ));
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
        self.show();
    }

    fn reading(&mut self, _: &Reading) {
        self.readings += 1;
        self.show();
    }
}
