//! Comparisons with lists, compared with a comparison of each element in turn.

use quarrier_filter::naive;
use quarrier_filter::sql::{condition, elements, list_fields};
use quarrier_messages::{Field, Kind, Schema, Value};

/// Compares each element in turn, as SQL-92 defines it.
fn expected(list: &[Option<i64>], left: Option<i64>, op: &str, is_all: bool) -> Option<bool> {
    let mut result = Some(is_all);
    for element in list {
        let truth = left.zip(*element).map(|(left, element)| match op {
            "=" => left == element,
            "<>" => left != element,
            "<" => left < element,
            "<=" => left <= element,
            ">" => left > element,
            _ => left >= element,
        });
        result = match (result, truth, is_all) {
            (_, Some(true), false) | (Some(true), _, false) => Some(true),
            (_, Some(false), true) | (Some(false), _, true) => Some(false),
            (None, _, _) | (_, None, _) => None,
            (known, _, _) => known,
        };
    }
    result
}

#[test]
fn a_list_is_compared_element_by_element() {
    // Elements of a value and a name. For index 1 no message has a value, so only the name has a
    // column.
    let names = ["leg[0].qty", "leg[0].name", "leg[1].name", "leg[2].qty", "leg[3].qty", "x"];
    let field = |name: &str| Field { name: name.into(), kind: Kind::Integer };
    let schema = Schema { fields: names.into_iter().map(field).collect() };
    let value = |number: u32| match number {
        0 => Value::Null,
        number => Value::Integer(i64::from(number)),
    };
    let words = [("ANY", false), ("ALL", true), ("SOME", false)];
    let operators = ["=", "<>", "<", "<=", ">", ">="];
    let lefts = ["2", "x", "NULL"];
    for at in 0..words.len() * operators.len() * lefts.len() {
        let (word, is_all) = words[at % 3];
        let (op, left) = (operators[at / 3 % 6], lefts[at / 18]);
        let text = format!("{left} {op} {word} (leg[*].qty)");
        let expr = condition(&text, &schema).unwrap();
        for row in 0..4_u32.pow(6) {
            let row: Vec<u32> = (0..6).map(|at| row / 4_u32.pow(at) % 4).collect();
            let number = |at: usize| (row[at] > 0).then(|| i64::from(row[at]));
            let elements = [
                (number(0), row[1] > 0),
                (None, row[2] > 0),
                (number(3), false),
                (number(4), false),
            ];
            let end = elements.iter().rposition(|(value, other)| value.is_some() || *other);
            let list = &elements[..end.map_or(0, |end| end + 1)];
            let list: Vec<Option<i64>> = list.iter().map(|(value, _)| *value).collect();
            let known = [Some(2), number(5), None][at / 18];
            let values = |column: usize| value(row[column]);
            let truth = naive::truth(&expr, &values).unwrap();
            assert_eq!(truth, expected(&list, known, op, is_all), "{text} {list:?} {row:?}");
        }
    }
}

#[test]
fn lists_of_values_are_named_without_a_field() {
    let fields = ["tag[0]", "tag[1]", "Tag[9]", "other[0]"];
    let found = elements("tag[*]", &fields).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(elements("TAG[*]", &fields).unwrap().len(), 4);
    assert_eq!(elements("tag[*].x", &fields), None);
    // However large its index, a gap is one element.
    assert_eq!(elements("t[*]", &["t[4000000000]"]).unwrap().len(), 2);
}

#[test]
fn fields_of_elements_are_distinguished() {
    let columns = ["leg[0].qty", "leg[1].px.c", "leg[1].qty", "legs[0]", "LEG[0].x"];
    assert_eq!(list_fields("leg", &columns), [".qty", ".px.c"]);
    assert_eq!(list_fields("legs", &columns), [""]);
    assert_eq!(list_fields("Leg", &columns), [".qty", ".px.c", ".x"]);
    assert!(list_fields("le", &columns).is_empty());
}

#[test]
fn operands_other_than_lists_are_refused() {
    let field = |name: &str| Field { name: name.into(), kind: Kind::Integer };
    let schema = Schema { fields: ["leg[0].qty", "x"].map(field).into_iter().collect() };
    for (text, reason) in [
        ("5 < ANY (leg[*].px)", "leg[*].px"),
        ("5 < ANY (x)", "ANY and ALL of a query"),
        ("leg[*].qty = 5", "leg[*].qty"),
        ("'a' < ANY (leg[*].qty)", "compare"),
        ("x ~ ANY (leg[*].qty)", "comparison"),
    ] {
        let error = condition(text, &schema).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
