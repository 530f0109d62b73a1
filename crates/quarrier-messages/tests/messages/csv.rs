//! CSV is parsed as the `csv` crate does, and types are inferred.

use proptest::prelude::*;
use quarrier_messages::format::csv::Csv;
use quarrier_messages::{Format, Limits};

use crate::formats::{check, load, load_within, rejects, rows};

fn csv() -> Format {
    Format::Csv(Csv::default())
}

#[test]
fn fields_have_the_header_names_and_inferred_types() {
    let cases: [(&str, &[&str]); 11] = [
        ("a,b\n1,2.5\n", &["a=1 b=25/1"]),
        ("a,b\r\n1,x\r\n", &[r#"a=1 b="x""#]),
        ("a,b\n,\"\"\n", &[r#"b="""#]),
        ("a,b\n\"x,\ny\",\"a \"\"b\"\"\"", &[r#"a="x,\ny" b="a \"b\"""#]),
        ("a;b\n1;2,5\n", &[r#"a=1 b="2,5""#]),
        ("a\tb\n1\t2\n", &["a=1 b=2"]),
        ("a|b\n1|2\n", &["a=1 b=2"]),
        ("a,a,\n1,2,3\n", &["a=1 a[1]=2 column3=3"]),
        ("\u{feff}\"a\",b\n\n007,true\n\n", &[r#"a="007" b=true"#]),
        ("a\nx\"y\"\n\"p\"q\"\n", &[r#"a="x\"y\"""#, r#"a="pq\"""#]),
        ("", &[]),
    ];
    for (text, expected) in cases {
        check(&csv(), text.as_bytes(), expected, &[]);
    }
    let bare = Format::Csv(Csv { delimiter: Some(b'^'), has_header: false });
    check(&bare, b"1^a,b\n2^c", &[r#"column1=1 column2="a,b""#, r#"column1=2 column2="c""#], &[]);
}

#[test]
fn a_header_without_rows_names_columns_without_rows() {
    let cases: [(&str, &[&str]); 3] =
        [("a,b\n", &["a", "b"]), ("a,b", &["a", "b"]), ("a,b\n1\n", &["a", "b"])];
    for (text, expected) in cases {
        let table = load(&csv(), text.as_bytes()).table;
        let names: Vec<&str> = table.schema().fields.iter().map(|field| &*field.name).collect();
        assert_eq!((table.rows(), names.as_slice()), (0, expected), "{text:?}");
    }
    assert!(load(&csv(), b"").table.schema().fields.is_empty());
}

#[test]
fn invalid_messages_are_listed_and_the_rest_loaded() {
    let cases: [(&[u8], &[&str], &[&str]); 5] = [
        (b"a,b\n1\n2,3\n", &["a=2 b=3"], &["2 4 fewer fields than the header has"]),
        (b"a,b\n1,2,3\n2,3\n", &["a=2 b=3"], &["2 4 more fields than the header has"]),
        (b"a,b\n\"x\ny\",2,3\n2,3\n", &["a=2 b=3"], &["2 4 more fields than the header has"]),
        (b"a,b\n1,\"x\n2,3\n", &["a=2 b=3"], &["2 4 an unclosed quote"]),
        (b"a,b\n1,\xFF\n2,3\n", &["a=2 b=3"], &["2 4 bytes that are not UTF-8"]),
    ];
    for (text, expected, refused) in cases {
        check(&csv(), text, expected, refused);
    }
}

#[test]
fn a_long_line_or_an_unclosed_quote_rejects_only_that_line() {
    let limits = Limits { message_bytes_max: 1 << 20, ..Limits::default() };
    let lines = "1,2\n".repeat(1_000_000);
    for wrong in ["3,\"x\n".to_string(), format!("{}\n", "x".repeat(5 << 20))] {
        let log = ["a,b\n1,2\n", &wrong, &lines].concat();
        let loaded = load_within(&csv(), log.as_bytes(), 2, &limits);
        assert_eq!((loaded.table.rows(), loaded.rejected), (1_000_001, 1));
        assert!(rejects(&loaded)[0].starts_with("3 8 "));
    }
}

#[test]
fn many_columns_are_limited_and_reported() {
    let limits = Limits { columns_max: 10, ..Limits::default() };
    let names: Vec<String> = (0..100_000).map(|column| format!("c{column}")).collect();
    let log = format!("{}\n{}\n", names.join(","), vec!["1"; 100_000].join(","));
    let loaded = load_within(&csv(), log.as_bytes(), 2, &limits);
    assert_eq!((loaded.table.rows(), loaded.table.schema().fields.len()), (1, 10));
    assert!(loaded.refused.count >= 99_990);
}

/// Returns the records as the `csv` crate parses them; `None` for records without three fields.
fn records(text: &str) -> Vec<Option<Vec<String>>> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let fields = |record: csv::StringRecord| {
        (record.len() == 3).then(|| record.iter().map(str::to_string).collect())
    };
    reader.records().map(|record| fields(record.unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        max_global_rejects: 100_000,
        ..ProptestConfig::with_cases(1_000)
    })]

    #[test]
    fn records_equal_those_of_the_csv_crate(
        pieces in proptest::collection::vec("x|y|,|,|,|\"|\"\"|\n|\r\n|\r|é", 0..60),
    ) {
        let text = pieces.concat();
        let format = Format::Csv(Csv { delimiter: Some(b','), has_header: true });
        let loaded = load(&format, format!("a,b,c\n{text}").as_bytes());
        let open = rejects(&loaded).iter().any(|reject| reject.contains("unclosed quote"));
        prop_assume!(!open);
        let table = &loaded.table;
        let ours: Vec<Vec<String>> = (0..table.rows()).map(|row| (0..3).map(|column| {
            if column >= table.schema().fields.len() {
                return String::new();
            }
            match table.value(row, column) {
                quarrier_messages::Value::Text(text) => text.to_string(),
                quarrier_messages::Value::Null => String::new(),
                other => format!("{other:?}"),
            }
        }).collect()).collect();
        let theirs = records(&text);
        let right: Vec<Vec<String>> = theirs.iter().flatten().cloned().collect();
        prop_assert_eq!(ours, right);
        prop_assert_eq!(loaded.rejected as usize, theirs.iter().filter(|r| r.is_none()).count());
    }
}

#[test]
fn rows_do_not_depend_on_the_number_of_workers() {
    let lines: String =
        (0..200_000).map(|n| format!("{n},\"note\n{}\",{}\n", n % 7, n % 3)).collect();
    let log = format!("id,note,k\n{lines}");
    let one = load(&csv(), log.as_bytes());
    let three = load_within(&csv(), log.as_bytes(), 3, &Limits::default());
    assert_eq!(one.table.rows(), 200_000);
    assert!(rows(&one) == rows(&three));
}
