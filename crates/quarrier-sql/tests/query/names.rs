//! Names of columns and tables.

use crate::harness::{Folder, TestEngine};

#[test]
fn columns_are_found_in_another_case_if_unambiguous() {
    let folder = Folder::new();
    let engine = TestEngine::new();
    engine.open("Orders", &folder.file("o.csv", "Qty,sym,SYM\n1,a,b\n2,c,d\n")).unwrap();
    assert_eq!(engine.value("SELECT sum(qty) FROM orders").unwrap(), "3");
    assert_eq!(engine.rows("SELECT sym, SYM FROM ORDERS o WHERE O.qty = 2").unwrap(), ["c|d"]);
    assert!(engine.refusal("SELECT Sym FROM orders").contains("Sym"));
}

#[test]
fn nested_fields_are_named_by_their_path() {
    let (_folder, engine) = TestEngine::of_orders();
    let sql = "SELECT leg[0].qty FROM m WHERE leg[0].qty = 8 AND m.leg[0].qty > 7 LIMIT 1";
    assert_eq!(engine.rows(sql).unwrap(), ["8"]);
    let sql = "SELECT max(t.leg[0].qty) AS most FROM m AS t GROUP BY t.open ORDER BY most";
    assert_eq!(engine.rows(sql).unwrap(), ["8", "8"]);
}

#[test]
fn outputs_without_an_alias_are_named_after_their_text() {
    let folder = Folder::new();
    folder.file("a.csv", "x\n1\n");
    let output =
        folder.run(&["SELECT x + 1, x + 1, count(*) FROM 'a.csv' GROUP BY x", "--format", "csv"]);
    let said = crate::harness::text(&output.stdout);
    assert_eq!(said, "x + 1,x + 1 (2),count(*)\n2,2,1\n", "{output:?}");
}

#[test]
fn unknown_tables_are_reported_with_a_remedy() {
    let engine = TestEngine::new();
    let said = engine.refusal("SELECT * FROM nowhere");
    assert!(said.contains("nowhere") && said.contains("--table"), "{said}");
}
