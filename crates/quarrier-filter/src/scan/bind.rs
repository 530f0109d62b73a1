//! Binds the nodes of a graph to one segment.

use std::sync::Arc;

use quarrier_messages::Table;
use quarrier_messages::column::raw::BLOCK_ROWS;
use quarrier_messages::column::{Data, Lanes, Packed, SegmentColumn, Zone};

use crate::Keys;
use crate::arch::{FloatRange, Range};
use crate::predicate::{Graph, Node, Set, Share, gaps};

/// Up to this number of ranges, each is compared; for more, a table is built.
pub(crate) const RANGES_MAX: usize = 8;

/// The rows of a node in a segment.
#[derive(Debug, Default)]
pub(crate) struct State<'a> {
    /// The blocks without any row of the node.
    pub(crate) never: u16,
    /// The blocks in which every row belongs to the node.
    pub(crate) always: u16,
    /// The test for the other blocks.
    pub(crate) test: Test<'a>,
}

/// A test of one column.
#[derive(Debug, Default)]
pub(crate) enum Test<'a> {
    /// Nothing to test, or not a test of one column.
    #[default]
    None,
    /// Selects the rows with a value, or those without.
    Null {
        /// One bit per row, set if it has a value.
        valid: &'a [u64],
        /// Whether the rows without a value are selected.
        nulls: bool,
    },
    /// Selects rows by their values.
    Values {
        /// Values of a numeric type.
        values: Values<'a>,
        /// One bit per row, if some have no value.
        valid: &'a [u64],
        /// Whether rows without a value are selected.
        nulls: bool,
    },
    /// Row by row: the strings of the segment have no codes.
    Rows,
}

/// Values, and which of them are selected.
#[derive(Debug)]
pub(crate) enum Values<'a> {
    /// One bit per row; selects those that are set, or those that are not.
    Bits(&'a [u64], bool),
    U8(&'a [u8], Wanted<'a>),
    U16(&'a [u16], Wanted<'a>),
    U32(&'a [u32], Wanted<'a>),
    U64(&'a [u64], Wanted<'a>),
    /// Runs with their ends, and whether each is selected.
    Runs(&'a [u32], Vec<bool>),
    Floats(&'a [f64], Vec<FloatRange>),
    /// Numbers of 128 bits; selects those within ranges, which are in ascending order.
    Wide(&'a [i128], Vec<(i128, i128)>),
}

/// Which lanes are selected.
#[derive(Debug)]
pub(crate) enum Wanted<'a> {
    /// Lanes within a range, or outside it.
    One(Range<u64>, bool),
    /// Lanes within one of some ranges, or outside all of them.
    Several(Vec<Range<u64>>, bool),
    /// Lanes whose bit is set; lane 0 has this index.
    Table(&'a [u32], u32),
    /// Lanes within one of many ranges, found by binary search.
    Search(Vec<Range<u64>>),
}

/// Binds every node of `graph` to `segment`, into `states`, one for each. `members` are the bitmaps
/// of the sets that have one.
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

/// Returns which share of a segment's or block's rows is in the set, by its zone map.
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

/// Returns the state of a test for keys that have a bit for every number of `column`.
fn among_state<'a>(column: &'a SegmentColumn, keys: &'a Keys, every: u16) -> State<'a> {
    let may_have =
        |zone: Zone| zone.narrow().is_some_and(|(least, most)| keys.may_have(least, most));
    let packed = match column.data() {
        Data::Whole(packed) if may_have(column.zone()) => packed,
        _ => return State { never: every, ..State::default() },
    };
    let (zone, valid) = (column.zone(), column.valid());
    let has = |lane| keys.contains(packed.base().wrapping_add_unsigned(lane));
    // Lanes of one bit can express that one of two numbers is selected, but not both.
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

/// Returns the test that finds the rows of `set`.
pub(crate) fn test<'a>(
    column: &'a SegmentColumn,
    set: &Set,
    members: Option<&'a Keys>,
    zone: Zone,
) -> Test<'a> {
    let valid = column.valid();
    match set.share(zone.min, zone.max) {
        Share::Some => {}
        // All values have the same outcome, so only NULL matters.
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
            // Some adjacent numbers have floats between them that no number of the column equals.
            let whole: Vec<_> = whole.filter(|(first, last)| first <= last).collect();
            packed_values(packed, &whole, (ends(least).0, ends(greatest).1), None)
        }
        Data::Whole(packed) | Data::Codes(packed) => {
            // Rows without a value may hold a number below all others.
            let members = members.filter(|members| members.from(packed.base()).is_some());
            let (least, greatest) = zone.narrow().unwrap_or_default();
            let within = match members {
                Some(_) => Vec::new(),
                None => set.narrow_within(least, greatest),
            };
            packed_values(packed, &within, (least, greatest), members)
        }
        Data::Shifted { shift, packed } => {
            // Converts to the integers as stored.
            let kept = |number: i128| (number - shift) as i64;
            let within = set.within(zone.min, zone.max).into_iter();
            let within: Vec<_> = within.map(|(first, last)| (kept(first), kept(last))).collect();
            packed_values(packed, &within, (kept(zone.min), kept(zone.max)), None)
        }
        Data::Exact(numbers) => Values::Wide(numbers, set.within(zone.min, zone.max)),
    };
    Test::Values { values, valid, nulls: set.nulls }
}

/// `within` is the selected range between the least and the greatest number.
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
        // All values are equal: the zone map would have decided, except for NULL among them.
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

/// As [`gaps`], for numbers of 64 bits.
fn narrow_gaps(within: &[(i64, i64)], least: i64, greatest: i64) -> Vec<(i64, i64)> {
    let wide: Vec<(i128, i128)> =
        within.iter().map(|&(first, last)| (first.into(), last.into())).collect();
    let gaps = gaps(&wide, least.into(), greatest.into()).into_iter();
    gaps.map(|(first, last)| (first as i64, last as i64)).collect()
}

/// Returns the float of a key.
pub(crate) fn float_of(key: i64) -> f64 {
    f64::from_bits((key ^ (((key >> 63) as u64) >> 1) as i64) as u64)
}

/// The key of infinity.
const INFINITY: i64 = f64::INFINITY.to_bits() as i64;

/// Returns the ranges of floats that represent a set within a zone.
fn float_ranges(set: &Set, zone: Zone) -> Vec<FloatRange> {
    let range = |(first, last): (i64, i64)| FloatRange {
        low: float_of(first),
        // No float has the key before that of 0: -0 has the key of 0.
        high: match last {
            // Only NaN follows infinity; it has the greatest key.
            last if last >= INFINITY => f64::INFINITY,
            -1 => float_of(-2),
            _ => float_of(last),
        },
        nan: last == i64::MAX,
    };
    let (least, greatest) = zone.narrow().unwrap_or_default();
    set.narrow_within(least, greatest).into_iter().map(range).collect()
}

/// Returns the first number whose float, divided by 10^`exponent`, has a key of at least `key`, and
/// the last with a key of at most `key`.
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
