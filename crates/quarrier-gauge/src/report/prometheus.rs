//! A report in the Prometheus text format, for the textfile collector of its node exporter.

use std::fmt::Write;

use super::Report;
use crate::reading::{Reading, Unit};

/// Formats the metrics of a report. The time of the measurement is a metric, since that collector refuses
/// samples with timestamps.
pub fn prometheus(report: &Report) -> String {
    let mut text = String::new();
    for unit in [Unit::OpPerSecond, Unit::FlopPerSecond, Unit::BytesPerSecond, Unit::Seconds] {
        let (name, of) = metric(unit);
        let readings = || report.readings.iter().filter(|reading| reading.unit == unit);
        family(&mut text, name, &format!("{of}: the median of the runs."), readings(), |r| r.value);
        let spread = format!("{name}_stddev");
        let help = format!("{of}: the standard deviation of the runs.");
        family(&mut text, &spread, &help, readings(), |r| r.stddev);
        let initial = name.replace("_gauge_", "_gauge_initial_");
        let help = format!("{of}: the rate at the start of a long run.");
        let initial_of = |r: &Reading| r.timeline.as_ref().map_or(f64::NAN, |over| over.initial);
        let long_runs = readings().filter(|reading| reading.timeline.is_some());
        family(&mut text, &initial, &help, long_runs, initial_of);
    }
    let all = || report.readings.iter();
    let disturbed = "1 if others used the machine, a limit throttled it, or runs disagree; else 0.";
    family(&mut text, "quarrier_gauge_disturbed", disturbed, all(), |r| {
        f64::from(u8::from(r.disturbed))
    });
    let info = labels(&[
        ("cpu_model", report.machine.cpu_model.clone()),
        ("host", report.machine.name.clone()),
        ("limits", report.machine.limits.describe()),
        ("version", report.quarrier.clone()),
    ]);
    single(
        &mut text,
        "quarrier_gauge_info",
        "The machine, and the version that measured it.",
        &info,
        1.0,
    );
    let help = "When the report was made, in seconds since 1970.";
    single(&mut text, "quarrier_gauge_time_seconds", help, "", report.when as f64);
    let help = "The duration of the measurement.";
    single(&mut text, "quarrier_gauge_duration_seconds", help, "", report.seconds);
    text
}

/// The name of a unit's metric, and the description of its count.
fn metric(unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::OpPerSecond => ("quarrier_gauge_operations_per_second", "Operations per second"),
        Unit::FlopPerSecond => {
            ("quarrier_gauge_flops_per_second", "Floating-point operations per second")
        }
        Unit::BytesPerSecond => ("quarrier_gauge_bytes_per_second", "Bytes per second"),
        Unit::Seconds => ("quarrier_gauge_latency_seconds", "Seconds per operation"),
    }
}

fn head(text: &mut String, name: &str, help: &str) {
    // Writing to a string does not fail.
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
}

fn single(text: &mut String, name: &str, help: &str, labels: &str, value: f64) {
    head(text, name, help);
    let _ = writeln!(text, "{name}{labels} {value}");
}

fn family<'r>(
    text: &mut String,
    name: &str,
    help: &str,
    readings: impl Iterator<Item = &'r Reading>,
    value: impl Fn(&Reading) -> f64,
) {
    let mut readings = readings.peekable();
    if readings.peek().is_none() {
        return;
    }
    head(text, name, help);
    let mut written = std::collections::HashSet::new();
    for reading in readings {
        let labels = labels_of(reading);
        // A report from elsewhere may have a reading twice, which Prometheus refuses.
        if written.insert(labels.clone()) {
            let _ = writeln!(text, "{name}{labels} {}", number(value(reading)));
        }
    }
}

fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "NaN".to_string(),
        _ if value.is_infinite() => if value > 0.0 { "+Inf" } else { "-Inf" }.to_string(),
        _ => value.to_string(),
    }
}

fn labels_of(reading: &Reading) -> String {
    let mut pairs = vec![
        ("area".to_string(), reading.area.name().to_string()),
        ("measurement".to_string(), reading.measurement.to_string()),
    ];
    pairs.extend(reading.parameters.iter().map(|(name, value)| (label(name), value.to_string())));
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs.dedup_by(|b, a| a.0 == b.0);
    let pairs: Vec<(&str, String)> =
        pairs.iter().map(|(name, value)| (&**name, value.clone())).collect();
    labels(&pairs)
}

/// Sanitises the name of a label: reports from elsewhere may have any name.
fn label(name: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut label: String = name.chars().map(|c| if is_of_name(c) { c } else { '_' }).collect();
    if label.is_empty()
        || label.starts_with(|c: char| c.is_ascii_digit())
        || label.starts_with("__")
    {
        label.insert_str(0, "p_");
    }
    label
}

fn labels(pairs: &[(&str, String)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_of_labels_are_made_harmless() {
        assert_eq!(
            ["threads", "a-b", "9", "__x", ""].map(label),
            ["threads", "a_b", "p_9", "p___x", "p_"]
        );
        let pairs = [("a", "say \"no\"\\\n".to_string())];
        assert_eq!(labels(&pairs), "{a=\"say \\\"no\\\"\\\\\\n\"}");
        assert_eq!([f64::NAN, f64::INFINITY, 0.5].map(number), ["NaN", "+Inf", "0.5"]);
    }
}
