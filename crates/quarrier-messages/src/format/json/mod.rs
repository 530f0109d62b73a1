//! JSON (RFC 8259): a line is a message; its scalars are fields, named by their paths.
//!
//! ```text
//!  line ─→ glue: same template as an earlier line? ─ yes ─→ scalars ─→ Row
//!             └── no ─→ walk: parses exactly, and finds the reason if it is invalid
//!                         └─→ the template, for the next lines
//! ```
//!
//! Paths are written `order.leg[0].qty`; an ambiguous key (empty, or with `.`, `[`, `]` or `"`) is
//! quoted: `"a.b".c`. A message that is a single scalar is the field `value`. If a key is repeated,
//! the later value counts. Integers of 64 bits are Integer; other numbers without an exponent are
//! Decimal if they fit 38 digits; all others are Float, and a number beyond the range of floats is
//! rejected.

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

/// A worker's parser. It learns the template of the next message from earlier ones.
#[derive(Debug)]
pub struct JsonParser {
    walker: Walker,
    glue: Glue,
}

impl JsonParser {
    /// Makes a parser that has learned no template yet, with the best instruction set of this
    /// machine.
    pub fn new(limits: &Limits) -> Self {
        JsonParser::on(Isa::best(), limits)
    }

    /// Makes a parser for each instruction set of this machine; they differ only in speed.
    pub fn all(limits: &Limits) -> Vec<Self> {
        Isa::available().map(|isa| JsonParser::on(isa, limits)).collect()
    }

    fn on(isa: Isa, limits: &Limits) -> Self {
        JsonParser { walker: Walker::new(limits), glue: Glue::new(isa) }
    }

    /// Parses one whole message, and sets the fields of `row`.
    ///
    /// # Errors
    /// Why the message is rejected; some fields of the row may have been set.
    pub fn message(&mut self, message: &[u8], row: &mut impl Row) -> Result<(), Fault> {
        self.walker.walk(message, row)
    }
}

impl LineFormat for JsonParser {
    fn line(&mut self, text: &[u8], end: usize, row: &mut impl Row) -> Result<(), Fault> {
        self.walker.walk(&text[..end], row)?;
        // A template cannot represent a list that ends without a value.
        let is_like_others = !(self.walker.has_list_ends() && row.takes_list_ends());
        if text.get(end) == Some(&b'\n') && is_like_others {
            self.glue.learn(&text[..=end], self.walker.scalars());
        }
        Ok(())
    }

    fn lines<T: Taker>(&mut self, chunk: &mut Chunk<'_>, taker: &mut T) -> bool {
        self.glue.lines(chunk, taker)
    }

    /// Templates have only fields of accepted messages.
    fn forget(&mut self) {
        self.walker.forget();
    }
}
