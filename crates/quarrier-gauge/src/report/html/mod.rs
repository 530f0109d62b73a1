//! The page: one file that shows a report, readable without a network and without a program.
//!
//! ```text
//! Report ── page      header, the main numbers, whether to trust them
//!        ── roofs     the roofline
//!        ── area      bars, sweeps, histograms, readings; shared: matrices, latency under load;
//!                     over_time: long runs
//!        ── against   the change of each reading
//!        ── held      machine and conditions
//! ```
//!
//! All elements, including charts, come from [`quarrier_report`], which escapes all text: a report may
//! come from another machine.

mod against;
mod area;
mod held;
mod over_time;
mod page;
mod roofs;
mod shared;

use maud::{Markup, Render, html};

use super::Report;
use super::figure::groups;
use crate::compare::Comparison;
use crate::reading::{Area, Reading};

/// An earlier report that the page compares with.
#[derive(Debug, Clone, Copy)]
pub struct EarlierReport<'r> {
    /// The name of the report, such as that of its file.
    pub name: &'r str,
    /// The earlier report.
    pub report: &'r Report,
    /// The change of each reading.
    pub comparison: &'r Comparison<'r>,
}

/// Renders the whole page.
pub fn html(report: &Report, against: &[EarlierReport<'_>]) -> String {
    let groups = groups(&report.readings);
    let areas: Vec<Area> = Area::ALL
        .into_iter()
        .filter(|area| groups.iter().any(|group| group.area == *area))
        .collect();
    let mut parts = vec![
        page::header(report, &areas, !against.is_empty()),
        page::headlines(report),
        page::trust(report),
        roofs::section(report),
    ];
    parts.extend(against.iter().map(|against| against::section(report, against)));
    for area in areas {
        let of_area: Vec<_> = groups.iter().filter(|group| group.area == area).collect();
        parts.push(area::section(report, area, &of_area));
    }
    parts.push(held::section(report));
    let title = format!("{} · quarrier gauge", report.machine.cpu_model);
    quarrier_report::page::page(&title, &[], &parts)
}

/// Facts in large type: a label, a value, and a line below it.
fn large<V: Render>(facts: &[(&str, V, String)]) -> Markup {
    html! {
        dl.facts {
            @for (label, value, under) in facts {
                div { dt { (label) } dd.large { (value) @if !under.is_empty() { small { (under) } } } }
            }
        }
    }
}

/// The mark of an unreliable reading, with the reason; empty for others.
fn mark(reading: &Reading) -> Markup {
    html! { @if reading.disturbed { " " span.bad title=(disturbance(reading)) { "○" } } }
}

/// Why a reading is unreliable.
fn disturbance(reading: &Reading) -> String {
    match reading.notes.is_empty() {
        true => "disturbed".to_string(),
        false => format!("disturbed: {}", reading.notes.join("; ")),
    }
}
