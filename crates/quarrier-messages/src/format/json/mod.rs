//! JSON (RFC 8259): a message is a value; its scalars are fields, named by their paths.
//!
//! ```text
//!  line ─→ glue: as the messages before? ─ yes ─→ scalars ─→ Row
//!             └── no ─→ walk: exact, with the reason where it is wrong
//!                         └─→ learnt for the next messages
//! ```
//!
//! Paths are written `order.leg[0].qty`; a key that would be mistaken (one with `.`, `[`, `]`,
//! `"` or nothing in it) stands in quotes: `"a.b".c`. A message that is a scalar by itself is
//! the field `value`. Of a key that comes twice the later value counts. Whole numbers of 64 bits
//! are Integer, others without an exponent Decimal where 38 digits hold them, all others Float; one
//! beyond what a float holds is a fault.

mod glue;
mod number;
mod string;
mod walk;

use quarrier_core::isa::Isa;

use crate::build::Row;
use crate::frame::{Chunk, LineFormat, Taker};
use crate::{Fault, Limits};
use glue::Glue;
use walk::Walker;

/// A worker's parser: what it learns from one message serves the next.
#[derive(Debug)]
pub struct JsonParser {
    walker: Walker,
    glue: Glue,
}

impl JsonParser {
    /// A parser that knows nothing yet, on the best instruction set of this machine.
    pub fn new(limits: &Limits) -> Self {
        JsonParser::on(Isa::best(), limits)
    }

    /// One for each instruction set that this machine has; they differ in speed only.
    pub fn all(limits: &Limits) -> Vec<Self> {
        Isa::available().map(|isa| JsonParser::on(isa, limits)).collect()
    }

    fn on(isa: Isa, limits: &Limits) -> Self {
        JsonParser { walker: Walker::new(limits), glue: Glue::new(isa) }
    }

    /// Parses one whole message and sets the fields of `row`.
    ///
    /// # Errors
    /// What is wrong with it; the row may have been set in part.
    pub fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        self.walker.walk(message, row)
    }
}

impl LineFormat for JsonParser {
    fn line(&mut self, text: &[u8], end: usize, row: &mut impl Row) -> Result<(), Fault> {
        self.walker.walk(&text[..end], row)?;
        if text.get(end) == Some(&b'\n') {
            self.glue.learn(&text[..=end], self.walker.scalars());
        }
        Ok(())
    }

    fn lines<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        self.glue.lines(chunk, taker)
    }
}
