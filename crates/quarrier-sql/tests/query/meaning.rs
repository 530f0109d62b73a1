//! SQL-92 semantics where DataFusion differs.

use crate::harness::{Folder, TestEngine};

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

/// Statements over tables that are joined by USING and NATURAL, with their rows.
const MERGED: &[(&str, &[&str])] = &[
    ("* FROM z LEFT JOIN a USING (k)", &["1|v1|NULL", "2|v2|w2"]),
    ("* FROM a LEFT JOIN z USING (k)", &["2|w2|v2", "3|w3|NULL"]),
    ("* FROM z RIGHT JOIN a USING (k)", &["2|v2|w2", "3|NULL|w3"]),
    ("* FROM z FULL JOIN a USING (k)", &["1|v1|NULL", "2|v2|w2", "3|NULL|w3"]),
    ("k, a.k, z.k FROM z FULL JOIN a USING (k)", &["1|NULL|1", "2|2|2", "3|3|NULL"]),
    ("K + 0 FROM z RIGHT JOIN a USING (K) WHERE k > 1 ORDER BY k DESC", &["3", "2"]),
    ("count(*) FROM z JOIN a USING (k) WHERE k > 0", &["1"]),
    ("k, count(*) FROM z FULL JOIN a USING (k) GROUP BY k HAVING k <> 2", &["1|1", "3|1"]),
    ("v FROM z LEFT JOIN a USING (k) ORDER BY k", &["v1", "v2"]),
    (
        "k, u FROM z FULL JOIN a USING (k) FULL JOIN m USING (k)",
        &["1|NULL", "2|u2", "3|u3", "4|u4"],
    ),
    (
        "* FROM z FULL JOIN a USING (k) LEFT JOIN m USING (k)",
        &["1|v1|NULL|NULL", "2|v2|w2|u2", "3|NULL|w3|u3"],
    ),
    ("z.*, w FROM z LEFT JOIN a USING (k)", &["1|v1|NULL", "2|v2|w2"]),
    ("z.*, k FROM z LEFT JOIN a USING (k)", &["1|v1|1", "2|v2|2"]),
    ("* FROM (SELECT v, k FROM z) AS y LEFT JOIN a USING (k)", &["1|v1|NULL", "2|v2|w2"]),
    ("* FROM z JOIN (SELECT 2 AS k) AS only USING (k)", &["2|v2"]),
    ("* FROM z JOIN a USING (k) JOIN m ON m.k = z.k", &["2|v2|w2|2|u2"]),
    (
        "u, v FROM z JOIN (SELECT 'u' || k AS u, k AS j FROM a) AS y ON y.j = z.k JOIN m USING (u)",
        &["u2|v2"],
    ),
    (
        "k FROM (SELECT * FROM z FULL JOIN a USING (k)) AS j WHERE k IN (SELECT k FROM m)",
        &["2", "3"],
    ),
    ("k FROM z LEFT JOIN a USING (k) UNION ALL SELECT k FROM m", &["1", "2", "2", "3", "4"]),
    ("k, w FROM z JOIN (a JOIN m USING (k)) USING (k)", &["2|w2"]),
];

#[test]
fn merged_columns_have_the_values_of_the_outer_side() {
    let folder = Folder::new();
    let engine = TestEngine::new();
    for (name, messages) in [
        ("z", "{\"k\":1,\"v\":\"v1\"}\n{\"k\":2,\"v\":\"v2\"}\n"),
        ("a", "{\"k\":2,\"w\":\"w2\"}\n{\"k\":3,\"w\":\"w3\"}\n"),
        ("m", "{\"k\":2,\"u\":\"u2\"}\n{\"k\":3,\"u\":\"u3\"}\n{\"k\":4,\"u\":\"u4\"}\n"),
    ] {
        engine.open(name, &folder.file(&format!("{name}.ndjson"), messages)).unwrap();
    }
    for (rest, expected) in MERGED {
        let mut rows = engine.rows(&format!("SELECT {rest}")).unwrap();
        if !rest.contains("ORDER BY") {
            rows.sort();
        }
        assert_eq!(rows, *expected, "{rest}");
    }
    for rest in [
        "* FROM z NATURAL LEFT JOIN (SELECT * FROM a) AS b",
        "* FROM (SELECT * FROM z) AS x JOIN a USING (k) RIGHT JOIN m ON m.k = x.k RIGHT JOIN \
         (SELECT 'w2' AS w) AS y USING (w)",
    ] {
        let error = engine.rows(&format!("SELECT {rest}")).unwrap_err().to_string();
        assert!(error.contains("not clear") && error.contains("write ON"), "{rest}: {error}");
    }
}

#[test]
fn natural_joins_of_files_merge_their_common_columns() {
    let folder = Folder::new();
    let engine = TestEngine::new();
    engine.open("z", &folder.file("z.ndjson", "{\"k\":1,\"v\":5}\n{\"k\":2,\"v\":6}\n")).unwrap();
    engine.open("a", &folder.file("a.ndjson", "{\"w\":7,\"k\":2}\n{\"w\":8,\"k\":3}\n")).unwrap();
    for (rest, expected) in [
        ("* FROM z NATURAL JOIN a", &["2|6|7"][..]),
        ("* FROM z NATURAL FULL JOIN a ORDER BY k", &["1|5|NULL", "2|6|7", "3|NULL|8"]),
        ("k FROM z NATURAL RIGHT JOIN a WHERE k > 2", &["3"]),
        ("z._line, k, w FROM z LEFT JOIN a USING (k) ORDER BY k", &["1|1|NULL", "2|2|7"]),
    ] {
        assert_eq!(engine.rows(&format!("SELECT {rest}")).unwrap(), expected, "{rest}");
    }
}
