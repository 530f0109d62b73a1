//! Charts of unexpected numbers.

use maud::{Render, html};
use proptest::prelude::*;
use quarrier_report::chart::{
    Axis, Bar, Chart, Point, Side, Tick, bar, bars, interval, labels_below,
};
use quarrier_report::page::page;
use quarrier_report::{Colour, number};

use crate::well_formed::check_page;

/// Every type of axis over these values.
fn axes(values: &[f64]) -> Vec<Axis> {
    let (first, last) =
        (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(0.0));
    let label = |value: f64, _| number::rate(value);
    vec![
        Axis::linear(first, last, vec![Tick { value: first, label: String::new() }]),
        Axis::time(last),
        Axis::offsets(last as u64),
        Axis::heights(last, number::number),
        Axis::whole_heights(last),
        Axis::values(first, last, label),
        Axis::decades(first, last, label),
        Axis::sizes(first, last),
        Axis::at(values),
        Axis::counts(last),
    ]
}

/// Draws a chart with all elements, over every pair of axes.
#[track_caller]
fn check(values: &[f64]) {
    let axes = axes(values);
    let mut parts = Vec::new();
    for (place, x) in axes.iter().enumerate() {
        let y = &axes[(place + 3) % axes.len()];
        let mut chart = Chart::new("odd", 100, x, y);
        let points = values.iter().zip(values.iter().rev()).map(|(&at, &value)| Point {
            at,
            value,
            spread: (value - at, value + at),
            is_hollow: value < at,
            title: number::number(value),
        });
        chart.line(Colour::series(place), &points.collect::<Vec<_>>());
        chart.area(Colour::BLUE, values, values.len() as f64);
        chart.stack(Colour::BLUE, values, 0.0);
        chart.columns(Colour::BLUE, values, f64::NAN);
        chart.tips(
            &values.iter().map(|v| number::bytes(*v as u64)).collect::<Vec<_>>(),
            2.5,
            number::seconds,
        );
        for &value in values {
            chart.level(value);
            chart.marks(&[(value, "mark"), (-value, "other")]);
            chart.lost(value, 1.0);
            chart.span(Colour::RUST, (value, 2.0 * value), value, "span");
            chart.text((value, value), Side::Left, "text");
            chart.tip((value, -value), "tip");
        }
        parts.push(chart.render());
        parts.push(labels_below(x));
    }
    let bar_of = |&value: &f64| Bar {
        name: number::count(value as u64),
        under: String::new(),
        value,
        spread: value / 2.0,
        value_text: html! { (number::percent(value)) },
        colour: Colour::GREEN,
    };
    parts.push(bars(&values.iter().map(bar_of).collect::<Vec<_>>()));
    parts.push(bar(&values.iter().map(|value| ("c0", *value)).collect::<Vec<_>>()));
    for &value in values {
        parts.push(interval("good", (value, -value), value, (0.4, value)));
    }
    check_page(&page("charts", &[], &parts));
}

#[test]
fn charts_of_odd_values_have_finite_places() {
    let odd =
        [0.0, -1.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN_POSITIVE];
    check(&[]);
    for a in odd {
        check(&[a]);
        check(&[a; 3]);
        for b in odd {
            check(&[a, b, 0.5]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn charts_of_any_values_have_finite_places(values in prop::collection::vec(any::<f64>(), 0..6)) {
        check(&values);
    }
}

#[test]
fn a_chart_shows_what_it_was_given() {
    let (x, y) = (Axis::linear(0.0, 10.0, Vec::new()), Axis::linear(0.0, 1.0, Vec::new()));
    let mut chart = Chart::new("a", 100, &x, &y);
    chart.area(Colour::BLUE, &[0.5, 0.5, 1.0, 0.0], 4.0);
    chart.level(0.25);
    let shown = chart.render().into_string();
    assert!(shown.contains("d=\"M0 100V50H500.00V0H750.00V100H1000.00V100z\""), "{shown}");
    assert!(shown.contains("y1=\"75.0\" y2=\"75.0\""), "{shown}");
    let mut chart = Chart::new("b", 100, &x, &y);
    let point = |at, value| Point {
        at,
        value,
        spread: (value - 0.1, value + 0.1),
        is_hollow: false,
        title: "told".to_string(),
    };
    chart.line(Colour::GREEN, &[point(0.0, 0.5), point(5.0, 1.0)]);
    let shown = chart.render().into_string();
    assert!(shown.contains("class=\"line c2\" d=\"M0.00 50.0L500.00 0.0\""), "{shown}");
    assert!(shown.contains("x1=\"0.00%\" x2=\"0.00%\" y1=\"60.0\" y2=\"40.0\""), "{shown}");
    assert!(shown.contains("<title>told</title>"), "{shown}");
}

#[test]
fn one_finding_is_seen_beside_very_many() {
    let mut counts = vec![0.0; 250];
    (counts[0], counts[125]) = (1.0, 1e6);
    let (x, y) = (Axis::offsets(1000), Axis::whole_heights(1e6));
    let mut chart = Chart::new("a", 100, &x, &y);
    chart.columns(Colour::VIOLET, &counts, 250.0);
    assert!(chart.render().into_string().contains("d=\"M0 100V96H4.00V100H500.00V"));
}
