//! The forms of a literal.

use boreal_parser::rule::{VariableModifierBase64, VariableModifiers};

use super::factor::Factor;

/// The standard alphabet of base64.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the factors of a literal: one for each form in which it may occur.
pub(super) fn factors(bytes: &[u8], modifiers: &VariableModifiers) -> Option<Vec<Factor>> {
    let mut forms = Vec::new();
    if modifiers.ascii || !modifiers.wide {
        forms.push(bytes.to_vec());
    }
    if modifiers.wide {
        forms.push(widened(bytes));
    }
    if let Some((first, last)) = modifiers.xor {
        let under = |form: &Vec<u8>, key: u8| form.iter().map(|byte| byte ^ key).collect();
        forms =
            forms.iter().flat_map(|form| (first..=last).map(move |key| under(form, key))).collect();
    }
    if let Some(base64) = &modifiers.base64 {
        forms = forms.iter().flat_map(|form| encoded(form, base64)).collect();
    }
    let factors: Option<Vec<Factor>> =
        forms.iter().map(|form| Factor::of_bytes(form, modifiers.nocase)).collect();
    factors.filter(|factors| !factors.is_empty())
}

/// Inserts a zero after each byte.
pub(super) fn widened(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|&byte| [byte, 0]).collect()
}

/// Returns the base64 forms of a literal: one for each position in a group of three bytes.
fn encoded(form: &[u8], base64: &VariableModifierBase64) -> Vec<Vec<u8>> {
    let alphabet = base64.alphabet.as_ref().unwrap_or(ALPHABET);
    let mut all = Vec::new();
    for before in 0..3 {
        let characters = characters(form, before, alphabet);
        if characters.is_empty() {
            continue;
        }
        if base64.wide {
            all.push(widened(&characters));
        }
        if base64.ascii || !base64.wide {
            all.push(characters);
        }
    }
    all
}

/// Returns the characters all of whose bits belong to `form`, which `before` other bytes precede.
fn characters(form: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(form.iter().copied()).collect();
    let bit = |at: usize| usize::from(padded[at / 8] >> (7 - at % 8) & 1);
    let first = (8 * before).div_ceil(6);
    let end = 8 * padded.len() / 6;
    let character = |index: usize| {
        let value = (6 * index..6 * index + 6).fold(0, |value, at| value << 1 | bit(at));
        alphabet[value]
    };
    (first..end).map(character).collect()
}
