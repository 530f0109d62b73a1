//! The tables named in a statement.

use quarrier_filter::sql;

#[test]
fn the_table_of_a_statement_is_a_name_or_a_file() {
    let cases = [
        ("SELECT * FROM orders WHERE x > 1", ("orders", false)),
        ("SELECT COUNT(*) FROM 'a b.ndjson' o WHERE o.x = 'y'", ("a b.ndjson", true)),
        ("SELECT x FROM \"a.csv\"", ("a.csv", false)),
    ];
    for (text, (name, is_file)) in cases {
        let table = sql::table(text).unwrap();
        assert_eq!((table.name.as_str(), table.is_file), (name, is_file), "{text}");
    }
    for text in ["SELECT a FROM x JOIN y ON TRUE", "SELECT a FROM x GROUP BY a", "DROP TABLE x"] {
        assert!(sql::table(text).is_err(), "{text}");
    }
}

#[test]
fn files_are_distinguished_from_other_strings() {
    let cases: [(&str, &[&str]); 12] = [
        ("SELECT 'x' FROM 'a' WHERE b = 'c'", &["a"]),
        ("SELECT * FROM 'a' JOIN t ON t.x = 'y' LEFT JOIN 'b' USING (x)", &["a", "b"]),
        ("SELECT * FROM 'a' AS x, t, 'b' y ORDER BY 'z', 'w'", &["a", "b"]),
        ("SELECT * FROM (SELECT * FROM 'a') AS x, ('b' JOIN 'a' ON TRUE)", &["a", "b"]),
        ("WITH x AS (SELECT 1 FROM 'a') SELECT * FROM x UNION SELECT 2 FROM 'b'", &["a", "b"]),
        ("SELECT TRIM(LEADING ' ' FROM 'a'), EXTRACT(YEAR FROM 'b') FROM t", &[]),
        ("SELECT a IS DISTINCT FROM 'x' FROM 'a' WHERE b IS DISTINCT FROM 'y'", &["a"]),
        ("SELECT DISTINCT 1 FROM 'a' UNION SELECT DISTINCT (2) FROM 'b'", &["a", "b"]),
        ("SELECT a FROM t WHERE b IN (SELECT c FROM 'it''s.csv')", &["it's.csv"]),
        ("SELECT a /* FROM 'x' */ FROM 'a' -- FROM 'y'", &["a"]),
        ("SELECT a FROM search('disk.img', 'patterns.txt')", &[]),
        (")) SELECT ((", &[]),
    ];
    for (text, files) in cases {
        assert_eq!(sql::files(text).unwrap(), files, "{text}");
    }
    assert!(sql::files("SELECT 'open").is_err());
}
