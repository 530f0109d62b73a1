//! Statements that the scan evaluates itself, with the same answers as DataFusion.

use crate::harness::{Folder, TestEngine};

/// Conditions that the scan evaluates.
const PUSHED: &[&str] = &[
    "qty > 500",
    "500 > qty",
    "price > 99.5",
    "price > qty",
    "price BETWEEN 10 AND 20.5",
    "qty NOT BETWEEN 10 AND 990",
    "symbol = 'ABC'",
    "symbol LIKE 'A%'",
    "symbol NOT LIKE 'A!_%' ESCAPE '!'",
    "symbol LIKE 'a\\c'",
    "symbol IN ('ABC', 'XYZ')",
    "qty NOT IN (1, 2, NULL)",
    "note IS NULL",
    "note IS NOT NULL AND qty < 100 OR symbol > 'B'",
    "(note = 'note 1') IS UNKNOWN",
    "NOT (note = 'note 1' OR qty > 700)",
    "open",
    "NOT open AND price * qty > 5000",
    "ts >= TIMESTAMP '2024-01-15 00:00:00'",
    "ts < DATE '2024-01-03'",
    "note LIKE '%9' AND price + 1 < 20",
    "SUBSTRING(note FROM 1 FOR 6) IN ('note 1', 'note 2', 'note', 'note 10', 'Note 3')",
    "SUBSTRING(note FROM 1 FOR 6) NOT IN ('note 1', 'note 2', 'note 3', 'note 4', NULL)",
    "SUBSTRING(note FROM 1 FOR 6) <> 'note 1' AND SUBSTRING(symbol FROM 1 FOR 1) = 'X'",
    "SUBSTRING(note FROM 1 FOR 0) = '' OR qty > 500",
];

#[test]
fn pushed_conditions_match_datafusion() {
    let (_folder, asked) = TestEngine::of_orders();
    for condition in PUSHED {
        let plan = asked.plan(&format!("SELECT id FROM m WHERE {condition}"));
        assert!(plan.contains("condition="), "{condition}: {plan}");
        assert!(!plan.contains("FilterExec"), "{condition}: {plan}");
        let pushed = asked.value(&format!("SELECT count(*) FROM m WHERE {condition}")).unwrap();
        // DataFusion evaluates the condition here, since the scan cannot.
        let engine = format!(
            "SELECT count(*) FILTER (WHERE is_it) FROM (SELECT ({condition}) AS is_it FROM m) AS t"
        );
        assert_eq!(pushed, asked.value(&engine).unwrap(), "{condition}");
    }
}

#[test]
fn unsupported_conditions_are_left_to_datafusion() {
    let (_folder, asked) = TestEngine::of_orders();
    let sql = "SELECT id FROM m WHERE qty > 990 AND character_length(symbol) * 1.5 > 4";
    let plan = asked.plan(sql);
    assert!(plan.contains("FilterExec") && plan.contains("condition="), "{plan}");
    let all = asked.rows("SELECT id FROM m WHERE qty > 990").unwrap();
    assert_eq!(asked.rows(sql).unwrap().len(), all.len());
}

#[test]
fn only_requested_columns_are_read() {
    let (_folder, asked) = TestEngine::of_orders();
    let plan = asked.plan("SELECT symbol FROM m WHERE qty > 500");
    assert!(plan.contains("columns=[symbol]"), "{plan}");
}

#[test]
fn counts_and_bounds_come_from_statistics() {
    let (_folder, asked) = TestEngine::of_orders();
    let sql = "SELECT count(*), min(qty), max(qty), min(symbol), max(price), count(note) FROM m";
    let plan = asked.plan(sql);
    assert!(!plan.contains("MessagesExec"), "{plan}");
    assert_eq!(asked.value(sql).unwrap(), "5000|0|999|ABC|199.23|3333");
}

#[test]
fn top_rows_are_found_by_the_scan() {
    let (_folder, asked) = TestEngine::of_orders();
    for order in ["ts DESC, id", "note, id DESC", "price DESC NULLS LAST, id", "symbol DESC, id"] {
        let sql = format!("SELECT id, symbol FROM m WHERE qty > 300 ORDER BY {order}");
        let plan = asked.plan(&format!("{sql} LIMIT 7"));
        assert!(plan.contains("order=") && !plan.contains("SortExec"), "{plan}");
        let all = asked.rows(&sql).unwrap();
        assert_eq!(asked.rows(&format!("{sql} LIMIT 7")).unwrap(), all[..7], "{order}");
        let rest = asked.rows(&format!("{sql} LIMIT 5 OFFSET 3")).unwrap();
        assert_eq!(rest, all[3..8], "{order}");
    }
}

#[test]
fn limits_reach_the_scan() {
    let (_folder, asked) = TestEngine::of_orders();
    let plan = asked.plan("SELECT id FROM m WHERE qty > 500 LIMIT 3");
    assert!(plan.contains("limit=3"), "{plan}");
    assert_eq!(asked.rows("SELECT id FROM m WHERE qty > 500 LIMIT 3").unwrap().len(), 3);
    assert_eq!(asked.rows("SELECT id FROM m LIMIT 4998 OFFSET 4997").unwrap().len(), 3);
    assert_eq!(asked.rows("SELECT 1 FROM m LIMIT 12").unwrap().len(), 12);
}

#[test]
fn joins_filter_the_scan_of_the_probe_side() {
    let (folder, asked) = TestEngine::of_orders();
    let few = folder.file("few.csv", "id,name\n17,a\n18,b\n4000,c\n");
    asked.open("few", &few).unwrap();
    let sql = "SELECT few.name, m.qty FROM m JOIN few ON m.id = few.id ORDER BY few.name";
    assert_eq!(asked.rows(sql).unwrap(), ["a|119", "b|126", "c|0"]);
    let analysed = asked.rows(&format!("EXPLAIN ANALYZE {sql}")).unwrap().join("\n");
    assert!(analysed.contains("learnt="), "{analysed}");
}

#[test]
fn many_join_keys_filter_the_scan() {
    let (folder, asked) = TestEngine::of_orders();
    let keys: String = (0..1_000).map(|nth| format!("{}\n", nth * 5)).collect();
    let fives = folder.file("fives.csv", &format!("id\n{keys}"));
    asked.open("fives", &fives).unwrap();
    let sql = "SELECT count(*), sum(m.qty) FROM m JOIN fives ON m.id = fives.id";
    let expected = (0..1_000).map(|nth| (nth * 35) % 1_000).sum::<u64>();
    assert_eq!(asked.value(sql).unwrap(), format!("1000|{expected}"));
    let analysed = asked.rows(&format!("EXPLAIN ANALYZE {sql}")).unwrap().join("\n");
    let scan = analysed.lines().find(|line| line.contains("MessagesExec: 5000 rows")).unwrap();
    assert!(scan.contains("output_rows=1.00 K"), "{scan}");
}

/// The first scan with this number of rows, as printed by EXPLAIN ANALYZE.
fn scan_of(asked: &TestEngine, sql: &str, rows: usize) -> String {
    let analysed = asked.rows(&format!("EXPLAIN ANALYZE {sql}")).unwrap().join("\n");
    let scan = analysed.lines().find(|line| line.contains(&format!("MessagesExec: {rows} rows")));
    scan.unwrap_or_else(|| panic!("{analysed}")).to_owned()
}

/// Twenty thousand parts of two hundred makers, a tenth of which are from town 7, in files of this
/// format.
fn parts_and_makers(kind: &str) -> (Folder, TestEngine) {
    let (folder, asked) = (Folder::new(), TestEngine::new());
    let makers: String = (0..200).map(|id| format!("{id},{}\n", id % 10)).collect();
    let parts: String = (0..20_000)
        .map(|id| {
            // Some parts have no maker.
            let maker = if id % 11 == 0 { String::new() } else { (id % 200).to_string() };
            format!("{id},{maker}\n")
        })
        .collect();
    for (name, text) in
        [("makers", format!("k,town\n{makers}")), ("parts", format!("id,maker\n{parts}"))]
    {
        let file = folder.file(&format!("{name}.csv"), &text);
        let file = if kind == "csv" { file } else { as_parquet(&folder, name) };
        asked.open(name, &file).unwrap();
    }
    (folder, asked)
}

/// Writes a table of the folder as Parquet. Returns its path.
fn as_parquet(folder: &Folder, name: &str) -> String {
    let path = folder.path(&format!("{name}.parquet")).display().to_string();
    let sql = format!("COPY (SELECT * FROM '{name}.csv') TO '{path}'");
    let copied = folder.run(&[&sql]);
    assert!(copied.status.success(), "{copied:?}");
    path
}

#[test]
fn key_bitmaps_filter_the_scan() {
    for (kind, waiting) in
        [("csv", "MessagesExec: 20000 rows"), ("parquet", "JoinKeyFilterExec: keys=[id]")]
    {
        let (_folder, asked) = parts_and_makers(kind);
        let sql = "SELECT count(*), sum(b.id) FROM parts AS a JOIN parts AS b ON a.id = b.id \
                   WHERE a.id % 3 = 1";
        let expected: Vec<u64> = (0..20_000).filter(|id| id % 3 == 1).collect();
        let sum = expected.iter().sum::<u64>();
        assert_eq!(asked.value(sql).unwrap(), format!("{}|{sum}", expected.len()));
        let analysed = asked.rows(&format!("EXPLAIN ANALYZE {sql}")).unwrap().join("\n");
        let scan = analysed.lines().find(|line| line.contains(waiting) && line.contains("keys="));
        let scan = scan.unwrap_or_else(|| panic!("{analysed}"));
        assert!(scan.contains("output_rows=6.67 K"), "{scan}");
        // Some batches pass whole, others in part.
        for from in [0, 9_000] {
            let sql = format!(
                "SELECT count(*), sum(b.id) FROM parts AS a JOIN parts AS b ON a.id = b.id \
                 WHERE a.id >= {from}"
            );
            let sum = (from..20_000_u64).sum::<u64>();
            assert_eq!(asked.value(&sql).unwrap(), format!("{}|{sum}", 20_000 - from));
        }
    }
}

#[test]
fn a_scan_waits_for_the_keys_of_every_join_above_it() {
    let (_folder, asked) = parts_and_makers("csv");
    let sql = "SELECT count(*) FROM parts JOIN makers ON parts.maker = makers.k \
               JOIN (SELECT 7 AS town) AS towns ON makers.town = towns.town";
    let expected = (0..20_000).filter(|id| id % 11 != 0 && id % 200 % 10 == 7).count();
    assert_eq!(asked.value(sql).unwrap(), expected.to_string());
    let scan = scan_of(&asked, sql, 20_000);
    assert!(scan.contains(&format!("output_rows={:.2} K", expected as f64 / 1e3)), "{scan}");
}

#[test]
fn rows_without_a_partner_stay_where_they_count() {
    for kind in ["csv", "parquet"] {
        let (_folder, asked) = parts_and_makers(kind);
        without_a_partner(&asked);
    }
}

fn without_a_partner(asked: &TestEngine) {
    let few = "(SELECT * FROM makers WHERE town = 7) AS few";
    let all = 20_000;
    let nobodys = (0..all).filter(|id| id % 11 == 0).count();
    let theirs = (0..all).filter(|id| id % 11 != 0 && id % 10 == 7).count();
    let counts = [
        (format!("parts LEFT JOIN {few} ON parts.maker = few.k"), all),
        (format!("{few} RIGHT JOIN parts ON parts.maker = few.k"), all),
        (format!("{few} FULL JOIN parts ON parts.maker = few.k"), all),
        (format!("parts RIGHT JOIN {few} ON parts.maker = few.k"), theirs),
        (format!("parts WHERE maker IN (SELECT k FROM {few})"), theirs),
        (format!("parts WHERE maker NOT IN (SELECT k FROM {few})"), all - nobodys - theirs),
        (format!("parts WHERE NOT EXISTS (SELECT 1 FROM {few} WHERE k = maker)"), all - theirs),
        (format!("parts WHERE maker NOT IN (SELECT k FROM {few} UNION ALL SELECT NULL)"), 0),
        // Here, NULL equals NULL.
        (
            "(SELECT maker FROM parts INTERSECT SELECT maker FROM parts WHERE id < 12) AS s".into(),
            11,
        ),
    ];
    for (from, expected) in counts {
        let sql = format!("SELECT count(*) FROM {from}");
        assert_eq!(asked.value(&sql).unwrap(), expected.to_string(), "{sql}");
    }
}

/// Forty rows with a column `id` and three others, as messages and as Parquet.
fn sales(asked: &TestEngine, folder: &Folder) -> [&'static str; 2] {
    let rows: String = (0..40).map(|id| format!("{id},{},{}\n", id % 7, (id * 3) % 50)).collect();
    asked.open("sales", &folder.file("sales.csv", &format!("id,item,qty\n{rows}"))).unwrap();
    asked.open("columns", &as_parquet(folder, "sales")).unwrap();
    ["sales", "columns"]
}

#[test]
fn dynamic_filters_do_not_reach_columns_of_the_same_name() {
    let (folder, asked) = (Folder::new(), TestEngine::new());
    for t in sales(&asked, &folder) {
        let rows = || (0..40_i64).map(|id| (id, id % 7, (id * 3) % 50));
        let pairs: Vec<(i64, i64)> = rows()
            .flat_map(|a| rows().map(move |b| (a, b)))
            .filter(|(a, b)| a.1 == b.2)
            .map(|(a, b)| (a.0, b.0))
            .collect();
        // The rows with `a.id` and `b.id` are repartitioned before they are joined with `c`.
        let sql = format!(
            "SELECT count(*), count(b.id), sum(b.id), sum(a.id) FROM {t} AS a \
             JOIN {t} AS b ON a.item = b.qty \
             RIGHT JOIN (SELECT qty FROM {t} WHERE id < 20) AS c ON b.id = c.qty"
        );
        let (mut count, mut found) = (0, Vec::<(i64, i64)>::new());
        for (_, _, wanted) in rows().take(20) {
            let before = found.len();
            found.extend(pairs.iter().filter(|(_, b)| *b == wanted));
            count += (found.len() - before).max(1);
        }
        let (a, b): (i64, i64) = found.iter().fold((0, 0), |sum, &(a, b)| (sum.0 + a, sum.1 + b));
        assert_eq!(asked.value(&sql).unwrap(), format!("{count}|{}|{b}|{a}", found.len()), "{t}");
        // Limits are pushed down with an ORDER BY, too.
        let sql = format!(
            "SELECT b.id, a.id FROM {t} AS a JOIN {t} AS b ON a.item = b.qty \
             ORDER BY b.id DESC, a.id LIMIT 3"
        );
        let mut best = pairs;
        best.sort_unstable_by_key(|&(a, b)| (-b, a));
        let best: Vec<String> = best[..3].iter().map(|(a, b)| format!("{b}|{a}")).collect();
        assert_eq!(asked.rows(&sql).unwrap(), best, "{t}");
    }
}

#[test]
fn rerun_scans_do_not_wait() {
    for kind in ["csv", "parquet"] {
        let (_folder, asked) = parts_and_makers(kind);
        let sql = "WITH RECURSIVE r AS (SELECT 1 AS id, 0 AS depth UNION ALL \
               SELECT parts.id + 1, r.depth + 1 FROM r JOIN parts ON parts.id = r.id \
               WHERE r.depth < 40) SELECT count(*), max(id) FROM r";
        assert_eq!(asked.value(sql).unwrap(), "41|41");
    }
}

#[test]
fn groups_windows_and_sets_run_in_datafusion() {
    let (_folder, asked) = TestEngine::of_orders();
    let groups = asked.rows("SELECT symbol, count(*) AS n FROM m GROUP BY symbol ORDER BY symbol");
    assert_eq!(groups.unwrap(), ["ABC|1000", "ABD|1000", "A_C|1000", "XYZ|1000", "a\\c|1000"]);
    let sql = "SELECT id, row_number() OVER (ORDER BY price DESC, id) AS place FROM m \
               WHERE qty = 500 ORDER BY place LIMIT 2";
    assert_eq!(asked.rows(sql).unwrap().len(), 2);
    let sql = "SELECT id FROM m WHERE id < 3 UNION SELECT id FROM m WHERE id BETWEEN 2 AND 4 \
               EXCEPT SELECT 3 ORDER BY 1";
    assert_eq!(asked.rows(sql).unwrap(), ["0", "1", "2", "4"]);
}
