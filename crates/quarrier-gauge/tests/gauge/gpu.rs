//! Devices: measured if there are any, and reported missing otherwise.

use std::sync::atomic::AtomicBool;

use quarrier_gauge::{Area, Request, Unit, measure};

#[test]
fn every_device_is_measured_and_a_missing_device_is_reported() {
    let effort = super::least_effort();
    let request = Request { areas: vec![Area::Gpu], effort, ..Request::quick(".") };
    let measured = measure(&request, &mut (), &AtomicBool::new(false));
    let vendors = std::fs::read_dir("/etc/OpenCL/vendors");
    let is_installed = vendors.is_ok_and(|mut entries| entries.next().is_some());
    let report = match measured {
        Ok(report) => report,
        Err(error) => {
            assert!(!is_installed, "{error}");
            return assert!(error.to_string().contains("no GPU device"), "{error}");
        }
    };
    assert!(is_installed);
    let has = |name: &str, unit: Unit| {
        let mut of_name = report.readings.iter().filter(|reading| reading.measurement == name);
        of_name.any(|reading| reading.unit == unit && reading.value > 0.0)
    };
    assert!(has("multiply-add", Unit::FlopPerSecond) && has("multiply-add", Unit::OpPerSecond));
    for name in ["read", "write", "copy", "host to device", "device to host"] {
        assert!(has(name, Unit::BytesPerSecond), "no {name}");
    }
    assert!(has("kernel launch", Unit::Seconds));
    for reading in &report.readings {
        assert_eq!(reading.area, Area::Gpu);
        assert!(reading.parameters.text("device").is_some_and(|name| !name.is_empty()));
    }
}
