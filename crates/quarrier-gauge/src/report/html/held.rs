//! The machine, and the conditions of the measurement.

use maud::{Markup, html};
use quarrier_report::number::{count, exact_bytes, percent};
use quarrier_report::page::{facts, section as card};

use crate::conditions::Conditions;
use crate::reading::Unit;
use crate::report::{Report, quantity};

/// Renders the section.
pub(super) fn section(report: &Report) -> Markup {
    let content = html! {
        h3 { "The machine" }
        (facts(&machine(report)))
        h3 { "During the measurement" }
        (facts(&meanwhile(report)))
    };
    card("conditions", "Conditions", &content)
}

fn machine(report: &Report) -> Vec<(&'static str, String)> {
    let machine = &report.machine;
    let size = |bytes: u64| exact_bytes(bytes as f64);
    let caches: Vec<String> = machine
        .caches
        .iter()
        .map(|cache| match cache.shared_by {
            0 | 1 => format!("L{} {}", cache.level, size(cache.bytes)),
            many => format!("L{} {} for {many} CPUs", cache.level, size(cache.bytes)),
        })
        .collect();
    vec![
        ("host", machine.name.clone()),
        ("processor", machine.cpu_model.clone()),
        ("maker, family, model", machine.cpu_signature.clone()),
        ("architecture", machine.architecture.clone()),
        ("instruction sets", machine.instruction_sets.join(", ")),
        ("CPUs", count(machine.cpus.into())),
        (
            "limited by",
            match machine.limits.is_none() {
                true => "only the machine".to_string(),
                false => machine.limits.describe(),
            },
        ),
        ("caches", caches.join(", ")),
        ("NUMA nodes", if machine.nodes > 0 { count(machine.nodes.into()) } else { String::new() }),
        ("memory", size(machine.memory_bytes)),
        ("pages", size(machine.page_bytes)),
        ("huge pages", machine.huge_pages.clone()),
        ("kernel", machine.kernel.clone()),
        ("virtual machine", machine.virtual_machine.clone().unwrap_or_else(|| "no".to_string())),
        ("clock governor", machine.governor.clone().unwrap_or_else(|| "unknown".to_string())),
    ]
}

fn meanwhile(report: &Report) -> Vec<(&'static str, String)> {
    let held = &report.conditions;
    let clock = |hertz: Option<f64>| hertz.map(quantity::clock);
    let both = |before: String, after: String| format!("{before} before, {after} after");
    let clocks = match (clock(held.clock_before_hertz), clock(held.clock_after_hertz)) {
        (Some(before), Some(after)) => both(before, after),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => String::new(),
    };
    vec![
        ("load", both(format!("{:.2}", held.load_before), format!("{:.2}", held.load_after))),
        ("taken by the host", percent(held.steal)),
        ("CPUs that others kept busy", format!("{:.2}", held.others)),
        ("periods throttled by a CPU quota", throttled(held)),
        ("time that threads waited", pressure(held)),
        ("clock, measured", clocks),
        ("disturbed readings", count(held.disturbed.into())),
        ("it took", quantity::value(report.seconds, Unit::Seconds)),
    ]
}

/// Empty if no quota throttled the gauge.
fn throttled(held: &Conditions) -> String {
    match held.throttled_periods {
        0 => String::new(),
        periods => {
            let seconds = quantity::value(held.throttled_seconds, Unit::Seconds);
            format!("{}, {seconds} in all", count(periods))
        }
    }
}

/// Empty if the kernel does not count it.
fn pressure(held: &Conditions) -> String {
    held.pressure.map_or_else(String::new, |pressure| {
        let [cpu, memory, io] = [pressure.cpu, pressure.memory, pressure.io].map(percent);
        format!("CPUs {cpu}, memory {memory}, disks {io}")
    })
}
