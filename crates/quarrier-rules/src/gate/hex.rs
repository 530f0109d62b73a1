//! The items of a hexadecimal string.

use boreal_parser::hex_string::{Mask, Token};

use super::factor::Item;

/// A jump over more bytes is a gap.
const JUMP_BYTES_MAX: u32 = 16;

/// The items of tokens. Alternatives nest as deep as the parser lets them.
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

/// The parser keeps the digit of `4?` as the low half of its value.
fn high_half(value: u8) -> Item {
    Item::Byte(value << 4, 0xF0)
}
