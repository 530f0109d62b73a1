//! The opening that consecutive messages of a type share, value for value: sender, receiver and
//! similar fields.
//!
//! ```text
//!  8=FIX.4.4|9=57|35=D|49=GEN|56=BENCH|34=…
//!  └ begin ─┘     └───── body ────────┘      two comparisons of up to 64 bytes
//! ```

use super::parser::Step;
use super::predicted::Act;
use super::verify::Verified;
use crate::arch::{Marks, Short};
use crate::build::{FieldId, Row};

/// The opening of a message type: its fields, with their values.
#[derive(Debug)]
pub(super) struct Opening {
    begin: Short,
    body: Short,
    /// The number of fields, including BodyLength.
    pub(super) fields: usize,
    /// The field of BodyLength, if requested.
    length: Option<FieldId>,
    /// The requested fields with their values: BeginString, and those after BodyLength.
    begin_value: Option<(FieldId, Box<str>)>,
    values: Vec<(FieldId, Box<str>)>,
}

/// Number of fields before the body.
const HEAD_FIELDS: usize = 2;

impl Opening {
    /// Returns the longest opening of a message whose fields end at `ends`: string fields among the
    /// first `fields_max` that match the first of `steps`. `None` if there is none.
    pub(super) fn of(
        steps: &[Step],
        text: &str,
        ends: &[u16],
        body: usize,
        fields_max: usize,
    ) -> Option<Self> {
        let (mut begin, mut whole) = (None, None);
        let (mut length, mut begin_value, mut values) = (None, None, Vec::new());
        let (mut at, mut fields) = (0, 0);
        for (step, &end) in steps.iter().zip(ends).take(fields_max) {
            let end = usize::from(end);
            let value = text.get(at..end)?.strip_prefix(std::str::from_utf8(&step.key).ok()?);
            let (Some(value), Some(front)) = (value, text.as_bytes().get(..=end)) else { break };
            match fields {
                1 if matches!(step.act, Act::Int | Act::Length) => length = step.field,
                0 | HEAD_FIELDS.. if step.act == Act::Text && !value.is_empty() => {
                    let Some(short) = Short::new(front.get(if fields == 0 { 0 } else { body }..)?)
                    else {
                        break;
                    };
                    let value = step.field.map(|field| (field, value.into()));
                    if fields == 0 {
                        (begin, begin_value) = (Some(short), value);
                    } else {
                        whole = Some(short);
                        values.extend(value);
                    }
                }
                _ => break,
            }
            at = end + 1;
            fields += 1;
        }
        Some(Opening { begin: begin?, body: whole?, fields, length, begin_value, values })
    }

    /// Returns the number of leading fields that it has in common with another opening.
    pub(super) fn in_common(&self, other: &Opening, ends: &[u16], body: usize) -> usize {
        if self.begin.text() != other.begin.text() {
            return 0;
        }
        let pairs = self.body.text().iter().zip(other.body.text());
        let same = body + pairs.take_while(|(a, b)| a == b).count();
        ends.iter().filter(|&&end| usize::from(end) < same).count().min(self.fields)
    }

    /// Returns the offset after the opening in a message whose body starts at `body`.
    pub(super) fn end(&self, body: usize) -> usize {
        body + self.body.len
    }

    /// Whether the message at `p`, whose body starts at `body`, has this opening.
    ///
    /// # Safety
    /// The instruction set of `L` is available; 64 bytes are readable at `p` and at `p + body`.
    #[inline(always)]
    pub(super) unsafe fn is_at<L: Marks>(&self, p: *const u8, body: usize) -> bool {
        // SAFETY: the caller promises the instruction set, and the AHEAD_BYTES (64) that `is_at`
        // reads at both addresses.
        unsafe { L::is_at(p.add(body), &self.body) && L::is_at(p, &self.begin) }
    }

    /// Sets the fields to the values of the row before, and BodyLength to that of this message.
    /// Follows the order of the message, since displayed rows keep it.
    #[inline(always)]
    pub(super) fn again(&self, seen: &Verified, row: &mut impl Row) {
        if let Some((field, value)) = &self.begin_value {
            row.text_again(*field, value);
        }
        if let Some(field) = self.length {
            row.integer(field, seen.length as i64);
        }
        for (field, value) in &self.values {
            row.text_again(*field, value);
        }
    }
}
