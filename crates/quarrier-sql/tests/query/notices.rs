//! Notices of sources beside an answer.

use crate::harness::{Folder, text};

#[test]
fn a_notice_of_a_source_is_printed_once_and_the_answer_is_whole() {
    let folder = Folder::new();
    folder.file("packed", "LZIP\u{1}an invoice");
    folder.file("r.yar", "rule r { strings: $a = \"invoice\" condition: $a }");
    for table in ["search('packed', 'invoice')", "rules('packed', 'r.yar')", "carve('packed')"] {
        for statement in [
            format!("SELECT * FROM {table}"),
            format!("SELECT count(*) FROM {table}"),
            format!("SELECT * FROM {table} LIMIT 1"),
            format!("SELECT count(*) FROM {table} AS a CROSS JOIN {table} AS b"),
        ] {
            let output = folder.run(&[&statement]);
            let said = text(&output.stderr);
            let line = "quarrier: packed: is compressed by lzip, which is not supported";
            assert_eq!(said.matches(line).count(), 1, "{statement}: {said}");
            assert_eq!(output.status.code(), Some(0), "{statement}: {said}");
        }
    }
}

#[test]
fn a_notice_of_a_file_of_messages_is_printed_once() {
    let folder = Folder::new();
    folder.file("packed.csv", "LZIP\u{1},a\n1,2\n");
    for statement in ["SELECT a FROM 'packed.csv'", "SELECT a, _line FROM 'packed.csv'"] {
        let output = folder.run(&[statement, "--format", "csv"]);
        let said = text(&output.stderr);
        let line = "quarrier: packed.csv: is compressed by lzip, which is not supported";
        assert_eq!(said.matches(line).count(), 1, "{statement}: {said}");
        assert_eq!(output.status.code(), Some(0), "{statement}: {said}");
    }
}

#[test]
fn a_statement_that_fails_leaves_no_notice_to_the_next_one() {
    let folder = Folder::new();
    folder.file("packed", "LZIP\u{1}an invoice");
    let output = folder.run(&["SELECT * FROM files('packed')"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no file system") && !said.contains("lzip"), "{said}");
}
