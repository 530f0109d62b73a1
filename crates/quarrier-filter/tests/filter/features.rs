//! Feature E061 of the standard, "basic predicates and search conditions": each statement of its
//! tests without a subquery is accepted; SELECT DISTINCT, which some of them have, needs full SQL.

use quarrier_filter::sql;
use quarrier_messages::{Field, Kind, Schema};

/// The conditions in the tests of each feature, for a column A; `?` is every comparison.
const ACCEPTED: &[(&str, Kind, &[&str])] = &[
    ("E061-01", Kind::Integer, &["A ? 1"]),
    (
        "E061-02",
        Kind::Integer,
        &[
            "A BETWEEN 1 AND 1",
            "A BETWEEN ASYMMETRIC 1 AND 1",
            "A BETWEEN SYMMETRIC 1 AND 1",
            "A NOT BETWEEN 1 AND 1",
            "A NOT BETWEEN ASYMMETRIC 1 AND 1",
            "A NOT BETWEEN SYMMETRIC 1 AND 1",
        ],
    ),
    (
        "E061-03",
        Kind::Integer,
        &["A IN ( 1 )", "A IN ( 1, 2 )", "A NOT IN ( 1 )", "A NOT IN ( 1, 2 )"],
    ),
    ("E061-04", Kind::Text, &["A LIKE 'foo'", "A NOT LIKE 'foo'"]),
    ("E061-05", Kind::Text, &["A LIKE 'foo' ESCAPE 'f'", "A NOT LIKE 'foo' ESCAPE 'f'"]),
    ("E061-06", Kind::Integer, &["A IS NOT NULL", "A IS NULL"]),
    ("E061-14", Kind::Integer, &["A = 1"]),
];

/// The conditions of the same tests that contain a subquery, which needs full SQL.
const OF_FULL_SQL: &[(&str, &[&str])] = &[
    ("E061-07", &["A ? ALL ( SELECT 1 )", "A ? ANY ( SELECT 1 )", "A ? SOME ( SELECT 1 )"]),
    ("E061-08", &["EXISTS ( SELECT 1 )"]),
    ("E061-09", &["A ? ( SELECT 1 )"]),
    ("E061-11", &["A IN ( SELECT 1 )"]),
    ("E061-12", &["A ? ALL ( SELECT A FROM T )", "A ? SOME ( SELECT A FROM T )"]),
    ("E061-13", &["A IN ( SELECT B FROM T WHERE B = A )", "A NOT IN ( SELECT B FROM T )"]),
];

fn each(condition: &str) -> Vec<String> {
    if !condition.contains('?') {
        return vec![condition.to_string()];
    }
    ["<", "<=", "<>", "=", ">", ">="].iter().map(|op| condition.replace('?', op)).collect()
}

fn asked(condition: &str, kind: Kind) -> Result<(), String> {
    let schema = Schema { fields: vec![Field { name: "A".into(), kind }] };
    let mut said = Ok(());
    for all in ["", "ALL "] {
        let text = format!("SELECT {all}A FROM T WHERE {condition}");
        let bound = sql::statement(&text, "T", &schema);
        said = said.and(bound.map(|_| ()).map_err(|error| format!("{text}: {error}")));
    }
    said
}

#[test]
fn basic_predicates_are_accepted() {
    for (feature, kind, conditions) in ACCEPTED {
        for condition in conditions.iter().flat_map(|condition| each(condition)) {
            assert_eq!(asked(&condition, *kind), Ok(()), "{feature}");
        }
    }
}

#[test]
fn predicates_with_a_subquery_are_refused_with_a_hint() {
    for (feature, conditions) in OF_FULL_SQL {
        for condition in conditions.iter().flat_map(|condition| each(condition)) {
            let said = asked(&condition, Kind::Integer).unwrap_err();
            assert!(said.contains("quarrier query"), "{feature}: {said}");
        }
    }
}
