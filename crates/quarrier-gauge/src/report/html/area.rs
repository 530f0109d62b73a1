//! The content for one area: the best of each measurement, the sweeps, every reading.

use maud::{Markup, html};
use quarrier_report::Colour;
use quarrier_report::chart::{Axis, Bar, Chart, Point, bars};
use quarrier_report::number::{count, counted, exact_bytes, number, percent};
use quarrier_report::page::{Key, cells, details, figure, legend, section as card, table as wide};

use super::{disturbance, mark, over_time, shared};
use crate::reading::{Area, Percentiles, Reading, Unit};
use crate::report::figure::{Figure, Group, Sweep};
use crate::report::matrix::Matrix;
use crate::report::over_time::is_over_time;
use crate::report::{Ceilings, Report, load, quantity, words};

/// Maximum number of histograms of one measurement.
const HISTOGRAMS_MAX: usize = 6;
/// Number of bars in a histogram, over the whole axis.
const HISTOGRAM_BARS: usize = 72;
/// Heights of drawings in pixels.
const SWEEP_PX: u32 = 240;
const HISTOGRAM_PX: u32 = 96;
/// A line with this many points takes the full width of the page.
const WIDE_POINTS: usize = 10;

/// Renders the section of `area`.
pub(super) fn section(report: &Report, area: Area, groups: &[&Group<'_>]) -> Markup {
    let mut drawn = Drawn::default();
    let all: Vec<Group<'_>> = groups.iter().map(|&group| group.clone()).collect();
    for group in groups {
        let curves = load::curves(group, &all);
        if let Some(matrix) = Matrix::of(group) {
            drawn.push(shared::matrix(&sentence(group.measurement), &matrix));
        } else if !curves.is_empty() {
            drawn.row.push(shared::curve(&sentence(group.measurement), &curves));
        } else if is_over_time(group) {
            drawn.row.extend(group.readings.iter().filter_map(|&reading| {
                let timeline = reading.timeline.as_ref()?;
                Some(over_time::chart(&sentence(group.measurement), reading, timeline))
            }));
        } else if !load::is_load(group) {
            show(report, group, &mut drawn);
        }
    }
    let content = html! {
        (best(report, groups))
        @for part in drawn.finish() { (part) }
        (table(groups))
    };
    card(area.name(), title(area), &content)
}

pub(super) fn title(area: Area) -> &'static str {
    match area {
        Area::Cpu => "Processor",
        Area::Memory => "Memory",
        Area::Disk => "Disk",
        Area::Network => "Network",
        Area::Gpu => "GPU",
    }
}

/// Drawings are arranged in rows; measurements with one small drawing each share a row.
#[derive(Default)]
struct Drawn {
    parts: Vec<Markup>,
    row: Vec<Markup>,
}

impl Drawn {
    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            self.parts.push(html! { div.figures { @for figure in row { (figure) } } });
        }
    }

    /// Adds a part below the preceding row.
    fn push(&mut self, part: Markup) {
        self.end_row();
        self.parts.push(part);
    }

    fn finish(mut self) -> Vec<Markup> {
        self.end_row();
        self.parts
    }
}

/// One measurement: its sweeps, or its readings as bars; and its histograms.
fn show(report: &Report, group: &Group<'_>, drawn: &mut Drawn) {
    let figures = group.figures();
    let points = |figure: &Figure<'_>| figure.lines.iter().map(|line| line.points.len()).max();
    match &figures[..] {
        [only] if points(only) < Some(WIDE_POINTS) => {
            drawn.row.push(sweep(report, group, only, false, true));
        }
        [] if group.readings.len() > 1 => {
            let bar = |reading: &&Reading| bar(words::parameters(reading), String::new(), reading);
            let all: Vec<Bar> = group.readings.iter().map(bar).collect();
            drawn.push(html! { h3 { (sentence(group.measurement)) } (bars(&all)) });
        }
        [] => {}
        many => {
            drawn.push(html! { h3 { (sentence(group.measurement)) } });
            for figure in many {
                drawn.row.push(sweep(report, group, figure, many.len() == 1, false));
            }
            drawn.end_row();
        }
    }
    let some = timed(group);
    if !some.is_empty() {
        let heading = format!("{}: latency of single requests", sentence(group.measurement));
        drawn.push(html! { h3 { (heading) } });
        drawn.row = histograms(&some);
        drawn.end_row();
    }
}

/// Capitalises the first letter.
fn sentence(words: &str) -> String {
    let mut rest = words.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// A reading as a bar.
fn bar(name: String, under: String, reading: &Reading) -> Bar {
    let value_text = html! {
        (quantity::value(reading.value, reading.unit)) " " small { (spread(reading)) }
        (mark(reading))
    };
    Bar {
        name,
        under,
        value: reading.value,
        spread: reading.stddev,
        value_text,
        colour: Colour::BLUE,
    }
}

/// The standard deviation as a share of the value: `± 0.4 %`.
pub(super) fn spread(reading: &Reading) -> String {
    let share = reading.stddev / reading.value;
    if share.is_finite() { format!("± {}", percent(share)) } else { String::new() }
}

/// The best reading of each measurement as bars, grouped by unit.
fn best(report: &Report, groups: &[&Group<'_>]) -> Markup {
    let ceilings = Ceilings::of(report);
    // Readings within a cache would make all others look alike.
    let counts =
        |reading: &Reading| reading.area != Area::Memory || ceilings.is_beyond_caches(reading);
    let mut units: Vec<Unit> = Vec::new();
    for group in groups {
        if !units.contains(&group.unit) && !group.unit.less_is_better() {
            units.push(group.unit);
        }
    }
    let of_unit = |unit: Unit| -> Vec<Bar> {
        let groups = groups.iter().filter(|group| group.unit == unit);
        let readings = groups.flat_map(|group| group.bests(counts));
        readings.map(|r| bar(r.measurement.to_string(), words::parameters(r), r)).collect()
    };
    let is_memory = groups.iter().any(|group| group.area == Area::Memory);
    let beyond = if is_memory { " beyond the caches" } else { "" };
    html! {
        @for unit in units {
            @let all = of_unit(unit);
            @if all.len() > 1 {
                h3 { "Best of each" (beyond) ", " (quantity::counted_in(unit)) }
                (bars(&all))
            }
        }
    }
}

/// One sweep with its caption and legend.
fn sweep(
    report: &Report,
    group: &Group<'_>,
    figure: &Figure<'_>,
    is_wide: bool,
    is_alone: bool,
) -> Markup {
    let over = format!("{} over {}", quantity::counted_in(group.unit), words::axis(figure.x));
    let caption = html! {
        @if is_alone { h3 { (sentence(group.measurement)) } }
        @if !figure.panel.is_empty() { h4 { (heading(group.measurement, &figure.panel)) } }
        p.under { (over) }
    };
    let caches = caches(report, group, figure);
    let lines: Vec<Vec<Point>> = figure.lines.iter().map(|line| points(line, figure.x)).collect();
    let places: Vec<f64> = lines.iter().flatten().map(|point| point.at).collect();
    let x = if words::is_size(figure.x) {
        let (least, most) = ends(places.iter().copied());
        Axis::sizes(least, most)
    } else {
        Axis::at(&places)
    };
    let (least, most) = ends(lines.iter().flatten().flat_map(heights));
    let y = Axis::values(least, most, |value, most| quantity::tick(value, most, group.unit));
    let name = match figure.panel.as_str() {
        "" => format!("{}: {over}", group.measurement),
        panel => format!("{}: {over}, {panel}", group.measurement),
    };
    let mut chart = Chart::new(&name, SWEEP_PX, &x, &y);
    let marks: Vec<(f64, &str)> = caches.iter().map(|(at, name)| (*at, name.as_str())).collect();
    chart.marks(&marks);
    for (place, line) in lines.iter().enumerate() {
        chart.line(Colour::series(place), line);
    }
    let drawing = html! { (keys(figure, &caches)) (chart) };
    self::figure(is_wide, &caption, drawing)
}

/// The title of one of several drawings: it names the measurement without the context of the page.
fn heading(measurement: &str, how: &str) -> String {
    format!("{}: {how}", sentence(measurement))
}

/// The heights of a point and its error bar: down to a tenth of its value, since a logarithmic axis has no
/// 0.
pub(super) fn heights(point: &Point) -> [f64; 3] {
    let (low, high) = point.spread;
    [low.max(point.value / 10.0), point.value, high]
}

pub(super) fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let some = values.filter(|value| value.is_finite() && *value > 0.0);
    some.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

fn points(sweep: &Sweep<'_>, x: &str) -> Vec<Point> {
    let point = |&(at, reading): &(f64, &Reading)| Point {
        at,
        value: reading.value,
        spread: (reading.value - reading.stddev, reading.value + reading.stddev),
        is_hollow: reading.disturbed,
        title: describe(reading, x, at),
    };
    sweep.points.iter().map(point).collect()
}

/// The tooltip of a point.
fn describe(reading: &Reading, x: &str, at: f64) -> String {
    let place = match words::is_size(x) {
        true => exact_bytes(at),
        false => format!("{} {}", number(at), words::axis(x)),
    };
    let value = quantity::value(reading.value, reading.unit);
    let runs = counted(reading.runs.into(), "run");
    let line = format!("{place}: {value} {} in {runs}", spread(reading));
    if reading.disturbed { format!("{line} · {}", disturbance(reading)) } else { line }
}

fn keys(figure: &Figure<'_>, caches: &[(f64, String)]) -> Markup {
    let is_disturbed = figure.lines.iter().flat_map(|line| &line.points).any(|(_, r)| r.disturbed);
    let mut keys = Vec::new();
    if figure.lines.len() > 1 {
        let lines = figure.lines.iter().enumerate();
        keys.extend(lines.map(|(place, sweep)| {
            (Some(Key::Series(Colour::series(place))), html! { (sweep.label) })
        }));
    }
    if is_disturbed {
        keys.push((Some(Key::Hollow), html! { "disturbed" }));
    }
    if !caches.is_empty() {
        let sizes = caches.iter().map(|(bytes, name)| format!("{name} {}", exact_bytes(*bytes)));
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        keys.push((Some(Key::Dashes), html! { "caches: " (sizes) }));
    }
    legend(&keys)
}

/// The cache sizes to mark on an axis of bytes that one core accesses repeatedly; not for blocks, whose
/// array exceeds all caches.
fn caches(report: &Report, group: &Group<'_>, figure: &Figure<'_>) -> Vec<(f64, String)> {
    let is_working_set = group.area == Area::Memory && !group.measurement.starts_with("block ");
    if !is_working_set || !words::is_size(figure.x) {
        return Vec::new();
    }
    let caches = report.machine.caches.iter();
    caches.map(|cache| (cache.bytes as f64, format!("L{}", cache.level))).collect()
}

/// The readings with a distribution of single events.
fn timed<'r>(group: &Group<'r>) -> Vec<(&'r Reading, &'r Percentiles)> {
    let readings = group.readings.iter();
    readings
        .filter_map(|reading| Some((*reading, reading.percentiles.as_ref()?)))
        .filter(|(_, percentiles)| !percentiles.buckets.is_empty())
        .collect()
}

/// The distributions of single events, on one time axis.
fn histograms(some: &[(&Reading, &Percentiles)]) -> Vec<Markup> {
    let buckets = some.iter().flat_map(|(_, percentiles)| &percentiles.buckets);
    let (least, most) = ends(buckets.map(|(end, _)| *end));
    let label = |value, most| quantity::tick(value, most, Unit::Seconds);
    let axis = Axis::decades(least, most, label);
    let spaced = spaced(some, HISTOGRAMS_MAX).into_iter();
    spaced.map(|(reading, p)| histogram(&axis, reading, p, some.len() == 1)).collect()
}

fn histogram(x: &Axis, reading: &Reading, percentiles: &Percentiles, is_wide: bool) -> Markup {
    let name = heading(&reading.measurement, &words::parameters(reading));
    let time = |seconds: f64| quantity::value(seconds, Unit::Seconds);
    let Percentiles { p50, p99, p999, max, .. } = *percentiles;
    let caption = html! {
        h4 { (name) }
        p.under {
            "half within " (time(p50)) ", 99 % within " (time(p99)) ", 99.9 % within " (time(p999))
            ", longest " (time(max))
        }
    };
    let counts = binned(&percentiles.buckets, x);
    let most = counts.iter().copied().fold(1.0, f64::max);
    let y = Axis::linear(0.0, most * 1.05, Vec::new());
    let label = format!("Times of single requests, {name}");
    let mut chart = Chart::new(&label, HISTOGRAM_PX, x, &y);
    chart.columns(Colour::BLUE, &counts, HISTOGRAM_BARS as f64);
    chart.marks(&[(p50, "p50"), (p99, "p99"), (p999, "p99.9")]);
    let titles: Vec<String> = counts.iter().map(|n| counted(*n as u64, "request")).collect();
    chart.tips(&titles, HISTOGRAM_BARS as f64, time);
    figure(is_wide, &caption, chart)
}

/// The buckets, each counted at its upper end on the axis.
fn binned(buckets: &[(f64, u64)], x: &Axis) -> Vec<f64> {
    let mut bars = vec![0.0; HISTOGRAM_BARS];
    for &(end, count) in buckets.iter().filter(|(end, _)| *end > 0.0 && end.is_finite()) {
        let bar = (x.share(end) * HISTOGRAM_BARS as f64) as usize;
        bars[bar.min(HISTOGRAM_BARS - 1)] += count as f64;
    }
    bars
}

/// At most `most` of `all`, evenly spaced, with the first and the last.
fn spaced<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).filter_map(|n| all.get(n * (all.len() - 1) / (most - 1)).copied()).collect()
}

/// Every reading.
fn table(groups: &[&Group<'_>]) -> Markup {
    let readings = || groups.iter().flat_map(|group| &group.readings);
    let columns = [
        "measurement",
        "how",
        "#median",
        "#standard deviation",
        "#best",
        "#runs",
        "#dropped",
        "notes",
    ];
    let rows = html! {
        @for reading in readings() {
            tr {
                td { (reading.measurement) }
                td { (words::parameters(reading)) }
                (cells([
                    quantity::value(reading.value, reading.unit),
                    quantity::value(reading.stddev, reading.unit),
                    quantity::value(reading.best, reading.unit),
                    count(reading.runs.into()),
                    count(reading.dropped.into()),
                ]))
                td.text {
                    @if reading.disturbed { b.bad { "disturbed" } " " }
                    (reading.notes.join("; "))
                }
            }
        }
    };
    let summary = counted(readings().count() as u64, "reading");
    details(&summary, false, &wide("", &columns, &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_one_bar() {
        let axis = Axis::decades(1e-6, 1e-3, |_, _| String::new());
        let bars = binned(&[(1e-6, 5), (2e-6, 7), (1e-3, 1), (50.0, 1)], &axis);
        assert_eq!(bars.iter().sum::<f64>(), 14.0);
        assert_eq!(bars[HISTOGRAM_BARS - 1], 1.0);
    }
}
