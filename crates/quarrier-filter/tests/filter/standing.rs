//! Standing conditions find the same as the naive evaluator, while they come and go.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quarrier_filter::expr::Comparison;
use quarrier_filter::{Expr, MatchedRow, Standing, naive};
use quarrier_messages::{Table, Value};

use super::scan::conditions::condition;
use super::scan::tables::{Random, WORDS, table};

/// Draws a condition that requires a value of a column with few ones.
fn anchored(table: &Table, random: &mut Random) -> Expr {
    let (name, literal) = match random.below(3) {
        0 => ("tiny", Value::Integer(random.below(5) as i64 - 2)),
        1 => ("word", Value::Text((*random.pick(&WORDS)).into())),
        _ => ("plain", Value::Text((*random.pick(&WORDS)).into())),
    };
    let column = table.schema().fields.iter().position(|field| &*field.name == name).unwrap();
    let anchor = Expr::Compare {
        op: Comparison::Equal,
        left: Box::new(Expr::Column(column)),
        right: Box::new(Expr::Literal(literal)),
    };
    let rest = (0..random.below(3)).map(|_| condition(table, random, 0));
    Expr::And(std::iter::once(anchor).chain(rest.collect::<Vec<_>>()).collect())
}

fn expected(conditions: &BTreeMap<u64, Expr>, values: &[Value]) -> (Vec<u64>, Vec<u64>) {
    let (mut matching, mut faults) = (Vec::new(), Vec::new());
    for (key, condition) in conditions {
        match naive::truth(condition, values) {
            Ok(Some(true)) => matching.push(*key),
            Ok(_) => {}
            Err(_) => faults.push(*key),
        }
    }
    (matching, faults)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn rows_find_the_conditions_that_stand(
        seed: u64,
        segments in prop::collection::vec(1..80_usize, 1..4),
        burst in prop_oneof![Just(1_u64), Just(8), Just(60)],
        stay in 0..4_u64,
    ) {
        let table = table(seed, &segments);
        let mut random = Random(seed ^ 0x7777);
        let mut standing = Standing::new(table.schema());
        let mut known = BTreeMap::new();
        let mut next = 0;
        let mut found = MatchedRow::default();
        for _ in 0..40 {
            for _ in 0..random.below(burst + 1) {
                let depth = random.below(3) as u32;
                let new = match random.below(3) {
                    0 => condition(&table, &mut random, depth),
                    _ => anchored(&table, &mut random),
                };
                next += 1;
                standing.insert(next, new.clone());
                known.insert(next, new);
            }
            for _ in 0..random.below(burst + 1) {
                if random.below(4) < stay || next == 0 {
                    continue;
                }
                // Some of them were removed before.
                let key = 1 + random.below(next);
                prop_assert_eq!(standing.remove(key), known.remove(&key).is_some());
            }
            prop_assert_eq!(standing.len(), known.len());
            prop_assert_eq!(standing.is_empty(), known.is_empty());
            let row = random.below(table.rows());
            standing.find(&table, row, &mut found);
            let columns = 0..table.columns().len();
            let values: Vec<Value> = columns.map(|column| table.value(row, column)).collect();
            let faults: Vec<u64> = found.faults.iter().map(|(key, _)| *key).collect();
            prop_assert_eq!((found.matching.clone(), faults), expected(&known, &values));
        }
    }
}
