//! Converts floats that came from decimals back to integers, if every bit survives (the idea of
//! ALP: Afroozeh, Kuffó and Boncz, SIGMOD 2023).

use super::whole::pack_whole;
use super::zones::zones_of;
use super::{Data, Zones};
use crate::column::packed::Lanes;
use crate::column::segment::{POWERS, scaled};
use crate::column::zone::float_key;

/// Below this magnitude, distinct integers are distinct floats after the division: 2^51.
const NUMBER_MAX: f64 = 2_251_799_813_685_248.0;

/// Packs floats; ignores those of rows without a value.
pub(super) fn pack_floats(values: &[f64], valid: &[u64]) -> (Data, Zones) {
    if let Some((exponent, numbers)) = as_numbers(values, valid) {
        let (packed, zones) = pack_whole(&numbers, valid);
        if !matches!(packed.lanes(), Lanes::U64(_)) {
            let zones = zones.moved(|number| float_key(scaled(number as i64, exponent)).into());
            return (Data::Scaled { exponent, packed }, zones);
        }
    }
    let zones = zones_of(values, valid, float_key);
    let mut kept = Vec::with_capacity(values.len().next_multiple_of(64));
    kept.extend_from_slice(values);
    kept.resize(values.len().next_multiple_of(64), 0.0);
    (Data::Float(kept), zones)
}

/// Returns the least exponent at which every value converts to an integer and back without loss,
/// and the integers.
fn as_numbers(values: &[f64], valid: &[u64]) -> Option<(u8, Vec<i64>)> {
    let has_value = |row: usize| valid.is_empty() || valid[row / 64] >> (row % 64) & 1 == 1;
    let mut numbers = vec![0; values.len()];
    let mut exponent = 0;
    let mut row = 0;
    // A value that does not fit increases the exponent. Earlier values still fit, or the next pass
    // finds out: at most 18 steps, mostly within the first rows.
    let mut checked = 0;
    while checked < values.len() {
        if has_value(row) {
            match number(values[row], exponent) {
                Some(number) => numbers[row] = number,
                None => {
                    exponent = (exponent + 1..POWERS.len() as u8)
                        .find(|&exponent| number(values[row], exponent).is_some())?;
                    numbers[row] = number(values[row], exponent)?;
                    checked = 0;
                }
            }
        }
        checked += 1;
        row = if row + 1 == values.len() { 0 } else { row + 1 };
    }
    Some((exponent, numbers))
}

/// Returns the integer that represents `value`, if it does so exactly.
#[inline]
fn number(value: f64, exponent: u8) -> Option<i64> {
    let near = value * POWERS[exponent as usize];
    // Also false for NaN.
    if near.abs() < NUMBER_MAX {
        // Rounds to the nearest integer, since floats of this size have no fraction.
        let number = ((near + 3.0 * NUMBER_MAX) - 3.0 * NUMBER_MAX) as i64;
        if scaled(number, exponent).to_bits() == value.to_bits() {
            return Some(number);
        }
    }
    None
}
