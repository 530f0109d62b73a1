//! Finds every occurrence of 1 to 100,000 patterns in raw bytes.
//!
//! ```text
//!  Pattern ──→ needles ──→ strategy ──→ packed filter │ gram filter │ memmem │ naive
//!  (literal,   (value      (by cost on              └──────┬────────┘
//!   hex,        and mask)   a Sample)                 verification ──→ findings in order
//!   UTF-16) ─→ regex ─────────────────→ regex-automata ──→ stitched at the seams ──┘
//! ```
//!
//! A [`Searcher`] is a kernel for `quarrier_core`'s pipeline. It finds literals and hex patterns
//! wherever they occur, including overlaps; matches of a regex are leftmost-first and do not
//! overlap. The findings do not depend on the engine, chunk size, number of workers or kind of
//! source.
//!
//! ```
//! use quarrier_search::{Pattern, Searcher};
//!
//! let patterns = vec![Pattern::literal("aa")?, Pattern::hex("00 ?1")?];
//! let searcher = Searcher::builder().build(patterns)?;
//! let found = searcher.find_all(b"aaa\x00\x41").expect("no regex, no match too long");
//! let places: Vec<_> = found.iter().map(|f| (f.offset, f.pattern, f.length)).collect();
//! assert_eq!(places, [(0, 0, 2), (1, 0, 2), (3, 1, 2)]);
//! # Ok::<(), quarrier_search::Error>(())
//! ```

mod pattern;

mod finding;

mod sample;

mod strategy;

mod searcher;

mod arch;

mod multi;

mod regex;

mod gpu;

mod naive;

mod wanted;

mod error;

pub use error::{Error, Result};
pub use finding::Finding;
pub use gpu::GpuSearcher;
pub use pattern::{
    Encodings, LENGTH_BYTES_MAX, Options, PATTERNS_MAX, Pattern, REGEX_MEMORY_BYTES, parse_file,
    parse_file_until,
};
pub use regex::{RegexSeam, TooLong};
pub use sample::Sample;
pub use searcher::{Builder, ChunkFindings, FindingSink, RegexGate, Searcher};
pub use strategy::{Choice, EngineName};
