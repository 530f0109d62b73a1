//! Readings from the outside: JSON, conditions, and progress.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarrier_gauge::conditions::Machine;
use quarrier_gauge::trial::{Effort, Session, Team};
use quarrier_gauge::{
    Area, Error, Parameters, Progress, Reading, Report, Request, Unit, Value, measure, measure_one,
};

use crate::{least_effort, measured};

/// Whether two values differ only in the last digit of numbers, which the parser may round.
fn is_same(left: &serde_json::Value, right: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (left, right) {
        (Number(a), Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-15 * a.abs().max(b.abs())
        }
        (Array(a), Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Object(a), Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((m, a), (n, b))| m == n && is_same(a, b))
        }
        _ => left == right,
    }
}

#[test]
fn a_reading_survives_json_and_has_the_fields_of_the_contract() {
    let parameters = Parameters::new().with("isa", "scalar").with("threads", 1);
    let Ok(readings) = measured(Area::Cpu, "multiply-add", parameters) else { return };
    for reading in readings {
        let text = serde_json::to_string(&reading).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        for field in
            ["area", "measurement", "parameters", "value", "unit", "stddev", "runs", "conditions"]
        {
            assert!(json.get(field).is_some(), "{field} is not in {text}");
        }
        assert_eq!(json["unit"], "FLOP/s");
        assert_eq!(json["area"], "cpu");
        assert_eq!(json["conditions"]["disturbed"], json["disturbed"]);
        let again: Reading = serde_json::from_str(&text).unwrap();
        assert!(is_same(&json, &serde_json::to_value(again).unwrap()), "{text}");
    }
}

#[test]
fn parameters_keep_their_order_and_kinds() {
    let parameters =
        Parameters::new().with("threads", 2).with("share", 0.5).with("access", "random");
    let text = serde_json::to_string(&parameters).unwrap();
    assert_eq!(text, r#"{"threads":2,"share":0.5,"access":"random"}"#);
    assert_eq!(serde_json::from_str::<Parameters>(&text).unwrap(), parameters);
    assert_eq!(parameters.clone().with("threads", 4).integer("threads"), Some(4));
    assert_eq!(parameters.get("share"), Some(&Value::Number(0.5)));
    assert_eq!(parameters.text("access"), Some("random"));
    assert_eq!(parameters.integer("access"), None);
}

#[test]
fn areas_are_found_by_their_names() {
    for area in Area::ALL {
        assert_eq!(Area::of(area.name()), Some(area));
    }
    assert_eq!(Area::of("soul"), None);
}

#[test]
fn the_machine_says_what_it_is() {
    let machine = Machine::detect();
    assert!(machine.cpus >= 1 && machine.page_bytes >= 4096);
    assert!(!machine.instruction_sets.is_empty() && !machine.kernel.is_empty());
    assert!(machine.caches.windows(2).all(|pair| pair[0].level <= pair[1].level));
    let text = serde_json::to_string(&machine).unwrap();
    assert_eq!(serde_json::from_str::<Machine>(&text).unwrap(), machine);
}

/// Stops after the first reading.
struct Once<'a> {
    begun: u32,
    stop: &'a AtomicBool,
}

impl Progress for Once<'_> {
    fn begin(&mut self, _: Area, _: &str, _: &Parameters) {
        self.begun += 1;
    }

    fn reading(&mut self, _: &Reading) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_measurement_stops_where_the_caller_says_so() {
    let stop = AtomicBool::new(false);
    let mut once = Once { begun: 0, stop: &stop };
    let request = Request {
        areas: vec![Area::Cpu],
        effort: least_effort(),
        ..Request::quick(std::env::temp_dir())
    };
    assert!(matches!(measure(&request, &mut once, &stop), Err(Error::Stopped)));
    assert!(once.begun <= 2, "{}", once.begun);
}

#[test]
fn a_report_of_arithmetic_survives_json() {
    let request = Request {
        areas: vec![Area::Cpu],
        effort: least_effort(),
        threads: vec![1],
        ..Request::quick(std::env::temp_dir())
    };
    let report = measure(&request, &mut (), &AtomicBool::new(false)).unwrap();
    let names: Vec<&str> = report.readings.iter().map(|reading| &*reading.measurement).collect();
    assert!(names.contains(&"multiply-add") && names.contains(&"matrix product"), "{names:?}");
    let text = serde_json::to_string(&report).unwrap();
    let again: Report = serde_json::from_str(&text).unwrap();
    let (left, right) = (serde_json::to_value(&report), serde_json::to_value(&again));
    assert!(is_same(&left.unwrap(), &right.unwrap()), "{text}");
}

/// A process that keeps a CPU busy until this is dropped.
struct Neighbour(Child);

impl Neighbour {
    fn busy() -> Neighbour {
        let endless = "while :; do :; done";
        Neighbour(Command::new("sh").args(["-c", endless]).stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_reading_among_busy_neighbours_says_so() {
    let cpus = Team::here().unwrap().cpus();
    let _neighbours: Vec<Neighbour> = (0..2 * cpus).map(|_| Neighbour::busy()).collect();
    let effort = Effort {
        most_runs: 1_000,
        patience: Duration::from_millis(300),
        narrow: 0.0,
        ..least_effort()
    };
    let stop = AtomicBool::new(false);
    let mut nobody = ();
    let mut session = Session::new(effort, &mut nobody, &stop).unwrap();
    let parameters = Parameters::new().with("bytes", 1 << 16);
    measure_one(&mut session, Area::Memory, "read", &parameters).unwrap();
    let reading = &session.readings()[0];
    assert!(reading.disturbed && !reading.notes.is_empty(), "{reading:?}");
}

/// Scripts depend on these names.
#[test]
fn units_are_the_four_that_the_contract_has() {
    let units = [Unit::OpPerSecond, Unit::FlopPerSecond, Unit::BytesPerSecond, Unit::Seconds];
    assert_eq!(units.map(Unit::name), ["op/s", "FLOP/s", "B/s", "s"]);
    let schema = include_str!("../../../../docs/gauge.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let published = schema["$defs"]["Unit"]["oneOf"].as_array().unwrap();
    let published: Vec<&str> =
        published.iter().map(|unit| unit["const"].as_str().unwrap()).collect();
    assert_eq!(published, units.map(Unit::name));
}
