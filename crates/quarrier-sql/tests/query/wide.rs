//! Numbers beyond 64 bits or a float stay exact in every query.

use crate::harness::{Folder, TestEngine, text};

/// 2^64 - 1 and its neighbours, 2^63 - 1 with a fraction, and 38 digits.
const MESSAGES: &str = r#"{"id":1,"u":18446744073709551615,"m":9223372036854775807,"d":123456789012345678901234567890.12345678}
{"id":2,"u":18446744073709551614,"m":9223372036854775806,"d":123456789012345678901234567890.12345679}
{"id":3,"u":1,"m":1.5,"d":-999999999999999999999999999999.99999999}
{"id":4,"u":18446744073709551615}
"#;

fn asked() -> (Folder, TestEngine) {
    let (folder, asked) = (Folder::new(), TestEngine::new());
    asked.open("m", &folder.file("m.ndjson", MESSAGES)).unwrap();
    (folder, asked)
}

/// Statements, each with its only correct answer in any format.
const ANSWERS: [(&str, &[&str]); 16] = [
    ("SELECT id FROM m WHERE u = 18446744073709551614", &["2"]),
    ("SELECT COUNT(*) FROM m WHERE u = 18446744073709551615", &["2"]),
    ("SELECT id FROM m WHERE u < 18446744073709551615 ORDER BY id", &["2", "3"]),
    ("SELECT id FROM m WHERE u IN (1, 18446744073709551614) ORDER BY id", &["2", "3"]),
    (
        "SELECT u FROM m WHERE u > 1 GROUP BY u ORDER BY u",
        &["18446744073709551614", "18446744073709551615"],
    ),
    ("SELECT u, COUNT(*) FROM m GROUP BY u ORDER BY u DESC LIMIT 1", &["18446744073709551615|2"]),
    ("SELECT id FROM m ORDER BY u DESC, id LIMIT 3", &["1", "4", "2"]),
    ("SELECT MIN(u), MAX(u), COUNT(DISTINCT u) FROM m", &["1|18446744073709551615|3"]),
    ("SELECT SUM(u) FROM m", &["55340232221128654845"]),
    ("SELECT a.id, b.id FROM m AS a JOIN m AS b ON a.u = b.u WHERE a.id < b.id", &["1|4"]),
    ("SELECT COUNT(DISTINCT m) FROM m", &["3"]),
    ("SELECT id FROM m WHERE m = 9223372036854775806", &["2"]),
    ("SELECT m FROM m WHERE m > 9223372036854775806.5", &["9223372036854775807.0"]),
    ("SELECT id FROM m WHERE d = 123456789012345678901234567890.12345679", &["2"]),
    ("SELECT d FROM m ORDER BY d LIMIT 1", &["-999999999999999999999999999999.99999999"]),
    ("SELECT a.id FROM m AS a JOIN m AS b ON a.d = b.d ORDER BY a.d DESC LIMIT 1", &["2"]),
];

fn check(asked: &TestEngine, what: &str) {
    for (statement, rows) in ANSWERS {
        match asked.rows(statement) {
            Ok(found) => assert_eq!(found, rows, "{what}: {statement}"),
            Err(error) => panic!("{what}: {statement}: {error}"),
        }
    }
}

#[test]
fn wide_numbers_are_exact_in_every_query() {
    check(&asked().1, "JSON");
}

#[test]
fn wide_numbers_are_exact_in_every_format() {
    let (folder, asked) = asked();
    for format in ["csv", "arrow", "parquet"] {
        let name = format!("out.{format}");
        let done = folder.run(&["SELECT * FROM 'm.ndjson'", "--format", format, "-o", &name]);
        assert!(done.status.success(), "{done:?}");
        let path = folder.path(&name);
        let again = TestEngine::new();
        again.open("m", path.to_str().unwrap()).unwrap();
        check(&again, format);
    }
    drop(asked);
}

#[test]
fn wide_numbers_are_written_with_all_their_digits() {
    let (folder, _asked) = asked();
    let sql = "SELECT u, m, d FROM 'm.ndjson' ORDER BY id LIMIT 1";
    for format in ["text", "csv", "json"] {
        let output = folder.run(&[sql, "--format", format]);
        let said = text(&output.stdout);
        for number in [
            "18446744073709551615",
            "9223372036854775807",
            "123456789012345678901234567890.12345678",
        ] {
            assert!(said.contains(number), "{format}: {said}");
        }
        assert!(!said.contains('e') || format == "text", "{format}: {said}");
    }
}

#[test]
fn lost_digits_are_reported() {
    let folder = Folder::new();
    let nines = "9".repeat(39);
    folder.file("m.ndjson", &format!("{{\"a\":{nines},\"b\":9007199254740993}}\n{{\"b\":1e0}}\n"));
    let output = folder.run(&["SELECT a, b FROM 'm.ndjson'", "--format", "json"]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{output:?}");
    for column in ["a", "b"] {
        assert!(said.contains(&format!("1 value of column {column} lost digits")), "{said}");
    }
    folder.file("n.ndjson", MESSAGES);
    let quiet = folder.run(&["SELECT u FROM 'n.ndjson'", "--format", "json"]);
    assert_eq!(text(&quiet.stderr), "", "{quiet:?}");
}
