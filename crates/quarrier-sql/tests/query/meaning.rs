//! SQL-92 semantics where DataFusion differs.

use crate::harness::TestEngine;

fn holds(expression: &str, expected: &str) {
    let engine = TestEngine::new();
    assert_eq!(engine.value(&format!("SELECT {expression}")).unwrap(), expected, "{expression}");
}

#[test]
fn rows_compare_value_by_value_with_three_valued_logic() {
    holds("(1, NULL) = (1, 2)", "NULL");
    holds("(1, NULL) = (2, 2)", "false");
    holds("(1, NULL) < (2, 1)", "true");
    holds("(1, 2) < (1, NULL)", "NULL");
    holds("(1, 2) >= (1, 2)", "true");
    holds("(1, 2) <> (1, 2)", "false");
    holds("(1, NULL) IN ((1, 2), (3, 4))", "NULL");
    holds("(1, 2) NOT IN ((1, 3), (3, 4))", "true");
    holds("(1, NULL) IS NOT NULL", "false");
    holds("(1, 2) BETWEEN (1, 1) AND (1, 3)", "true");
}

#[test]
fn ranks_are_signed_integers() {
    for rank in ["RANK()", "DENSE_RANK()", "ROW_NUMBER()", "NTILE(1)"] {
        holds(&format!("1 - ({rank} OVER ()) / 2 * 2"), "1");
        holds(&format!("-({rank} OVER (ORDER BY 1))"), "-1");
    }
}

#[test]
fn distinct_from_binds_closer_than_and() {
    holds("1 IS DISTINCT FROM 1 AND FALSE", "false");
    holds("TRUE IS NOT DISTINCT FROM TRUE AND FALSE", "false");
    holds("FALSE IS DISTINCT FROM TRUE OR TRUE", "true");
    holds("1 IS NOT DISTINCT FROM 0 + 1", "true");
    holds("NULL IS NOT DISTINCT FROM NULL", "true");
}

#[test]
fn between_may_be_symmetric() {
    holds("2 BETWEEN SYMMETRIC 3 AND 1", "true");
    holds("4 NOT BETWEEN SYMMETRIC 3 AND 1", "true");
    holds("2 BETWEEN ASYMMETRIC 3 AND 1", "false");
    holds("NULL BETWEEN SYMMETRIC 3 AND 1", "NULL");
}

#[test]
fn patterns_mean_what_the_standard_says() {
    holds("'a%b' LIKE 'a\\%b'", "false");
    holds("'a\\xb' LIKE 'a\\%b'", "true");
    holds("'a%b' LIKE 'a!%b' ESCAPE '!'", "true");
    holds("'abc' SIMILAR TO 'a(b|x)c'", "true");
    holds("'abc' SIMILAR TO 'a.c'", "false");
    holds("'abc' NOT SIMILAR TO '[a-b]+c'", "false");
    holds("p LIKE q ESCAPE '!' FROM (VALUES ('a_c', 'a!_c')) AS t (p, q)", "true");
    holds("p LIKE q FROM (VALUES ('a\\c', 'a\\c')) AS t (p, q)", "true");
    holds("'abc' LIKE_REGEX 'B|b'", "true");
    let engine = TestEngine::new();
    assert!(engine.refusal("SELECT 'ab' LIKE 'a!b' ESCAPE '!'").contains("escape"));
    assert!(engine.refusal("SELECT 'ab' LIKE 'ab' ESCAPE '!!'").contains("ESCAPE"));
}

#[test]
fn char_values_are_padded_with_blanks() {
    holds("CAST('a' AS CHAR(3)) = 'a'", "true");
    holds("CAST('a' AS CHAR(3)) IN ('b', 'a  ')", "true");
    holds("CAST('abcd' AS CHAR(3)) || '.'", "abc.");
    holds("CAST('a' AS CHAR(3)) || '.'", "a  .");
    holds("CAST('abcd' AS VARCHAR(2))", "ab");
    holds("CAST('b' AS CHAR(2)) BETWEEN 'a' AND 'b'", "true");
}

#[test]
fn types_are_checked_before_any_row_is_read() {
    let (_folder, engine) = TestEngine::of_orders();
    for wrong in [
        "SELECT '10' < 9",
        "SELECT id FROM m WHERE symbol = 1",
        "SELECT id FROM m WHERE qty IN (1, 'a')",
        "SELECT id FROM m WHERE qty BETWEEN 'a' AND 'b'",
        "SELECT CASE symbol WHEN 1 THEN 2 END FROM m",
        "SELECT a.id FROM m a JOIN m b ON a.symbol = b.id",
        "SELECT id FROM m WHERE EXISTS (SELECT 1 FROM m x WHERE x.symbol = m.id)",
    ] {
        let said = engine.refusal(wrong);
        assert!(said.contains("text"), "{wrong}: {said}");
    }
    engine.refusal("SELECT symbol + 1 FROM m");
}

#[test]
fn quantified_comparisons_are_values_like_others() {
    holds("1 IN (SELECT 2 UNION ALL SELECT NULL)", "NULL");
    holds("1 NOT IN (SELECT 2)", "true");
    holds("NOT EXISTS (SELECT 1 WHERE 1 = 0)", "true");
    holds("1 = ANY (SELECT 1 WHERE 1 = 0)", "false");
    holds("NULL > ALL (SELECT 1 WHERE 1 = 0)", "true");
    holds("3 >= ALL (SELECT 3 UNION ALL SELECT NULL)", "NULL");
    holds("2 >= ALL (SELECT 3 UNION ALL SELECT NULL)", "false");
    holds("CASE WHEN 2 > SOME (SELECT 1) THEN 'x' END", "x");
}

#[test]
fn unique_and_match_follow_their_rules() {
    holds("UNIQUE (SELECT 1 UNION ALL SELECT 2)", "true");
    holds("UNIQUE (SELECT NULL UNION ALL SELECT NULL)", "true");
    holds("NULL MATCH (SELECT 1)", "true");
    holds("2 MATCH (SELECT 1)", "false");
    holds("1 MATCH UNIQUE (SELECT 1 UNION ALL SELECT 1)", "false");
    holds("(1, NULL) MATCH (SELECT 3, 4)", "true");
    holds("(1, NULL) MATCH FULL (SELECT 1, 4)", "false");
    holds("(NULL, NULL) MATCH FULL (SELECT 1, 4)", "true");
}

#[test]
fn quantifiers_filter_rows_too() {
    let (_folder, engine) = TestEngine::of_orders();
    let count =
        |condition: &str| engine.value(&format!("SELECT count(*) FROM m WHERE {condition}"));
    assert_eq!(count("id <= ALL (SELECT id FROM m)").unwrap(), "1");
    assert_eq!(count("id = ANY (SELECT x.id + 4990 FROM m x)").unwrap(), "10");
    let some = "EXISTS (SELECT 1 FROM m x WHERE x.id = m.id + 4990)";
    assert_eq!(count(some).unwrap(), "10");
    assert_eq!(count("id NOT IN (SELECT x.id + 10 FROM m x)").unwrap(), "10");
    assert_eq!(count("id MATCH (SELECT x.id + 4990 FROM m x)").unwrap(), "10");
}

#[test]
fn numbers_with_a_point_are_exact() {
    holds("0.1 + 0.2 = 0.3", "true");
    holds("7 / 2", "3");
    holds("EXTRACT(SECOND FROM TIMESTAMP '2024-01-01 00:00:01.5')", "1.500000000");
    holds("MOD(7, 4)", "3");
    holds("CEILING(1.2e0)", "2.0");
    let engine = TestEngine::new();
    assert!(engine.refusal("SELECT 1 / 0").to_lowercase().contains("zero"));
}

#[test]
fn periods_overlap_by_their_rule() {
    let day = |d: u32| format!("DATE '2020-01-{d:02}'");
    let overlaps =
        |a, b, c, d| format!("({}, {}) OVERLAPS ({}, {})", day(a), day(b), day(c), day(d));
    holds(&overlaps(1, 10, 5, 20), "true");
    holds(&overlaps(1, 10, 10, 20), "false");
    holds(&overlaps(10, 1, 5, 20), "true");
    holds(
        "(DATE '2020-01-01', INTERVAL '5' DAY) OVERLAPS (DATE '2020-01-04', DATE '2020-01-09')",
        "true",
    );
}
