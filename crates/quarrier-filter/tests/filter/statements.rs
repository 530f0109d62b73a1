//! Statements: outputs, order, limits.

use std::sync::Arc;

use quarrier_filter::{Expr, Order, Query, Select, sql};
use quarrier_messages::Table;

use crate::asked::schema;

fn bound(text: &str) -> Result<Query, String> {
    sql::statement(text, "m", &schema()).map_err(|error| error.to_string())
}

fn names(text: &str) -> Vec<String> {
    match bound(text).unwrap().select {
        Select::Rows(outputs) => outputs.iter().map(|output| output.name.to_string()).collect(),
        Select::Count { name } => vec![format!("count called {name}")],
    }
}

#[test]
fn outputs_have_names() {
    assert_eq!(names("SELECT COUNT(*) FROM m"), ["count called COUNT(*)"]);
    assert_eq!(names("select count(*) as n from m;"), ["count called n"]);
    assert_eq!(
        names("SELECT I, d AS price, i * 2, order.leg[0].qty FROM m"),
        ["i", "price", "i * 2", "order.leg[0].qty"]
    );
    assert_eq!(names("SELECT i, I, d AS i FROM m"), ["i", "i (2)", "i (3)"]);
    assert_eq!(names("SELECT * FROM m").len(), schema().fields.len());
    assert_eq!(names("SELECT x.i, x.* FROM m AS x").len(), 1 + schema().fields.len());
}

#[test]
fn a_statement_may_find_its_table_while_it_is_bound() {
    let table = Arc::new(Table::default());
    let over =
        |text: &str| sql::statement_over(text, |name| (name == "t").then(|| Arc::clone(&table)));
    let text = "SELECT Count ( * ) FROM t LIMIT 3";
    assert_eq!(over(text), sql::statement(text, "t", table.schema()));
    let error = over("SELECT * FROM other").unwrap_err().to_string();
    assert!(error.contains("'other'"), "{error}");
}

#[test]
fn conditions_are_bound_with_the_tables_name_before_them() {
    for text in ["m.i = 7", "i = 7", "M.\"i\" = 7"] {
        let query = bound(&format!("SELECT i FROM m WHERE {text}")).unwrap();
        assert_eq!(query.condition, Some(sql::condition("i = 7", &schema()).unwrap()));
    }
}

#[test]
fn order_and_limits_are_as_written() {
    let query = bound(
        "SELECT i AS number, t FROM m WHERE b ORDER BY at DESC, 2 NULLS FIRST, number DESC NULLS \
         LAST, d LIMIT 10 OFFSET 5",
    );
    let query = query.unwrap();
    let order = |column, descending, nulls_first| Order { column, descending, nulls_first };
    assert_eq!(
        query.order,
        [
            order(6, true, true),
            order(4, false, true),
            order(0, true, false),
            order(1, false, false)
        ]
    );
    assert_eq!((query.limit, query.offset), (Some(10), 5));
    assert_eq!(query.condition, Some(Expr::Column(3)));
    let query = bound("SELECT i FROM m OFFSET 3 ROWS FETCH FIRST 2 ROWS ONLY").unwrap();
    assert_eq!((query.limit, query.offset), (Some(2), 3));
}

#[test]
fn the_rest_of_sql_is_refused_with_a_hint() {
    for (text, words) in [
        ("SELECT i FROM m, m", "quarrier query"),
        ("SELECT i FROM m JOIN m", "quarrier query"),
        ("SELECT DISTINCT i FROM m", "quarrier query"),
        ("SELECT i FROM m GROUP BY i", "quarrier query"),
        ("SELECT i FROM m UNION SELECT i FROM m", "quarrier query"),
        ("SELECT i FROM (SELECT i FROM m)", "quarrier query"),
        ("SELECT SUM(i) FROM m", "quarrier query"),
        ("SELECT i, COUNT(*) FROM m", "COUNT(*) cannot be combined with other columns"),
        ("SELECT i FROM m ORDER BY i + 1", "ORDER BY names columns here"),
        ("SELECT COUNT(*) FROM m ORDER BY i", "leave out ORDER BY"),
        ("SELECT i FROM other", "there is no table 'other'; the table is called m"),
        ("SELECT i FROM m ORDER BY x", "there is no column 'x'"),
        ("SELECT i FROM m ORDER BY 2", "ORDER BY names columns here"),
        ("SELECT i FROM m WHERE i", "is not a condition"),
        ("SELECT i FROM m LIMIT -1", "line 1, column 23: expected literal int, found -"),
        ("DELETE FROM m", "only SELECT … FROM … is supported here, not DELETE"),
        ("SELECT i", "expected FROM, found the end"),
        ("SELECT FROM m", "expected an expression, found FROM"),
    ] {
        let said = bound(text).unwrap_err();
        assert!(said.contains(words), "{text}: {said}");
        assert!(!said.contains('\n'), "{text}: {said}");
    }
}
