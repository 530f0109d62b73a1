//! A deflated stream, read in steps that can be interrupted.

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZFlush, MZStatus};

use crate::mend::{Reading, Step};
use crate::view::View;

/// Bytes inflated per byte of fuel.
const OUTPUT_PER_FUEL: u64 = 8;
const OUTPUT_BYTES: usize = 32 << 10;

/// The position in a stream with the header and the checksum of zlib, which begins with the view.
#[derive(Clone)]
pub(super) struct Packed {
    state: Box<InflateState>,
    at: u64,
}

impl Packed {
    pub(super) fn new() -> Self {
        Packed { state: InflateState::new_boxed(DataFormat::Zlib), at: 0 }
    }
}

impl Reading for Packed {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        let mut output = vec![0; OUTPUT_BYTES];
        while self.at < to {
            let input = view.run(self.at, usize::try_from(to - self.at).unwrap_or(usize::MAX));
            if input.is_empty() {
                return Step::Broken { at: self.at };
            }
            let result = inflate(&mut self.state, input, &mut output, MZFlush::None);
            self.at += result.bytes_consumed as u64;
            view.spend(result.bytes_written as u64 / OUTPUT_PER_FUEL);
            match result.status {
                Ok(MZStatus::StreamEnd) => return Step::Whole { length: self.at },
                Ok(_) if result.bytes_consumed + result.bytes_written > 0 => {}
                Ok(_) | Err(_) => return Step::Broken { at: self.at },
            }
        }
        Step::Going
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}
