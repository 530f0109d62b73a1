//! What cores share: the curve of latency under load, and matrices of CPUs or nodes.

use maud::{Markup, Render, html};
use quarrier_report::Colour;
use quarrier_report::chart::{Axis, Chart, Point, Tick};
use quarrier_report::number::counted;
use quarrier_report::page::{Key, cells, figure, legend, table};

use super::area::{ends, heights, spread};
use super::{disturbance, mark};
use crate::reading::{Reading, Unit};
use crate::report::load;
use crate::report::matrix::Matrix;
use crate::report::{quantity, words};

/// Height of the drawing in pixels.
const HEIGHT_PX: u32 = 240;

/// Number of marks on the axis of rates.
const TICKS: u32 = 4;

/// The time of a load over the rate at which other threads read meanwhile.
pub(super) fn curve(name: &str, curves: &[Vec<load::Point<'_>>]) -> Markup {
    let lines: Vec<Vec<Point>> =
        curves.iter().map(|curve| curve.iter().map(point).collect()).collect();
    let (_, most_load) = ends(lines.iter().flatten().map(|point| point.at));
    let x = Axis::linear(0.0, most_load * 1.05, ticks(most_load));
    let (least, most) = ends(lines.iter().flatten().flat_map(heights));
    let y = Axis::values(least, most, |value, most| quantity::tick(value, most, Unit::Seconds));
    let mut chart = Chart::new(name, HEIGHT_PX, &x, &y);
    for (place, line) in lines.iter().enumerate() {
        chart.line(Colour::series(place), line);
    }
    let caption = html! {
        h3 { (name) }
        p.under { "time over the bytes a second that the other threads read" }
    };
    figure(false, &caption, html! { (keys(curves)) (chart.render()) })
}

fn point(of: &load::Point<'_>) -> Point {
    let (load, latency) = (of.load, of.latency);
    let value = |reading: &Reading| quantity::value(reading.value, reading.unit);
    let disturbed = [load, latency].into_iter().find(|reading| reading.disturbed);
    let mut title = format!("{} {} beside {}", value(latency), spread(latency), value(load));
    if let Some(reading) = disturbed {
        title = format!("{title} · {}", disturbance(reading));
    }
    Point {
        at: load.value.max(0.0),
        value: latency.value,
        spread: (latency.value - latency.stddev, latency.value + latency.stddev),
        is_hollow: disturbed.is_some(),
        title,
    }
}

/// Marks at quarters of the highest rate.
fn ticks(most: f64) -> Vec<Tick> {
    let at = |quarter: u32| most * f64::from(quarter) / f64::from(TICKS);
    let tick = |value| Tick { value, label: quantity::tick(value, most, Unit::BytesPerSecond) };
    (0..=TICKS).map(|quarter| tick(at(quarter))).collect()
}

fn keys(curves: &[Vec<load::Point<'_>>]) -> Markup {
    let mut keys = Vec::new();
    for (place, curve) in curves.iter().enumerate().filter(|_| curves.len() > 1) {
        let label = curve.first().map(|point| {
            let shown = point.latency.parameters.iter().filter(|(name, _)| *name != "pause_ns");
            shown.map(|(name, value)| words::parameter(name, value)).collect::<Vec<_>>().join(", ")
        });
        keys.push((
            Some(Key::Series(Colour::series(place))),
            html! { (label.unwrap_or_default()) },
        ));
    }
    if curves.iter().flatten().any(|point| point.latency.disturbed || point.load.disturbed) {
        keys.push((Some(Key::Hollow), html! { "disturbed" }));
    }
    legend(&keys)
}

/// A table with a row for each place, and a column for each.
pub(super) fn matrix(name: &str, matrix: &Matrix<'_>) -> Markup {
    let heads: Vec<String> = matrix.columns.iter().map(|column| format!("#to {column}")).collect();
    let mut columns = vec![""];
    columns.extend(heads.iter().map(String::as_str));
    let rows = html! {
        @for (number, readings) in &matrix.rows {
            tr {
                td { (matrix.row_name(*number)) }
                (cells(readings.iter().map(|reading| reading.map(cell).unwrap_or_default())))
            }
        }
    };
    html! {
        h3 { (name) }
        p.under { (counted(matrix.columns.len() as u64, matrix.kind)) ", " (matrix.shared()) }
        (table("", &columns, &rows))
    }
}

fn cell(reading: &Reading) -> Markup {
    html! {
        span title=(spread(reading)) { (quantity::value(reading.value, reading.unit)) }
        (mark(reading))
    }
}
