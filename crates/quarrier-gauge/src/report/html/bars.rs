//! Bars beside each other, each with its spread: HTML, since names are long and screens narrow.

use super::plot::theme::SERIES_MOST;
use crate::reading::Reading;
use crate::report::{put, quantity, text};

/// A bar.
pub(super) struct Bar<'r> {
    pub(super) name: String,
    /// Said below the name.
    pub(super) under: String,
    pub(super) reading: &'r Reading,
    /// The place of its colour.
    pub(super) colour: usize,
}

/// Bars of one unit, as long as their values are of the greatest.
pub(super) fn bars(out: &mut String, bars: &[Bar<'_>]) {
    let top = |bar: &Bar<'_>| bar.reading.value + bar.reading.stddev;
    let most = bars.iter().map(top).filter(|top| top.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    put!(out, "<div class=\"bars\">\n");
    for bar in bars {
        let reading = bar.reading;
        let share = |value: f64| (100.0 * value / most).clamp(0.0, 100.0);
        put!(out, "<div class=\"what\">{}", text::escape(&bar.name));
        if !bar.under.is_empty() {
            put!(out, "<small>{}</small>", text::escape(&bar.under));
        }
        put!(out, "</div><div class=\"track\"><i class=\"fill s{}\"", bar.colour % SERIES_MOST);
        put!(out, " style=\"width:{:.2}%\"></i>", share(reading.value));
        let (low, high) = (reading.value - reading.stddev, reading.value + reading.stddev);
        if share(high) - share(low) > 0.5 {
            let (left, width) = (share(low), share(high) - share(low));
            put!(out, "<i class=\"spread\" style=\"left:{left:.2}%;width:{width:.2}%\"></i>");
        }
        put!(out, "</div><div class=\"value\">{}", quantity::value(reading.value, reading.unit));
        put!(out, " <small>{}</small>", spread(reading));
        if reading.disturbed {
            put!(out, " <span class=\"bad\" title=\"{}\">○</span>", disturbance(reading));
        }
        put!(out, "</div>\n");
    }
    put!(out, "</div>\n");
}

/// The standard deviation as a share of the value: `± 0.4 %`.
pub(super) fn spread(reading: &Reading) -> String {
    let share = reading.stddev / reading.value;
    if share.is_finite() { format!("± {}", quantity::percent(share)) } else { String::new() }
}

/// Why a reading is not to be trusted, for an attribute.
pub(super) fn disturbance(reading: &Reading) -> String {
    match reading.notes.is_empty() {
        true => "disturbed".to_string(),
        false => text::escape(&format!("disturbed: {}", reading.notes.join("; "))),
    }
}
