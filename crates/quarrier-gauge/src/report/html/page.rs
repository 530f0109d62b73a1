//! What stands around the sections: head, the numbers that matter, whether to trust them, foot.

use quarrier_report::page as frame;

use crate::reading::{Area, Reading};
use crate::report::{Ceilings, Report, put, quantity, text, words};

/// Everything before the first section.
pub(super) fn head(out: &mut String, report: &Report, areas: &[Area], has_comparison: bool) {
    let machine = &report.machine.cpu_model;
    let mut colours = String::new();
    super::plot::theme::css(&mut colours);
    let styles = [include_str!("gauge.css"), &colours];
    frame::head(out, &format!("{machine} · quarrier gauge"), &styles, &[]);
    put!(
        out,
        "<header><p class=\"kicker\">quarrier gauge</p>\
         <h1>{}</h1>\n<p class=\"under\">{}</p>\n<nav>",
        text::escape(machine),
        text::escape(&under(report))
    );
    let mut link = |id: &str, name: &str| put!(out, "<a href=\"#{id}\">{name}</a>");
    if has_comparison {
        link("compared", "Compared");
    }
    for area in areas {
        link(area.name(), super::area::title(*area));
    }
    link("conditions", "Conditions");
    put!(out, "</nav></header>\n");
}

/// Host, size, day.
fn under(report: &Report) -> String {
    let machine = &report.machine;
    let mut parts = vec![
        machine.name.clone(),
        text::counted(machine.cpus as usize, "CPU"),
        format!("{} of memory", quantity::size(machine.memory_bytes as f64)),
    ];
    if let Some(host) = &machine.virtual_machine {
        parts.push(format!("virtual machine ({host})"));
    }
    parts.push(super::super::day::utc(report.when));
    parts.retain(|part| !part.is_empty());
    parts.join(" · ")
}

/// The ceilings that people ask for first.
pub(super) fn headlines(out: &mut String, report: &Report) {
    let ceilings = Ceilings::of(report);
    let disk = |name: &str, cache: &str| {
        ceilings.disk(name, cache).max_by(|a, b| a.value.total_cmp(&b.value))
    };
    let all: [(&str, Option<&Reading>); 10] = [
        ("Arithmetic, f64", ceilings.arithmetic("f64")),
        ("Arithmetic, f32", ceilings.arithmetic("f32")),
        ("Matrix product, f64", ceilings.product("f64")),
        ("Memory, read", ceilings.memory("read")),
        ("Memory, copy", ceilings.memory("copy")),
        ("Memory, wait for a load", ceilings.latency()),
        ("Disk, read in order", disk("sequential read", "direct")),
        ("Disk, read at random", disk("random read", "direct")),
        ("Network, TCP", ceilings.network("throughput", "tcp")),
        ("Network, there and back", ceilings.network("round trip", "tcp")),
    ];
    let some: Vec<_> = all.into_iter().filter_map(|(name, r)| Some((name, r?))).collect();
    if some.is_empty() {
        return;
    }
    put!(out, "<dl class=\"facts\">\n");
    for (name, reading) in some {
        put!(out, "<div class=\"large\"><dt>{name}</dt>");
        put!(out, "<dd>{}", quantity::value(reading.value, reading.unit));
        put!(out, "<small>{}</small></dd></div>\n", text::escape(&words::parameters(reading)));
    }
    put!(out, "</dl>\n");
}

/// How many readings were disturbed, before anybody believes one.
pub(super) fn trust(out: &mut String, report: &Report) {
    let disturbed = report.readings.iter().filter(|reading| reading.disturbed).count();
    let all = text::counted(report.readings.len(), "reading");
    put!(out, "<p class=\"none\">");
    match disturbed {
        0 => put!(out, "<b class=\"good\">✓</b> None of {all} was disturbed by others."),
        some => put!(
            out,
            "<b class=\"bad\">○</b> {} of {all} disturbed: others used the machine meanwhile, or \
             the runs disagree. They are drawn hollow; do not rely on them.",
            quantity::count(some as f64)
        ),
    }
    put!(
        out,
        " Values are medians of runs on threads bound to a CPU, each with its result checked; \
         error bars are one standard deviation.</p>\n"
    );
}

/// Everything after the last section.
pub(super) fn foot(out: &mut String) {
    frame::foot(out, &[]);
}
