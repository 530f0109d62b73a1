//! Rules for plans: IN and NOT IN, EXCEPT ALL and INTERSECT ALL, ORDER BY over UNION.

use crate::harness::TestEngine;

/// Rows `(id, x)`, and values `y` with and without NULL.
const T: &str = "WITH t AS (SELECT * FROM (VALUES (1, 1), (2, NULL), (3, 3)) AS t (id, x)), \
                 u AS (SELECT * FROM (VALUES (1, 1), (2, 5)) AS u (k, y)), \
                 n AS (SELECT * FROM (VALUES (1), (NULL)) AS n (y)) ";

/// The IDs of rows of `t` for which a condition is TRUE.
fn ids(condition: &str) -> Vec<String> {
    let engine = TestEngine::new();
    engine.rows(&format!("{T} SELECT id FROM t WHERE {condition} ORDER BY id")).unwrap()
}

fn rows(sql: &str) -> Vec<String> {
    TestEngine::new().rows(sql).unwrap()
}

#[test]
fn not_in_is_unknown_where_a_value_is_null() {
    assert_eq!(ids("x NOT IN (SELECT y FROM u)"), ["3"]);
    assert_eq!(ids("x NOT IN (SELECT y FROM n)"), [""; 0]);
    assert_eq!(ids("x NOT IN (SELECT y FROM u) OR id = 2"), ["2", "3"]);
    assert_eq!(ids("x NOT IN (SELECT y FROM n) OR id = 1"), ["1"]);
    assert_eq!(ids("NOT (x IN (SELECT y FROM u) AND id < 9)"), ["3"]);
}

#[test]
fn nothing_is_in_a_query_without_rows() {
    assert_eq!(ids("x NOT IN (SELECT y FROM u WHERE y > 100)"), ["1", "2", "3"]);
    assert_eq!(ids("x NOT IN (SELECT y FROM n WHERE y > 100) OR id = 9"), ["1", "2", "3"]);
    assert_eq!(ids("x IN (SELECT y FROM u WHERE y > 100)"), [""; 0]);
}

#[test]
fn memberships_are_three_valued() {
    assert_eq!(ids("(x IN (SELECT y FROM u)) IS UNKNOWN"), ["2"]);
    assert_eq!(ids("(x NOT IN (SELECT y FROM n)) IS UNKNOWN"), ["2", "3"]);
    assert_eq!(ids("(x IN (SELECT y FROM u)) IS FALSE"), ["3"]);
    let said = "CASE WHEN x IN (SELECT y FROM u) THEN 'in' WHEN x NOT IN (SELECT y FROM u) \
                THEN 'out' ELSE 'unknown' END";
    assert_eq!(ids(&format!("{said} = 'in'")), ["1"]);
    assert_eq!(ids(&format!("{said} = 'out'")), ["3"]);
    assert_eq!(ids(&format!("{said} = 'unknown'")), ["2"]);
}

#[test]
fn a_constant_is_or_is_not_in_a_query() {
    assert_eq!(ids("5 NOT IN (SELECT y FROM u)"), [""; 0]);
    assert_eq!(ids("7 NOT IN (SELECT y FROM u)"), ["1", "2", "3"]);
    assert_eq!(ids("7 NOT IN (SELECT y FROM n)"), [""; 0]);
    assert_eq!(ids("7 NOT IN (SELECT y FROM u) AND id > 1"), ["2", "3"]);
}

#[test]
fn memberships_may_be_correlated() {
    assert_eq!(ids("x NOT IN (SELECT y FROM u WHERE u.k = t.id)"), ["3"]);
    assert_eq!(ids("x NOT IN (SELECT y FROM u WHERE u.k < t.id) OR id = 9"), ["1", "3"]);
    assert_eq!(ids("x IN (SELECT y FROM u WHERE u.k = t.id)"), ["1"]);
}

#[test]
fn except_all_and_intersect_all_count_equal_rows() {
    const A: &str = "SELECT * FROM (VALUES (1), (1), (1), (2), (NULL), (NULL)) AS a (v)";
    const B: &str = "SELECT * FROM (VALUES (1), (1), (3), (NULL)) AS b (v)";
    let set = |op: &str| rows(&format!("SELECT v FROM ({A} {op} {B}) AS s ORDER BY v NULLS LAST"));
    assert_eq!(set("EXCEPT ALL"), ["1", "2", "NULL"]);
    assert_eq!(set("INTERSECT ALL"), ["1", "1", "NULL"]);
    assert_eq!(set("EXCEPT"), ["2"]);
    assert_eq!(set("INTERSECT"), ["1", "NULL"]);
}

#[test]
fn rows_of_several_columns_are_counted_together() {
    let sql = "SELECT * FROM (SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (1, NULL)) AS a (n, t) \
               EXCEPT ALL SELECT * FROM (VALUES (1, 'a'), (1, 'b')) AS b (n, t)) AS s \
               ORDER BY t NULLS LAST";
    assert_eq!(rows(sql), ["1|a", "1|NULL"]);
}

#[test]
fn a_limit_over_a_union_takes_the_first_rows_of_all_parts() {
    let (_folder, engine) = TestEngine::of_orders();
    for (order, expected) in [
        ("a, b", ["0|0", "0|1", "0|2"]),
        ("a DESC, b DESC", ["1|4999", "1|4998", "1|4997"]),
        ("a, b DESC", ["0|4999", "0|4998", "0|4997"]),
    ] {
        let sql = format!(
            "SELECT 1 AS a, id AS b FROM m UNION ALL SELECT 0 AS a, id AS b FROM m \
             ORDER BY {order} LIMIT 3"
        );
        assert_eq!(engine.rows(&sql).unwrap(), expected, "{order}");
    }
}

#[test]
fn top_rows_may_be_projected_in_another_order() {
    let (_folder, engine) = TestEngine::of_orders();
    let sql = "SELECT price + 1 AS more, ts, id FROM m WHERE qty > 300 ORDER BY ts DESC, id";
    let plan = engine.plan(&format!("{sql} LIMIT 7"));
    assert!(plan.contains("order=ts DESC") && !plan.contains("SortExec"), "{plan}");
    let all = engine.rows(sql).unwrap();
    assert_eq!(engine.rows(&format!("{sql} LIMIT 7")).unwrap(), all[..7]);
}

#[test]
fn scans_count_matching_rows() {
    let (_folder, engine) = TestEngine::of_orders();
    for (sql, expected) in [
        ("SELECT count(*) + 1 AS n FROM m WHERE qty > 500", "2496"),
        ("SELECT count(*), count(7) FROM m WHERE qty > 5000", "0|0"),
        ("SELECT count(*) - count(1) FROM m WHERE qty > 500", "0"),
    ] {
        let plan = engine.plan(sql);
        assert!(plan.contains("CountExec"), "{sql}: {plan}");
        assert_eq!(engine.value(sql).unwrap(), expected, "{sql}");
    }
    let kept = "SELECT count(*) FILTER (WHERE id < 3) FROM m WHERE qty >= 0";
    assert_eq!(engine.value(kept).unwrap(), "3");
}

#[test]
fn a_distinct_count_beside_a_sum_of_decimals_keeps_its_digits() {
    let of =
        "FROM (VALUES (1, 1.50, 7), (1, 2.25, 7), (1, 2.25, 8), (2, 0.01, 9)) AS t (k, price, n)";
    let sql = format!(
        "SELECT k, count(DISTINCT n), sum(price) {of} GROUP BY k HAVING sum(price) > 0.01 ORDER BY k"
    );
    assert_eq!(rows(&sql), ["1|2|6.00"]);
    let sql = format!("SELECT count(DISTINCT n), sum(price), sum(k) {of}");
    assert_eq!(rows(&sql), ["3|6.01|5"]);
}

#[test]
fn a_distinct_boolean_above_a_membership_is_planned() {
    let sql = format!(
        "{T} SELECT DISTINCT (t.x BETWEEN t.x AND t.x) IS NOT FALSE AS known FROM t \
         WHERE NOT t.id IN (SELECT k FROM u WHERE (y - -3) NOT IN (y, NULL))"
    );
    assert_eq!(rows(&sql), ["true"]);
}

#[test]
fn false_conditions_remove_the_row_of_an_aggregate() {
    let counted = format!("{T} SELECT n FROM (SELECT count(*) AS n, max(x) AS most FROM t) AS c");
    for condition in ["n = 4 AND n = 8", "(4, n) = (n, 8)", "1 = 2", "n = 3 AND 1 = 2"] {
        assert_eq!(rows(&format!("{counted} WHERE {condition}")), [""; 0], "{condition}");
    }
    assert_eq!(rows(&format!("{counted} WHERE n = 3 AND most = 3 AND 1 = 1")), ["3"]);
    assert_eq!(rows(&format!("{T} SELECT count(*) FROM t WHERE 1 = 2")), ["0"]);
    assert_eq!(rows(&format!("{T} SELECT count(*) FROM t HAVING 1 = 2")), [""; 0]);
}

#[test]
fn null_equals_null_only_in_is_not_distinct_from() {
    let rows_of = "(VALUES (NULL, 1), (1, NULL), (1, 1))";
    let sql = format!(
        "SELECT a, b FROM {rows_of} AS t (a, b) JOIN {rows_of} AS u (k, v) \
         ON t.a IS NOT DISTINCT FROM u.k WHERE t.b = u.v ORDER BY a"
    );
    assert_eq!(rows(&sql), ["1|1", "NULL|1"]);
}
