//! A measured value with its unit, spread and conditions.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::conditions::During;

/// A part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Area {
    /// Arithmetic.
    Cpu,
    /// Caches and main memory.
    Memory,
    /// Files on a disk.
    Disk,
    /// Streams and datagrams.
    Network,
    /// Devices that run kernels.
    Gpu,
}

impl Area {
    /// All areas, in the order of measurement.
    pub const ALL: [Area; 5] = [Area::Cpu, Area::Memory, Area::Disk, Area::Network, Area::Gpu];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Area::Cpu => "cpu",
            Area::Memory => "memory",
            Area::Disk => "disk",
            Area::Network => "network",
            Area::Gpu => "gpu",
        }
    }

    /// The area of this name.
    pub fn of(name: &str) -> Option<Area> {
        Area::ALL.into_iter().find(|area| area.name() == name)
    }
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Unit {
    /// Operations per second.
    #[serde(rename = "op/s")]
    OpPerSecond,
    /// Floating-point operations per second; a fused multiply-add counts as two.
    #[serde(rename = "FLOP/s")]
    FlopPerSecond,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// Seconds per operation: lower is better.
    #[serde(rename = "s")]
    Seconds,
}

impl Unit {
    /// The unit, as written after a value.
    pub fn name(self) -> &'static str {
        match self {
            Unit::OpPerSecond => "op/s",
            Unit::FlopPerSecond => "FLOP/s",
            Unit::BytesPerSecond => "B/s",
            Unit::Seconds => "s",
        }
    }

    /// Whether smaller values are better.
    pub fn less_is_better(self) -> bool {
        matches!(self, Unit::Seconds)
    }
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Value {
    /// A count, for example of threads or bytes.
    Integer(u64),
    /// A number that is not a count.
    Number(f64),
    /// A word, for example `random`.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Text(value) => f.write_str(value),
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Value::Integer(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Value::Integer(u64::from(value))
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Value::Integer(value as u64)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        match u64::try_from(value) {
            Ok(value) => Value::Integer(value),
            Err(_) => Value::Number(f64::from(value)),
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Value::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

/// Named values, in insertion order: threads, block_bytes, access …
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parameters(Vec<(Cow<'static, str>, Value)>);

impl Parameters {
    /// Creates an empty set.
    pub fn new() -> Self {
        Parameters::default()
    }

    /// Adds a parameter; a repeated name takes the new value.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Value>) -> Self {
        self.set(name.into(), value.into());
        self
    }

    fn set(&mut self, name: Cow<'static, str>, value: Value) {
        match self.0.iter_mut().find(|(held, _)| *held == name) {
            Some((_, held)) => *held = value,
            None => self.0.push((name, value)),
        }
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(held, _)| held == name).map(|(_, value)| value)
    }

    /// The value of `name`, if it is a count.
    pub fn integer(&self, name: &str) -> Option<u64> {
        match self.get(name) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    /// The value of `name`, if it is a word.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// All parameters, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }
}

impl Serialize for Parameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Parameters;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names with numbers or words")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
                let mut parameters = Parameters::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    parameters.set(name.into(), value);
                }
                Ok(parameters)
            }
        }
        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Parameters {
    fn schema_name() -> Cow<'static, str> {
        "Parameters".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<String, Value>::json_schema(generator)
    }
}

/// The subject of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The part of the machine.
    pub area: Area,
    /// The operation, in plain words.
    pub measurement: Cow<'static, str>,
    /// The parameters of the operation.
    pub parameters: Parameters,
    /// The counted unit. With [`Unit::Seconds`] the value is the time for one, else the rate.
    pub unit: Unit,
}

impl Subject {
    /// Creates the subject `measurement` of `area`, counted in `unit`.
    pub fn new(
        area: Area,
        measurement: impl Into<Cow<'static, str>>,
        parameters: Parameters,
        unit: Unit,
    ) -> Self {
        Subject { area, measurement: measurement.into(), parameters, unit }
    }
}

/// The distribution of the times of single events, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The longest time.
    pub max: f64,
    /// For a plot: the upper end of each bucket in seconds, and the number of events in it.
    pub buckets: Vec<(f64, u64)>,
}

/// The rates of a long run, window by window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Timeline {
    /// The length of a window in seconds.
    pub window_seconds: f64,
    /// The rate in each window from the start, in the unit of the reading.
    pub rates: Vec<f64>,
    /// The rate at the start: the median of the windows up to the first lasting change.
    pub initial: f64,
    /// How long that rate lasted, in seconds.
    pub initial_seconds: f64,
    /// The time from the start after which the rate stayed the same, in seconds; missing if it still
    /// changed at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_after_seconds: Option<f64>,
}

/// A measured value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reading {
    /// The part of the machine.
    pub area: Area,
    /// The operation, in plain words.
    pub measurement: Cow<'static, str>,
    /// The parameters of the operation.
    pub parameters: Parameters,
    /// The median of the kept runs.
    pub value: f64,
    /// The counted unit.
    pub unit: Unit,
    /// The mean of the kept runs.
    pub mean: f64,
    /// The sample standard deviation of the kept runs.
    pub stddev: f64,
    /// The best of the kept runs.
    pub best: f64,
    /// The 95 % interval of the median, by bootstrap.
    pub interval: (f64, f64),
    /// The number of kept runs.
    pub runs: u32,
    /// The number of runs that others slowed: threads did not get their CPU or all of its core, did not
    /// run together, or reached less than 93 % of the best run.
    pub dropped: u32,
    /// Whether others used the machine, or the runs disagree: do not rely on the value.
    pub disturbed: bool,
    /// The value of each kept run, in order of time.
    pub samples: Vec<f64>,
    /// The conditions of the measurement.
    pub conditions: During,
    /// The distribution of single events, if they were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Percentiles>,
    /// For datagrams: the share of those sent that arrived, over all kept runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_share: Option<f64>,
    /// For one long run: the rate over time. The samples are then the windows after the rate stopped
    /// changing, or the last fifth of all windows if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The value of a run in the preceding hour, if it differs by more than 5 % and nothing else
    /// disturbed either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_value: Option<f64>,
    /// Notes for the reader, for example `no O_DIRECT here: buffered`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Reading {
    /// The subject.
    pub fn subject(&self) -> Subject {
        let parameters = self.parameters.clone();
        Subject::new(self.area, self.measurement.clone(), parameters, self.unit)
    }

    /// Whether conditions during the measurement disturbed it, rather than only a difference from an
    /// earlier run.
    pub fn is_disturbed_itself(&self) -> bool {
        self.disturbed && self.earlier_value.is_none()
    }
}
