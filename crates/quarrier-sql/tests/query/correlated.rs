//! Correlated subqueries in every position.

use crate::harness::{Folder, TestEngine};

fn tables() -> (Folder, TestEngine) {
    let folder = Folder::new();
    let engine = TestEngine::new();
    let t = "{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\"}\n{\"a\":2,\"b\":null}\n{\"a\":3,\"b\":\"x\"}\n";
    let u = "{\"k\":1,\"v\":10}\n{\"k\":2,\"v\":20}\n{\"k\":2,\"v\":21}\n{\"k\":5,\"v\":50}\n";
    engine.open("t", &folder.file("t.ndjson", t)).unwrap();
    engine.open("u", &folder.file("u.ndjson", u)).unwrap();
    (folder, engine)
}

fn check(table: &[(&str, &[&str])]) {
    let (_folder, engine) = tables();
    for (sql, expected) in table {
        let mut rows = engine.rows(sql).unwrap();
        let mut expected = expected.to_vec();
        if !sql.contains("ORDER BY") {
            rows.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(rows, expected, "{sql}");
    }
}

/// Checks each query as an output beside `a`, with its values for 1, 2 and 3.
fn check_values(table: &[(&str, [&str; 3])]) {
    let (_folder, engine) = tables();
    for (query, [one, two, three]) in table {
        let expected = [format!("1|{one}"), format!("2|{two}"), format!("3|{three}")];
        let sql = format!("SELECT DISTINCT a, ({query}) AS q FROM t ORDER BY a");
        assert_eq!(engine.rows(&sql).unwrap(), expected, "{sql}");
    }
}

#[test]
fn scalar_subqueries_may_be_correlated() {
    check_values(&[
        ("SELECT count(*) FROM u WHERE u.k < t.a", ["0", "1", "3"]),
        ("SELECT sum(v) FROM u WHERE u.k = t.a", ["10", "41", "NULL"]),
        ("SELECT count(DISTINCT k) FROM u WHERE u.k <> t.a", ["2", "2", "3"]),
        ("SELECT count(*) + 1 FROM u WHERE u.k = t.a AND u.v > 10 * t.a", ["1", "2", "1"]),
        ("SELECT a + k FROM u WHERE k = 5", ["6", "7", "8"]),
        ("SELECT t.a + 1", ["2", "3", "4"]),
        ("SELECT max(k) FROM u WHERE k < t.a HAVING count(*) > 1", ["NULL", "NULL", "2"]),
    ]);
}

#[test]
fn correlated_subqueries_may_sort_limit_group_and_combine() {
    check_values(&[
        ("SELECT v FROM u WHERE u.k = t.a ORDER BY v DESC LIMIT 1", ["10", "21", "NULL"]),
        ("SELECT v FROM u WHERE u.k = t.a ORDER BY v LIMIT 1 OFFSET 1", ["NULL", "21", "NULL"]),
        (
            "SELECT max(n) FROM (SELECT k, count(*) AS n FROM u WHERE u.k <> t.a GROUP BY k) AS g",
            ["2", "1", "2"],
        ),
        (
            "SELECT count(*) FROM (SELECT k FROM u WHERE k < t.a UNION SELECT v FROM u WHERE \
             k = t.a) AS g",
            ["1", "3", "2"],
        ),
        (
            "SELECT sum(r) FROM (SELECT row_number() OVER (ORDER BY v) AS r FROM u WHERE \
             k >= t.a) AS g",
            ["10", "6", "1"],
        ),
        ("SELECT count(*) FROM u JOIN t AS s ON s.a = u.k AND s.a < t.a", ["0", "1", "5"]),
        ("SELECT count(*) FROM u LEFT JOIN t AS s ON s.a = u.k WHERE u.k > t.a", ["5", "1", "1"]),
    ]);
}

#[test]
fn correlated_subqueries_may_nest() {
    check_values(&[
        (
            "SELECT (SELECT count(*) FROM u AS w WHERE w.k < u.k + t.a) FROM u WHERE u.k = t.a \
             LIMIT 1",
            ["1", "3", "NULL"],
        ),
        (
            "SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM t AS s WHERE s.a = u.k AND \
             s.a <= t.a)",
            ["1", "3", "3"],
        ),
    ]);
}

#[test]
fn predicates_in_select_lists_may_be_correlated() {
    check_values(&[
        ("EXISTS (SELECT 1 FROM u WHERE u.k = t.a)", ["true", "true", "false"]),
        ("NOT EXISTS (SELECT 1 FROM u WHERE u.k < t.a)", ["true", "false", "false"]),
        ("a IN (SELECT k FROM u WHERE v > t.a * 10)", ["false", "true", "false"]),
        ("a > ANY (SELECT k FROM u WHERE k < t.a)", ["false", "true", "true"]),
        (
            "'x' IN (SELECT CASE WHEN v > 45 THEN 'y' END FROM u WHERE u.k >= t.a)",
            ["NULL", "NULL", "false"],
        ),
    ]);
}

#[test]
fn conditions_may_be_correlated() {
    check(&[
        (
            "SELECT a FROM t WHERE (SELECT max(v) FROM u WHERE k <= t.a) > 15 ORDER BY a",
            &["2", "2", "3"],
        ),
        (
            "SELECT a FROM t WHERE EXISTS (SELECT count(*) FROM u WHERE k = t.a)",
            &["1", "2", "2", "3"],
        ),
        ("SELECT a FROM t WHERE NOT EXISTS (SELECT k FROM u WHERE k = t.a LIMIT 1)", &["3"]),
        (
            "SELECT a FROM t WHERE a IN (SELECT max(k) FROM u WHERE k <= t.a) ORDER BY a",
            &["1", "2", "2"],
        ),
        (
            "SELECT a FROM t WHERE a NOT IN (SELECT max(k) FROM u WHERE k < t.a) ORDER BY a",
            &["2", "2", "3"],
        ),
        (
            "SELECT a FROM t WHERE a > ALL (SELECT k FROM u WHERE k < t.a) AND a > 1",
            &["2", "2", "3"],
        ),
    ]);
}

#[test]
fn correlated_subqueries_are_allowed_in_every_clause() {
    check(&[
        (
            "SELECT sum(CASE WHEN EXISTS (SELECT 1 FROM u WHERE k < t.a) THEN 1 ELSE 0 END) FROM t",
            &["3"],
        ),
        ("SELECT sum(CASE WHEN a IN (SELECT k FROM u) THEN 1 ELSE 0 END) FROM t", &["3"]),
        (
            "SELECT a FROM t ORDER BY (SELECT count(*) FROM u WHERE k > t.a), a",
            &["2", "2", "3", "1"],
        ),
        (
            "SELECT (SELECT count(*) FROM u WHERE k < t.a) AS n, count(*) FROM t \
             GROUP BY (SELECT count(*) FROM u WHERE k < t.a) ORDER BY n",
            &["0|1", "1|2", "3|1"],
        ),
        (
            "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > (SELECT count(*) FROM u WHERE \
             k < t.a) ORDER BY a",
            &["1|1", "2|2"],
        ),
        (
            "SELECT t.a FROM t JOIN u ON a = k AND v > (SELECT avg(v) FROM u AS w WHERE w.k < t.a + 1)",
            &["2", "2", "2", "2"],
        ),
        (
            "SELECT a, sum((SELECT count(*) FROM u WHERE k < t.a)) OVER (ORDER BY a) FROM t ORDER BY 1",
            &["1|0", "2|2", "2|2", "3|5"],
        ),
    ]);
}

#[test]
fn lateral_tables_see_earlier_tables() {
    check(&[
        (
            "SELECT a, n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE k < t.a) AS x ORDER BY a",
            &["1|0", "2|1", "2|1", "3|3"],
        ),
        ("SELECT z FROM t, LATERAL (SELECT t.a + 1 AS z) AS x ORDER BY z", &["2", "3", "3", "4"]),
        (
            "SELECT a, v FROM t LEFT JOIN LATERAL (SELECT v FROM u WHERE k = t.a ORDER BY v DESC \
             LIMIT 1) AS x ON true ORDER BY a",
            &["1|10", "2|21", "2|21", "3|NULL"],
        ),
    ]);
}

#[test]
fn null_equals_null_among_outer_columns() {
    check(&[(
        "SELECT b, (SELECT count(*) FROM t AS s WHERE s.b IS NOT DISTINCT FROM t.b) FROM t ORDER BY 1",
        &["x|2", "x|2", "y|1", "NULL|1"],
    )]);
}

#[test]
fn null_equals_nothing_in_conditions() {
    const X: &str = "(VALUES (NULL, 1), (1, 1)) AS x (n, m)";
    const Y: &str = "(VALUES (NULL, 7), (1, 8)) AS y (k, v)";
    let (_folder, engine) = tables();
    for (query, expected) in [
        ("SELECT count(*) FROM {Y} WHERE y.k = x.n AND x.m > 0", ["0", "1"]),
        ("SELECT max(v) FROM {Y} WHERE y.k = x.n AND y.v > x.m", ["NULL", "8"]),
        ("SELECT max(v) FROM {Y} WHERE y.k = x.n HAVING count(*) > 0", ["NULL", "8"]),
        ("SELECT v FROM {Y} WHERE y.k = x.n ORDER BY v LIMIT 1", ["NULL", "8"]),
    ] {
        let query = query.replace("{Y}", Y);
        let sql = format!("SELECT ({query}) FROM {X} ORDER BY n NULLS FIRST");
        assert_eq!(engine.rows(&sql).unwrap(), expected, "{sql}");
    }
    let sql = format!(
        "SELECT m FROM {X} WHERE (SELECT min(k) FROM {Y} WHERE y.v > x.m AND y.k IS NOT DISTINCT \
         FROM x.n) = x.n"
    );
    assert_eq!(engine.rows(&sql).unwrap(), ["1"], "{sql}");
}

#[test]
fn scalar_subqueries_with_several_rows_are_errors() {
    let (_folder, engine) = tables();
    let said = engine.refusal("SELECT a, (SELECT v FROM u WHERE k = t.a) FROM t");
    assert!(said.contains("more than one row"), "{said}");
    let said = engine.refusal(
        "SELECT (SELECT count(*) FROM u WHERE k < x.r) FROM (SELECT a + random() AS r FROM t) AS x",
    );
    assert!(said.contains("random"), "{said}");
}
