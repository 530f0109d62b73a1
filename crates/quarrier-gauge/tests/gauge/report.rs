//! The stored and displayed forms of a report.

use quarrier_gauge::compare::compare;
use quarrier_gauge::report::{EarlierReport, Report, Role, changes, html, prometheus, table};

use crate::made_up;
use crate::well_formed::check_page;

#[test]
fn a_report_round_trips_through_json() {
    let report = made_up::report(1);
    let text = report.to_json().unwrap();
    assert!(Report::from_json("f", text.as_bytes()).unwrap() == report);
}

#[test]
fn a_report_conforms_to_its_schema() {
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gauge.schema.json");
    let published = std::fs::read(published).unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&published).unwrap();
    let mut report = made_up::report(1);
    report.readings[0].parameters =
        quarrier_gauge::Parameters::new().with("text", "x").with("number", 0.5).with("count", 3);
    let report = serde_json::from_str(&report.to_json().unwrap()).unwrap();
    conforms(&report, &schema, &schema, "report");
}

/// Checks a value against a JSON schema, as far as derived schemas need.
#[track_caller]
fn conforms(
    value: &serde_json::Value,
    schema: &serde_json::Value,
    root: &serde_json::Value,
    place: &str,
) {
    if let Some(reference) = schema.get("$ref").and_then(|r| r.as_str()) {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return conforms(value, target, root, place);
    }
    if let Some(choices) = schema.get("anyOf").or(schema.get("oneOf")) {
        let fits = |choice: &&serde_json::Value| {
            std::panic::catch_unwind(|| conforms(value, choice, root, place)).is_ok()
        };
        assert!(choices.as_array().unwrap().iter().any(|choice| fits(&choice)), "{place}");
        return;
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(value, constant, "{place}");
    }
    if let Some(kinds) = schema.get("type") {
        let is = |kind: &str| match kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("{place}: {other}"),
        };
        let several = kinds.as_array().cloned().unwrap_or_else(|| vec![kinds.clone()]);
        assert!(several.iter().any(|kind| is(kind.as_str().unwrap())), "{place}: {value}");
    }
    if let Some(object) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(object.contains_key(name.as_str().unwrap()), "{place}: no {name}");
        }
        for (name, inner) in object {
            let known = schema.get("properties").and_then(|all| all.get(name));
            let rest = schema.get("additionalProperties");
            let inner_schema = known.or(rest);
            assert!(inner_schema.is_some(), "{place}: {name} is not in the schema");
            conforms(inner, inner_schema.unwrap(), root, &format!("{place}.{name}"));
        }
    }
    if let (Some(items), Some(array)) = (schema.get("items"), value.as_array()) {
        for inner in array {
            conforms(inner, items, root, &format!("{place}[]"));
        }
    }
}

#[test]
fn a_reading_has_the_fields_that_people_script_against() {
    let text = made_up::report(1).to_json().unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    for reading in report["readings"].as_array().unwrap() {
        let fields = ["area", "measurement", "parameters", "value", "unit", "stddev", "runs"];
        for field in fields.into_iter().chain(["conditions"]) {
            assert!(!reading[field].is_null(), "{field} of {reading}");
        }
        assert!(reading["parameters"].is_object() && reading["conditions"].is_object());
        let unit = reading["unit"].as_str().unwrap();
        assert!(["op/s", "FLOP/s", "B/s", "s", "Hz"].contains(&unit), "{unit}");
    }
}

#[test]
fn a_file_that_is_not_a_report_is_refused_by_name() {
    let report = made_up::report(1).to_json().unwrap();
    let other = report.replacen("\"format\": 1", "\"format\": 2", 1);
    for text in ["", "{}", "[]", "{\"format\":1}", &report[..report.len() / 2], &other] {
        let error = Report::from_json("old.json", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("old.json: ") && !error.contains('\n'), "{error}");
    }
}

/// A report in which every string tries to inject something.
fn hostile() -> Report {
    let evil = "</title><script>alert(1)</script>\"'><img src=//evil.example/x>\x1b[31m\u{202e}";
    let mut report = made_up::report(1);
    let machine = &mut report.machine;
    for text in [
        &mut machine.name,
        &mut machine.cpu_model,
        &mut machine.cpu_signature,
        &mut machine.kernel,
        &mut machine.huge_pages,
        &mut machine.architecture,
        &mut report.quarrier,
    ] {
        *text = evil.to_owned();
    }
    machine.virtual_machine = Some(evil.to_owned());
    machine.governor = Some(evil.to_owned());
    machine.instruction_sets = vec![evil.to_owned()];
    for (place, reading) in report.readings.iter_mut().enumerate() {
        reading.disturbed = true;
        reading.notes = vec![evil.to_owned()];
        if place % 3 == 0 {
            reading.measurement = evil.to_owned().into();
        }
        for name in ["isa", "pages", "cache", "access", "type"] {
            if reading.parameters.get(name).is_some() {
                reading.parameters = reading.parameters.clone().with(name, evil);
            }
        }
        reading.parameters = reading.parameters.clone().with(evil, 7);
    }
    report
}

#[test]
fn hostile_text_of_a_report_is_escaped_in_the_page() {
    let (before, after) = (hostile(), hostile());
    let comparison = compare(&before, &after);
    let name = "<script src=//evil.example>";
    let page = html(&after, &[EarlierReport { name, report: &before, comparison: &comparison }]);
    check_page(&page);
    assert_eq!(page.matches("<script").count(), 0, "the page has no program");
    assert!(!page.contains("<img") && !page.contains("</title><script"));
}

#[test]
fn the_page_loads_nothing() {
    let report = made_up::report(1);
    let comparison = compare(&report, &report);
    let page = html(
        &report,
        &[EarlierReport { name: "old.json", report: &report, comparison: &comparison }],
    );
    for word in ["http:", "https:", "//", "url(", "@import", "src=", "<link", "<iframe"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_page_shows_every_area_its_plots_and_every_reading() {
    let report = made_up::report(1);
    let page = html(&report, &[]);
    for part in [
        "id=\"cpu\"",
        "id=\"memory\"",
        "id=\"disk\"",
        "id=\"network\"",
        "id=\"roofline\"",
        "id=\"conditions\"",
        "latency of single requests",
        "Example 9000",
    ] {
        assert!(page.contains(part), "{part}");
    }
    check_page(&page);
    assert!(page.matches("<svg role=\"img\"").count() > 20);
    let rows = page.matches("<td class=\"text\">").count();
    assert_eq!(rows, report.readings.len());
    assert!(page.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_page_can_be_made_of_numbers_that_no_machine_gives() {
    let mut report = made_up::report(1);
    let odd = [f64::NAN, f64::INFINITY, 0.0, -1.0, f64::MAX, f64::MIN_POSITIVE];
    for (place, reading) in report.readings.iter_mut().enumerate() {
        reading.value = odd[place % odd.len()];
        reading.stddev = odd[(place / 2) % odd.len()];
        if let Some(percentiles) = &mut reading.percentiles {
            percentiles.buckets = vec![(reading.value, u64::MAX); 3];
            percentiles.p50 = reading.value;
        }
    }
    report.machine.caches.iter_mut().for_each(|cache| cache.bytes = u64::MAX);
    report.machine.caches.iter_mut().for_each(|cache| cache.shared_by = 0);
    let comparison = compare(&report, &report);
    check_page(&html(&report, &[]));
    assert!(!table(&report, 100).is_empty() && !changes(&comparison).is_empty());
    report.readings.clear();
    check_page(&html(&report, &[]));
    assert!(!table(&report, 0).is_empty());
}

#[test]
fn the_table_fits_its_width_and_marks_what_was_disturbed() {
    let report = made_up::report(1);
    let lines = table(&report, 140);
    for line in &lines {
        let width: usize = line.iter().map(|span| span.text.chars().count()).sum();
        assert!(width <= 150, "{line:?}");
    }
    let marked = lines
        .iter()
        .filter(|line| line.iter().any(|span| span.role == Role::Bad && span.text.contains('!')));
    assert!(marked.count() >= 2, "the row and the summary");
}

/// The table's lines as text.
fn text_of(report: &Report) -> Vec<String> {
    let line = |line: Vec<quarrier_gauge::report::Span>| -> String {
        line.into_iter().map(|span| span.text).collect()
    };
    table(report, 160).into_iter().map(line).collect()
}

#[test]
fn latency_under_load_is_a_curve_in_the_order_of_the_load() {
    let report = made_up::report(1);
    let lines = text_of(&report);
    let first = lines.iter().position(|line| line.contains("latency under load")).unwrap();
    let curve = &lines[first..first + 5];
    assert!(curve.iter().all(|line| line.contains("others read ")), "{curve:#?}");
    assert!(!lines[first + 5].contains("others read"), "{curve:#?}");
    assert!(
        curve[0].contains("others read 1.1") && curve[4].contains("others read 9"),
        "{curve:#?}"
    );
    assert!(curve[0].contains("101 ns") || curve[0].contains("100 ns"), "{curve:#?}");
    assert!(!lines.iter().any(|line| line.contains("load beside latency")));
    let page = html(&report, &[]);
    check_page(&page);
    let drawing = parts(&page, "aria-label=\"Latency under load\"", "</figure>").next().unwrap();
    assert_eq!(drawing.matches("beside ").count(), 5);
    assert!(page.contains("<td>load beside latency</td>"), "among all readings");
}

#[test]
fn a_long_run_is_shown_over_time_with_the_change_of_its_rate() {
    let mut report = made_up::report(1);
    let row = |report: &Report, name: &str| {
        text_of(report).into_iter().find(|line| line.contains(name)).unwrap()
    };
    let writes = row(&report, "sustained write");
    assert!(writes.contains("after 31.0 s at 250 MB/s") && writes.contains('▄'), "{writes}");
    assert!(row(&report, "sustained read").ends_with(" steady"));
    let page = html(&report, &[]);
    check_page(&page);
    assert!(page.contains("Disk, sustained write") && page.contains("Disk, sustained read"));
    let label = "aria-label=\"Sustained write: bytes a second over time\"";
    let drawing = parts(&page, label, "</figure>").next().unwrap();
    assert_eq!(drawing.matches(" s: ").count(), 60, "a tip for each second");
    assert!(drawing.contains(">steady<") && drawing.contains("class=\"level\""), "{drawing}");
    assert!(page.contains("250 MB/s in the first 31.0 s, steady after 31.0 s"));
    assert!(page.contains("the same over 60.0 s"));
    let metrics = prometheus(&report);
    let initial = "quarrier_gauge_initial_bytes_per_second{";
    assert_eq!(metrics.lines().filter(|line| line.starts_with(initial)).count(), 2);
    // Of a run that did not become steady, and of one from elsewhere.
    let place = report.readings.iter().position(|r| r.timeline.is_some()).unwrap();
    let timeline = report.readings[place].timeline.as_mut().unwrap();
    timeline.steady_after_seconds = None;
    assert!(row(&report, "sustained write").ends_with("still changing"));
    let odd = [f64::NAN, f64::INFINITY, 0.0, -1.0, f64::MAX];
    for window_seconds in odd {
        let timeline = report.readings[place].timeline.as_mut().unwrap();
        timeline.rates = odd.repeat(1000);
        timeline.window_seconds = window_seconds;
        (timeline.initial, timeline.initial_seconds) = (window_seconds, window_seconds);
        timeline.steady_after_seconds = Some(window_seconds);
        let page = html(&report, &[]);
        check_page(&page);
        assert!(page.len() < 4 << 20 && !text_of(&report).is_empty());
    }
}

#[test]
fn cpus_and_nodes_are_matrices() {
    let mut report = made_up::report(1);
    let lines = text_of(&report);
    let row = |start: &str| lines.iter().find(|line| line.contains(start)).unwrap();
    assert!(row("from CPU 0, 3 CPUs").contains(" at CPU "), "{lines:#?}");
    assert!(row("from CPU 1, 2 CPUs").contains(" at CPU 3"), "its slowest: {lines:#?}");
    assert!(row("from node 1, 2 nodes").contains(" at node 0"), "{lines:#?}");
    assert!(lines[0].contains(" · 2 NUMA nodes"), "{}", lines[0]);
    let page = html(&report, &[]);
    check_page(&page);
    let table = page.split("<h3>Core to core</h3>").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap();
    assert_eq!(table.matches("<tr>").count(), 1 + 3);
    assert_eq!(table.matches(" ns").count(), 6);
    assert!(table.contains("from CPU 2") && table.contains("to 3"), "{table}");
    // A report from elsewhere may have any numbers.
    let first = report.readings.iter().position(|r| r.measurement == "core to core").unwrap();
    for place in 0..200_u64 {
        let mut more = report.readings[first].clone();
        more.parameters = more.parameters.with("from_cpu", place << 50).with("to_cpu", place << 40);
        report.readings.push(more);
    }
    check_page(&html(&report, &[]));
    assert!(text_of(&report).len() > lines.len());
}

/// The parts of `page` between `start` and the next `end`.
fn parts<'p>(page: &'p str, start: &'p str, end: &'p str) -> impl Iterator<Item = &'p str> {
    page.split(start).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0))
}

#[test]
fn the_most_important_numbers_of_the_page_are_marked_if_they_were_disturbed() {
    let mut report = made_up::report(1);
    let quiet = html(&report, &[]);
    let tiles = |page: &str| page.split("<section").next().unwrap().to_owned();
    let roofline =
        |page: &str| parts(page, "id=\"roofline\"", "</section>").next().unwrap().to_owned();
    assert!(!tiles(&quiet).contains("class=\"bad\" title") && !roofline(&quiet).contains("hollow"));
    for reading in &mut report.readings {
        reading.disturbed = true;
    }
    let page = html(&report, &[]);
    check_page(&page);
    let values = tiles(&page).matches("class=\"large\"").count();
    assert!(values >= 8, "{values}");
    assert_eq!(tiles(&page).matches("<span class=\"bad\" title=\"disturbed").count(), values);
    assert!(roofline(&page).contains("circle class=\"hollow\""));
    assert!(roofline(&page).contains("key hollow"));
}

#[test]
fn the_roofline_is_of_one_number_of_threads_and_shows_the_theoretical_peak() {
    let mut report = made_up::report(1);
    let peaks: Vec<_> = (report.readings.iter())
        .filter(|reading| reading.measurement == "multiply-add")
        .map(|chain| quarrier_gauge::Reading {
            measurement: "theoretical peak".into(),
            value: chain.value * 1.25,
            ..chain.clone()
        })
        .collect();
    report.readings.extend(peaks);
    let page = html(&report, &[]);
    check_page(&page);
    let roofline = parts(&page, "id=\"roofline\"", "</section>").next().unwrap();
    assert!(roofline.contains("The maximum rate of a kernel on 4 threads"));
    assert!(!["1 thread", "2 threads", "8 threads"].iter().any(|other| roofline.contains(other)));
    assert_eq!(roofline.matches("theoretical peak").count(), 2, "f64 and f32");
    assert!(roofline.contains("class=\"level\""));
    let tiles = page.split("<section").next().unwrap();
    assert_eq!(tiles.matches("80 % of the theoretical peak").count(), 2, "f64 and f32");
    assert!(!tiles.contains("8 threads"), "{tiles}");
}

#[test]
fn titles_of_drawings_name_the_measurement() {
    let page = html(&made_up::report(1), &[]);
    let measurements = ["Multiply-add", "Read", "Write", "Copy", "Triad", "Block read", "Latency"];
    let others = ["Matrix product", "Sequential read", "Sequential write", "Random read", "Sync"];
    let network = ["Throughput", "Round trip"];
    let all: Vec<_> = measurements.iter().chain(&others).chain(&network).collect();
    for title in parts(&page, "<h4>", "</h4>") {
        let is_named = all.iter().any(|name| title.starts_with(&format!("{name}: ")));
        assert!(is_named, "{title}");
    }
}

#[test]
fn error_bars_end_within_their_drawing() {
    let mut report = made_up::report(1);
    for reading in &mut report.readings {
        reading.stddev = reading.value * 0.8;
    }
    let page = html(&report, &[]);
    let drawings: Vec<_> = parts(&page, "<svg role=\"img\"", "<g class=\"tips\">").collect();
    let mut bars = 0;
    for drawing in drawings {
        for bar in parts(drawing, "<g class=\"spread", "</g>") {
            let number =
                |name: &str| -> f64 { parts(bar, name, "\"").next().unwrap().parse().unwrap() };
            // The upper end is above the drawing's edge, 0, by a margin.
            assert!(number(" y2=\"") > 0.5, "{bar}");
            assert!(number(" y1=\"") > number(" y2=\""), "{bar}");
            bars += 1;
        }
    }
    assert!(bars > 100, "{bars}");
}

#[test]
fn throttling_of_the_gauge_is_reported() {
    let mut report = made_up::report(1);
    let text = |report: &Report| -> String {
        let lines = table(report, 140);
        lines.iter().flatten().map(|span| span.text.as_str()).collect::<Vec<_>>().join("|")
    };
    let quiet = text(&report);
    assert!(!quiet.contains("throttled") && !quiet.contains("pressure"));
    report.conditions.throttled_periods = 12;
    report.conditions.throttled_seconds = 0.75;
    report.conditions.pressure =
        Some(quarrier_gauge::conditions::Pressure { cpu: 0.25, memory: 0.001, io: 0.0 });
    let held = text(&report);
    assert!(
        held.contains("throttled in 12 periods by a CPU quota: threads waited 750 ms"),
        "{held}"
    );
    assert!(held.contains("waited for: CPUs 25 %"), "{held}");
    let page = html(&report, &[]);
    check_page(&page);
    assert!(page.contains("12, 750 ms in all") && page.contains("memory 0.1 %"));
}
