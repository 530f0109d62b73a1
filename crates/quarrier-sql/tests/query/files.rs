//! Files as tables.

use crate::harness::{Folder, TestEngine, text};

#[test]
fn a_file_in_quotes_is_a_table() {
    let folder = Folder::new();
    folder.file("orders.ndjson", "{\"a\":1,\"b\":\"x\"}\n{\"a\":2}\n");
    for from in ["'orders.ndjson'", "\"orders.ndjson\"", "orders.ndjson"] {
        let output = folder.run(&[&format!("SELECT sum(a) AS s FROM {from}"), "--format", "csv"]);
        assert_eq!(text(&output.stdout), "s\n3\n", "{from}: {output:?}");
    }
    let sql = "SELECT orders.b FROM 'orders.ndjson' WHERE orders.a = 1";
    assert_eq!(text(&folder.run(&[sql, "--format", "csv"]).stdout), "b\nx\n");
}

#[test]
fn files_are_described_and_tables_listed() {
    let folder = Folder::new();
    folder.file("orders.ndjson", "{\"id\":1,\"word\":\"x\",\"price\":1.50}\n");
    for name in ["'orders.ndjson'", "orders.ndjson"] {
        let output = folder.run(&[&format!("DESCRIBE {name}"), "--format", "csv"]);
        let said = text(&output.stdout);
        let columns: Vec<&str> =
            said.lines().skip(1).filter_map(|it| it.split(',').next()).collect();
        assert_eq!(columns, ["id", "word", "price"], "{output:?}");
    }
    let arguments = ["SHOW TABLES", "--table", "o=orders.ndjson", "--format", "csv"];
    assert_eq!(text(&folder.run(&arguments).stdout), "table_name\no\n");
}

#[test]
fn several_files_are_one_table_with_their_names() {
    let folder = Folder::new();
    folder.file("a1.csv", "id,x\n1,a\n2,b\n");
    folder.file("a2.csv", "id,y\n2.5,c\n");
    let sql = "SELECT filename, id, x, y FROM 'a*.csv' ORDER BY id";
    let output = folder.run(&[sql, "--format", "csv"]);
    assert_eq!(
        text(&output.stdout),
        "filename,id,x,y\na1.csv,1.0,a,\na1.csv,2.0,b,\na2.csv,2.5,,c\n",
        "{output:?}"
    );
    // For any number of matching files.
    let only = folder.run(&["SELECT filename, y FROM 'a2*.csv'", "--format", "csv"]);
    assert!(text(&only.stdout).starts_with("filename,y\na2.csv,"), "{}", text(&only.stdout));
    let one = folder.run(&["SELECT count(*) AS n FROM 'a*.csv' WHERE filename = 'a2.csv'"]);
    assert!(text(&one.stdout).trim().ends_with('1'), "{one:?}");
}

#[test]
fn file_formats_are_detected_by_content() {
    let folder = Folder::new();
    let engine = TestEngine::new();
    let fix = "8=FIX.4.2\u{1}9=40\u{1}35=D\u{1}11=a\u{1}38=7\u{1}10=000\u{1}\n";
    for (name, content) in [
        ("a.log", "{\"qty\":7}\n".to_string()),
        ("b.csv", "qty\n7\n".to_string()),
        ("c.xml", "<orders><order><qty>7</qty></order></orders>".to_string()),
        ("d.csv", "{\"qty\":7}\n".to_string()),
    ] {
        let path = folder.file(name, &content);
        let sum = engine.value(&format!("SELECT count(*) FROM '{path}'"));
        assert!(sum.is_ok(), "{name}: {sum:?}");
    }
    let path = folder.file("e.fix", fix);
    engine.rows(&format!("SELECT * FROM '{path}'")).unwrap();
}

#[test]
fn written_parquet_and_arrow_can_be_read() {
    let folder = Folder::new();
    folder.file("a.csv", "id,price,name,day\n1,1.50,x,2024-01-02\n2,,y,2024-01-03\n");
    let all = "SELECT * FROM 'a.csv' ORDER BY id";
    let expected = text(&folder.run(&[all, "--format", "csv"]).stdout);
    assert!(expected.contains("1.50"), "{expected}");
    for name in ["b.parquet", "b.arrow", "b.ndjson", "b.csv"] {
        let copy = folder.run(&[&format!("COPY (SELECT * FROM 'a.csv') TO '{name}'"), "--quiet"]);
        assert!(copy.status.success(), "{copy:?}");
        let again =
            folder.run(&[&format!("SELECT * FROM '{name}' ORDER BY id"), "--format", "csv"]);
        assert_eq!(text(&again.stdout), expected, "{name}: {again:?}");
    }
    let mixed = "SELECT count(*) AS n FROM 'b.parquet' p JOIN 'a.csv' a ON p.id = a.id";
    assert_eq!(text(&folder.run(&[mixed, "--format", "csv"]).stdout), "n\n2\n");
}

#[test]
fn standard_input_is_a_table() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
        .args(["SELECT sum(x) AS s FROM '-'", "--format", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"{\"x\":1}\n{\"x\":41}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "s\n42\n", "{output:?}");
}
