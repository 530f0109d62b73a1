//! The items of a hexadecimal string.

use boreal_parser::hex_string::{Mask, Token};

use super::factor::Item;

/// Longer jumps, in bytes, become gaps.
const JUMP_BYTES_MAX: u32 = 16;

/// Converts tokens to items. The parser bounds the nesting of alternatives.
pub(super) fn items(tokens: &[Token]) -> Vec<Item> {
    let mut items = Vec::with_capacity(tokens.len());
    for token in tokens {
        match token {
            Token::Byte(value) => items.push(Item::Byte(*value, 0xFF)),
            Token::MaskedByte(value, Mask::Left) => items.push(Item::Byte(value & 0x0F, 0x0F)),
            Token::MaskedByte(value, Mask::Right) => items.push(high_half(*value)),
            Token::MaskedByte(_, Mask::All) | Token::NotByte(_) | Token::NotMaskedByte(..) => {
                items.push(Item::Byte(0, 0));
            }
            Token::Jump(jump) if jump.to == Some(jump.from) && jump.from <= JUMP_BYTES_MAX => {
                items.extend((0..jump.from).map(|_| Item::Byte(0, 0)));
            }
            Token::Jump(_) => items.push(Item::Gap),
            Token::Alternatives(branches) => {
                items.push(Item::Choice(
                    branches.iter().map(|branch| self::items(branch)).collect(),
                ));
            }
        }
    }
    items
}

/// Makes the item of `4?`, whose digit the parser stores in the low half of `value`.
fn high_half(value: u8) -> Item {
    Item::Byte(value << 4, 0xF0)
}
