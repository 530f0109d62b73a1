//! The type inferred value by value is the type of a loaded column.

use proptest::prelude::*;
use quarrier_messages::build::{Cell, KindFinder};
use quarrier_messages::{Format, Kind, Load, Packing};

/// Values in JSON, and as cells.
const VALUES: [(&str, Cell<'static>); 14] = [
    ("null", Cell::Null),
    ("true", Cell::Boolean(true)),
    ("5", Cell::Integer(5)),
    ("-9223372036854775808", Cell::Integer(i64::MIN)),
    ("92233720368547758", Cell::Integer(92_233_720_368_547_758)),
    ("1.5", Cell::Decimal { mantissa: 15, scale: 1 }),
    ("-0.125", Cell::Decimal { mantissa: -125, scale: 3 }),
    ("0.000000000000000001", Cell::Decimal { mantissa: 1, scale: 18 }),
    ("1e300", Cell::Float(1e300)),
    ("\"2024-05-31\"", Cell::Text("2024-05-31")),
    ("\"9999-05-31\"", Cell::Text("9999-05-31")),
    ("\"2024-05-31T12:00:00Z\"", Cell::Text("2024-05-31T12:00:00Z")),
    ("\"soon\"", Cell::Text("soon")),
    ("\"\"", Cell::Text("")),
];

proptest! {
    #[test]
    fn the_inferred_type_is_that_of_a_load(
        chosen in prop::collection::vec(0..VALUES.len(), 1..5),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
        segment_rows in 1..20_usize,
        workers in 1..4_usize,
        cut in any::<prop::sample::Index>(),
    ) {
        let picks: Vec<_> = picks.iter().map(|pick| VALUES[*pick.get(&chosen)]).collect();
        let line = |(json, _): &(&str, Cell<'_>)| format!("{{\"a\":{json}}}\n");
        let lines: String = picks.iter().map(line).collect();
        let packing = Packing { segment_rows, claim_bytes: 60, ..Packing::default() };
        let load = Load::new(Format::Json).workers(workers).packing(packing);
        let loaded = load.run_stream("f", &mut lines.as_bytes()).unwrap();
        let (first, rest) = picks.split_at(cut.index(picks.len()));
        let found = |part: &[(&str, Cell<'static>)]| {
            let mut kinds = KindFinder::default();
            part.iter().for_each(|(_, cell)| kinds.add(*cell));
            kinds
        };
        let (mut kinds, other) = (found(first), found(rest));
        kinds.join(&other);
        let kind = loaded.table.schema().fields[0].kind;
        prop_assert_eq!(kinds.kind(), kind, "{}", lines);
    }
}

#[test]
fn only_null_has_no_type() {
    let mut kinds = KindFinder::default();
    kinds.add(Cell::Null);
    assert_eq!(kinds.kind(), Kind::Null);
}
