//! FIX (`tag=value`, each with a SOH behind it) and NVFIX (`name=value`).
//!
//! ```text
//!  8=FIX.4.4|9=57|35=D|…|10=128|  ─→ verify: length and sum right? ─→ foreseen ─→ Row
//!                                    where the fields end, in one     fields as in the
//!                                    pass over the message            messages before
//!                                     └── no ─→ envelope: why ─→ parser: what was not foreseen
//! ```
//!
//! Messages stand a line each or back to back. Every field is a column, by the name that the
//! [`Dictionary`] has for its tag, or `tag_9001`; fields of a group's entries are
//! `NoPartyIDs[0].PartyID`. A tag that comes again outside of a group is `Text[1]`, `Text[2]`. A
//! value that is not of its field's type is taken as it is found; an empty one is NULL.
//!
//! A message whose BodyLength or CheckSum is wrong is a fault. A line of NVFIX may do without
//! them: then its line is the message.

mod bytes;
mod dictionary;
mod envelope;
mod foreseen;
mod lanes;
mod names;
mod opening;
mod parser;
mod slots;
mod time;
mod value;
mod verify;

pub use dictionary::{Dictionary, DictionaryError, FixType};
pub use parser::FixParser;

/// SOH, behind every field.
const SEPARATOR: u8 = 1;
