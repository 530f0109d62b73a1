//! Numbers are found by their own literals, never wrap, and are never truncated.

use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch,
    UInt64Array,
};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::parquet::arrow::ArrowWriter;
use quarrier_sql::Options;

use crate::harness::{Folder, TestEngine};

const BEYOND: &str = "a 64-bit integer out of range";
const BEYOND_SUM: &str = "beyond 64 bits";

/// Writes rows as a file of each format; JSON lines only if they can represent the columns.
fn files(folder: &Folder, columns: &[(&str, ArrayRef)]) -> Vec<String> {
    let named = columns.iter().map(|(name, column)| (*name, Arc::clone(column)));
    let batch = RecordBatch::try_from_iter_with_nullable(named.map(|(n, c)| (n, c, true))).unwrap();
    let path = |name: &str| folder.path(name).display().to_string();
    let parquet = path("m.parquet");
    let mut writer =
        ArrowWriter::try_new(File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let arrow = path("m.arrow");
    let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    vec![parquet, arrow]
}

fn lines(folder: &Folder, rows: &[String]) -> String {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    folder.file("m.ndjson", &lines)
}

/// Runs a statement in every way: with a direct plan, with DataFusion's plan, on several workers.
fn each_way(files: &[String], sql: &str, check: impl Fn(&str, Result<Vec<String>, String>)) {
    for file in files {
        for workers in 1..=3 {
            let engine = TestEngine::with(Options { workers, ..Options::default() });
            engine.open("m", file).unwrap();
            for sql in [sql.to_string(), format!("SELECT * FROM ({sql}) AS t")] {
                let ending = file.rsplit('.').next().unwrap();
                let rows = engine.rows(&sql).map_err(|error| error.to_string());
                let sorted = rows.map(|mut rows| {
                    rows.sort();
                    rows
                });
                check(&format!("{sql} over {ending}, {workers} workers"), sorted);
            }
        }
    }
}

fn answers(files: &[String], sql: &str, expected: &[&str]) {
    each_way(files, sql, |way, rows| assert_eq!(rows.as_deref().unwrap(), expected, "{way}"));
}

fn refuses(files: &[String], sql: &str, why: &str) {
    each_way(files, sql, |way, rows| {
        let said = rows.unwrap_err();
        assert!(said.contains(why) && !said.contains("nternal error"), "{way}: {said}");
    });
}

fn alone(expression: &str) -> Result<String, String> {
    TestEngine::new().value(&format!("SELECT {expression}")).map_err(|error| error.to_string())
}

fn floats(values: &[f64]) -> (Folder, Vec<String>) {
    let folder = Folder::new();
    let column: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
    let mut all = files(&folder, &[("x", column)]);
    if values.iter().all(|value| value.is_finite()) {
        let rows: Vec<String> = values.iter().map(|value| format!("{{\"x\":{value:e}}}")).collect();
        all.push(lines(&folder, &rows));
        let csv: String = values.iter().map(|value| format!("{value:e}\n")).collect();
        all.push(folder.file("m.csv", &format!("x\n{csv}")));
    }
    (folder, all)
}

fn wholes(values: &[i64]) -> (Folder, Vec<String>) {
    let folder = Folder::new();
    let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
    let mut all = files(&folder, &[("x", column)]);
    let rows: Vec<String> = values.iter().map(|value| format!("{{\"x\":{value}}}")).collect();
    all.push(lines(&folder, &rows));
    (folder, all)
}

/// Pseudo-random numbers, the same for each run.
fn draws(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

#[test]
fn literals_compared_with_floats_are_floats() {
    for value in ["12345678.9", "903.6635458094711"] {
        let (_folder, files) = floats(&[value.parse().unwrap()]);
        for condition in [
            format!("x = {value}"),
            format!("x = {value}e0"),
            format!("x IN ({value}, 1)"),
            format!("x BETWEEN {value} AND {value}"),
            format!("CASE x WHEN {value} THEN TRUE END"),
            format!("x - {value} = 0"),
            format!("COALESCE(x, {value}) = {value}"),
            format!("NOT x > {value} AND NOT x < {value}"),
            format!("x IN (SELECT {value})"),
        ] {
            answers(&files, &format!("SELECT COUNT(*) FROM m WHERE {condition}"), &["1"]);
        }
        let union = format!(
            "SELECT COUNT(DISTINCT y) FROM (SELECT x AS y FROM m UNION ALL SELECT {value}) AS u"
        );
        answers(&files, &union, &["1"]);
        let join = format!("SELECT COUNT(*) FROM m JOIN (VALUES ({value})) AS v (y) ON x = y");
        answers(&files, &join, &["1"]);
    }
    let (_folder, files) = floats(&[0.1, 0.100_000_000_000_000_02]);
    answers(&files, "SELECT COUNT(*) FROM m WHERE x > 0.1", &["1"]);
}

#[test]
fn random_floats_are_found_by_their_own_literals() {
    let values: Vec<f64> =
        draws(1).map(f64::from_bits).filter(|value| value.is_finite()).take(150).collect();
    let plain = draws(2).map(|bits| (bits >> 11) as f64 / (1_u64 << 40) as f64).take(150);
    let values: Vec<f64> = values.into_iter().chain(plain).collect();
    let (_folder, files) = floats(&values);
    let literal = |(at, value): (usize, &f64)| {
        let plain = value.to_string();
        match at % 3 {
            1 if plain.len() < 30 => format!("{plain}e0"),
            2 if plain.len() < 30 && plain.contains('.') => plain,
            _ => format!("{value:e}"),
        }
    };
    let literals: Vec<String> = values.iter().enumerate().map(literal).collect();
    let all = values.len().to_string();
    for file in &files {
        let engine = TestEngine::new();
        engine.open("m", file).unwrap();
        for literal in literals.iter().step_by(7) {
            let direct = format!("SELECT COUNT(*) FROM m WHERE x = {literal}");
            assert_eq!(engine.value(&direct).unwrap(), "1", "{direct} over {file}");
        }
        let listed = format!("SELECT COUNT(*) FROM m WHERE x IN ({})", literals.join(", "));
        assert_eq!(engine.value(&listed).unwrap(), all, "{file}");
        let each: Vec<String> =
            literals.iter().map(|one| format!("SUM(CASE WHEN x = {one} THEN 1 END)")).collect();
        for each in each.chunks(50) {
            let found = engine.value(&format!("SELECT {} FROM m", each.join(" + "))).unwrap();
            assert_eq!(found, each.len().to_string(), "{file}");
        }
    }
}

#[test]
fn numbers_of_any_size_are_numbers() {
    let (_folder, files) = floats(&[f64::NAN, 1e300, 0.5, -1e16]);
    for (condition, count) in [
        ("x > 1.5", "2"),
        ("x > 0.5", "2"),
        ("x < 1.5", "2"),
        ("x = 1e300", "1"),
        ("x >= 1e300", "2"),
        ("x <> 0.5", "3"),
        ("x = x", "4"),
    ] {
        answers(&files, &format!("SELECT COUNT(*) FROM m WHERE {condition}"), &[count]);
    }
    assert_eq!(alone("1.5e300").unwrap(), "1.5e300");
    assert_eq!(alone("CAST(903.6635458094711 AS DOUBLE PRECISION)").unwrap(), "903.6635458094711");
    assert_eq!(alone("1.5e0 + 0.25").unwrap(), "1.75");
    assert!(alone("1e400").unwrap_err().contains("too large"));
}

#[test]
fn overflow_of_whole_numbers_is_an_error() {
    let (_folder, files) = wholes(&[i64::MAX, 1]);
    for expression in ["x + 1", "x * 2", "-2 - x", "x * x", "ABS(-x - 1) + x"] {
        let why = if expression.starts_with("ABS") { "" } else { BEYOND };
        refuses(&files, &format!("SELECT {expression} AS y FROM m"), why);
        refuses(&files, &format!("SELECT x FROM m WHERE {expression} <> 7 OR x = 1"), why);
        refuses(&files, &format!("SELECT COUNT(*) FROM m GROUP BY {expression}"), why);
        refuses(&files, &format!("SELECT MAX(x) FROM m HAVING MAX({expression}) <> 7"), why);
        refuses(&files, &format!("SELECT SUM(x) OVER (ORDER BY {expression}) FROM m"), why);
    }
    let (_folder, files) = wholes(&[i64::MIN]);
    for expression in ["-x", "x - 1", "0 - x", "x / -1", "x * -1"] {
        refuses(&files, &format!("SELECT {expression} AS y FROM m"), "");
    }
    answers(&files, "SELECT x + 1 AS y, x % -1 AS z FROM m", &["-9223372036854775807|0"]);
    assert!(alone("9223372036854775807 + 1").unwrap_err().contains(BEYOND));
    assert!(alone("-(-9223372036854775808)").is_err());
    assert_eq!(alone("CASE WHEN 1 = 2 THEN 9223372036854775807 + 1 ELSE 3 END").unwrap(), "3");
    assert_eq!(alone("-9223372036854775808").unwrap(), "-9223372036854775808");
    assert_eq!(
        alone("CAST(9223372036854775807 AS DECIMAL(38, 0)) + 1").unwrap(),
        "9223372036854775808"
    );
}

#[test]
fn filtered_rows_do_not_overflow() {
    let (_folder, files) = wholes(&[i64::MAX, 1]);
    answers(&files, "SELECT x + 1 AS y FROM m WHERE x < 10", &["2"]);
    answers(&files, "SELECT CASE WHEN x < 10 THEN x + 1 END AS y FROM m", &["2", "NULL"]);
}

#[test]
fn narrow_numbers_are_calculated_in_64_bits() {
    let folder = Folder::new();
    let columns: [(&str, ArrayRef); 3] = [
        ("i", Arc::new(Int32Array::from(vec![i32::MAX]))),
        ("t", Arc::new(Int8Array::from(vec![i8::MIN]))),
        ("u", Arc::new(UInt64Array::from(vec![u64::MAX]))),
    ];
    let files = files(&folder, &columns);
    answers(&files, "SELECT i * i AS y FROM m WHERE i * i > i", &["4611686014132420609"]);
    answers(
        &files,
        "SELECT -t AS a, ABS(t) AS b, t - 1 AS c, t / -1 AS d FROM m",
        &["128|128|-129|128"],
    );
    let parquet = &files[..1];
    answers(
        parquet,
        "SELECT u + 1 AS y, u - 1 AS z FROM m",
        &["18446744073709551616|18446744073709551614"],
    );
    answers(
        parquet,
        "SELECT u / 2 AS y, 0 - u AS z FROM m",
        &["9223372036854775807|-18446744073709551615"],
    );
    answers(
        parquet,
        "SELECT SUM(u) AS y, SUM(u + u) AS z FROM m",
        &["18446744073709551615|36893488147419103230"],
    );
}

#[test]
fn sums_are_exact_or_an_error() {
    let (_folder, files) = wholes(&[i64::MAX, 1]);
    for sum in [
        "SUM(x)",
        "SUM(DISTINCT x)",
        "SUM(x) + 0",
        "SUM(x) OVER ()",
        "SUM(x) OVER (ORDER BY x DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ] {
        refuses(&files, &format!("SELECT {sum} AS y FROM m"), BEYOND_SUM);
    }
    refuses(&files, "SELECT x > 0 AS k, SUM(x) FROM m GROUP BY 1", BEYOND_SUM);
    answers(&files, "SELECT SUM(CAST(x AS DECIMAL(38, 0))) FROM m", &["9223372036854775808"]);
    answers(&files, "SELECT AVG(x) FROM m", &["4.611686018427388e18"]);
    let (_folder, files) = wholes(&[i64::MAX, 1, -5]);
    answers(
        &files,
        "SELECT SUM(x), SUM(DISTINCT x) FROM m",
        &["9223372036854775803|9223372036854775803"],
    );
    answers(&files, "SELECT x > -9 AS k, SUM(x) FROM m GROUP BY 1", &["true|9223372036854775803"]);
    answers(&files, "SELECT SUM(x) / COUNT(*) FROM m", &["3074457345618258601"]);
    let frame = "SUM(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND CURRENT ROW)";
    answers(&files, &format!("SELECT {frame} FROM m"), &["-5", "1", "9223372036854775807"]);
}

#[test]
fn sums_of_sorted_rows_equal_those_of_unsorted_ones() {
    let folder = Folder::new();
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..30_000).map(|row| row / 40)));
    let prices =
        Decimal128Array::from_iter_values(0..30_000).with_data_type(DataType::Decimal128(7, 2));
    let large: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..30_000));
    let files = files(&folder, &[("k", keys), ("p", Arc::new(prices)), ("u", large)]);
    // The limit keeps the rows sorted, so that each group ends when the next one begins.
    let sorted = "(SELECT * FROM m ORDER BY k LIMIT 30000)";
    for file in &files {
        let engine = TestEngine::with(Options { workers: 2, ..Options::default() });
        engine.open("m", file).unwrap();
        for columns in ["sum(p)", "sum(u)", "avg(p)", "sum(k), sum(p), avg(u), count(*)"] {
            let of = |table: &str| {
                let sums = format!("SELECT k, {columns} FROM {table} GROUP BY k ORDER BY k");
                engine.rows(&sums).unwrap()
            };
            assert_eq!(of(sorted), of("m"), "{columns}");
        }
    }
}

#[test]
fn sums_of_decimals_come_back_from_beyond_38_digits() {
    let folder = Folder::new();
    let most = 10_i128.pow(38) - 1;
    let column = |values: Vec<i128>, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, scale).unwrap())
    };
    let all = files(&folder, &[("x", column(vec![most, most, most, -most, -most], 0))]);
    let shown = most.to_string();
    answers(&all[..1], "SELECT SUM(x) FROM m", &[&shown]);
    answers(&all[..1], "SELECT x <> 0 AS k, SUM(x) FROM m GROUP BY 1", &[&format!("true|{shown}")]);
    let all = files(&folder, &[("x", column(vec![most, most], 0))]);
    refuses(&all[..1], "SELECT SUM(x) FROM m", "beyond 38 digits");
    refuses(&all[..1], "SELECT x <> 0 AS k, SUM(x) FROM m GROUP BY 1", "beyond 38 digits");
}

#[test]
fn averages_of_decimals_are_rounded() {
    let folder = Folder::new();
    let rows = ["0.01", "0.01", "0.00"].map(|value| format!("{{\"k\":1,\"x\":{value}}}"));
    let mut all = vec![lines(&folder, &rows)];
    let values = Decimal128Array::from(vec![1, 1, 0]).with_precision_and_scale(10, 2).unwrap();
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1]));
    all.extend(files(&folder, &[("k", keys), ("x", Arc::new(values))]));
    answers(&all, "SELECT AVG(x) FROM m", &["0.006667"]);
    answers(&all, "SELECT AVG(-x) FROM m", &["-0.006667"]);
    answers(&all, "SELECT k, AVG(x) FROM m GROUP BY k", &["1|0.006667"]);
    answers(&all, "SELECT AVG(x) OVER () FROM m", &["0.006667"; 3]);
    answers(&all, "SELECT AVG(DISTINCT x) FROM m", &["0.005000"]);
}

#[test]
fn operators_of_other_languages_are_refused_plainly() {
    let (_folder, engine) = TestEngine::of_orders();
    let said = engine.refusal("SELECT id FROM m WHERE qty > 1 && qty < 5");
    assert_eq!(said, "'&&' is not an SQL operator; write AND");
}

#[test]
fn sums_with_a_distinct_count_overflow_only_in_total() {
    let folder = Folder::new();
    let numbers = [i64::MAX, i64::MAX, -i64::MAX, -i64::MAX, 5];
    let rows = numbers.map(|a| format!("{{\"k\":1,\"a\":{a}}}"));
    let mut all = vec![lines(&folder, &rows)];
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![1; numbers.len()]));
    let values: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
    all.extend(files(&folder, &[("k", keys), ("a", values)]));
    answers(&all, "SELECT SUM(a), COUNT(DISTINCT a) FROM m", &["5|3"]);
    answers(&all, "SELECT k, SUM(a), COUNT(DISTINCT a) FROM m GROUP BY k", &["1|5|3"]);
}

#[test]
fn aggregates_of_strings_are_refused_plainly() {
    let (_folder, engine) = TestEngine::of_orders();
    for name in ["SUM", "AVG"] {
        let said = engine.refusal(&format!("SELECT {name}(symbol) FROM m"));
        assert_eq!(said, format!("{name} takes numbers, not strings; convert them with CAST"));
        engine.refusal(&format!("SELECT {name}(symbol) OVER () FROM m"));
        engine.refusal(&format!("SELECT {name}(id, qty) FROM m"));
    }
}

#[test]
fn random_sums_are_those_of_128_bits() {
    let mut bits = draws(7);
    for round in 0..20 {
        let length = 1 + (bits.next().unwrap() % 400) as usize;
        let shift = bits.next().unwrap() % 64;
        let values: Vec<Option<i64>> = (0..length)
            .map(|_| Some(bits.next().unwrap() as i64 >> shift).filter(|value| value % 7 != 0))
            .collect();
        let folder = Folder::new();
        let keys: ArrayRef =
            Arc::new(Int64Array::from((0..length as i64).map(|row| row % 3).collect::<Vec<_>>()));
        let column: ArrayRef = Arc::new(Int64Array::from(values.clone()));
        let mut all = files(&folder, &[("k", keys), ("x", column)]);
        let row = |(at, value): (usize, &Option<i64>)| {
            let shown = value.map_or("null".to_string(), |value| value.to_string());
            format!("{{\"k\":{},\"x\":{shown}}}", at % 3)
        };
        all.push(lines(&folder, &values.iter().enumerate().map(row).collect::<Vec<_>>()));
        let sum: i128 = values.iter().flatten().map(|&value| i128::from(value)).sum();
        let some = values.iter().flatten().next().is_some();
        let wide = if some { sum.to_string() } else { "NULL".into() };
        let way = format!("round {round}");
        let sum_of = |sql: &str, file: &String| {
            let engine = TestEngine::with(Options { workers: 1 + round % 3, ..Options::default() });
            engine.open("m", file).unwrap();
            engine.value(sql).map_err(|error| error.to_string())
        };
        for file in &all {
            let decimal = "SELECT SUM(CAST(x AS DECIMAL(38, 0))) FROM m";
            assert_eq!(sum_of(decimal, file).unwrap(), wide, "{way} {file}");
            let by_group = "SELECT SUM(s) FROM (SELECT SUM(CAST(x AS DECIMAL(38, 0))) AS s FROM m GROUP BY k) AS t";
            assert_eq!(sum_of(by_group, file).unwrap(), wide, "{way} {file}");
            match (i64::try_from(sum), sum_of("SELECT SUM(x) FROM m", file)) {
                (Ok(_), got) => assert_eq!(got.unwrap(), wide, "{way} {file}"),
                (Err(_), got) => assert!(got.unwrap_err().contains(BEYOND_SUM), "{way} {file}"),
            }
        }
    }
}

#[test]
fn results_keep_their_types() {
    let (_folder, engine) = TestEngine::of_orders();
    let (schema, _) =
        engine.batches("SELECT SUM(qty), AVG(qty), qty + 1 FROM m GROUP BY qty").unwrap();
    let kinds: Vec<String> =
        schema.fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(kinds, ["Int64", "Float64", "Int64"]);
    assert_eq!(schema.field(2).name(), "qty + 1");
}

#[test]
fn floats_have_one_zero_and_one_nan() {
    let (_folder, files) = floats(&[0.0, -0.0, f64::NAN, -f64::NAN, f64::NEG_INFINITY, 1.5]);
    for (condition, count) in [
        ("x = 0", "2"),
        ("x = -0.0", "2"),
        ("x < 0", "1"),
        ("x >= 0", "5"),
        ("x IN (0.0, 7)", "2"),
        ("x > 1.5", "2"),
        ("x < 1.5", "3"),
        ("x <> 1.5", "5"),
        ("x BETWEEN -1 AND 0", "2"),
        ("x + 0 >= -1e0 * 0", "5"),
        ("NOT x <= 1.5", "2"),
    ] {
        answers(&files, &format!("SELECT COUNT(*) FROM m WHERE {condition}"), &[count]);
    }
    answers(&files, "SELECT COUNT(*) FROM m GROUP BY x", &["1", "1", "2", "2"]);
    answers(&files, "SELECT COUNT(DISTINCT x), MIN(x), MAX(x) FROM m", &["4|-inf|NaN"]);
    answers(&files, "SELECT COUNT(*) FROM m AS a JOIN m AS b ON a.x = b.x", &["10"]);
    answers(&files, "SELECT COUNT(*) FROM m WHERE x IN (SELECT -x FROM m WHERE x = 0)", &["2"]);
    answers(&files, "SELECT ABS(x) AS y FROM m ORDER BY x DESC LIMIT 3", &["1.5", "NaN", "NaN"]);
    answers(&files, "SELECT RANK() OVER (ORDER BY x) FROM m", &["1", "2", "2", "4", "5", "5"]);
}

#[test]
fn a_column_of_one_number_and_nan_is_not_constant() {
    // Parquet's bounds are 1.5 and 1.5.
    let (_folder, files) = floats(&[1.5, f64::NAN, 1.5]);
    for (condition, count) in [
        ("x = 1.5", "2"),
        ("x < 2", "2"),
        ("x > 1.5", "1"),
        ("x + 1 > 3", "1"),
        ("x = CAST('NaN' AS DOUBLE PRECISION)", "1"),
        ("x IN (0.5, CAST('nan' AS DOUBLE PRECISION))", "1"),
        ("x <= CAST('Infinity' AS DOUBLE PRECISION)", "2"),
    ] {
        answers(&files, &format!("SELECT COUNT(*) FROM m WHERE {condition}"), &[count]);
    }
    answers(&files, "SELECT DISTINCT x FROM m", &["1.5", "NaN"]);
    answers(&files, "SELECT MIN(x), MAX(x) FROM m", &["1.5|NaN"]);
    answers(&files, "SELECT x FROM m", &["1.5", "1.5", "NaN"]);
}

#[test]
fn an_operator_with_null_is_null_before_it_overflows() {
    let (_folder, files) = wholes(&[i64::MAX, 1]);
    for condition in ["x * 2 > NULL", "NULL = x + 1", "x * 2 IN (NULL)", "x - NULL > x * 2"] {
        answers(&files, &format!("SELECT x FROM m WHERE {condition}"), &[]);
    }
    refuses(&files, "SELECT x FROM m WHERE x * 2 > 1", "out of range");
    // So is IS UNKNOWN of a condition that is never unknown.
    for condition in
        ["((x * 2) IS NOT NULL) IS UNKNOWN", "(x * 2 IS NULL AND x > x * 2 IS NULL) IS NULL"]
    {
        answers(&files, &format!("SELECT x FROM m WHERE {condition}"), &[]);
    }
}
