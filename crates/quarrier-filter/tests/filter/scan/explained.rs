//! The description of a scan.

use proptest::prelude::*;
use quarrier_filter::{Query, Scan, sql};

use super::conditions::condition;
use super::tables::{Random, table};
use super::{count, rows};

fn queries(table: &quarrier_messages::Table, strings: &[&str]) -> Vec<Query> {
    strings.iter().map(|text| count(sql::condition(text, table.schema()).unwrap())).collect()
}

#[test]
fn steps_stand_in_the_order_of_their_evaluation_with_their_text() {
    let table = table(3, &[5000, 4096]);
    let queries = queries(
        &table,
        &[
            "many LIKE '%1%' AND word = 'ab' AND tiny IS NOT NULL",
            "word = 'ab' OR NOT (small BETWEEN 10 AND 20)",
            "small * 2 > wide",
            "word IN ('a', 'zz top', 'none') AND 1 / small > 0",
        ],
    );
    let explanation = Scan::new(&table, &queries).workers(2).explain();
    assert_eq!((explanation.rows, explanation.blocks), (9096, 3));
    let strings = |query: usize| -> Vec<(usize, &str)> {
        let steps = &explanation.queries[query].steps;
        steps.iter().map(|step| (step.depth, step.text.as_str())).collect()
    };
    assert_eq!(strings(0)[0], (0, "AND"));
    assert!(strings(0).contains(&(1, "word = 'ab'")), "{explanation}");
    assert!(strings(0).contains(&(1, "tiny IS NOT NULL")), "{explanation}");
    assert!(strings(1).contains(&(1, "small NOT BETWEEN 10 AND 20")), "{explanation}");
    assert_eq!(strings(2), [(0, "small * 2 > wide")], "{explanation}");
    assert!(strings(3).contains(&(1, "word IN ('a', 'zz top')")), "{explanation}");
    assert!(!explanation.queries[3].faults.is_empty());
    let shared = explanation.queries[0].steps.iter().find(|step| step.text == "word = 'ab'");
    let shared = shared.unwrap();
    assert_eq!((shared.uses, shared.kept), (2, true));
    assert!(
        explanation.queries[1]
            .steps
            .contains(&quarrier_filter::PlanStep { depth: 1, ..shared.clone() })
    );
    assert_eq!(explanation.work, None);
    assert!(explanation.to_string().contains("word = 'ab'"));
}

#[test]
fn bytes_touched_are_those_of_the_columns_however_many_tests_read_them() {
    let table = table(3, &[4096]);
    let run = |strings: &[&str]| {
        Scan::new(&table, &queries(&table, strings)).run_explained().1.work.unwrap()
    };
    let one = run(&["wide > 500000"]);
    let two = run(&["wide > 500000", "wide > 600000"]);
    assert!(one.bytes_touched >= 4096 * 4, "{one:?}");
    assert_eq!(one.bytes_touched, one.bytes_compared);
    assert_eq!(two.bytes_touched, one.bytes_touched);
    assert_eq!(two.bytes_compared, 2 * one.bytes_compared);
    // A calculation reads the same bytes as a test.
    let calculated = run(&["wide > 500000", "wide * 3 > 500000"]);
    assert_eq!(calculated.bytes_touched, one.bytes_touched);
}

#[test]
fn blocks_that_zones_settle_are_counted_as_skipped() {
    let table = table(3, &[4096, 8192]);
    let (answers, explanation) =
        Scan::new(&table, &queries(&table, &["small < 0", "small > 500"])).run_explained();
    assert_eq!(answers[0].as_ref().unwrap().count, 0);
    let blocks = |query: usize| {
        let query = &explanation.queries[query];
        (query.blocks_tested.unwrap(), query.blocks_skipped.unwrap())
    };
    assert_eq!(blocks(0), (0, 3));
    assert_eq!(blocks(1).0 + blocks(1).1, 3);
    let work = explanation.work.unwrap();
    assert_eq!(work.blocks_tested + work.blocks_skipped, 6);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_scan_that_is_explained_answers_the_same(seed: u64, size in 1..9000_usize) {
        let table = table(seed, &[size, 70]);
        let mut random = Random(seed);
        let queries: Vec<Query> = (0..12)
            .map(|nth| {
                let condition = condition(&table, &mut random, nth % 4);
                if nth % 2 == 0 { count(condition) } else { rows(condition) }
            })
            .collect();
        let scan = Scan::new(&table, &queries);
        let (answers, explanation) = scan.run_explained();
        let plain = scan.run();
        let (matches, done) = scan.run_matches();
        for ((explained, plain), matches) in answers.iter().zip(&plain).zip(matches) {
            prop_assert_eq!(format!("{explained:?}"), format!("{plain:?}"));
            let answer = matches.map(|matches| matches.answer(&table));
            prop_assert_eq!(format!("{answer:?}"), format!("{plain:?}"));
        }
        prop_assert_eq!(done.blocks_tested + done.blocks_skipped, 12 * explanation.blocks);
        let work = explanation.work.unwrap();
        prop_assert_eq!(work.blocks_tested + work.blocks_skipped, 12 * explanation.blocks);
        prop_assert!(work.bytes_touched <= work.bytes_compared);
        prop_assert_eq!(explanation.to_string().matches("query ").count(), 12);
    }
}
