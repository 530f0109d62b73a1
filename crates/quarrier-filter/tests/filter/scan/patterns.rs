//! Patterns over strings without a dictionary, which are stored end to end.

use proptest::prelude::*;
use quarrier_filter::Expr;
use quarrier_filter::expr::{Comparison, Function, Matcher, Pattern};
use quarrier_filter::matching::Matching;
use quarrier_messages::column::SegmentColumn;
use quarrier_messages::column::raw::{RawColumn, RawData};
use quarrier_messages::{Kind, Part, PartField, PartSegment, Table, Value};

use super::check;

/// A column of strings, `None` for NULL, and a column of row numbers.
fn table(strings: &[Option<String>]) -> Table {
    let (mut ends, mut bytes) = (Vec::new(), Vec::new());
    let mut valid = vec![0u64; strings.len().div_ceil(64)];
    for (row, text) in strings.iter().enumerate() {
        if let Some(text) = text {
            valid[row / 64] |= 1 << (row % 64);
            bytes.extend_from_slice(text.as_bytes());
        }
        ends.push(bytes.len() as u32);
    }
    let numbers = (0..strings.len() as i64).collect();
    let columns = [
        RawColumn { valid, data: RawData::Text { ends, bytes } },
        RawColumn { valid: Vec::new(), data: RawData::Integer(numbers) },
    ];
    let columns = columns.iter().map(|column| Some(SegmentColumn::pack(column))).collect();
    let field = |name: &str| PartField { name: name.into(), ..PartField::default() };
    let segments = vec![PartSegment { place: 0, rows: strings.len() as u32, columns }];
    let table = Table::assemble(vec![Part { fields: vec![field("t"), field("n")], segments }], 1);
    assert_eq!(table.schema().fields[0].kind, Kind::Text);
    table
}

fn like(pattern: &str) -> Expr {
    let pattern = Matching::new(pattern, None, Matcher::Like).unwrap();
    Expr::Match { operand: Box::new(Expr::Column(0)), pattern: Pattern::Fixed(pattern) }
}

/// Repeats the strings up to `rows` rows, each time in another order.
fn repeated(strings: &[Option<String>], rows: usize) -> Vec<Option<String>> {
    (0..rows).map(|row| strings[(row + row / strings.len() * 3) % strings.len()].clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Few letters, so that matches cross the boundaries of strings, overlap each other, and are
    /// frequent.
    #[test]
    fn a_pattern_selects_the_same_rows_as_the_naive_evaluator(
        strings in prop::collection::vec(prop::option::weighted(0.9, "[abé]{0,8}"), 1..40),
        rows in prop_oneof![1..200_usize, Just(4096), Just(4097), Just(8200)],
        needles in prop::collection::vec("[abé]{3,5}", 2),
        few in 0..30_i64,
    ) {
        let table = table(&repeated(&strings, rows));
        let [first, second] = &needles[..] else { unreachable!() };
        let patterns = [
            format!("%{first}%"),
            format!("%{first}%{second}%"),
            format!("%{first}_{second}%"),
            format!("%__{first}%b"),
            format!("b%{first}%"),
            format!("%{first}%_{second}%é%"),
            format!("{first}%"),
        ];
        let some = Expr::Compare {
            op: Comparison::Less,
            left: Box::new(Expr::Column(1)),
            right: Box::new(Expr::Literal(Value::Integer(few))),
        };
        let conditions: Vec<Expr> = patterns
            .iter()
            .flat_map(|pattern| {
                let none = Expr::Not(Box::new(like(pattern)));
                let both = Expr::And(vec![some.clone(), like(pattern)]);
                [like(pattern), none, both]
            })
            .collect();
        check(&table, &conditions);
    }
}

/// A few characters, or ten bytes and more, including NUL.
const PREFIXES: &str = "[aé]{0,4}|a{0,10}|[ab\\x00]{0,3}|[a-c]{5,9}é?";

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Strings shorter than the compared prefix, and longer; characters of one byte and of two.
    #[test]
    fn prefixes_select_the_same_rows_as_the_naive_evaluator(
        strings in prop::collection::vec(prop::option::weighted(0.9, PREFIXES), 1..40),
        rows in prop_oneof![1..200_usize, Just(4096), Just(4097)],
        list in prop::collection::vec(PREFIXES, 1..40),
        characters in 0..10_i64,
        start in prop_oneof![4 => Just(1), 1 => 0..3_i64],
        with_null in any::<bool>(),
    ) {
        let table = table(&repeated(&strings, rows));
        let number = |number| Expr::Literal(Value::Integer(number));
        let arguments = vec![Expr::Column(0), number(start), number(characters)];
        let operand = Box::new(Expr::Call { function: Function::Substring, arguments });
        let null = with_null.then_some(Value::Null);
        let list = list.into_iter().map(|text| Value::Text(text.into())).chain(null);
        let within = Expr::In { operand, list: list.map(Expr::Literal).collect() };
        check(&table, &[Expr::Not(Box::new(within.clone())), within]);
    }
}

#[test]
fn a_pattern_does_not_match_across_strings() {
    let strings = ["xa", "aab", "aaab", "", "aa", "aa", "b", "specia", "l", "special"];
    let table = table(&strings.map(|text| Some(text.to_string())));
    for (pattern, expected) in
        [("%aab%", vec![1, 2]), ("%aaab%", vec![2]), ("%special%", vec![9]), ("%lspe%", vec![])]
    {
        let found = super::expected(&table, &like(pattern)).unwrap();
        assert_eq!(found, expected, "{pattern}");
        check(&table, &[like(pattern)]);
    }
}
