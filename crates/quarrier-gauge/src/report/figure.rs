//! Arranges readings for drawing: sweeps over one parameter, with a line for each value of the others.
//!
//! It knows no measurement by name. One of the parameters that vary within a measurement becomes the
//! axis, some divide figures, the rest distinguish lines.

use std::collections::BTreeMap;

use super::words;
use crate::reading::{Area, Reading, Unit, Value};

/// All readings of one measurement in one unit.
#[derive(Debug, Clone)]
pub(crate) struct Group<'r> {
    pub(crate) area: Area,
    pub(crate) measurement: &'r str,
    pub(crate) unit: Unit,
    pub(crate) readings: Vec<&'r Reading>,
}

/// Lines over one parameter.
#[derive(Debug, Clone)]
pub(crate) struct Figure<'r> {
    /// Distinguishes this figure from others of the measurement, in words; often empty.
    pub(crate) panel: String,
    /// The parameter of the axis.
    pub(crate) x: &'r str,
    pub(crate) lines: Vec<Sweep<'r>>,
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Sweep<'r> {
    /// Distinguishes it from the other lines, in words; empty if it is the only one.
    pub(crate) label: String,
    /// The points, in the order of the axis.
    pub(crate) points: Vec<(f64, &'r Reading)>,
}

/// A parameter with fewer values does not become an axis.
const AXIS_VALUES_LEAST: usize = 3;
/// A figure with more lines is divided.
const LINES_MOST: usize = 6;
/// Parameters that can be an axis, by preference; those that count bytes come before all of them.
const AXES: [&str; 6] = ["depth", "streams", "threads", "connections", "groups", "chains"];
/// Parameters that are numbers, but not amounts.
const PLACES: [&str; 4] = ["from_cpu", "to_cpu", "from_node", "to_node"];
/// Parameters that divide figures, by preference.
const PANELS: [&str; 8] =
    ["device", "access", "cache", "stores", "pages", "way", "protocol", "type"];

/// Groups readings by area, measurement and unit, in the order in which these first appear.
pub(crate) fn groups(readings: &[Reading]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for reading in readings {
        let same = groups.iter_mut().find(|group| {
            group.area == reading.area
                && group.measurement == reading.measurement
                && group.unit == reading.unit
        });
        match same {
            Some(group) => group.readings.push(reading),
            None => groups.push(Group {
                area: reading.area,
                measurement: &reading.measurement,
                unit: reading.unit,
                readings: vec![reading],
            }),
        }
    }
    groups.sort_by_key(|group| group.area);
    groups
}

impl<'r> Group<'r> {
    /// Returns the reading with the best rate of those that satisfy `fits`: one each for direct access
    /// and through the page cache, since these cannot be compared.
    pub(crate) fn bests(&self, fits: impl Fn(&Reading) -> bool) -> Vec<&'r Reading> {
        let mut bests: Vec<&Reading> = Vec::new();
        let way = |reading: &'r Reading| reading.parameters.text("cache");
        for &reading in self.readings.iter().filter(|r| r.value.is_finite() && fits(r)) {
            match bests.iter_mut().find(|best| way(best) == way(reading)) {
                Some(best) if best.value < reading.value => *best = reading,
                Some(_) => {}
                None => bests.push(reading),
            }
        }
        bests
    }

    /// Returns the figures; none if no parameter has enough values.
    pub(crate) fn figures(&self) -> Vec<Figure<'r>> {
        let varying = varying(&self.readings);
        let Some(x) = axis(&varying) else { return Vec::new() };
        let mut figures = divided(&self.readings, &varying, x);
        let is_sweep = |line: &Sweep<'_>| line.points.len() >= AXIS_VALUES_LEAST;
        if !figures.iter().flat_map(|figure| &figure.lines).any(is_sweep) {
            return Vec::new();
        }
        let others: Vec<Figure<'r>> = AXES
            .iter()
            .filter(|name| **name != x)
            .flat_map(|name| self.second(&varying, x, name))
            .collect();
        if !others.is_empty() {
            // A line of one point appears in the other figure.
            for figure in &mut figures {
                figure.lines.retain(|line| line.points.len() > 1);
            }
            figures.retain(|figure| !figure.lines.is_empty());
        }
        figures.extend(others);
        figures
    }

    /// Returns figures over `name`, if that was swept, too: at the value of `x` with the most readings.
    fn second(&self, varying: &Varying<'r>, x: &str, name: &str) -> Vec<Figure<'r>> {
        if numbers(varying, name).is_none_or(|values| values < AXIS_VALUES_LEAST) {
            return Vec::new();
        }
        let mut by_place: BTreeMap<Key, Vec<&'r Reading>> = BTreeMap::new();
        for &reading in &self.readings {
            by_place.entry(key(reading.parameters.get(x))).or_default().push(reading);
        }
        let swept = |readings: &Vec<&Reading>| {
            let mut keys: Vec<Key> =
                readings.iter().map(|reading| key(reading.parameters.get(name))).collect();
            keys.sort();
            keys.dedup();
            keys.len()
        };
        // If several have as many, take the one with the most readings, then the last: the largest
        // block.
        let at = by_place.into_values().max_by_key(|readings| (swept(readings), readings.len()));
        let Some(readings) = at.filter(|readings| swept(readings) >= AXIS_VALUES_LEAST) else {
            return Vec::new();
        };
        let Some(name) = varying.iter().map(|(name, _)| *name).find(|held| *held == name) else {
            return Vec::new();
        };
        let place = readings.first().and_then(|reading| reading.parameters.get(x));
        let place = place.map(|value| words::parameter(x, value)).unwrap_or_default();
        let mut figures = divided(&readings, &self::varying(&readings), name);
        for figure in &mut figures {
            figure.lines.retain(|line| line.points.len() > 1);
            let panel = [place.as_str(), figure.panel.as_str()];
            figure.panel = panel
                .iter()
                .filter(|word| !word.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join(", ");
        }
        figures.retain(|figure| !figure.lines.is_empty());
        figures
    }
}

/// The value of a parameter in a form that has an order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Missing,
    Number(u64),
    Text(String),
}

fn key(value: Option<&Value>) -> Key {
    match value {
        None => Key::Missing,
        Some(Value::Integer(number)) => Key::Number((*number as f64).to_bits()),
        // The bits of non-negative numbers sort like the numbers.
        Some(Value::Number(number)) => Key::Number(number.max(0.0).to_bits()),
        Some(Value::Text(text)) => Key::Text(text.clone()),
    }
}

/// Parameters that differ, with their values in order.
type Varying<'r> = Vec<(&'r str, Vec<Key>)>;

fn varying<'r>(readings: &[&'r Reading]) -> Varying<'r> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in readings.iter().flat_map(|reading| reading.parameters.iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let values = |name: &str| {
        let mut keys: Vec<Key> =
            readings.iter().map(|reading| key(reading.parameters.get(name))).collect();
        keys.sort();
        keys.dedup();
        keys
    };
    let all = names.into_iter().map(|name| (name, values(name)));
    all.filter(|(_, values)| values.len() > 1).collect()
}

/// Returns the number of values of `name`, if all are numbers.
fn numbers(varying: &Varying<'_>, name: &str) -> Option<usize> {
    let (_, values) = varying.iter().find(|(held, _)| *held == name)?;
    let all = values.iter().all(|value| matches!(value, Key::Number(_)));
    all.then_some(values.len())
}

/// Chooses the axis: a parameter that counts bytes, else one of [`AXES`], else any.
fn axis<'r>(varying: &Varying<'r>) -> Option<&'r str> {
    let can = |name: &str| {
        !PLACES.contains(&name) && numbers(varying, name).is_some_and(|n| n >= AXIS_VALUES_LEAST)
    };
    let names = || varying.iter().map(|(name, _)| *name).filter(|name| can(name));
    let bytes = names().filter(|name| words::is_size(name));
    let bytes = bytes.max_by_key(|name| numbers(varying, name));
    let known = || AXES.iter().find_map(|known| names().find(|name| name == known));
    bytes.or_else(known).or_else(|| names().next())
}

/// Returns figures over `x` with few enough lines each.
fn divided<'r>(readings: &[&'r Reading], varying: &Varying<'r>, x: &'r str) -> Vec<Figure<'r>> {
    let mut rest: Vec<(&str, usize)> = varying
        .iter()
        .filter(|(name, _)| *name != x)
        .map(|(name, values)| (*name, values.len()))
        .collect();
    let mut panels: Vec<&str> = Vec::new();
    while parts(readings, &names(&rest), &panels) > LINES_MOST && rest.len() > 1 {
        let known = PANELS.iter().find_map(|known| rest.iter().position(|(name, _)| name == known));
        let fewest = || (0..rest.len()).min_by_key(|&at| rest[at].1);
        let Some(at) = known.or_else(fewest) else { break };
        panels.push(rest.remove(at).0);
    }
    let lines = names(&rest);
    split(readings, &panels)
        .into_iter()
        .map(|(panel, readings)| Figure {
            panel,
            x,
            lines: split(&readings, &lines)
                .into_iter()
                .map(|(label, readings)| sweep(label, readings, x))
                .collect(),
        })
        .collect()
}

fn names<'n>(counted: &[(&'n str, usize)]) -> Vec<&'n str> {
    counted.iter().map(|(name, _)| *name).collect()
}

/// Returns the maximum number of lines of a figure with this division.
fn parts(readings: &[&Reading], lines: &[&str], panels: &[&str]) -> usize {
    split(readings, panels).iter().map(|(_, part)| split(part, lines).len()).max().unwrap_or(0)
}

/// Groups readings by the values of `names`, in the order of the values, each group with its words.
fn split<'r>(readings: &[&'r Reading], names: &[&str]) -> Vec<(String, Vec<&'r Reading>)> {
    let mut parts: BTreeMap<Vec<Key>, Vec<&'r Reading>> = BTreeMap::new();
    for &reading in readings {
        let keys = names.iter().map(|name| key(reading.parameters.get(name))).collect();
        parts.entry(keys).or_default().push(reading);
    }
    let label_of = |reading: &Reading| {
        let values = names.iter().filter_map(|name| Some((*name, reading.parameters.get(name)?)));
        values.map(|(name, value)| words::parameter(name, value)).collect::<Vec<_>>().join(", ")
    };
    parts
        .into_values()
        .map(|part| (part.first().map(|first| label_of(first)).unwrap_or_default(), part))
        .collect()
}

fn sweep<'r>(label: String, readings: Vec<&'r Reading>, x: &str) -> Sweep<'r> {
    let place = |reading: &Reading| match reading.parameters.get(x) {
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let mut points: Vec<(f64, &Reading)> =
        readings.into_iter().filter_map(|reading| Some((place(reading)?, reading))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Sweep { label, points }
}
