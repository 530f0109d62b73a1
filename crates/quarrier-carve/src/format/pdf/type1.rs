//! PostScript fonts, most of which is encrypted without a key.
//!
//! *Adobe Type 1 Font Format*, 7.2. Each byte depends on all bytes before, so that a font that is
//! resumed at a wrong place becomes noise from there on, and never reaches the words at its end.

use crate::mend::{Reading, Step};
use crate::view::View;

const FIRST_KEY: u16 = 55665;
const CLEAR_END: &[u8; 5] = b"eexec";
const FONT_END: &[u8; 9] = b"closefile";
/// Maximum number of bytes of the unencrypted part.
const CLEAR_BYTES_MAX: u64 = 64 << 10;

/// The position in a font, which begins with the view.
#[derive(Clone)]
pub(super) struct Type1 {
    at: u64,
    /// Whether the start of the encrypted part is known.
    is_encrypted: bool,
    key: u16,
    /// The last bytes, decrypted.
    last: [u8; 9],
}

impl Type1 {
    pub(super) fn new() -> Self {
        Type1 { at: 0, is_encrypted: false, key: FIRST_KEY, last: [0; 9] }
    }

    /// Decrypts the next byte; returns whether it is the last of the encrypted part.
    fn next(&mut self, byte: u8) -> bool {
        let clear = match self.is_encrypted {
            true => byte ^ (self.key >> 8) as u8,
            false => byte,
        };
        self.last.rotate_left(1);
        self.last[8] = clear;
        if self.is_encrypted {
            let sum = self.key.wrapping_add(u16::from(byte));
            self.key = sum.wrapping_mul(52845).wrapping_add(22719);
            return self.last == *FONT_END;
        }
        // One white-space byte follows the word.
        self.is_encrypted = self.last[3..8] == *CLEAR_END && clear.is_ascii_whitespace();
        false
    }
}

impl Reading for Type1 {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        while self.at < to {
            let most = usize::try_from(to - self.at).unwrap_or(usize::MAX);
            let bytes = view.run(self.at, most.min(64 << 10)).to_vec();
            if bytes.is_empty() || (!self.is_encrypted && self.at > CLEAR_BYTES_MAX) {
                return Step::Broken { at: self.at };
            }
            for byte in bytes {
                self.at += 1;
                if self.next(byte) {
                    return Step::Whole { length: self.at };
                }
            }
        }
        Step::Going
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}
