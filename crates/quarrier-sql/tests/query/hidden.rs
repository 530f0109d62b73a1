//! The hidden columns `_line`, `_offset` and `_message`: the same for files of every format,
//! through the engine and through `--table`, and never in `*`.

use std::fmt::Write;

use crate::harness::{Folder, TestEngine, text};

const JSON: &str = "{\"a\":1,\"b\":\"x\"}\nno message\n\n{\"a\":2}\n{\"a\":3,\"b\":\"ü\"}\n";

fn ask(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.run(&[arguments, &["--format", "csv", "-q"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    text(&output.stdout)
}

#[test]
fn hidden_columns_can_be_named_and_are_not_in_star() {
    let folder = Folder::new();
    folder.file("f.ndjson", JSON);
    folder.file("g.csv", "a,c\n2,two\n3,three\n");
    let cases = [
        (
            "SELECT _line, _offset, _message FROM m WHERE a = 2",
            "_line,_offset,_message\n4,28,\"{\"\"a\"\":2}\"\n",
        ),
        ("SELECT * FROM m WHERE _line = 4", "a,b\n2,\n"),
        ("SELECT *, _LINE FROM m WHERE _offset >= 28", "a,b,_line\n2,,4\n3,ü,5\n"),
        ("SELECT _line, * FROM m ORDER BY _line DESC LIMIT 1", "_line,a,b\n5,3,ü\n"),
        ("SELECT m.*, m._offset AS at FROM m WHERE _message LIKE '%ü%'", "a,b,at\n3,ü,36\n"),
        ("SELECT t.* FROM m AS t WHERE t._line < 4", "a,b\n1,x\n"),
        ("SELECT count(*) AS n FROM m WHERE _line > 1", "n\n2\n"),
        ("SELECT max(_line) AS l, min(_offset) AS o FROM m", "l,o\n5,0\n"),
        ("SELECT a FROM m WHERE b = '_line' OR a = 1", "a\n1\n"),
        ("SELECT a, c FROM m JOIN 'g.csv' AS g USING (a) WHERE m._line = 4", "a,c\n2,two\n"),
        (
            "SELECT *, g._line AS l FROM m JOIN 'g.csv' AS g ON m.a = g.a WHERE m._line = 5",
            "a,b,a,c,l\n3,ü,3,three,3\n",
        ),
        ("SELECT a, c FROM m NATURAL JOIN 'g.csv' AS g WHERE g._line = 2", "a,c\n2,two\n"),
        (
            "SELECT *, g._line AS l FROM m NATURAL JOIN 'g.csv' AS g WHERE m._line = 5",
            "a,b,c,l\n3,ü,three,3\n",
        ),
        (
            "SELECT *, g._line AS l FROM m JOIN 'g.csv' AS g USING (a) WHERE m._line = 5",
            "a,b,c,l\n3,ü,three,3\n",
        ),
        (
            "SELECT *, g._line AS l FROM m LEFT JOIN 'g.csv' AS g USING (a) WHERE m._line < 5 ORDER BY a",
            "a,b,c,l\n1,x,,\n2,,two,2\n",
        ),
        ("WITH m AS (SELECT 7 AS _line) SELECT * FROM m", "_line\n7\n"),
        ("SELECT * FROM (SELECT _line, a FROM m) AS s WHERE a = 1", "_line,a\n1,1\n"),
        ("SELECT a FROM m WHERE _line = (SELECT max(_line) FROM m)", "a\n3\n"),
        ("SELECT a FROM m UNION ALL SELECT _line FROM m WHERE a = 3 ORDER BY 1", "a\n1\n2\n3\n5\n"),
        (
            "SELECT _line % 2 AS odd, count(*) AS n FROM m GROUP BY 1 ORDER BY 1",
            "odd,n\n0,1\n1,2\n",
        ),
    ];
    for (sql, expected) in cases {
        assert_eq!(ask(&folder, &["--table", "m=f.ndjson", sql]), expected, "{sql}");
        let file = sql.replace("FROM m", "FROM 'f.ndjson' AS m").replace("AS m AS t", "AS t");
        if !sql.starts_with("WITH") {
            assert_eq!(ask(&folder, &[&file]), expected, "{file}");
        }
    }
}

#[test]
fn every_format_has_hidden_columns() {
    let folder = Folder::new();
    folder.file("f.csv", "a,b\n1,\"x\ny\"\n2,z\n");
    folder.file("f.xml", "<l>\n <o a='1'/>\n <o a='2'/></l>");
    folder.file("f.nvfix", "a=1\u{1}\n\na=2\u{1}\n");
    let cases = [
        ("f.csv", "_line,_offset,_message\n2,4,\"1,\"\"x\ny\"\"\"\n4,12,\"2,z\"\n"),
        ("f.xml", "_line,_offset,_message\n2,5,<o a='1'/>\n3,17,<o a='2'/>\n"),
        ("f.nvfix", "_line,_offset,_message\n1,0,a=1\u{1}\n3,6,a=2\u{1}\n"),
    ];
    for (file, expected) in cases {
        let sql = format!("SELECT _line, _offset, _message FROM '{file}' ORDER BY a");
        assert_eq!(ask(&folder, &[&sql]), expected, "{file}");
        let format = file.split_once('.').unwrap().1;
        let sql = format!("SELECT _line, _offset, _message FROM messages('{file}', '{format}')");
        assert_eq!(ask(&folder, &[&sql]), expected, "{sql}");
    }
    let sql = "SELECT filename, _line, a FROM 'f.*' WHERE _offset > 0 ORDER BY filename, _line";
    let expected = "filename,_line,a\nf.csv,2,1\nf.csv,4,2\nf.nvfix,3,2\nf.xml,2,1\nf.xml,3,2\n";
    assert_eq!(ask(&folder, &[sql]), expected);
}

#[test]
fn open_tables_get_hidden_columns_when_named() {
    let folder = Folder::new();
    let asked = TestEngine::new();
    asked.open("m", &folder.file("f.ndjson", JSON)).unwrap();
    for (sql, expected) in [
        ("SELECT * FROM m WHERE a = 2", &["2|NULL"][..]),
        ("SELECT _line FROM m WHERE a = 2", &["4"]),
        ("SELECT * FROM m WHERE a = 2", &["2|NULL"]),
        ("SELECT _message FROM m WHERE a = 2", &["{\"a\":2}"]),
        ("SELECT * FROM m WHERE a = 2", &["2|NULL"]),
        ("SELECT *, _line FROM m WHERE _offset = 0", &["1|x|1"]),
    ] {
        assert_eq!(asked.rows(sql).unwrap(), expected, "{sql}");
    }
    assert_eq!(asked.engine.tables(), ["m"]);
    // Rejects are reported once.
    assert_eq!(asked.engine.take_loaded().rejects_by_file.len(), 1);
}

#[test]
fn unsupported_uses_of_hidden_columns_are_refused() {
    let folder = Folder::new();
    folder.file("f.ndjson", JSON);
    folder.file("p.csv", "x\n1\n");
    for (sql, expected) in [
        ("SELECT _line FROM 'f.ndjson' NATURAL JOIN (SELECT 1 AS a) AS s", "USING"),
        (
            "SELECT * EXCLUDE (b), g._line FROM 'f.ndjson' f JOIN 'f.ndjson' g ON f.a = g.a",
            "name the columns",
        ),
        (
            "SELECT *, g._line FROM 'f.ndjson' f JOIN (SELECT 1 AS x) s ON f.a = s.x \
             LEFT JOIN 'f.ndjson' g USING (b)",
            "write ON",
        ),
        ("SELECT _line FROM search('f.ndjson', 'x')", "_line"),
        ("SELECT _line FROM (SELECT * FROM 'f.ndjson') AS s", "_line"),
    ] {
        let output = folder.run(&[sql]);
        assert_eq!(output.status.code(), Some(2), "{sql}: {output:?}");
        assert!(text(&output.stderr).contains(expected), "{sql}: {output:?}");
    }
}

#[test]
fn spilled_and_stored_tables_have_hidden_columns() {
    let folder = Folder::new();
    let mut log = String::new();
    for n in 0..120_000_u64 {
        writeln!(log, "{{\"n\":{n},\"t\":\"{:032x}\"}}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .unwrap();
    }
    folder.file("big.ndjson", &log);
    let sql = "SELECT count(*) AS n, sum(_line - n) AS d FROM 'big.ndjson' \
               WHERE _message LIKE '{\"n\":' || n || ',%'";
    let expected = "n,d\n120000,120000\n";
    assert_eq!(ask(&folder, &[sql, "--max-memory", "64MB"]), expected);
    assert_eq!(ask(&folder, &[sql]), expected);
}

#[test]
fn rows_of_arrow_and_parquet_have_their_number() {
    let folder = Folder::new();
    folder.file("f.ndjson", JSON);
    let arrow = folder.run(&["SELECT a FROM 'f.ndjson' ORDER BY a", "--format", "arrow"]);
    std::fs::write(folder.path("f.arrow"), arrow.stdout).unwrap();
    folder.run(&["COPY (SELECT a FROM 'f.ndjson' ORDER BY a) TO 'f.parquet'"]);
    for file in ["f.arrow", "f.parquet"] {
        let sql = format!("SELECT _line, a FROM '{file}' WHERE _line > 1 ORDER BY a");
        assert_eq!(ask(&folder, &[&sql]), "_line,a\n2,2\n3,3\n", "{file}");
        let sql = format!("SELECT * FROM '{file}' WHERE _line = 1");
        assert_eq!(ask(&folder, &[&sql]), "a\n1\n", "{file}");
        let sql = format!("SELECT * FROM '{file}'");
        assert_eq!(ask(&folder, &[&sql]), "a\n1\n2\n3\n", "{file}");
        for name in ["_offset", "_message"] {
            let output = folder.run(&[&format!("SELECT {name} FROM '{file}'")]);
            assert_eq!(output.status.code(), Some(2), "{file}: {output:?}");
            let said = text(&output.stderr);
            assert!(said.contains("rows of Arrow and Parquet have _line"), "{said}");
        }
    }
}

#[test]
fn hidden_columns_replace_fields_of_their_names() {
    let folder = Folder::new();
    folder.file("f.ndjson", "{\"_line\":70,\"a\":1}\n{\"_line\":80,\"a\":2}\n");
    assert_eq!(ask(&folder, &["SELECT * FROM 'f.ndjson'"]), "_line,a\n70,1\n80,2\n");
    assert_eq!(ask(&folder, &["SELECT _line FROM 'f.ndjson'"]), "_line\n1\n2\n");
    assert_eq!(ask(&folder, &["SELECT a FROM 'f.ndjson' WHERE _line = 2"]), "a\n2\n");
}
