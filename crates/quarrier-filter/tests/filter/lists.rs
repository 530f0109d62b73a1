//! Comparisons with lists, compared with a comparison of each element in turn.

use quarrier_core::source::Memory;
use quarrier_filter::sql::{
    Lists, condition, condition_of_messages, elements, list_fields, statement_of,
};
use quarrier_filter::{Error, Scan, Sieve, naive};
use quarrier_messages::format::json::JsonParser;
use quarrier_messages::{Field, Format, HiddenColumns, Kind, Limits, Load, Schema, Value};

use crate::sieve::Random;

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

/// A random element of a list, as JSON, and its quantity.
fn element(random: &mut Random) -> (String, Option<i64>) {
    let number = random.below(4) as i64;
    match random.below(8) {
        0 => ("{}".into(), None),
        1 => ("null".into(), None),
        2 => ("{\"qty\":null}".into(), None),
        3 => ("{\"px\":1}".into(), None),
        4 => ("{\"px\":[],\"qty\":null}".into(), None),
        5 => (format!("{{\"px\":2,\"qty\":{number}}}"), Some(number)),
        _ => (format!("{{\"qty\":{number}}}"), Some(number)),
    }
}

/// A random message, its list and its `x`.
fn message(random: &mut Random, longest: usize) -> (String, Vec<Option<i64>>, Option<i64>) {
    let x = (random.below(3) > 0).then(|| random.below(4) as i64);
    let (elements, list): (Vec<_>, Vec<_>) =
        (0..random.below(longest + 1)).map(|_| element(random)).unzip();
    let shown = x.map_or("null".to_string(), |x| x.to_string());
    (format!("{{\"x\":{shown},\"leg\":[{}]}}", elements.join(",")), list, x)
}

const QUESTIONS: [(&str, &str, bool); 6] = [
    ("2", "=", false),
    ("2", "<>", true),
    ("x", "<", true),
    ("x", ">=", false),
    ("NULL", "=", true),
    ("1", "<=", true),
];

/// Returns the three conditions for the outcomes of a question.
fn outcomes((left, op, is_all): (&str, &str, bool)) -> [String; 3] {
    let word = if is_all { "ALL" } else { "ANY" };
    ["TRUE", "FALSE", "UNKNOWN"].map(|is| format!("({left} {op} {word} (leg[*].qty)) IS {is}"))
}

fn answer((left, op, is_all): (&str, &str, bool), list: &[Option<i64>], x: Option<i64>) -> usize {
    let left = match left {
        "x" => x,
        literal => literal.parse().ok(),
    };
    match expected(list, left, op, is_all) {
        Some(true) => 0,
        Some(false) => 1,
        None => 2,
    }
}

/// Binds conditions to the known elements of lists. Returns the sieve, and a new parser for it.
fn sieve(conditions: &[String], schema: &mut Schema, lists: &mut Lists) -> (Sieve, JsonParser) {
    let mut exprs = Vec::new();
    for text in conditions {
        exprs.push(loop {
            match condition_of_messages(text, schema, lists) {
                Ok(expr) => break expr,
                Err(Error::List { path, .. }) => {
                    lists.add(&path, schema);
                }
                Err(error) => panic!("{text}: {error}"),
            }
        });
    }
    let sieve = Sieve::new(schema, &exprs).with_lists(lists);
    (sieve, JsonParser::new(&Limits::default()))
}

#[test]
fn lists_of_messages_to_come_are_compared_element_by_element() {
    let mut random = Random(77);
    let conditions: Vec<String> =
        QUESTIONS.iter().flat_map(|question| outcomes(*question)).collect();
    let field = |name: &str| Field { name: name.into(), kind: Kind::Integer };
    for known in [&["x"][..], &["x", "leg[0].qty"], &["leg[3].qty", "leg[0].px", "x"]] {
        for has_reserve in [false, true] {
            let mut schema = Schema { fields: known.iter().map(|name| field(name)).collect() };
            let mut lists = Lists::new(has_reserve);
            let (mut bound, mut parser) = sieve(&conditions, &mut schema, &mut lists);
            for number in 0..400 {
                let (text, list, x) = message(&mut random, 2 + number / 20);
                loop {
                    bound.clear();
                    parser.message(text.as_bytes(), &mut bound).unwrap();
                    bound.complete();
                    if bound.fits() {
                        break;
                    }
                    let before = schema.fields.len();
                    for &(list, index) in bound.beyond() {
                        lists.grow(list, index, &mut schema);
                    }
                    let is_longer = schema.fields.len() > before;
                    for &(column, kind) in bound.misfits() {
                        schema.fields[column].kind = kind;
                    }
                    assert!(is_longer || !bound.misfits().is_empty());
                    (bound, parser) = sieve(&conditions, &mut schema, &mut lists);
                }
                for (at, question) in QUESTIONS.iter().enumerate() {
                    let found: Vec<bool> =
                        (0..3).map(|outcome| bound.is_true(3 * at + outcome).unwrap()).collect();
                    let mut right = [false; 3];
                    right[answer(*question, &list, x)] = true;
                    assert_eq!(found, right, "{question:?} of {text}");
                }
            }
        }
    }
}

#[test]
fn lists_in_tables_are_compared_element_by_element() {
    let mut random = Random(78);
    let messages: Vec<_> = (0..600).map(|_| message(&mut random, 6)).collect();
    let log: String = messages.iter().map(|(text, ..)| format!("{text}\n")).collect();
    let hidden = HiddenColumns::named_in(&outcomes(QUESTIONS[0])[0]);
    let load = Load::new(Format::Json).workers(2).hidden(hidden);
    let table = load.run(&[&Memory::new("log", log)]).unwrap().table;
    assert!(table.hidden().list_ends);
    for question in QUESTIONS {
        for (outcome, text) in outcomes(question).iter().enumerate() {
            let right = messages.iter().map(|(_, list, x)| answer(question, list, *x) == outcome);
            let expr = condition(text, table.schema()).unwrap();
            let found = (0..table.rows()).map(|row| {
                let values = |column: usize| table.value(row, column);
                naive::truth(&expr, &values).unwrap() == Some(true)
            });
            assert!(found.eq(right.clone()), "{text}");
            let query = statement_of(&format!("SELECT COUNT(*) FROM m WHERE {text}"), "m", &table);
            let counted = Scan::new(&table, &[query.unwrap()]).run().remove(0).unwrap();
            assert_eq!(counted.count, right.filter(|&is| is).count() as u64, "{text}");
        }
    }
}
