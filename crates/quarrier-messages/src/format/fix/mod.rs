//! FIX (`tag=value`, each followed by SOH) and NVFIX (`name=value`).
//!
//! ```text
//!  8=FIX.4.4|9=57|35=D|…|10=128|  ─→ verify: length and sum right? ─→ predicted ─→ Row
//!                                    ends of fields, in one pass      fields as in
//!                                    over the message                 earlier messages
//!                                     └── no ─→ envelope: reason ─→ parser: mispredicted fields
//! ```
//!
//! Messages are one per line or back to back. Every field is a column, with the name that the
//! [`Dictionary`] has for its tag, or `tag_9001`; fields of a group's entries are
//! `NoPartyIDs[0].PartyID`. A tag repeated outside of a group is `Text[1]`, `Text[2]`. A value that
//! does not fit its field's type is read as an untyped one; an empty value is NULL.
//!
//! A message with a wrong BodyLength or CheckSum is rejected. A line of NVFIX may lack them; then
//! the line is the message.

mod bytes;
mod dictionary;
mod envelope;
mod lanes;
mod names;
mod opening;
mod parser;
mod predicted;
mod slots;
mod time;
mod value;
mod verify;

pub use dictionary::{Dictionary, DictionaryError, FixType};
pub use parser::FixParser;

/// SOH, after every field.
const SEPARATOR: u8 = 1;
