//! Fifty probes of SQL-92 search conditions, with the values that the standard gives them.

use crate::harness::TestEngine;

/// The expected outcome of a probe that is refused before any row is read.
const REFUSED: &str = "refused";

const PROBES: &[(&str, &str)] = &[
    ("'abc' LIKE 'a_c'", "true"),
    ("'ABC' LIKE 'abc'", "false"),
    ("'a_b' LIKE 'a!_b' ESCAPE '!'", "true"),
    ("'axb' LIKE 'a!_b' ESCAPE '!'", "false"),
    ("'a\\b' LIKE 'a\\b'", "true"),
    ("NULL NOT LIKE 'a'", "NULL"),
    ("1 IN (2, NULL)", "NULL"),
    ("1 NOT IN (2, NULL)", "NULL"),
    ("1 IN (1, NULL)", "true"),
    ("2 BETWEEN 1 AND 3", "true"),
    ("2 BETWEEN 3 AND 1", "false"),
    ("2 BETWEEN NULL AND 1", "false"),
    ("'' IS NULL", "false"),
    ("NULL AND (1=0)", "false"),
    ("NULL OR (1=1)", "true"),
    ("NOT (NULL = 1)", "NULL"),
    ("(NULL = 1) IS UNKNOWN", "true"),
    ("(NULL = 1) IS NOT TRUE", "true"),
    ("(1=0) IS FALSE", "true"),
    ("(1,2) = (1,2)", "true"),
    ("(1,2) < (1,3)", "true"),
    ("(1,2) IN ((1,2),(3,4))", "true"),
    ("(1,NULL) = (1,2)", "NULL"),
    ("(NULL,NULL) IS NULL", "true"),
    ("3 > ANY (SELECT 2 UNION SELECT 9)", "true"),
    ("3 > ALL (SELECT 2 UNION SELECT 9)", "false"),
    ("2 = SOME (SELECT 2)", "true"),
    ("1 > ALL (SELECT 1 WHERE 1=0)", "true"),
    ("EXISTS (SELECT 1)", "true"),
    ("UNIQUE (SELECT 1 UNION ALL SELECT 1)", "false"),
    ("1 MATCH (SELECT 1)", "true"),
    (
        "(DATE '2020-01-01', DATE '2020-02-01') OVERLAPS \
         (DATE '2020-01-15', DATE '2020-03-01')",
        "true",
    ),
    ("CAST('a' AS CHAR(3)) = 'a  '", "true"),
    ("2 = 2.0", "true"),
    ("'10' < 9", REFUSED),
    ("7/2", "3"),
    ("NULLIF(1,1)", "NULL"),
    ("COALESCE(NULL,2)", "2"),
    ("POSITION('b' IN 'abc')", "2"),
    ("SUBSTRING('abc' FROM 2 FOR 1)", "b"),
    ("TRIM(BOTH 'x' FROM 'xax')", "a"),
    ("'a' || 'b'", "ab"),
    ("'a' || NULL", "NULL"),
    ("EXTRACT(YEAR FROM DATE '2020-05-06')", "2020"),
    ("DATE '2020-01-31' + INTERVAL '1' MONTH = DATE '2020-02-29'", "true"),
    ("CURRENT_TIMESTAMP IS NOT NULL", "true"),
    ("CHAR_LENGTH('abc')", "3"),
    ("OCTET_LENGTH('é')", "2"),
    ("OVERLAY('abcd' PLACING 'X' FROM 2 FOR 1)", "aXcd"),
    ("CASE WHEN NULL THEN 1 ELSE 2 END", "2"),
];

#[test]
fn all_fifty_probes_match_the_standard() {
    assert_eq!(PROBES.len(), 50);
    let engine = TestEngine::new();
    let mut wrong = Vec::new();
    for (expression, expected) in PROBES {
        let got = match engine.value(&format!("SELECT {expression}")) {
            Ok(value) => value,
            Err(_) if *expected == REFUSED => REFUSED.to_string(),
            Err(error) => format!("{error}"),
        };
        if got != *expected {
            wrong.push(format!("{expression}: {got}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn probes_are_conditions_too() {
    let engine = TestEngine::new();
    for (expression, expected) in PROBES {
        if !matches!(*expected, "true" | "false" | "NULL") || expression.starts_with("NULLIF") {
            continue;
        }
        if expression.starts_with("'a' ||") {
            continue;
        }
        let rows = engine.rows(&format!("SELECT 1 WHERE {expression}"));
        let count = usize::from(*expected == "true");
        assert_eq!(
            rows.map(|rows| rows.len()).map_err(|e| e.to_string()),
            Ok(count),
            "{expression}"
        );
    }
}
