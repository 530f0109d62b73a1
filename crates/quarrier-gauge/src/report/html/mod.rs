//! The page: one file that shows a report, readable without a network and without a program.
//!
//! ```text
//! Report ── page      head, facts, foot
//!        ── roofs     the roofline                       ┐
//!        ── area      bars, sweeps, histograms, readings ├ plot (SVG)
//!        ── against   what became of each reading        ┘
//!        ── held      machine and conditions
//! ```
//!
//! Everything that comes from a report goes through [`escape`](quarrier_report::escape): it may be
//! another machine's.

mod against;
mod area;
mod bars;
mod held;
mod page;
mod plot;
mod roofs;

use super::Report;
use super::figure::groups;
use crate::compare::Comparison;
use crate::reading::Area;

/// An earlier report that the page compares with.
#[derive(Debug, Clone, Copy)]
pub struct Against<'r> {
    /// What it is called, such as the name of its file.
    pub name: &'r str,
    /// The earlier report.
    pub report: &'r Report,
    /// What became of each reading.
    pub comparison: &'r Comparison<'r>,
}

/// The page, whole.
pub fn html(report: &Report, against: &[Against<'_>]) -> String {
    let mut out = String::with_capacity(256 * 1024);
    let groups = groups(&report.readings);
    let areas: Vec<Area> = Area::ALL
        .into_iter()
        .filter(|area| groups.iter().any(|group| group.area == *area))
        .collect();
    page::head(&mut out, report, &areas, !against.is_empty());
    page::headlines(&mut out, report);
    page::trust(&mut out, report);
    roofs::section(&mut out, report);
    for against in against {
        against::section(&mut out, report, against);
    }
    for area in areas {
        let of_area: Vec<_> = groups.iter().filter(|group| group.area == area).collect();
        area::section(&mut out, report, area, &of_area);
    }
    held::section(&mut out, report);
    page::foot(&mut out);
    out
}
