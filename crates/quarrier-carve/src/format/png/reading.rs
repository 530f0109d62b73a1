//! Reads a PNG in steps that can end at any byte.

use super::chunk::{self, Chunk};
use crate::crc32::Crc32;
use crate::inflate::{Copyable, InflateStep};
use crate::mend::{Reading, Step};
use crate::view::View;

const RUN_BYTES: u64 = 64 << 10;

/// The position in a picture, with checksums of chunks and the inflater of the pixels.
#[derive(Clone)]
pub(super) struct PngReading {
    at: u64,
    stage: Stage,
    /// The checksum of the chunk so far.
    crc: Crc32,
    pixels: Copyable,
    /// Whether the pixels' stream has ended.
    is_done: bool,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Before the first chunk.
    Start,
    /// Before another chunk.
    Chunk,
    /// In the data of a chunk.
    Data(Chunk),
}

impl PngReading {
    pub(super) fn new() -> Self {
        let (crc, pixels) = (Crc32::new(), Copyable::zlib());
        PngReading { at: 0, stage: Stage::Start, crc, pixels, is_done: false }
    }

    /// Begins the next chunk, if its header ends before `to`.
    fn header(&mut self, view: &mut View<'_>, to: u64) -> Option<Step> {
        if self.at + 8 > to {
            return Some(Step::Going);
        }
        let Ok(chunk) = Chunk::read(view, self.at) else {
            return Some(Step::Broken { at: self.at + 8 });
        };
        self.crc = Crc32::new();
        self.crc.update(&chunk.name);
        self.at += 8;
        self.stage = Stage::Data(chunk);
        None
    }

    /// Reads data of a chunk.
    fn data(&mut self, view: &mut View<'_>, to: u64) -> Option<Step> {
        let Stage::Data(chunk) = self.stage else { return None };
        let end = chunk.at + 8 + chunk.data_bytes;
        while self.at < end.min(to) {
            let most = RUN_BYTES.min(end.min(to) - self.at) as usize;
            let bytes = view.run(self.at, most);
            if bytes.is_empty() {
                return Some(Step::Broken { at: self.at });
            }
            self.crc.update(bytes);
            if chunk.name == *b"IDAT" && !self.is_done {
                match self.pixels.more(bytes, &mut |_| ()) {
                    InflateStep::On => {}
                    InflateStep::Ended(_) => self.is_done = true,
                    InflateStep::Wrong(used) => {
                        return Some(Step::Broken { at: self.at + used as u64 });
                    }
                }
            }
            self.at += bytes.len() as u64;
        }
        if chunk.end() > to {
            return Some(Step::Going);
        }
        if view.u32_be(end) != Some(self.crc.value()) {
            return Some(Step::Broken { at: chunk.end() });
        }
        self.at = chunk.end();
        if chunk.name == *b"IEND" {
            return Some(Step::Whole { length: self.at });
        }
        self.stage = Stage::Chunk;
        None
    }
}

impl Reading for PngReading {
    fn read_to(&mut self, view: &mut View<'_>, to: u64) -> Step {
        loop {
            let step = match self.stage {
                Stage::Start if to < chunk::FIRST_BYTES => Some(Step::Going),
                Stage::Start => match chunk::after_header(view) {
                    Some(at) => {
                        (self.at, self.stage) = (at, Stage::Chunk);
                        None
                    }
                    None => Some(Step::Broken { at: to }),
                },
                Stage::Chunk => self.header(view, to),
                Stage::Data(..) => self.data(view, to),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn copy(&self) -> Box<dyn Reading> {
        Box::new(self.clone())
    }
}
