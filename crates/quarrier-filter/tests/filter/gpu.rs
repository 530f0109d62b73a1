//! Devices select the same rows as the naive evaluator, or refuse.

use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use quarrier_filter::{Error, Expr, ResidentTable, sql};
use quarrier_gpu::Device;
use quarrier_messages::Table;

use super::scan::conditions::condition;
use super::scan::expected;
use super::scan::tables::{Random, table};

const SIMULATOR: &str = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";

/// Returns the first device of this machine; `None` only if no driver is installed.
fn device() -> Option<Device> {
    let first = quarrier_gpu::find().into_iter().next();
    let vendors = std::fs::read_dir("/etc/OpenCL/vendors");
    let is_installed = vendors.is_ok_and(|mut entries| entries.next().is_some());
    assert_eq!(first.is_some(), is_installed, "a driver is there: {is_installed}");
    first
}

/// Evaluates all conditions that a device supports at once; returns their number.
fn check(table: &Table, conditions: &[Expr], part_bytes: usize) -> Option<usize> {
    let device = device()?;
    let mut resident = ResidentTable::in_parts(table, &device, part_bytes).unwrap();
    let taken = conditions.iter().filter(|condition| {
        match resident.counts(std::slice::from_ref(*condition)) {
            Ok(_) => true,
            Err(Error::NotOnDevice { condition: 0, .. }) => false,
            Err(error) => panic!("{error}: {condition:?}"),
        }
    });
    let taken: Vec<Expr> = taken.cloned().collect();
    let (counts, rows) = (resident.counts(&taken).unwrap(), resident.rows(&taken).unwrap());
    for ((condition, count), rows) in taken.iter().zip(counts).zip(rows) {
        let expected = expected(table, condition);
        assert_eq!(Ok(&rows), expected.as_ref(), "{condition:?}");
        assert_eq!(count, rows.len() as u64, "{condition:?}");
    }
    Some(taken.len())
}

fn bound(table: &Table, strings: &[&str]) -> Vec<Expr> {
    strings.iter().map(|text| sql::condition(text, table.schema()).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn devices_select_the_same_rows_as_the_naive_evaluator(
        seed: u64,
        segments in prop::collection::vec(
            prop_oneof![1..200_usize, Just(4096), 4000..4200_usize, Just(8500)],
            1..4,
        ),
        part_bytes in prop_oneof![Just(1), Just(200_000), Just(1 << 30)],
    ) {
        let table = table(seed, &segments);
        let mut random = Random(seed ^ 0x5555);
        let conditions: Vec<_> =
            (0..12).map(|nth| condition(&table, &mut random, nth % 4)).collect();
        check(&table, &conditions, part_bytes);
    }
}

#[test]
fn numeric_conditions_are_supported() {
    let table = table(5, &[65_536, 65_536, 777]);
    let conditions = bound(
        &table,
        &[
            "tiny = 1",
            "small BETWEEN 100 AND 300",
            "NOT (small BETWEEN 100 AND 300)",
            "wide IN (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987)",
            "wide NOT IN (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, NULL)",
            "huge >= 0 AND huge < 9223372036854775807",
            "flag",
            "flag IS NOT TRUE",
            "money > 12.34 OR money IS NULL",
            "price <= 99.5 AND small <> 7",
            "odd > 0.1",
            "NOT (odd > 0.1 AND small < 500)",
            "(small < 10) IS UNKNOWN",
            "day < DATE '1970-06-01'",
            "at >= TIMESTAMP '1970-01-02 00:00:00'",
            "word LIKE 'a%' AND runs > 3000",
            "many LIKE '%7%'",
            "plain IS NOT NULL",
            "runs IN (0, 2000, 4000)",
            "1 = 1",
            "small = NULL",
        ],
    );
    if let Some(taken) = check(&table, &conditions, 1 << 30) {
        assert_eq!(taken, conditions.len());
    }
}

#[test]
fn more_conditions_than_one_launch_takes_are_answered_in_several() {
    let table = table(11, &[3000, 65]);
    let strings: Vec<String> =
        (0..300).map(|n| format!("small > {n} AND (wide < {} OR tiny = 0)", 1000 * n)).collect();
    let strings: Vec<&str> = strings.iter().map(String::as_str).collect();
    let conditions = bound(&table, &strings);
    if let Some(taken) = check(&table, &conditions, 1 << 30) {
        assert_eq!(taken, conditions.len());
    }
}

#[test]
fn unsupported_conditions_are_refused_by_number() {
    let Some(device) = device() else { return };
    let table = table(3, &[100]);
    let mut resident = ResidentTable::new(&table, &device).unwrap();
    for wrong in ["small * tiny > 7", "1 / small > 0", "plain = 'a'", "MOD(small, 2) = 1"] {
        let conditions = bound(&table, &["small > 1", wrong]);
        let error = resident.counts(&conditions).unwrap_err();
        assert!(matches!(error, Error::NotOnDevice { condition: 1, .. }), "{wrong}: {error}");
        assert!(error.to_string().contains("condition 1"), "{error}");
    }
    let many: Vec<String> = (0..300).map(|n| format!("small = {n} OR wide = {n}")).collect();
    let conditions = bound(&table, &[&many.join(" OR ")]);
    assert_eq!(resident.counts(&conditions).unwrap().len(), 1, "sets of one column are one test");
    let many: Vec<String> = (0..300).map(|n| format!("(small <> {n} AND wide <> {n})")).collect();
    let conditions = bound(&table, &[&many.join(" OR ")]);
    let error = resident.counts(&conditions).unwrap_err();
    assert!(error.to_string().contains("more than 256 tests"), "{error}");
}

#[test]
fn nothing_is_selected_of_a_table_without_rows_and_by_no_condition() {
    let Some(device) = device() else { return };
    let mut resident = ResidentTable::new(&table(1, &[]), &device).unwrap();
    assert_eq!(resident.counts(&bound(&table(1, &[]), &["1 = 1"])).unwrap(), [0]);
    let mut resident = ResidentTable::new(&table(1, &[70]), &device).unwrap();
    assert!(resident.counts(&[]).unwrap().is_empty());
}

/// A small table for the simulator: all types of lanes, short segments, several groups.
#[test]
fn a_small_table() {
    let table = table(9, &[97, 300]);
    let mut random = Random(4);
    let conditions: Vec<_> = (0..10).map(|nth| condition(&table, &mut random, nth % 3)).collect();
    check(&table, &conditions, 1 << 30);
}

#[test]
fn the_filter_kernel_neither_races_nor_reads_outside_of_its_buffers() {
    if !Path::new(SIMULATOR).exists() {
        return;
    }
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "gpu::a_small_table", "--nocapture", "--test-threads", "1"])
        .env("OCL_ICD_VENDORS", SIMULATOR)
        .env("OCLGRIND_DATA_RACES", "1")
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let said = said.join("\n");
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    for complaint in ["race", "Invalid", "Uninitialized", "divergence"] {
        assert!(!said.contains(complaint), "{said}");
    }
}
