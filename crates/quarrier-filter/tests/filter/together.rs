//! Conditions of one shape, bound one after another on a thread that parses many, are those that are bound alone.

use proptest::prelude::*;
use quarrier_filter::sql;

use crate::asked::schema;

/// Conditions with places for literals.
const SHAPES: &[&str] = &[
    "i > ? AND f > ? AND t = ?",
    "t = ? OR t=? AND NOT(i<=?)",
    "i BETWEEN ? AND ? AND t IN (?, ?)",
    "t LIKE ? OR t NOT LIKE ? ESCAPE ?",
    "i + ? * ? >= - ?",
    "i <> ? AND t IS NOT NULL AND b",
    "day > DATE ? OR day = ?",
    "CASE WHEN i = ? THEN t = ? ELSE b END",
    "POSITION(? IN t) > ? AND UPPER(t) = ?",
    "CAST(? AS INTEGER) = i",
    "(i, t) = (?, ?)",
    "f < ? AND f < ?e2",
    "i > ?.5 OR i = .?",
    "t = X?",
    "i - ? > ? --",
    "i > ? /* ? */ AND b",
    "t = ? ? OR i = ?",
    "\"t\" = ? AND i = ?;",
    "missing = ? AND i > ?",
    "b ? i",
];

/// Literals: of the same kind in most places, so that shapes occur again.
const LITERALS: &[&str] = &[
    "5",
    "17",
    "0",
    "1.50",
    "2.25",
    "'a'",
    "'b'",
    "'é ?'",
    "''",
    "'it''s'",
    "'a\\'",
    "'2024-12-31'",
    "-5",
    "+5",
    "1e5",
    "7.",
    ".5",
    "99999999999999999999",
    "99999999999999999999999999999999999999999999",
    "N'a'",
    "X'00'",
    "NULL",
    "TRUE",
    "'a' 'b'",
    "'a'\n'b'",
    "5a",
    "--5",
    "(5)",
    "\u{1}",
    "\u{2}",
    "i",
    "'x' -- '",
    "'(a|b)%'",
];

fn text() -> impl Strategy<Value = String> {
    let literal = prop_oneof![4 => 0..8_usize, 1 => 0..LITERALS.len()];
    let literals = proptest::collection::vec(literal, 3);
    (0..SHAPES.len(), literals).prop_map(|(shape, literals)| {
        let mut text = String::new();
        for (number, part) in SHAPES[shape].split('?').enumerate() {
            if number > 0 {
                text.push_str(LITERALS[literals[number % literals.len()]]);
            }
            text.push_str(part);
        }
        text
    })
}

fn bound(text: &str) -> String {
    format!("{:?}", sql::condition(text, &schema()))
}

proptest! {
    #[test]
    fn conditions_bound_together_equal_those_bound_alone(
        texts in proptest::collection::vec(text(), 1..120)
    ) {
        let together: Vec<String> =
            sql::together(|| texts.iter().map(|text| bound(text)).collect());
        for (text, together) in texts.iter().zip(together) {
            prop_assert_eq!(together, bound(text), "{}", text);
        }
    }
}

#[test]
fn many_shapes_are_bound_correctly() {
    let texts: Vec<String> = (0..2_000)
        .map(|number| {
            let list: Vec<String> = (0..number % 400).map(|item| item.to_string()).collect();
            format!("i IN ({}) AND t = '{number}'", list.join(", "))
        })
        .collect();
    let together: Vec<String> = sql::together(|| texts.iter().map(|text| bound(text)).collect());
    for (text, together) in texts.iter().zip(together) {
        assert_eq!(together, bound(text), "{text}");
    }
}
