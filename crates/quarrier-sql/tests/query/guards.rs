//! Queries that DataFusion gets wrong without the rules in `plan/`, so that a rule is deleted once
//! DataFusion no longer needs it.
//!
//! A new rule gets a statement here with its answer by SQL-92 and, if we know one, the upstream
//! issue.

use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::harness::{Folder, TestEngine, all_lines};

/// Statements that DataFusion gets wrong, or refuses, for the same reason.
struct Guard {
    /// The file of `plan/` that fixes them.
    file: &'static str,
    /// The issue number in apache/datafusion.
    issue: &'static str,
    /// The statements, each with its correct rows.
    wrong: &'static [(&'static str, &'static [&'static str])],
    /// Whether DataFusion refuses all of them, rather than returning wrong rows.
    is_refused: bool,
}

/// Rows with and without NULL, and timestamps. The table `sales` is a file.
const TABLES: [&str; 8] = [
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1), (2, NULL), (3, 3)) AS t (id, x)",
    "CREATE TABLE u AS SELECT * FROM (VALUES (1, 1), (2, 5)) AS u (k, y)",
    "CREATE TABLE n AS SELECT * FROM (VALUES (1), (NULL)) AS n (y)",
    "CREATE TABLE l AS SELECT * FROM (VALUES (NULL, 1), (1, NULL), (1, 1)) AS l (a, b)",
    "CREATE TABLE p AS SELECT * FROM (VALUES (1, 10), (2, 20), (NULL, 30), (4, 40)) AS p (id, z)",
    "CREATE TABLE q AS SELECT * FROM (VALUES (1, 5), (NULL, 50)) AS q (id, z)",
    "CREATE TABLE s AS SELECT value AS v FROM generate_series(0, 99999)",
    "CREATE TABLE ms AS SELECT arrow_cast(v, 'Timestamp(Millisecond, None)') AS at \
     FROM (VALUES (-1), (0), (1), (NULL)) AS w (v)",
];

const GUARDS: [Guard; 10] = [
    Guard {
        file: "multisets",
        issue: "#12956 (EXCEPT ALL), #12955 (INTERSECT ALL)",
        wrong: &[
            ("SELECT b FROM l EXCEPT ALL SELECT y FROM n WHERE y = 1 ORDER BY b", &["1", "NULL"]),
            ("SELECT b FROM l INTERSECT ALL SELECT y FROM n WHERE y = 1", &["1"]),
        ],
        is_refused: false,
    },
    Guard {
        file: "memberships",
        issue: "#8241, #25347, #25336",
        wrong: &[
            ("SELECT id FROM t WHERE 7 NOT IN (SELECT y FROM n)", &[]),
            (
                "SELECT id FROM p WHERE id NOT IN (SELECT q.id FROM q WHERE q.z < p.z) ORDER BY id",
                &["2", "4"],
            ),
            (
                "SELECT z FROM p WHERE 3 NOT IN (SELECT q.id FROM q WHERE q.z = p.z + 10) \
                 ORDER BY z",
                &["10", "20", "30"],
            ),
        ],
        is_refused: false,
    },
    Guard {
        file: "in_lists",
        issue: "not reported yet",
        wrong: &[
            ("SELECT count(*) FROM t WHERE x NOT IN (1, 2) OR x NOT IN (4, 5)", &["2"]),
            ("SELECT count(*) FROM t WHERE NOT (x IN (1, 2, 6, 7) AND x IN (3, 4, 8, 9))", &["2"]),
            ("SELECT count(*) FROM t WHERE NOT ((x = 1 OR x = 2) AND (x = 3 OR x = 4))", &["2"]),
            (
                "SELECT id FROM p WHERE id IN (z - 9, 7, 8, 9) AND id IN (z / 10, 17, 18, 19)",
                &["1"],
            ),
        ],
        is_refused: false,
    },
    Guard {
        file: "whole_orders",
        issue: "not reported yet",
        wrong: &[(
            "SELECT 1 AS a, v + 1000000 AS b FROM s WHERE v < 3 UNION ALL SELECT 0 AS a, v AS b FROM s \
             ORDER BY a, b DESC LIMIT 3",
            &["0|99999", "0|99998", "0|99997"],
        )],
        is_refused: false,
    },
    Guard {
        file: "no_groups",
        issue: "near #11748",
        wrong: &[("SELECT c FROM (SELECT count(*) AS c FROM t) AS q WHERE c = 4 AND c = 8", &[])],
        is_refused: false,
    },
    Guard {
        file: "one_distinct",
        issue: "not reported yet",
        wrong: &[(
            "SELECT k, count(DISTINCT n), sum(p) FROM (SELECT column1 AS k, \
             CAST(column2 AS DECIMAL(3, 2)) AS p, column3 AS n \
             FROM (VALUES (1, '1.50', 7), (1, '2.25', 7), (1, '2.25', 8), (2, '0.01', 9))) AS q \
             GROUP BY k HAVING sum(p) > 0.01 ORDER BY k",
            &["1|2|6.00"],
        )],
        is_refused: true,
    },
    Guard {
        file: "null_keys",
        issue: "near #11704",
        wrong: &[(
            "SELECT l.a, l.b FROM l JOIN l AS m ON l.a IS NOT DISTINCT FROM m.a WHERE l.b = m.b \
             ORDER BY l.a",
            &["1|1", "NULL|1"],
        )],
        is_refused: false,
    },
    Guard {
        file: "time_units",
        issue: "not reported yet",
        wrong: &[(
            "SELECT count(*) FROM ms WHERE at >= TIMESTAMP '1970-01-01 00:00:00.000000001'",
            &["1"],
        )],
        is_refused: false,
    },
    Guard {
        file: "correlated",
        issue: "#5492",
        wrong: &[(
            "SELECT id, (SELECT count(*) FROM u WHERE u.k < t.id) FROM t ORDER BY id",
            &["1|0", "2|1", "3|2"],
        )],
        is_refused: true,
    },
    Guard {
        file: "misrouted (with lineage)",
        issue: "#25244, fixed by #25259 in DataFusion 56",
        wrong: &[(
            "SELECT count(*), count(b.id), sum(b.id), sum(a.id) FROM sales AS a \
             JOIN sales AS b ON a.item = b.qty \
             RIGHT JOIN (SELECT qty FROM sales WHERE id < 20) AS c ON b.id = c.qty",
            &["35|18|114|357"],
        )],
        is_refused: false,
    },
];

/// The number of runs: errors in filters that threads share occur only in some.
const TRIES: usize = 20;

/// Plain DataFusion with the same tables.
async fn plain(folder: &Folder) -> Result<SessionContext, DataFusionError> {
    let mut config = SessionConfig::new().with_target_partitions(2);
    // Makes Parquet scans skip rows by dynamic filters, as scans of messages do.
    config.options_mut().execution.parquet.pushdown_filters = true;
    let context = SessionContext::new_with_config(config);
    for table in TABLES {
        context.sql(table).await?.collect().await?;
    }
    let path = folder.path("sales.parquet").display().to_string();
    let sales = "SELECT value AS id, value % 7 AS item, (value * 3) % 50 AS qty \
                 FROM generate_series(0, 39)";
    context.sql(&format!("COPY ({sales}) TO '{path}' STORED AS PARQUET")).await?.collect().await?;
    context.register_parquet("sales", &path, Default::default()).await?;
    Ok(context)
}

#[test]
fn datafusion_still_needs_every_guard() {
    let (folder, asked) = (Folder::new(), TestEngine::new());
    let context = asked.wait(plain(&folder)).unwrap();
    for table in ["t", "u", "n", "l", "p", "q", "s", "ms", "sales"] {
        let provider = asked.wait(context.table_provider(table)).unwrap();
        asked.engine.context().register_table(table, provider).unwrap();
    }
    let mut problems = Vec::new();
    for Guard { file, issue, wrong, is_refused } in GUARDS {
        for (sql, right) in wrong {
            let ours = asked.rows(sql);
            if ours.as_ref().ok().is_none_or(|rows| rows != right) {
                problems.push(format!("with plan/{file}, {sql}: {ours:?}"));
            }
            let plain = || {
                let batches = asked.wait(async { context.sql(sql).await?.collect().await });
                batches.map(|batches| all_lines(&batches))
            };
            let is_right = |rows: &Result<_, DataFusionError>| {
                rows.as_ref().is_ok_and(|rows: &Vec<String>| rows == right)
            };
            let first = plain();
            if first.is_err() != is_refused {
                problems.push(format!("DataFusion, instead of what plan/{file} says: {first:?}"));
            }
            if is_right(&first) && (1..TRIES).all(|_| is_right(&plain())) {
                problems.push(format!(
                    "DataFusion answers this right now: remove plan/{file} ({issue}): {sql}"
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
