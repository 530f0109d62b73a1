//! All that is shown of one area: the best of each measurement, the sweeps, every reading.

use super::bars::{self, Bar};
use super::plot::{self, Histogram, Line, Lines, Mark, Point, Scale};
use crate::reading::{Area, Percentiles, Reading, Unit};
use crate::report::figure::{Figure, Group, Sweep};
use crate::report::{Ceilings, Report, put, quantity, text, words};

/// Histograms drawn of one measurement.
const HISTOGRAMS_MOST: usize = 6;

/// Writes the section of `area`.
pub(super) fn section(out: &mut String, report: &Report, area: Area, groups: &[&Group<'_>]) {
    put!(out, "<section class=\"card\" id=\"{0}\"><h2>{1}</h2>\n", area.name(), title(area));
    best(out, report, groups);
    let mut grid = Grid { is_open: false };
    for group in groups {
        show(out, report, group, &mut grid);
    }
    grid.close(out);
    table(out, groups);
    put!(out, "</section>\n");
}

/// Drawings stand in rows; those of measurements with one small drawing each share them.
struct Grid {
    is_open: bool,
}

impl Grid {
    fn open(&mut self, out: &mut String) {
        if !self.is_open {
            put!(out, "<div class=\"figures\">\n");
            self.is_open = true;
        }
    }

    fn close(&mut self, out: &mut String) {
        if self.is_open {
            put!(out, "</div>\n");
            self.is_open = false;
        }
    }
}

/// A line of so many points takes the page's whole width.
const WIDE_POINTS: usize = 10;

/// One measurement: its sweeps, or its readings as bars; and its histograms.
fn show(out: &mut String, report: &Report, group: &Group<'_>, grid: &mut Grid) {
    let figures = group.figures();
    let points = |figure: &Figure<'_>| figure.lines.iter().map(|line| line.points.len()).max();
    match &figures[..] {
        [only] if points(only) < Some(WIDE_POINTS) => {
            grid.open(out);
            draw(out, report, group, (only, false, true));
        }
        [] if group.readings.len() > 1 => {
            grid.close(out);
            put!(out, "<h3>{}</h3>\n", heading(group));
            let all = group.readings.iter().map(|reading| Bar {
                name: words::parameters(reading),
                under: String::new(),
                reading,
                colour: 0,
            });
            bars::bars(out, &all.collect::<Vec<_>>());
        }
        [] => {}
        many => {
            grid.close(out);
            put!(out, "<h3>{}</h3>\n", heading(group));
            grid.open(out);
            for figure in many {
                draw(out, report, group, (figure, many.len() == 1, false));
            }
            grid.close(out);
        }
    }
    let some = timed(group);
    if !some.is_empty() {
        grid.close(out);
        histograms(out, group, &some);
    }
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

/// `triad`, and what it counts where that is a time.
fn heading(group: &Group<'_>) -> String {
    text::escape(&sentence(group.measurement))
}

/// With a capital first.
fn sentence(words: &str) -> String {
    let mut rest = words.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// The best reading of each measurement as bars, units apart.
fn best(out: &mut String, report: &Report, groups: &[&Group<'_>]) {
    let ceilings = Ceilings::of(report);
    // What is in a cache would make all that is not look alike.
    let counts =
        |reading: &Reading| reading.area != Area::Memory || ceilings.is_beyond_caches(reading);
    let mut units: Vec<Unit> = Vec::new();
    for group in groups {
        if !units.contains(&group.unit) && !group.unit.less_is_better() {
            units.push(group.unit);
        }
    }
    for unit in units {
        let of_unit = groups.iter().filter(|group| group.unit == unit);
        let all: Vec<Bar<'_>> = of_unit
            .flat_map(|group| group.bests(counts))
            .map(|reading| {
                let under = words::parameters(reading);
                Bar { name: reading.measurement.to_string(), under, reading, colour: 0 }
            })
            .collect();
        if all.len() > 1 {
            let beyond = all.iter().any(|bar| bar.reading.area == Area::Memory);
            let beyond = if beyond { " beyond the caches" } else { "" };
            put!(out, "<h3>Best of each{beyond}, {}</h3>\n", quantity::counted_in(unit));
            bars::bars(out, &all);
        }
    }
}

/// One sweep with its caption and key.
fn draw(
    out: &mut String,
    report: &Report,
    group: &Group<'_>,
    (figure, is_wide, is_alone): (&Figure<'_>, bool, bool),
) {
    let axis = words::axis(figure.x);
    let over = format!("{} over {axis}", quantity::counted_in(group.unit));
    put!(out, "<figure{}><figcaption>", wide(is_wide));
    if is_alone {
        put!(out, "<h3>{}</h3>", heading(group));
    }
    if !figure.panel.is_empty() {
        put!(out, "<h4>{}</h4>", text::escape(&figure.panel));
    }
    put!(out, "<p class=\"under\">{}</p></figcaption>\n", text::escape(&over));
    let lines: Vec<Line> = figure
        .lines
        .iter()
        .enumerate()
        .map(|(place, sweep)| line(place, sweep, figure.x))
        .collect();
    let marks = caches(report, group, figure);
    legend(out, figure, &marks);
    let places = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.at));
    let x = if words::is_size(figure.x) {
        let (least, most) = ends(places());
        Scale::of_bytes(least, most)
    } else {
        Scale::of_counts(&places().collect::<Vec<_>>())
    };
    let (least, most) = ends(lines.iter().flat_map(|line| line.points.iter().map(|p| p.value)));
    let name = format!("{}: {over}", group.measurement);
    let y = Scale::of_values(least, most, group.unit);
    out.push_str(&plot::lines(&Lines { name: &name, x, y, lines: &lines, marks: &marks, is_wide }));
    put!(out, "</figure>\n");
}

fn wide(is_wide: bool) -> &'static str {
    if is_wide { " class=\"whole\"" } else { "" }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let some = values.filter(|value| value.is_finite() && *value > 0.0);
    some.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

fn line(place: usize, sweep: &Sweep<'_>, x: &str) -> Line {
    let points = sweep.points.iter().map(|&(at, reading)| Point {
        at,
        value: reading.value,
        spread: (reading.value - reading.stddev, reading.value + reading.stddev),
        is_disturbed: reading.disturbed,
        told: told(reading, x, at),
    });
    Line { colour: plot::theme::series(place), points: points.collect() }
}

/// What the pointer tells over a point.
fn told(reading: &Reading, x: &str, at: f64) -> String {
    let place = match words::is_size(x) {
        true => quantity::size(at),
        false => format!("{} {}", quantity::count(at), words::axis(x)),
    };
    let value = quantity::value(reading.value, reading.unit);
    let mut told = format!("{place}: {value} {} in {}", bars::spread(reading), runs(reading));
    if reading.disturbed {
        told.push_str(&format!("\ndisturbed: {}", reading.notes.join("; ")));
    }
    told
}

fn runs(reading: &Reading) -> String {
    text::counted(reading.runs as usize, "run")
}

fn legend(out: &mut String, figure: &Figure<'_>, marks: &[Mark]) {
    let is_disturbed = figure.lines.iter().flat_map(|line| &line.points).any(|(_, r)| r.disturbed);
    put!(out, "<div class=\"legend\">");
    for (place, sweep) in figure.lines.iter().enumerate() {
        if figure.lines.len() > 1 {
            let label = text::escape(&sweep.label);
            put!(
                out,
                "<span><i class=\"key s{}\"></i>{label}</span>",
                place % plot::theme::SERIES_MOST
            );
        }
    }
    if is_disturbed {
        put!(out, "<span><i class=\"key hollow\"></i>disturbed</span>");
    }
    if !marks.is_empty() {
        let sizes = marks.iter().map(|mark| format!("{} {}", mark.name, quantity::size(mark.at)));
        let sizes = sizes.collect::<Vec<_>>().join(", ");
        put!(out, "<span><i class=\"key dashes\"></i>caches: {sizes}</span>");
    }
    put!(out, "</div>\n");
}

/// The sizes of caches on an axis of bytes that one core goes over again and again: blocks lie in an
/// array that no cache holds.
fn caches(report: &Report, group: &Group<'_>, figure: &Figure<'_>) -> Vec<Mark> {
    let is_working_set = group.area == Area::Memory && !group.measurement.starts_with("block ");
    if !is_working_set || !words::is_size(figure.x) {
        return Vec::new();
    }
    let caches = report.machine.caches.iter();
    caches.map(|cache| Mark { at: cache.bytes as f64, name: format!("L{}", cache.level) }).collect()
}

/// The readings that say how long single events took.
fn timed<'r>(group: &Group<'r>) -> Vec<(&'r Reading, &'r Percentiles)> {
    let readings = group.readings.iter();
    readings
        .filter_map(|reading| Some((*reading, reading.percentiles.as_ref()?)))
        .filter(|(_, percentiles)| !percentiles.buckets.is_empty())
        .collect()
}

/// How long single events took.
fn histograms(out: &mut String, group: &Group<'_>, some: &[(&Reading, &Percentiles)]) {
    let buckets = some.iter().flat_map(|(_, percentiles)| &percentiles.buckets);
    let ends = ends(buckets.map(|(end, _)| *end));
    put!(
        out,
        "<h3>{}: how long single requests took</h3>\n<div class=\"figures\">\n",
        heading(group)
    );
    let is_wide = some.len() == 1;
    for (reading, percentiles) in spaced(some, HISTOGRAMS_MOST) {
        let name = words::parameters(reading);
        let time = |seconds: f64| quantity::value(seconds, Unit::Seconds);
        put!(out, "<figure{}><figcaption><h4>{}</h4>", wide(is_wide), text::escape(&name));
        put!(
            out,
            "<p class=\"under\">half within {}, 99 % within {}, 99.9 % within {}, longest {}</p></figcaption>\n",
            time(percentiles.p50),
            time(percentiles.p99),
            time(percentiles.p999),
            time(percentiles.max)
        );
        out.push_str(&plot::histogram(&Histogram {
            name: &format!("Times of single requests, {name}"),
            colour: plot::theme::series(0),
            buckets: &percentiles.buckets,
            marks: &[
                (percentiles.p50, "p50"),
                (percentiles.p99, "p99"),
                (percentiles.p999, "p99.9"),
            ],
            ends,
            is_wide,
        }));
        put!(out, "</figure>\n");
    }
    put!(out, "</div>\n");
}

/// At most `most` of `all`, evenly taken, with the first and the last.
fn spaced<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).filter_map(|n| all.get(n * (all.len() - 1) / (most - 1)).copied()).collect()
}

/// Every reading.
fn table(out: &mut String, groups: &[&Group<'_>]) {
    let readings = groups.iter().map(|group| group.readings.len()).sum();
    put!(
        out,
        "<details><summary>{}</summary>\n<div class=\"wide\"><table>\n<thead><tr>\
         <th>measurement</th><th>how</th><th class=\"n\">median</th>\
         <th class=\"n\">standard deviation</th><th class=\"n\">best</th><th class=\"n\">runs</th>\
         <th class=\"n\">dropped</th><th>said of it</th></tr></thead><tbody>\n",
        text::counted(readings, "reading")
    );
    for reading in groups.iter().flat_map(|group| &group.readings) {
        let value = |value: f64| quantity::value(value, reading.unit);
        put!(out, "<tr><td>{}</td>", text::escape(&reading.measurement));
        put!(out, "<td>{}</td>", text::escape(&words::parameters(reading)));
        for cell in [
            value(reading.value),
            value(reading.stddev),
            value(reading.best),
            quantity::count(f64::from(reading.runs)),
            quantity::count(f64::from(reading.dropped)),
        ] {
            put!(out, "<td class=\"n\">{cell}</td>");
        }
        put!(out, "<td class=\"text\">");
        if reading.disturbed {
            put!(out, "<b class=\"bad\">disturbed</b> ");
        }
        put!(out, "{}</td></tr>\n", text::escape(&reading.notes.join("; ")));
    }
    put!(out, "</tbody></table></div></details>\n");
}
