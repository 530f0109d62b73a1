//! Lists in messages: `leg[1].qty`, `UNNEST(leg)`, `5 < ANY (leg[*].qty)`.

use crate::harness::{Folder, text};

const JSON: &str = "{\"id\":1,\"leg\":[{\"qty\":3,\"px\":1.5},{\"qty\":7}],\"tag\":[\"a\",\"b\"]}\n\
    {\"id\":2,\"leg\":[{\"qty\":9,\"px\":2}]}\n{\"id\":3,\"leg\":[]}\n{\"id\":4,\"tag\":[\"c\"]}\n\
    {\"id\":5,\"leg\":[{\"px\":2},{\"qty\":null,\"px\":3},{\"qty\":1}]}\n";

/// A folder with messages that have lists, and others to join.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("m.ndjson", JSON);
    folder.file("o.csv", "id,name\n1,one\n2,two\n");
    folder
}

fn ask(folder: &Folder, sql: &str) -> String {
    let sql = sql.replace("FROM m", "FROM 'm.ndjson' AS m").replace(" o ", " 'o.csv' AS o ");
    let output = folder.run(&[&sql, "--format", "csv", "-q"]);
    assert_eq!(output.status.code(), Some(0), "{sql}: {output:?}");
    text(&output.stdout)
}

#[test]
fn any_and_all_compare_each_element() {
    let folder = folder();
    for (condition, ids) in [
        ("5 < ANY (leg[*].qty)", "1\n2\n"),
        ("9 = SOME (m.leg[*].qty)", "2\n"),
        ("5 < ALL (leg[*].qty)", "2\n3\n4\n"),
        ("NOT 5 < ANY (leg[*].qty)", "3\n4\n"),
        ("(5 < ANY (leg[*].qty)) IS UNKNOWN", "5\n"),
        ("3 <> ALL (leg[*].qty)", "2\n3\n4\n"),
        ("id * 2 - 2 = ANY (leg[*].px)", "2\n"),
        ("'b' = ANY (tag[*])", "1\n"),
        ("leg[1].qty = 7", "1\n"),
        ("EXISTS (SELECT 1 FROM o WHERE o.id = ANY (m.leg[*].px))", "2\n5\n"),
        ("UPPER('x') = 'X' AND 5 < ANY (leg[*].qty) AND id < 2", "1\n"),
    ] {
        let answer = ask(&folder, &format!("SELECT id FROM m WHERE {condition} ORDER BY id"));
        assert_eq!(answer, format!("id\n{ids}"), "{condition}");
    }
    let sql = "SELECT id, 5 < ANY (leg[*].qty) AS a, 5 < ALL (leg[*].qty) AS b FROM m";
    let expected = "id,a,b\n1,true,false\n2,true,true\n3,false,true\n4,false,true\n5,,false\n";
    assert_eq!(ask(&folder, sql), expected);
}

#[test]
fn unnest_makes_a_row_for_each_element() {
    let folder = folder();
    let pairs = "1,3\n1,7\n2,9\n5,\n5,\n5,1\n";
    for (sql, head, rows) in [
        ("SELECT id, l.qty FROM m, UNNEST(leg) AS l", "id,qty", pairs),
        ("SELECT m.id, qty FROM m CROSS JOIN UNNEST(m.leg) AS l", "id,qty", pairs),
        ("SELECT id, x FROM m JOIN UNNEST(leg) AS l (x) ON TRUE", "id,x", pairs),
        ("SELECT id, UNNEST(leg[*].qty) AS qty FROM m", "id,qty", pairs),
        ("SELECT id, l.* FROM m, UNNEST(leg) AS l WHERE l.qty > 5", "id,qty,px", "1,7,\n2,9,2.0\n"),
        ("SELECT id, t FROM m, UNNEST(tag) AS t", "id,t", "1,a\n1,b\n4,c\n"),
        ("SELECT id, UNNEST(tag) AS t FROM m", "id,t", "1,a\n1,b\n4,c\n"),
        (
            "SELECT id, sum(l.qty) AS s, count(*) AS n FROM m, UNNEST(leg) AS l GROUP BY id ORDER BY id",
            "id,s,n",
            "1,10,2\n2,9,1\n5,1,3\n",
        ),
        (
            "SELECT id, l.px, t FROM m, UNNEST(leg) AS l, UNNEST(tag) AS t ORDER BY id, l.px, t",
            "id,px,t",
            "1,1.5,a\n1,1.5,b\n1,,a\n1,,b\n",
        ),
        (
            "SELECT o.name, l.qty FROM m JOIN o ON m.id = o.id, UNNEST(m.leg) AS l ORDER BY l.qty",
            "name,qty",
            "one,3\none,7\ntwo,9\n",
        ),
        ("SELECT _line, l.qty FROM m, UNNEST(leg) AS l WHERE _line = 2", "_line,qty", "2,9\n"),
        (
            "SELECT id FROM m, UNNEST(leg) AS l WHERE l.qty = 3 AND 5 < ANY (leg[*].qty)",
            "id",
            "1\n",
        ),
    ] {
        assert_eq!(ask(&folder, sql), format!("{head}\n{rows}"), "{sql}");
    }
    let sql = "SELECT * FROM 'm.ndjson' AS m, UNNEST(leg) AS l WHERE _offset = 0 AND l.qty = 7";
    let head = "id,leg[0].qty,leg[0].px,leg[1].qty,tag[0],tag[1],leg[1].px,leg[2].qty,qty,px\n";
    assert_eq!(ask(&folder, sql), format!("{head}1,3,1.5,7,a,b,,,7,\n"));
    let output =
        folder.run(&["SELECT UNNEST(leg) AS l FROM 'm.ndjson' WHERE id = 1", "--format", "json"]);
    assert_eq!(
        text(&output.stdout),
        "{\"l\":{\"qty\":3,\"px\":1.5}}\n{\"l\":{\"qty\":7,\"px\":null}}\n"
    );
}

#[test]
fn lists_may_end_with_null() {
    let folder = Folder::new();
    folder.file(
        "m.ndjson",
        "{\"id\":1,\"leg\":[{\"qty\":1},{\"qty\":null}],\"my_tag\":[1,null]}\n\
         {\"id\":2,\"leg\":[{\"qty\":1}],\"my_tag\":[1]}\n\
         {\"id\":3,\"leg\":[{},{},{}],\"my_tag\":[null]}\n{\"id\":4,\"leg\":[],\"my_tag\":[]}\n",
    );
    for (sql, head, rows) in [
        ("SELECT id, 0 < ALL (leg[*].qty) AS a FROM m", "id,a", "1,\n2,true\n3,\n4,true\n"),
        ("SELECT id, 9 = ANY (my_tag[*]) AS a FROM m", "id,a", "1,\n2,false\n3,\n4,false\n"),
        ("SELECT id, 1 = ANY (M.LEG[*].QTY) AS a FROM m", "id,a", "1,true\n2,true\n3,\n4,false\n"),
        ("SELECT id FROM m WHERE (9 = ANY (leg[*].qty)) IS UNKNOWN", "id", "1\n3\n"),
        ("SELECT id, l.qty FROM m, UNNEST(leg) AS l", "id,qty", "1,1\n1,\n2,1\n3,\n3,\n3,\n"),
        ("SELECT id, UNNEST(my_tag) AS t FROM m", "id,t", "1,1\n1,\n2,1\n3,\n"),
        (
            "SELECT id, count(*) AS n FROM m, UNNEST(leg) AS l WHERE (0 < ALL (leg[*].qty)) IS UNKNOWN \
             GROUP BY id ORDER BY id",
            "id,n",
            "1,2\n3,3\n",
        ),
        (
            "SELECT * FROM m WHERE 1 = ANY (leg[*].qty) AND id = 1",
            "id,leg[0].qty,leg[1].qty,my_tag[0],my_tag[1]",
            "1,1,,1,\n",
        ),
    ] {
        assert_eq!(ask(&folder, sql), format!("{head}\n{rows}"), "{sql}");
    }
}

#[test]
fn long_lists_are_compared_and_unnested() {
    let folder = Folder::new();
    let list = |id: u32, last: &str| {
        let legs: String = (0..900).map(|n| format!("{{\"qty\":{n}}},")).collect();
        format!("{{\"id\":{id},\"leg\":[{legs}{last}],\"tag\":[{}\"z\"]}}\n", "\"a\",".repeat(200))
    };
    let log =
        list(1, "{\"qty\":1000}") + &list(2, "{\"qty\":null}") + &list(3, "{}") + "{\"id\":4}\n";
    folder.file("m.ndjson", &log);
    for (sql, head, rows) in [
        ("SELECT id FROM m WHERE 950 < ANY (leg[*].qty)", "id", "1\n"),
        ("SELECT id, 950 < ANY (leg[*].qty) AS a FROM m", "id,a", "1,true\n2,\n3,\n4,false\n"),
        (
            "SELECT id, id - 2 <= ALL (leg[*].qty) AS a FROM m",
            "id,a",
            "1,true\n2,\n3,false\n4,true\n",
        ),
        ("SELECT id FROM m WHERE 'z' = ANY (tag[*]) AND id > 1", "id", "2\n3\n"),
        ("SELECT count(*) AS n, count(l.qty) AS q FROM m, UNNEST(leg) AS l", "n,q", "2703,2701\n"),
    ] {
        assert_eq!(ask(&folder, sql), format!("{head}\n{rows}"), "{sql}");
    }
}

#[test]
fn natural_join_does_not_compare_the_ends_of_lists() {
    let folder = Folder::new();
    let legs = ["{\"id\":1,\"leg\":[{\"qty\":9},{}]}", "{\"id\":2,\"leg\":[{\"qty\":1},{}]}"];
    folder.file("m.ndjson", &legs.join("\n"));
    let tags = ["{\"id\":1,\"tag\":[\"a\",null],\"c\":10}", "{\"id\":2,\"tag\":[null],\"c\":20}"];
    folder.file("n.ndjson", &tags.join("\n"));
    for (sql, expected) in [
        ("SELECT c FROM 'm.ndjson' NATURAL JOIN 'n.ndjson' WHERE 5 < ANY (leg[*].qty)", "c\n10\n"),
        (
            "SELECT * FROM (SELECT n.*, 5 < ANY (leg[*].qty) AS a FROM 'm.ndjson' AS m \
             JOIN 'n.ndjson' AS n USING (id)) AS s WHERE a",
            "id,tag[0],tag[1],c,a\n1,a,,10,true\n",
        ),
    ] {
        let output = folder.run(&[sql, "--format", "csv"]);
        assert_eq!(text(&output.stdout), expected, "{sql}: {output:?}");
    }
    for sql in [
        "SELECT c FROM 'n.ndjson' NATURAL JOIN (SELECT 1 AS id) AS s WHERE 'a' = ANY (tag[*])",
        "SELECT c FROM 'm.ndjson' AS m NATURAL JOIN 'n.ndjson', UNNEST(leg) AS l",
    ] {
        let output = folder.run(&[sql]);
        assert_eq!(output.status.code(), Some(2), "{sql}: {output:?}");
        let said = text(&output.stderr);
        assert!(said.contains("NATURAL JOIN") && !said.contains("_line"), "{sql}: {said}");
    }
}

#[test]
fn unsupported_uses_of_lists_are_refused() {
    let folder = folder();
    for (sql, reason) in [
        ("SELECT leg[*].qty FROM 'm.ndjson'", "ANY (…)"),
        ("SELECT id FROM 'm.ndjson' WHERE 5 < ANY (leg[*].size)", "no list 'leg[*].size'"),
        ("SELECT id FROM 'm.ndjson' AS m LEFT JOIN UNNEST(leg) AS l ON TRUE", "CROSS JOIN"),
        ("SELECT id FROM 'm.ndjson' AS m, 'm.ndjson' AS n WHERE 5 < ANY (leg[*].qty)", "several"),
        (
            "SELECT * FROM 'm.ndjson' AS m JOIN 'o.csv' AS o USING (id), UNNEST(leg) AS l",
            "name the columns",
        ),
    ] {
        let output = folder.run(&[sql]);
        assert_eq!(output.status.code(), Some(2), "{sql}: {output:?}");
        assert!(text(&output.stderr).contains(reason), "{sql}: {output:?}");
    }
    let output = folder.run(&["SELECT unnest(make_array(1, 2)) AS x", "--format", "csv"]);
    assert_eq!(text(&output.stdout), "x\n1\n2\n");
}
