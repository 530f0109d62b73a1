//! Memory: every read is compared with the written bytes.

use quarrier_gauge::cpu::Isa;
use quarrier_gauge::memory::{Access, Operation, PageKind, Stores};
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
fn more_memory_than_there_is_is_refused_before_it_is_touched() {
    let parameters = Parameters::new().with("block_bytes", 1_u64 << 46);
    let error = measured(Area::Memory, "latency", parameters).unwrap_err();
    assert!(matches!(error, Error::NoRoom { .. } | Error::Io { .. }), "{error}");
}
