//! Memory: every read is compared with the written bytes.

use quarrier_gauge::cpu::Isa;
use quarrier_gauge::memory::{Access, CHAINS, Operation, PageKind, Stores};
use quarrier_gauge::trial::Team;
use quarrier_gauge::{Area, Error, Parameters, Unit};

use crate::{check, measured};

#[test]
fn every_operation_is_checked_with_every_kind_of_stores_pages_and_instructions() {
    for operation in Operation::ALL {
        for stores in Stores::ALL {
            for pages in PageKind::ALL {
                for isa in Isa::available() {
                    check_operation(operation, stores, pages, isa);
                }
            }
        }
    }
}

fn check_operation(operation: Operation, stores: Stores, pages: PageKind, isa: Isa) {
    let parameters = Parameters::new()
        .with("block_bytes", 1 << 20)
        .with("threads", 2)
        .with("stores", stores.name())
        .with("pages", pages.name())
        .with("isa", isa.name());
    let readings = measured(Area::Memory, operation.name(), parameters).unwrap();
    assert_eq!(readings.len(), 1);
    check(&readings[0]);
    assert_eq!(readings[0].unit, Unit::BytesPerSecond);
    assert_eq!(readings[0].parameters.text("stores").is_some(), operation.writes());
    assert_eq!(readings[0].parameters.text("isa"), Some(isa.name()));
    assert_eq!(readings[0].parameters.integer("block_bytes"), Some(1 << 20));
    assert_eq!(readings[0].parameters.text("access"), Some("sequential"));
}

#[test]
fn more_threads_than_cores_share_an_array_of_odd_size() {
    for bytes in [9 * 2048, 123_457] {
        let parameters = Parameters::new().with("block_bytes", bytes).with("threads", 9);
        check(&measured(Area::Memory, "triad", parameters).unwrap()[0]);
    }
    let too_few = Parameters::new().with("block_bytes", 2048).with("threads", 2);
    assert!(matches!(measured(Area::Memory, "triad", too_few), Err(Error::BadRequest(_))));
}

#[test]
fn blocks_from_one_byte_on_are_read_and_written_in_either_order() {
    for access in Access::ALL {
        for block_bytes in [1, 2, 8, 64, 512, 1 << 20] {
            for name in ["block read", "block write"] {
                let parameters = Parameters::new()
                    .with("block_bytes", block_bytes)
                    .with("access", access.name())
                    .with("threads", 1);
                check(&measured(Area::Memory, name, parameters).unwrap()[0]);
            }
        }
    }
    for wrong in [0, 3, 1000] {
        let parameters = Parameters::new().with("block_bytes", wrong);
        assert!(matches!(
            measured(Area::Memory, "block read", parameters),
            Err(Error::BadRequest(_))
        ));
    }
}

#[test]
fn latency_is_of_one_load_on_either_kind_of_pages() {
    for pages in PageKind::ALL {
        for bytes in [128, 4 << 10, 4 << 20] {
            let parameters =
                Parameters::new().with("block_bytes", bytes).with("pages", pages.name());
            let readings = measured(Area::Memory, "latency", parameters).unwrap();
            check(&readings[0]);
            assert_eq!(readings[0].unit, Unit::Seconds);
            assert_eq!(readings[0].parameters.integer("block_bytes"), Some(bytes));
            assert_eq!(readings[0].parameters.text("access"), Some("random"));
            assert!(readings[0].value < 1e-3, "{:?}", readings[0]);
        }
    }
}

#[test]
fn loads_in_flight_are_counted_in_every_chain() {
    for chains in CHAINS {
        let parameters = Parameters::new().with("chains", chains).with("block_bytes", 1 << 20);
        let reading = &measured(Area::Memory, "loads in flight", parameters).unwrap()[0];
        check(reading);
        assert_eq!(reading.unit, Unit::OpPerSecond);
        assert_eq!(reading.parameters.integer("chains"), Some(chains as u64));
        let each = format!("{:.2} ns a load", 1e9 / reading.value);
        assert!(reading.notes.contains(&each), "{reading:?}");
    }
    for (name, wrong) in [("chains", 3_u64), ("chains", 0), ("block_bytes", 1000)] {
        let parameters = Parameters::new().with(name, wrong);
        let refused = measured(Area::Memory, "loads in flight", parameters);
        assert!(matches!(refused, Err(Error::BadRequest(_))), "{name} {wrong}");
    }
}

/// The number of CPUs that the gauge may use at once.
fn cpus() -> usize {
    Team::here().unwrap().cpus()
}

#[test]
fn latency_under_load_comes_with_the_load() {
    for (name, wrong) in [("threads", 1), ("threads", cpus() + 1), ("pause_ns", 2_000_000)] {
        let parameters = Parameters::new().with(name, wrong);
        let refused = measured(Area::Memory, "latency under load", parameters);
        assert!(matches!(refused, Err(Error::BadRequest(_))), "{name} {wrong}");
    }
    if cpus() < 2 {
        return;
    }
    let loads = [0_u64, 500_000].map(|pause| {
        let parameters = Parameters::new().with("block_bytes", 4 << 20).with("pause_ns", pause);
        let readings = measured(Area::Memory, "latency under load", parameters).unwrap();
        let [latency, load] = &readings[..] else { panic!("{readings:?}") };
        check(latency);
        check(load);
        assert_eq!((latency.unit, load.unit), (Unit::Seconds, Unit::BytesPerSecond));
        assert_eq!(load.measurement, "load beside latency");
        assert_eq!(latency.parameters, load.parameters);
        assert_eq!(latency.parameters.integer("threads"), Some(cpus() as u64));
        load.value
    });
    assert!(loads[0] > loads[1], "threads without a pause read more: {loads:?}");
}

#[test]
fn a_line_goes_from_each_cpu_to_each_other() {
    let team = Team::here().unwrap();
    let allowed = team.cpu_numbers();
    let far = allowed.iter().max().unwrap() + 1;
    for (from, to) in [(allowed[0], allowed[0]), (allowed[0], far)] {
        let parameters = Parameters::new().with("from_cpu", from).with("to_cpu", to);
        let refused = measured(Area::Memory, "core to core", parameters);
        assert!(matches!(refused, Err(Error::BadRequest(_))), "{from} {to}");
    }
    let [from, to, ..] = allowed else { return };
    let parameters = Parameters::new().with("from_cpu", *to).with("to_cpu", *from);
    let reading = &measured(Area::Memory, "core to core", parameters).unwrap()[0];
    check(reading);
    assert_eq!(reading.unit, Unit::Seconds);
    assert_eq!(reading.parameters.integer("from_cpu"), Some(*to as u64));
    // Not the time of a run, and not less than a cycle.
    assert!(reading.value < 0.1 && reading.value > 1e-10, "{reading:?}");
}

#[test]
fn the_memory_of_a_node_is_measured_from_its_cpus() {
    let allowed = Team::here().unwrap().cpu_numbers().to_vec();
    let nodes = quarrier_gauge::conditions::nodes(&allowed);
    let refused = measured(Area::Memory, "node read", Parameters::new().with("to_node", 1 << 20));
    assert!(matches!(refused, Err(Error::BadRequest(_))));
    // Without nodes in its kernel, a machine has nothing to measure.
    for node in nodes.iter().filter(|node| !node.cpus.is_empty()) {
        let parameters = Parameters::new()
            .with("from_node", node.number)
            .with("to_node", node.number)
            .with("block_bytes", 4 << 20);
        let readings = measured(Area::Memory, "node latency", parameters).unwrap();
        let [latency, read] = &readings[..] else { panic!("{readings:?}") };
        check(latency);
        check(read);
        assert_eq!((latency.unit, read.unit), (Unit::Seconds, Unit::BytesPerSecond));
        assert_eq!(read.measurement, "node read");
        assert_eq!(read.parameters.integer("to_node"), Some(node.number.into()));
        let elsewhere = |note: &String| note.contains("not on node");
        assert!(!read.notes.iter().any(elsewhere), "{read:?}");
    }
}

#[test]
fn more_memory_than_there_is_is_refused_before_it_is_touched() {
    let parameters = Parameters::new().with("block_bytes", 1_u64 << 46);
    let error = measured(Area::Memory, "latency", parameters).unwrap_err();
    assert!(matches!(error, Error::NoRoom { .. } | Error::Io { .. }), "{error}");
}
