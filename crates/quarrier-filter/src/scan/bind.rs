//! Binds the nodes of a graph to one segment.

use std::sync::Arc;

use quarrier_messages::Table;
use quarrier_messages::column::raw::BLOCK_ROWS;
use quarrier_messages::column::{Data, Lanes, Packed, SegmentColumn, Zone};

use crate::Keys;
use crate::arch::{FloatRange, Range};
use crate::predicate::{Graph, Node, Set, Share, gaps};

/// Ranges up to which each is compared; a table is made for more.
pub(crate) const RANGES_MAX: usize = 8;

/// A node in a segment.
#[derive(Debug, Default)]
pub(crate) struct State<'a> {
    /// The blocks without a row in it.
    pub(crate) never: u16,
    /// The blocks all of whose rows are in it.
    pub(crate) always: u16,
    /// How the others are found out.
    pub(crate) test: Test<'a>,
}

/// A test of one column.
#[derive(Debug, Default)]
pub(crate) enum Test<'a> {
    /// Nothing to test, or no test of one column.
    #[default]
    None,
    /// Rows with a value, or those without one.
    Null {
        /// One bit a row.
        valid: &'a [u64],
        /// Without one.
        nulls: bool,
    },
    /// Rows by their values.
    Values {
        /// Values of a numeric type.
        values: Values<'a>,
        /// One bit a row, where some have no value.
        valid: &'a [u64],
        /// Whether rows without a value are in it.
        nulls: bool,
    },
    /// Row by row: the text of the segment has no codes.
    Rows,
}

/// Values, and which of them are wanted.
#[derive(Debug)]
pub(crate) enum Values<'a> {
    /// One bit a row; wanted are those set, or those which are not.
    Bits(&'a [u64], bool),
    U8(&'a [u8], Wanted<'a>),
    U16(&'a [u16], Wanted<'a>),
    U32(&'a [u32], Wanted<'a>),
    U64(&'a [u64], Wanted<'a>),
    /// Runs with their ends, and for each whether it is wanted.
    Runs(&'a [u32], Vec<bool>),
    Floats(&'a [f64], Vec<FloatRange>),
    /// Numbers of 128 bits; wanted are those within ranges, which rise.
    Wide(&'a [i128], Vec<(i128, i128)>),
}

/// Which lanes are wanted.
#[derive(Debug)]
pub(crate) enum Wanted<'a> {
    /// Within a range, or outside of it.
    One(Range<u64>, bool),
    /// Within one of some ranges, or outside of all of them.
    Several(Vec<Range<u64>>, bool),
    /// Tests a bit; that of lane 0 has this index.
    Table(&'a [u32], u32),
    /// Within one of many ranges.
    Search(Vec<Range<u64>>),
}

/// Binds every node of `graph` to `segment`, into `states`, one for each. `members` are those of
/// sets that have them.
pub(crate) fn bind<'a>(
    (table, segment): (&'a Table, usize),
    graph: &'a Graph,
    members: &'a [Option<Arc<Keys>>],
    states: &mut Vec<State<'a>>,
) {
    states.clear();
    let blocks = table.segment_rows(segment).div_ceil(BLOCK_ROWS);
    let every = if blocks >= 16 { !0 } else { (1u16 << blocks) - 1 };
    for (node, members) in graph.nodes.iter().zip(members) {
        let state = match node {
            Node::None => State { never: every, ..State::default() },
            Node::All => State { always: every, ..State::default() },
            Node::Set { column, set } => {
                let column = &table.columns()[*column].segments()[segment];
                set_state(column, set, members.as_deref(), every)
            }
            Node::Mixed { column, set, .. } => {
                let column = &table.columns()[*column].segments()[segment];
                match column.data() {
                    Data::Text(_) => State { test: Test::Rows, ..State::default() },
                    _ => set_state(column, set, members.as_deref(), every),
                }
            }
            Node::Among { column, keys } => {
                among_state(&table.columns()[*column].segments()[segment], keys, every)
            }
            Node::And(operands) => {
                let (mut never, mut always) = (0, every);
                for &operand in operands {
                    never |= states[operand].never;
                    always &= states[operand].always;
                }
                State { never, always, test: Test::None }
            }
            Node::Or(operands) => {
                let (mut never, mut always) = (every, 0);
                for &operand in operands {
                    never &= states[operand].never;
                    always |= states[operand].always;
                }
                State { never, always, test: Test::None }
            }
            Node::Not(operand) => {
                let State { never, always, .. } = states[*operand];
                State { never: always, always: never, test: Test::None }
            }
            Node::Calculated(_) | Node::Row { .. } => State::default(),
        };
        states.push(state);
    }
}

/// How many rows of a segment or block are in the set, according to its zone map.
pub(crate) fn share(set: &Set, zone: Zone) -> Share {
    let values = match zone.is_without_values() {
        true => Share::None,
        false => set.share(zone.min, zone.max),
    };
    match (values, zone.nulls > 0) {
        (Share::None, true) if zone.is_without_values() && set.nulls => Share::All,
        (Share::None, false) => Share::None,
        (Share::None, true) if !set.nulls => Share::None,
        (Share::All, false) => Share::All,
        (Share::All, true) if set.nulls => Share::All,
        _ => Share::Some,
    }
}

fn set_state<'a>(
    column: &'a SegmentColumn,
    set: &Set,
    members: Option<&'a Keys>,
    every: u16,
) -> State<'a> {
    let zone = column.zone();
    match share(set, zone) {
        Share::None => return State { never: every, ..State::default() },
        Share::All => return State { always: every, ..State::default() },
        Share::Some => {}
    }
    let (mut never, mut always) = (0, 0);
    for (block, &zone) in column.blocks().iter().enumerate() {
        match share(set, zone) {
            Share::None => never |= 1 << block,
            Share::All => always |= 1 << block,
            Share::Some => {}
        }
    }
    let test =
        if (never | always) == every { Test::None } else { test(column, set, members, zone) };
    State { never, always, test }
}

/// The test for keys that have a bit for every number of `column`.
fn among_state<'a>(column: &'a SegmentColumn, keys: &'a Keys, every: u16) -> State<'a> {
    let may_have =
        |zone: Zone| zone.narrow().is_some_and(|(least, most)| keys.may_have(least, most));
    let packed = match column.data() {
        Data::Whole(packed) if may_have(column.zone()) => packed,
        _ => return State { never: every, ..State::default() },
    };
    let (zone, valid) = (column.zone(), column.valid());
    let has = |lane| keys.contains(packed.base().wrapping_add_unsigned(lane));
    // Lanes of one bit can say which of two numbers is wanted, but not that both are.
    let are_both = matches!(packed.lanes(), Lanes::Bits(_)) && has(0) && has(1);
    if are_both && valid.is_empty() {
        return State { always: every, ..State::default() };
    }
    let mut never = 0;
    for (block, &zone) in column.blocks().iter().enumerate() {
        if !may_have(zone) {
            never |= 1 << block;
        }
    }
    let test = if are_both {
        Test::Null { valid, nulls: false }
    } else {
        let ends = zone.narrow().unwrap_or_default();
        let values = packed_values(packed, &[], ends, Some(keys));
        Test::Values { values, valid, nulls: false }
    };
    State { never, always: 0, test }
}

/// How to find the rows of `set`.
pub(crate) fn test<'a>(
    column: &'a SegmentColumn,
    set: &Set,
    members: Option<&'a Keys>,
    zone: Zone,
) -> Test<'a> {
    let valid = column.valid();
    match set.share(zone.min, zone.max) {
        Share::Some => {}
        // All values agree in this, so only NULL matters.
        Share::None => return Test::Null { valid, nulls: true },
        Share::All => return Test::Null { valid, nulls: false },
    }
    let values = match column.data() {
        Data::Null | Data::Text(_) => return Test::None,
        Data::Float(values) => Values::Floats(values, float_ranges(set, zone)),
        Data::Scaled { exponent, packed } => {
            let ends = |key| nearest(key, *exponent);
            let (least, greatest) = zone.narrow().unwrap_or_default();
            let within = set.narrow_within(least, greatest);
            let whole = within.iter().map(|&(a, b)| (ends(a).0, ends(b).1));
            // Between two of these numbers there are floats without any.
            let whole: Vec<_> = whole.filter(|(first, last)| first <= last).collect();
            packed_values(packed, &whole, (ends(least).0, ends(greatest).1), None)
        }
        Data::Whole(packed) | Data::Codes(packed) => {
            // Rows without a value may have a number below all others.
            let members = members.filter(|members| members.from(packed.base()).is_some());
            let (least, greatest) = zone.narrow().unwrap_or_default();
            let within = match members {
                Some(_) => Vec::new(),
                None => set.narrow_within(least, greatest),
            };
            packed_values(packed, &within, (least, greatest), members)
        }
        Data::Shifted { shift, packed } => {
            // Integers, as they are kept.
            let kept = |number: i128| (number - shift) as i64;
            let within = set.within(zone.min, zone.max).into_iter();
            let within: Vec<_> = within.map(|(first, last)| (kept(first), kept(last))).collect();
            packed_values(packed, &within, (kept(zone.min), kept(zone.max)), None)
        }
        Data::Exact(numbers) => Values::Wide(numbers, set.within(zone.min, zone.max)),
    };
    Test::Values { values, valid, nulls: set.nulls }
}

/// `within`: the wanted range between the least and the greatest number.
fn packed_values<'a>(
    packed: &'a Packed,
    within: &[(i64, i64)],
    (least, greatest): (i64, i64),
    members: Option<&'a Keys>,
) -> Values<'a> {
    let base = packed.base();
    let lane = |number: i64| number.wrapping_sub(base) as u64;
    let wanted = || match members.and_then(|members| members.from(base)) {
        Some((bits, place)) => Wanted::Table(bits, place),
        None => wanted(within, (least, greatest), lane),
    };
    let contains = |lane: u64| {
        let number = base.wrapping_add_unsigned(lane);
        match members {
            Some(members) => members.contains(number),
            None => {
                let at = within.partition_point(|range| range.1 < number);
                within.get(at).is_some_and(|range| range.0 <= number)
            }
        }
    };
    match packed.lanes() {
        // All the same, which a zone would have settled but for NULL beside it.
        Lanes::Constant => Values::Runs(&[], vec![contains(0)]),
        Lanes::Bits(words) => Values::Bits(words, contains(1)),
        Lanes::U8(lanes) => Values::U8(lanes, wanted()),
        Lanes::U16(lanes) => Values::U16(lanes, wanted()),
        Lanes::U32(lanes) => Values::U32(lanes, wanted()),
        Lanes::U64(lanes) => Values::U64(lanes, wanted()),
        Lanes::Runs { ends, values } => {
            Values::Runs(ends, values.iter().map(|&lane| contains(lane)).collect())
        }
    }
}

fn wanted<'a>(
    within: &[(i64, i64)],
    (least, greatest): (i64, i64),
    lane: impl Fn(i64) -> u64,
) -> Wanted<'a> {
    let range = |&(first, last): &(i64, i64)| Range { low: lane(first), high: lane(last) };
    if let [one] = within {
        return Wanted::One(range(one), false);
    }
    let others = narrow_gaps(within, least, greatest);
    match others.as_slice() {
        [one] => Wanted::One(range(one), true),
        _ if others.len() < within.len() && others.len() <= RANGES_MAX => {
            Wanted::Several(others.iter().map(range).collect(), true)
        }
        _ if within.len() <= RANGES_MAX => {
            Wanted::Several(within.iter().map(range).collect(), false)
        }
        _ => Wanted::Search(within.iter().map(range).collect()),
    }
}

/// As [`gaps`], of numbers of 64 bits.
fn narrow_gaps(within: &[(i64, i64)], least: i64, greatest: i64) -> Vec<(i64, i64)> {
    let wide: Vec<(i128, i128)> =
        within.iter().map(|&(first, last)| (first.into(), last.into())).collect();
    let gaps = gaps(&wide, least.into(), greatest.into()).into_iter();
    gaps.map(|(first, last)| (first as i64, last as i64)).collect()
}

/// The float of a key.
pub(crate) fn float_of(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// The key of infinity.
const INFINITY: i64 = f64::INFINITY.to_bits() as i64;

/// The ranges of floats that a set comes to between the ends of a zone.
fn float_ranges(set: &Set, zone: Zone) -> Vec<FloatRange> {
    let range = |(first, last): (i64, i64)| FloatRange {
        low: float_of(first),
        // The key before that of 0 is that of no float: -0 has the key of 0.
        high: match last {
            // After infinity comes only NaN, with the last key of all.
            last if last >= INFINITY => f64::INFINITY,
            -1 => float_of(-2),
            _ => float_of(last),
        },
        nan: last == i64::MAX,
    };
    let (least, greatest) = zone.narrow().unwrap_or_default();
    set.narrow_within(least, greatest).into_iter().map(range).collect()
}

/// The first number whose float, divided by 10^`exponent`, has a key of at least `key`, and the last
/// with a key of at most `key`.
pub(crate) fn nearest(key: i64, exponent: u8) -> (i64, i64) {
    let power = 10_f64.powi(exponent.into());
    let key_of = |number: i64| quarrier_messages::column::float_key(number as f64 / power);
    let mut number = (float_of(key) * power) as i64;
    while key_of(number) >= key {
        number -= 1;
    }
    while key_of(number) < key {
        number += 1;
    }
    (number, if key_of(number) == key { number } else { number - 1 })
}
