//! Every clause is executed, or refused by name; none is silently ignored.

use crate::harness::{Folder, TestEngine};

/// The tables `t`, `u` and `h`; `h` has a header and no rows.
fn tables() -> (Folder, TestEngine) {
    let folder = Folder::new();
    let engine = TestEngine::new();
    let t = folder.file(
        "t.ndjson",
        "{\"a\":1,\"b\":\"x\",\"d\":\"2024-01-05\",\"ts\":\"2024-01-05T10:00:00Z\",\"f\":1.5}\n\
         {\"a\":2,\"b\":\"y\",\"d\":\"2024-01-06\",\"ts\":\"2024-01-06T10:00:00Z\",\"f\":2.5}\n\
         {\"a\":2,\"b\":null,\"d\":\"2024-02-06\",\"ts\":\"2024-02-06T10:00:00Z\",\"f\":null}\n\
         {\"a\":3,\"b\":\"x\",\"d\":null,\"ts\":null,\"f\":0.5}\n",
    );
    let u = folder.file("u.ndjson", "{\"k\":1}\n{\"k\":2}\n{\"k\":2}\n{\"k\":5}\n");
    engine.open("t", &t).unwrap();
    engine.open("u", &u).unwrap();
    engine.open("h", &folder.file("h.csv", "a,b,c\n")).unwrap();
    (folder, engine)
}

fn check(table: &[(&str, &[&str])]) {
    let (_folder, engine) = tables();
    for (sql, expected) in table {
        assert_eq!(engine.rows(sql).unwrap(), *expected, "{sql}");
    }
}

#[test]
fn unsupported_clauses_are_refused() {
    let (_folder, engine) = tables();
    for (sql, words) in [
        ("SELECT count(*) FROM t TABLESAMPLE (1 PERCENT)", "TABLESAMPLE"),
        ("SELECT count(*) FROM t TABLESAMPLE BERNOULLI (10)", "TABLESAMPLE"),
        ("SELECT count(*) FROM (SELECT a FROM t) AS x TABLESAMPLE (1 ROWS)", "TABLESAMPLE"),
        ("SELECT a, count(*) FROM t GROUP BY a WITH TOTALS", "WITH TOTALS"),
        ("SELECT a FROM t START WITH a = 1 CONNECT BY a = PRIOR a + 1", "CONNECT BY"),
        ("SELECT TOP 1 a FROM t", "TOP"),
        ("SELECT a INTO z FROM t", "INTO"),
        ("SELECT a FROM t LATERAL VIEW explode(b) x AS y", "LATERAL VIEW"),
        ("SELECT a FROM t PREWHERE a = 1", "PREWHERE"),
        ("SELECT a FROM t CLUSTER BY a", "CLUSTER BY"),
        ("SELECT a FROM t SORT BY a", "SORT BY"),
        ("SELECT a FROM t DISTRIBUTE BY a", "DISTRIBUTE BY"),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES", "WITH TIES"),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 50 PERCENT ROWS ONLY", "PERCENT"),
        ("SELECT a FROM t LIMIT 1 FETCH FIRST 2 ROWS ONLY", "FETCH"),
        ("SELECT a FROM t LIMIT 1 BY a", "BY"),
        ("SELECT a FROM t FOR UPDATE", "FOR UPDATE"),
        ("SELECT a FROM t FOR SHARE", "FOR SHARE"),
        ("SELECT a FROM t SETTINGS max_threads = 1", "SETTINGS"),
        ("SELECT a FROM t FORMAT JSON", "FORMAT"),
        ("SELECT a FROM t ORDER BY a WITH FILL", "WITH"),
        ("SELECT a FROM t ORDER BY a INTERPOLATE", "INTERPOLATE"),
        ("SELECT a FROM t WITH (NOLOCK)", "WITH"),
        ("SELECT a FROM t USE INDEX (i)", "INDEX"),
        ("SELECT a FROM t PARTITION (p0)", "PARTITION"),
        ("SELECT a FROM t WITH ORDINALITY", "WITH ORDINALITY"),
        ("SELECT a FROM t FOR SYSTEM_TIME AS OF '2024-01-01'", "SYSTEM_TIME"),
        ("SELECT a FROM t AS x(a BIGINT, b, d, ts, f)", "type after"),
        ("SELECT a FROM t UNION SELECT k FROM u ORDER BY ALL", "ALL"),
        ("SELECT a FROM t MINUS SELECT k FROM u", "MINUS"),
        ("SELECT a FROM t SEMI JOIN u ON t.a = u.k", "SEMI JOIN"),
        ("SELECT a FROM t CROSS APPLY (SELECT 1) AS x", "APPLY"),
        ("SELECT * FROM t PIVOT (sum(a) FOR b IN ('x', 'y'))", "PIVOT"),
        ("SELECT b COLLATE nocase FROM t", "COLLATE"),
        ("SELECT a FROM t HAVING a > 1", "HAVING"),
        ("FROM t SELECT a", "FROM"),
    ] {
        let said = engine.refusal(sql);
        assert!(said.contains(words), "{sql}: {said}");
    }
}

#[test]
fn unsupported_function_clauses_are_refused() {
    let (_folder, engine) = tables();
    for (call, words) in [
        ("sum(a) OVER (ORDER BY a ROWS 1 PRECEDING EXCLUDE CURRENT ROW)", "EXCLUDE"),
        ("sum(a) OVER nope", "nope"),
        ("rank() IGNORE NULLS OVER (ORDER BY a)", "IGNORE NULLS"),
        ("rank() FILTER (WHERE a > 1) OVER (ORDER BY a)", "FILTER"),
        ("upper(b) FILTER (WHERE a > 1)", "FILTER"),
        ("upper(DISTINCT b)", "DISTINCT"),
        ("upper(b) OVER ()", "OVER"),
        ("upper(b ORDER BY a)", "ORDER BY"),
        ("upper(b) WITHIN GROUP (ORDER BY a)", "WITHIN GROUP"),
        ("upper(b) IGNORE NULLS", "IGNORE NULLS"),
        ("corr(DISTINCT a, f)", "DISTINCT"),
        ("quantile(0.5)(a)", "second list"),
        ("string_agg(b, ',' ORDER BY a LIMIT 1)", "LIMIT"),
        ("string_agg(b, ',' ON OVERFLOW ERROR)", "ON OVERFLOW"),
        ("first_value() OVER ()", "argument"),
        ("last_value() OVER ()", "argument"),
        ("nth_value() OVER ()", "argument"),
        ("lead() OVER ()", "argument"),
        ("lag() OVER ()", "argument"),
        ("ntile() OVER ()", "argument"),
    ] {
        let said = engine.refusal(&format!("SELECT {call} FROM t"));
        assert!(said.contains(words), "{call}: {said}");
    }
    engine.refusal("SELECT a FROM t ORDER BY sum(a) OVER nope");
}

#[test]
fn fetch_first_limits_rows() {
    check(&[
        ("SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS ONLY", &["1", "2"]),
        ("SELECT a + 0 FROM t ORDER BY 1 OFFSET 2 ROWS FETCH NEXT 2 ROWS ONLY", &["2", "3"]),
        ("SELECT a FROM t GROUP BY a ORDER BY a OFFSET 1 ROW FETCH FIRST ROW ONLY", &["2"]),
    ]);
}

#[test]
fn with_rollup_and_with_cube_add_totals() {
    check(&[
        (
            "SELECT a, count(*) FROM t GROUP BY a WITH ROLLUP ORDER BY a",
            &["1|1", "2|2", "3|1", "NULL|4"],
        ),
        (
            "SELECT b IS NULL, a, count(*) FROM t WHERE b = 'x' GROUP BY b, a WITH CUBE ORDER BY 1, 2",
            &["false|1|1", "false|3|1", "false|NULL|2", "true|1|1", "true|3|1", "true|NULL|2"],
        ),
        (
            "SELECT a, count(*) FROM t GROUP BY ROLLUP (1) ORDER BY 1",
            &["1|1", "2|2", "3|1", "NULL|4"],
        ),
    ]);
}

#[test]
fn a_cast_is_another_group_than_its_operand() {
    check(&[
        (
            "SELECT CAST(a AS VARCHAR) AS x, a, count(*) FROM t GROUP BY CAST(a AS VARCHAR), t.a ORDER BY 2",
            &["1|1|1", "2|2|2", "3|3|1"],
        ),
        (
            "SELECT b, CAST(b AS VARCHAR) FROM t GROUP BY 1, 2 ORDER BY CAST(b AS VARCHAR)",
            &["x|x", "y|y", "NULL|NULL"],
        ),
        ("SELECT sum(a), sum(CAST(a AS DOUBLE)), sum((CAST(a AS BIGINT))) FROM t", &["8|8.0|8"]),
        (
            "SELECT a, CAST(a AS DOUBLE), count(*) FROM t WHERE a < 2 \
             GROUP BY ROLLUP (a, CAST(a AS DOUBLE)) ORDER BY 1, 2",
            &["1|1.0|1", "1|NULL|1", "NULL|NULL|1"],
        ),
        (
            "SELECT CAST(a AS DOUBLE) + 1, a + 1 FROM t GROUP BY 1, 2 HAVING sum(CAST(a AS INT)) > 2 \
             ORDER BY CAST(a AS DOUBLE) + 1",
            &["3.0|3", "4.0|4"],
        ),
        (
            "SELECT a, sum(CAST(a AS DOUBLE)) OVER (ORDER BY a), sum(a) OVER (ORDER BY a) FROM t ORDER BY 1",
            &["1|1.0|1", "2|5.0|5", "2|5.0|5", "3|8.0|8"],
        ),
        (
            "SELECT a FROM t WHERE a IN (SELECT max(CAST(u.a AS INT)) + max(u.a) - 3 FROM t AS u)",
            &["3"],
        ),
    ]);
    let (_folder, engine) = tables();
    let twice = "SELECT CAST(a AS DOUBLE), a FROM t GROUP BY 1, 2";
    for sql in [twice.to_string(), format!("{twice} UNION {twice}")] {
        let (schema, _) = engine.batches(&sql).unwrap();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
        assert_eq!(names, ["CAST(a AS DOUBLE)", "a"], "{sql}");
    }
}

#[test]
fn named_windows_are_expanded() {
    check(&[
        (
            "SELECT a, sum(a) OVER w FROM t WINDOW w AS (PARTITION BY a) ORDER BY 1",
            &["1|1", "2|4", "2|4", "3|3"],
        ),
        (
            "SELECT a, sum(a) OVER (w ORDER BY b) FROM t WINDOW w AS (PARTITION BY a) ORDER BY 1, 2",
            &["1|1", "2|2", "2|4", "3|3"],
        ),
        (
            "SELECT a FROM t WINDOW w AS (ORDER BY a DESC) ORDER BY rank() OVER w",
            &["3", "2", "2", "1"],
        ),
        ("SELECT a FROM t WINDOW w AS (ORDER BY a) QUALIFY row_number() OVER w = 1", &["1"]),
    ]);
}

#[test]
fn recursive_queries_are_limited_where_they_are_read() {
    let (_folder, engine) = tables();
    let said = engine.refusal(
        "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x LIMIT 5) SELECT n FROM x",
    );
    assert!(said.contains("LIMIT"), "{said}");
    check(&[(
        "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT 2 ORDER BY 1 DESC LIMIT 1) \
         SELECT n FROM x",
        &["2"],
    )]);
}

#[test]
fn duplicate_output_names_are_numbered() {
    let (_folder, engine) = tables();
    for (sql, expected) in [
        ("SELECT a, a FROM t", vec!["a", "a (2)"]),
        ("SELECT a, a FROM t GROUP BY a", vec!["a", "a (2)"]),
        ("SELECT a AS x, b AS x, a + 1 AS x FROM t", vec!["x", "x (2)", "x (3)"]),
        ("SELECT a, t.a FROM t", vec!["a", "a (2)"]),
        ("SELECT t.a, a + 1 AS a FROM t", vec!["a", "a (2)"]),
        ("SELECT count(*) AS a, t.a FROM t GROUP BY t.a", vec!["a", "a (2)"]),
        ("SELECT t.*, t.a FROM t", vec!["a", "b", "d", "ts", "f", "a (2)"]),
        ("SELECT *, a + 1 AS a FROM t", vec!["a", "b", "d", "ts", "f", "a (2)"]),
        ("SELECT a + 1 AS a, x.* FROM t AS x", vec!["a (2)", "a", "b", "d", "ts", "f"]),
        ("SELECT *, 1 AS z FROM t", vec!["a", "b", "d", "ts", "f", "z"]),
        ("SELECT *, a FROM t ORDER BY a + 1", vec!["a", "b", "d", "ts", "f", "a (2)"]),
    ] {
        let (schema, _) = engine.batches(sql).unwrap();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, expected, "{sql}");
    }
    check(&[("SELECT count(*) FROM (SELECT a, a FROM t) AS x", &["4"])]);
}

#[test]
fn string_literals_compared_with_dates_are_dates() {
    check(&[
        ("SELECT a FROM t WHERE d = '2024-01-05'", &["1"]),
        ("SELECT a + 0 FROM t WHERE d > '2024-01-05' ORDER BY 1", &["2", "2"]),
        ("SELECT a FROM t WHERE ts > '2024-01-06' ORDER BY a", &["2", "2"]),
        ("SELECT count(*) FROM t WHERE ts = '2024-01-05 10:00:00'", &["1"]),
        ("SELECT count(*) FROM t WHERE d < '2024-01-06 12:00:00'", &["2"]),
        ("SELECT a FROM t WHERE d IN ('2024-01-05', '2023-01-01')", &["1"]),
        ("SELECT a FROM t WHERE '2024-01-05' IN (d)", &["1"]),
        ("SELECT a FROM t JOIN u ON a = k AND d = '2024-01-05'", &["1"]),
        (
            "SELECT a FROM t WHERE d BETWEEN '2024-01-06' AND DATE '2024-01-06' + INTERVAL '9' DAY",
            &["2"],
        ),
        ("SELECT count(CASE d WHEN '2024-01-05' THEN 1 END) FROM t", &["1"]),
        ("SELECT min(CASE WHEN a > 2 THEN '2020-01-01' ELSE d END) FROM t", &["2020-01-01"]),
        ("SELECT min(coalesce(d, '2020-01-01')) FROM t", &["2020-01-01"]),
        ("SELECT count(*) FROM t WHERE '2024-01-05' IN (SELECT d FROM t)", &["4"]),
    ]);
    let (_folder, engine) = tables();
    for sql in [
        "SELECT a FROM t WHERE d = 'soon'",
        "SELECT a FROM t WHERE ts BETWEEN '2024-01-01' AND 'soon'",
        "SELECT count(a) FROM t GROUP BY b HAVING min(d) > 'soon'",
    ] {
        let said = engine.refusal(sql);
        assert!(said.contains("'soon' is not written as"), "{sql}: {said}");
    }
}

#[test]
fn functions_of_other_engines_are_supported() {
    check(&[
        ("SELECT group_concat(b) FROM t WHERE a = 1", &["x"]),
        ("SELECT group_concat(a, ';' ORDER BY a DESC) FROM t", &["3;2;2;1"]),
        ("SELECT group_concat(a ORDER BY a SEPARATOR '-') FROM t", &["1-2-2-3"]),
        ("SELECT if(a > 2, 'big', 'small') FROM t WHERE a <> 2 ORDER BY a", &["small", "big"]),
        ("SELECT mode(a) FROM t", &["2"]),
        ("SELECT mode() WITHIN GROUP (ORDER BY b) FROM t", &["x"]),
        ("SELECT mode(a) FROM t WHERE a > 9", &["NULL"]),
        ("SELECT unnest(make_array(1, 2))", &["1", "2"]),
        ("SELECT array_length(make_array(1, 2))", &["2"]),
        ("SELECT md5('a')", &["0cc175b9c0f1b6a831c399e269772661"]),
        ("SELECT encode(sha256('a'), 'hex') LIKE 'ca978112%'", &["true"]),
        ("SELECT lag(b) IGNORE NULLS OVER (ORDER BY a) FROM t WHERE a > 2", &["NULL"]),
    ]);
}

#[test]
fn a_header_alone_is_an_empty_table() {
    check(&[
        ("SELECT a, b FROM h", &[]),
        ("SELECT c FROM h WHERE b > 1", &[]),
        ("SELECT count(*), max(a) FROM h", &["0|NULL"]),
        ("SELECT k FROM u LEFT JOIN h ON h.a = u.k WHERE k = 5", &["5"]),
    ]);
}
