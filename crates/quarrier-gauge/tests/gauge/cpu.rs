//! Arithmetic: requests are computed correctly, or refused.

use quarrier_gauge::cpu::{Isa, Lane, flop_per_cycle};
use quarrier_gauge::{Area, Error, Parameters, Unit};

use crate::{check, measured};

#[test]
fn every_instruction_set_and_lane_counts_right_with_more_threads_than_cores() {
    for isa in Isa::available() {
        for lane in Lane::ALL {
            for threads in [1, 9] {
                let parameters = Parameters::new()
                    .with("isa", isa.name())
                    .with("type", lane.name())
                    .with("threads", threads);
                let readings = measured(Area::Cpu, "multiply-add", parameters).unwrap();
                readings.iter().for_each(check);
                let unit = if lane.is_float() { Unit::FlopPerSecond } else { Unit::OpPerSecond };
                assert_eq!(readings[0].unit, unit);
                assert_eq!(readings[0].parameters.text("isa"), Some(isa.name()));
                assert_eq!(readings[0].parameters.integer("threads"), Some(threads as u64));
                let theory = readings.get(1).map(|reading| reading.measurement.as_ref());
                if flop_per_cycle(isa, lane).is_some() {
                    assert_eq!(theory, Some("theoretical peak"));
                } else {
                    assert_eq!(theory, None);
                }
            }
        }
    }
}

#[test]
fn products_of_either_kind_and_any_order_are_checked() {
    for (kind, order) in [("f32", 1), ("f64", 7), ("f32", 64), ("f64", 65)] {
        let parameters =
            Parameters::new().with("type", kind).with("order", order).with("threads", 3);
        let readings = measured(Area::Cpu, "matrix product", parameters).unwrap();
        readings.iter().for_each(check);
    }
    let whole = Parameters::new().with("type", "i32");
    assert!(matches!(measured(Area::Cpu, "matrix product", whole), Err(Error::BadRequest(_))));
    let empty = Parameters::new().with("order", 0);
    assert!(matches!(measured(Area::Cpu, "matrix product", empty), Err(Error::BadRequest(_))));
}

#[test]
fn the_clock_is_one_that_a_processor_can_have() {
    let readings = measured(Area::Cpu, "dependent add", Parameters::new()).unwrap();
    let is_known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    assert_eq!(readings.len(), usize::from(is_known));
    for reading in readings {
        check(&reading);
        assert!((1e7..1e11).contains(&reading.best), "{reading:?}");
    }
}

#[test]
fn unknown_names_are_refused_by_name() {
    let unknown = |name: &str, value: &str| {
        let parameters = Parameters::new().with(name.to_owned(), value);
        let error = measured(Area::Cpu, "multiply-add", parameters).unwrap_err();
        assert_eq!(error.to_string(), format!("{name}={value} is not known"));
    };
    unknown("isa", "MMX");
    unknown("type", "f80");
    assert!(measured(Area::Cpu, "division", Parameters::new()).is_err());
    if !Isa::Avx512.is_available() {
        let parameters = Parameters::new().with("isa", "AVX-512");
        assert!(matches!(measured(Area::Cpu, "add", parameters), Err(Error::BadRequest(_))));
    }
    let nobody = Parameters::new().with("threads", 0);
    assert!(matches!(measured(Area::Cpu, "add", nobody), Err(Error::BadRequest(_))));
}
