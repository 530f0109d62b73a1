//! The top of the page: header, the most important numbers, and whether to trust them.

use maud::{Markup, html};
use quarrier_report::number::{count, counted, exact_bytes, percent};
use quarrier_report::page::{self, note};

use crate::reading::{Area, Reading};
use crate::report::{Ceilings, Report, day, parameter_count, quantity, words};

/// Renders machine, date, and links to the sections.
pub(super) fn header(report: &Report, areas: &[Area], has_comparison: bool) -> Markup {
    let rest = html! {
        p.under { (under(report)) }
        nav {
            @if has_comparison { a href="#compared" { "Compared" } }
            @for area in areas {
                a href={ "#" (area.name()) } { (super::area::title(*area)) }
            }
            a href="#conditions" { "Conditions" }
        }
    };
    page::header("quarrier gauge", &report.machine.cpu_model, false, &rest)
}

/// Host, size, date.
fn under(report: &Report) -> String {
    let machine = &report.machine;
    let mut parts = vec![
        machine.name.clone(),
        counted(machine.cpus.into(), "CPU"),
        format!("{} of memory", exact_bytes(machine.memory_bytes as f64)),
    ];
    if !machine.limits.is_none() {
        parts.push(format!("limited by: {}", machine.limits.describe()));
    }
    if let Some(host) = &machine.virtual_machine {
        parts.push(format!("virtual machine ({host})"));
    }
    parts.push(day::utc(report.when));
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// Renders the ceilings that people ask for first.
pub(super) fn headlines(report: &Report) -> Markup {
    let ceilings = Ceilings::of(report);
    let disk = |name: &str, cache: &str| {
        ceilings.disk(name, cache).max_by(|a, b| a.value.total_cmp(&b.value))
    };
    let sustained = |name: &str| ceilings.best(Area::Disk, |reading| reading.measurement == name);
    let all: [(&str, Option<&Reading>); 12] = [
        ("Arithmetic, f64", ceilings.arithmetic("f64")),
        ("Arithmetic, f32", ceilings.arithmetic("f32")),
        ("Matrix product, f64", ceilings.product("f64")),
        ("Memory, read", ceilings.memory("read")),
        ("Memory, copy", ceilings.memory("copy")),
        ("Memory, load latency", ceilings.latency()),
        ("Disk, sequential read", disk("sequential read", "direct")),
        ("Disk, random read", disk("random read", "direct")),
        ("Disk, sustained write", sustained("sustained write")),
        ("Disk, sustained read", sustained("sustained read")),
        ("Network, TCP", ceilings.network("throughput", "tcp")),
        ("Network, round trip", ceilings.network("round trip", "tcp")),
    ];
    let some: Vec<_> = all
        .into_iter()
        .filter_map(|(name, reading)| Some((name, reading?)))
        .map(|(name, r)| {
            let value = html! { (quantity::value(r.value, r.unit)) (super::mark(r)) };
            (name, value, under_tile(ceilings, r))
        })
        .collect();
    if some.is_empty() {
        html! {}
    } else {
        super::large(&some)
    }
}

/// How the number was measured, and for arithmetic its share of the theoretical peak.
fn under_tile(ceilings: Ceilings<'_>, reading: &Reading) -> String {
    let words = words::parameters(reading);
    let threads = parameter_count(reading, "threads");
    let kind = reading.parameters.text("type").filter(|_| reading.measurement == "multiply-add");
    match kind.and_then(|kind| ceilings.theoretical(kind, threads)) {
        Some(peak) => {
            let share = percent(reading.value / peak.value);
            format!("{words} · {share} of the theoretical peak")
        }
        None => words,
    }
}

/// Renders the number of disturbed readings, as a warning before the first value.
pub(super) fn trust(report: &Report) -> Markup {
    let disturbed = report.readings.iter().filter(|reading| reading.disturbed).count();
    let all = counted(report.readings.len() as u64, "reading");
    note(html! {
        @if disturbed == 0 {
            b.good { "✓" } " None of " (all) " was disturbed by others."
        } @else {
            b.bad { "○" } " " (count(disturbed as u64)) " of " (all)
            " disturbed: others used the machine meanwhile, a limit throttled it, or the runs \
             disagree. They are drawn hollow or marked ○; do not rely on them."
        }
        " Values are medians of runs on threads bound to a CPU, each with its result checked; \
         error bars are one standard deviation."
    })
}
