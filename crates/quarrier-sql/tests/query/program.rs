//! The program's exit codes and messages.

use crate::harness::{Folder, text};

#[test]
fn statements_run_in_turn() {
    let folder = Folder::new();
    let output = folder.run(&["SELECT 1 AS a; SELECT 2 AS b", "--format", "csv"]);
    assert_eq!(text(&output.stdout), "a\n1\nb\n2\n", "{output:?}");
}

#[test]
fn tables_have_the_given_names() {
    let folder = Folder::new();
    folder.file("x.ndjson", "{\"a\":5}\n");
    let output = folder.run(&["SELECT a FROM t", "--table", "t=x.ndjson", "--format", "json"]);
    assert_eq!(text(&output.stdout), "{\"a\":5}\n", "{output:?}");
}

#[test]
fn time_and_rows_of_concurrent_statements_are_shown() {
    let folder = Folder::new();
    folder.file("x.ndjson", "{\"a\":5}\n{\"a\":6}\n");
    folder.file("q.sql", "SELECT a FROM t WHERE a > 5;\nSELECT count(*) FROM t;\n");
    let output =
        folder.run(&["--table", "t=x.ndjson", "--concurrent", "q.sql", "--format", "json"]);
    let said = text(&output.stdout);
    let rows: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{output:?}");
    assert_eq!((rows[0]["rows"].as_u64(), rows[1]["rows"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn invalid_concurrent_statements_are_errors_of_their_row() {
    let folder = Folder::new();
    folder.file("x.ndjson", "{\"a\":5}\n{\"a\":6}\n");
    folder.file("q.sql", "SELECT a FROM t; SELECT b FROM t;\nSELEC 1; SELECT count(*) FROM t");
    let output =
        folder.run(&["--table", "t=x.ndjson", "--concurrent", "q.sql", "--format", "json"]);
    let rows: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counts: Vec<_> = rows.iter().map(|row| row["rows"].as_u64().unwrap()).collect();
    assert_eq!(counts, [2, 0, 0, 1], "{output:?}");
    let errors: Vec<_> = rows.iter().map(|row| row["error"].as_str().unwrap_or("")).collect();
    assert!(errors[0].is_empty() && errors[3].is_empty(), "{output:?}");
    assert!(errors[1].contains("no column 'b'") && errors[2].contains("line 2"), "{output:?}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("statement 2 (SELECT b FROM t): "), "{output:?}");
}

#[test]
fn plans_are_shown_as_they_are() {
    let folder = Folder::new();
    folder.file("x.ndjson", "{\"a\":5}\n");
    let output = folder.run(&["EXPLAIN SELECT a FROM 'x.ndjson' WHERE a > 3"]);
    let said = text(&output.stdout);
    assert!(said.contains("MessagesExec: 1 rows, columns=[a], condition=a > 3"), "{said}");
    let output = folder.run(&["EXPLAIN ANALYZE SELECT a FROM 'x.ndjson' WHERE a > 3"]);
    let said = text(&output.stdout);
    assert!(said.contains("bytes_touched=") && said.contains("blocks_skipped="), "{said}");
}

#[test]
fn wrong_use_is_one_line_and_ends_with_two() {
    let folder = Folder::new();
    for arguments in [
        vec!["SELECT 1", "--format", "yaml"],
        vec![""],
        vec!["--concurrent", "no.sql"],
        vec!["--x"],
    ] {
        let output = folder.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{arguments:?}: {output:?}");
    }
    let help = folder.run(&["--help"]);
    assert!(help.status.success() && text(&help.stdout).contains("--concurrent"));
}

#[test]
fn a_closed_pipe_is_success() {
    use std::process::{Command, Stdio};
    let folder = Folder::new();
    folder.file("m.ndjson", &crate::harness::orders());
    for format in ["text", "json", "csv", "arrow", "parquet"] {
        let sql = "SELECT a.id, b.note FROM 'm.ndjson' a, 'm.ndjson' b";
        let mut child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
            .current_dir(folder.path(""))
            .args([sql, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{format}: {output:?}");
        assert!(output.stderr.is_empty(), "{format}: {output:?}");
    }
}

#[test]
fn conditions_over_parquet_are_explained() {
    let folder = Folder::new();
    folder.file("x.ndjson", "{\"a\":5}\n{\"a\":6}\n");
    let output = folder.run(&["COPY (SELECT a FROM 'x.ndjson') TO 'x.parquet'"]);
    assert!(output.status.success(), "{output:?}");
    let output = folder.run(&["explain", "a > 5", "x.parquet", "x.ndjson"]);
    let said = text(&output.stdout);
    assert!(
        said.starts_with("4 messages in ") && said.contains("a > 5\n  2 messages"),
        "{output:?}"
    );
}

/// A Parquet file with a wrong bit in its footer, at which the Parquet library panics.
const DAMAGED_PARQUET: &str = "\
    5041523115041530152e4c150615001200001804010009013c0200000000000000030000000000000015\
    00151415182c15061510150615061c0000000a24020000000601020324001504192c3500180673636865\
    6d6115020015042502180161001606191c191c26001c1504193500061019180161150216061686011688\
    012652265d292c15041500150200150015101502003c2906192600060000001686011606260816880100\
    2820706172717565742d6370702d6172726f772076657273696f6e2032362e302e31191c1c0000008800\
    000050415231";

#[test]
fn a_damaged_parquet_file_is_an_error_in_one_line() {
    let folder = Folder::new();
    let digits = DAMAGED_PARQUET.as_bytes().chunks(2);
    let bytes = digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16));
    std::fs::write(folder.path("f"), bytes.collect::<Result<Vec<u8>, _>>().unwrap()).unwrap();
    let output = folder.run(&["explain", "a > 1", "f"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("f: it is damaged, truncated, or in another format"), "{output:?}");
    assert_eq!(said.lines().count(), 1, "{output:?}");
}
