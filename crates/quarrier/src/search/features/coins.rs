//! Addresses of cryptocurrencies.

use sha2::{Digest, Sha256};

use super::Seen;

const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

pub(super) fn bitcoin(seen: &Seen<'_>) -> Option<usize> {
    let is_valid = match seen.found.strip_prefix(b"bc1") {
        Some(data) => is_bech32(data),
        None => is_base58_check(seen.found),
    };
    is_valid.then_some(seen.found.len())
}

/// Checks a version, twenty bytes, and the first four bytes of their hash.
fn is_base58_check(text: &[u8]) -> bool {
    let mut bytes = [0u8; 25];
    for letter in text {
        let Some(value) = BASE58.iter().position(|one| one == letter) else { return false };
        let mut carry = value as u32;
        for byte in bytes.iter_mut().rev() {
            carry += u32::from(*byte) * 58;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return false;
        }
    }
    // Leading ones encode leading zeros.
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let ones = text.iter().take_while(|letter| **letter == b'1').count();
    let (data, sum) = bytes.split_at(21);
    let hash = Sha256::digest(Sha256::digest(data));
    zeros == ones && matches!(bytes[0], 0 | 5) && hash[..4] == *sum
}

/// Bech32 for version 0, Bech32m for later ones.
fn is_bech32(data: &[u8]) -> bool {
    let place = |letter: &u8| BECH32.iter().position(|one| one == letter).map(|at| at as u32);
    let Some(values) = data.iter().map(place).collect::<Option<Vec<u32>>>() else { return false };
    // The name of the chain, "bc".
    let name = [3, 3, 0, 2, 3];
    let sum = name.into_iter().chain(values.iter().copied()).fold(1u32, |sum, value| {
        const STEPS: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
        let top = sum >> 25;
        let sum = (sum & 0x1ff_ffff) << 5 ^ value;
        (0..5).filter(|bit| top >> bit & 1 == 1).fold(sum, |sum, bit| sum ^ STEPS[bit])
    });
    match values.first() {
        Some(0) => sum == 1 && matches!(values.len(), 39 | 59),
        Some(1..=16) => sum == 0x2bc8_30a3,
        _ => false,
    }
}

pub(super) fn ethereum(seen: &Seen<'_>) -> Option<usize> {
    let digits = seen.found.get(2..)?;
    let has = |is: fn(&u8) -> bool| digits.iter().any(is);
    let is_mixed = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let is_any = digits.iter().any(|digit| *digit != digits[0]);
    (!is_mixed && is_any).then_some(seen.found.len())
}
