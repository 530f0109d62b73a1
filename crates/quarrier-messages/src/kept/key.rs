//! Encodes keys of rows as bytes, and maps them to rows.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::Value;

/// Appends a value of a key. Two keys have the same bytes if all of their values are equal, ignoring trailing
/// zeros of exact numbers.
pub(super) fn put<T: AsRef<str>>(value: &Value<T>, out: &mut Vec<u8>) {
    match value {
        Value::Boolean(truth) => out.extend([1, u8::from(*truth)]),
        Value::Integer(number) => put_exact((*number).into(), 0, out),
        Value::Decimal { mantissa, scale } => put_exact(*mantissa, *scale, out),
        Value::Date(days) => put_number(3, (*days).into(), out),
        Value::Timestamp(nanoseconds) => put_number(4, *nanoseconds, out),
        Value::Text(text) => {
            let text = text.as_ref().as_bytes();
            put_number(5, text.len() as i64, out);
            out.extend_from_slice(text);
        }
        // No column of a key has such values.
        Value::Null | Value::Float(_) | Value::Time(_) | Value::Interval { .. } => out.push(0),
    }
}

fn put_number(kind: u8, number: i64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&number.to_le_bytes());
}

/// Removes the trailing zeros of an exact number.
pub(super) fn trimmed(mut mantissa: i128, mut scale: u8) -> (i128, u8) {
    while scale > 0 && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    (mantissa, scale)
}

fn put_exact(mantissa: i128, scale: u8, out: &mut Vec<u8>) {
    let (mantissa, scale) = trimmed(mantissa, scale);
    out.extend([2, scale]);
    out.extend_from_slice(&mantissa.to_le_bytes());
}

/// A live row: the upper half of its key's hash, and its mark. Packed, since every row has one.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(4))]
struct Slot {
    hash: u32,
    mark: u64,
}

/// Maps keys to the marks of rows, in about 20 bytes per row. It stores hashes instead of keys, so the caller
/// checks whether the row with a mark has the key.
#[derive(Debug, Default)]
pub(super) struct Keys {
    slots: HashTable<Slot>,
    hasher: RandomState,
}

/// Spreads the hash over the high and low bits, since hash tables use both.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl Keys {
    fn hash(&self, key: &[u8]) -> u32 {
        (self.hasher.hash_one(key) >> 32) as u32
    }

    /// Makes the row with this mark the row of the key. Returns the row that it replaces.
    pub(super) fn put(
        &mut self,
        key: &[u8],
        mark: u64,
        is_key_of: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let hash = self.hash(key);
        let is_same = |slot: &Slot| slot.hash == hash && is_key_of(slot.mark);
        match self.slots.entry(spread(hash), is_same, |slot| spread(slot.hash)) {
            Entry::Occupied(mut entry) => {
                Some(std::mem::replace(entry.get_mut(), Slot { hash, mark }).mark)
            }
            Entry::Vacant(entry) => {
                entry.insert(Slot { hash, mark });
                None
            }
        }
    }

    /// Removes the row of the key, and returns it.
    pub(super) fn remove(&mut self, key: &[u8], is_key_of: impl Fn(u64) -> bool) -> Option<u64> {
        let hash = self.hash(key);
        let is_same = |slot: &Slot| slot.hash == hash && is_key_of(slot.mark);
        let entry = self.slots.find_entry(spread(hash), is_same).ok()?;
        Some(entry.remove().0.mark)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn keys_are_equal_if_their_values_are() {
        let bytes = |values: &[Value]| {
            let mut out = Vec::new();
            values.iter().for_each(|value| put(value, &mut out));
            out
        };
        let decimal = |mantissa, scale| Value::Decimal { mantissa, scale };
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(bytes(&[decimal(1_000, 2)]), bytes(&[Value::Integer(10)]));
        assert_eq!(bytes(&[decimal(0, 9)]), bytes(&[Value::Integer(0)]));
        let different = [
            vec![decimal(1_001, 2)],
            vec![decimal(-1_001, 2)],
            vec![Value::Integer(10)],
            vec![Value::Date(10)],
            vec![Value::Timestamp(10)],
            vec![Value::Boolean(true)],
            vec![text("10")],
            vec![text("ab"), text("c")],
            vec![text("a"), text("bc")],
        ];
        for (at, one) in different.iter().enumerate() {
            for other in &different[..at] {
                assert_ne!(bytes(one), bytes(other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_key_is_found_until_it_is_removed_whatever_its_hash() {
        let mut keys = Keys::default();
        let (mut alive, mut of_mark) = (HashMap::new(), HashMap::new());
        let mut state = 1u64;
        for mark in 1..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (state >> 33) % 500;
            let is_key_of = |mark: u64| of_mark.get(&mark) == Some(&key);
            if state >> 60 < 5 {
                assert_eq!(keys.remove(&key.to_le_bytes(), is_key_of), alive.remove(&key));
            } else {
                let replaced = keys.put(&key.to_le_bytes(), mark, is_key_of);
                of_mark.insert(mark, key);
                assert_eq!(replaced, alive.insert(key, mark));
            }
            assert_eq!(keys.slots.len(), alive.len());
        }
    }
}
