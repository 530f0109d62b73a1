//! Output formats.

use crate::harness::{Folder, text};

const MESSAGES: &str = "{\"id\":1,\"p\":1.50,\"t\":\"2024-01-02T03:04:05.5Z\",\"s\":\"a,\\\"b\\\"\"}\n{\"id\":2,\"s\":null,\"f\":1e300}\n";

fn shown(format: &str) -> String {
    let folder = Folder::new();
    folder.file("m.ndjson", MESSAGES);
    let output = folder.run(&["SELECT id, p, t, s, f FROM 'm.ndjson'", "--format", format]);
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout)
}

#[test]
fn text_is_a_table_for_people() {
    let said = shown("text");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert!(lines[0].starts_with("id") && lines[1].starts_with("--"), "{said}");
    assert!(lines[3].contains("NULL"), "{said}");
}

#[test]
fn json_is_an_object_a_line() {
    let said = shown("json");
    let rows: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2, "{said}");
    assert_eq!(rows[0]["s"], "a,\"b\"");
    assert!(rows[1]["p"].is_null() && rows[1].get("p").is_some(), "{said}");
    assert!(rows[0]["p"].is_number(), "{said}");
    assert_eq!(rows[0]["t"], "2024-01-02T03:04:05.500", "{said}");
}

#[test]
fn csv_has_a_header_even_without_rows() {
    assert!(shown("csv").contains("\"a,\"\"b\"\"\""));
    let folder = Folder::new();
    folder.file("m.ndjson", MESSAGES);
    let output = folder.run(&["SELECT id FROM 'm.ndjson' WHERE id > 9", "--format", "csv"]);
    assert_eq!(text(&output.stdout), "id\n", "{output:?}");
}

#[test]
fn a_file_appears_when_all_of_it_is_there() {
    let folder = Folder::new();
    folder.file("m.ndjson", MESSAGES);
    let sql = "SELECT id FROM 'm.ndjson' WHERE 1 / (id - 2) < 5";
    let failed = folder.run(&[sql, "-o", "out.csv", "--format", "csv"]);
    assert_eq!(failed.status.code(), Some(2), "{failed:?}");
    assert!(!folder.path("out.csv").exists());
    let done = folder.run(&["SELECT id FROM 'm.ndjson'", "-o", "out.csv", "--format", "csv"]);
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
    assert_eq!(std::fs::read_to_string(folder.path("out.csv")).unwrap(), "id\n1\n2\n");
    let left = std::fs::read_dir(folder.path("")).unwrap().count();
    assert_eq!(left, 2);
}
