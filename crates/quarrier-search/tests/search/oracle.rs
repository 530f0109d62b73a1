//! The oracle, written from the contract alone: it shares no code with the engines.

use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::region::AsData;
use quarrier_core::source::{Memory, Source};
use quarrier_search::{EngineName, Finding, Options, Pattern, Searcher};
use std::ops::ControlFlow;

/// A pattern in the form of the oracle: a value and a mask for each byte.
#[derive(Debug, Clone)]
pub(crate) struct OraclePattern {
    pub(crate) bytes: Vec<(u8, u8)>,
}

impl OraclePattern {
    pub(crate) fn literal(bytes: &[u8]) -> Self {
        OraclePattern { bytes: bytes.iter().map(|&b| (b, 0xFF)).collect() }
    }

    /// Returns the same pattern in the form that the searcher takes.
    pub(crate) fn pattern(&self) -> Pattern {
        let half = |value: u8, mask: u8| match mask {
            0 => '?',
            _ => char::from_digit(u32::from(value), 16).unwrap(),
        };
        let text: String = self
            .bytes
            .iter()
            .flat_map(|&(v, m)| [half(v >> 4, m >> 4), half(v & 15, m & 15)])
            .collect();
        Pattern::hex(&text).unwrap()
    }
}

/// Returns every occurrence, position by position, byte by byte.
pub(crate) fn all(patterns: &[OraclePattern], text: &[u8]) -> Vec<Finding> {
    let mut found = Vec::new();
    for offset in 0..text.len() {
        for (index, pattern) in patterns.iter().enumerate() {
            let there = &text[offset..];
            let length = pattern.bytes.len();
            if length <= there.len()
                && (0..length).all(|i| {
                    there[i] & pattern.bytes[i].1 == pattern.bytes[i].0 & pattern.bytes[i].1
                })
            {
                found.push(Finding {
                    offset: offset as u64,
                    pattern: index as u32,
                    length: length as u32,
                });
            }
        }
    }
    found
}

/// Returns the engines that can serve these patterns on this machine.
pub(crate) fn engines(patterns: &[OraclePattern]) -> Vec<EngineName> {
    let is_one_literal = patterns.len() == 1 && patterns[0].bytes.iter().all(|&(_, m)| m == 0xFF);
    EngineName::ALL
        .into_iter()
        .filter(|engine| engine.is_available())
        .filter(|engine| *engine != EngineName::Memmem || is_one_literal)
        .collect()
}

pub(crate) fn searcher(patterns: &[OraclePattern], engine: EngineName) -> Searcher {
    let patterns = patterns.iter().map(OraclePattern::pattern).collect();
    Searcher::builder().engine(engine).build(patterns).unwrap()
}

pub(crate) fn searcher_with(patterns: Vec<Pattern>, options: Options) -> Searcher {
    Searcher::builder().options(options).build(patterns).unwrap()
}

/// How a test cuts a source into chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) access: Access,
    pub(crate) workers: usize,
    pub(crate) buffers: usize,
    pub(crate) buffer_bytes: usize,
}

/// Returns all findings of a run over `source`.
pub(crate) fn run(searcher: &Searcher, source: &dyn Source, cut: Cut) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut sink = searcher.sink(|_, findings| {
        all.extend_from_slice(findings);
        ControlFlow::Continue(())
    });
    // SAFETY: a searcher only compares bytes and makes no `str` of them, and this sink reads none.
    let promise = unsafe { AsData::promised() };
    Pipeline::new(source)
        .show_changing(promise)
        .access(cut.access)
        .workers(cut.workers)
        .buffers(cut.buffers)
        .buffer_bytes(cut.buffer_bytes)
        .run(searcher, &mut sink)
        .unwrap();
    assert_eq!(sink.too_long(), None);
    drop(sink);
    all
}

/// Searches `text` with every engine, whole and in chunks, and compares with the oracle.
pub(crate) fn check(patterns: &[OraclePattern], text: &[u8]) {
    let expected = all(patterns, text);
    for engine in engines(patterns) {
        let searcher = searcher(patterns, engine);
        let found = searcher.find_all(text).unwrap();
        assert_eq!(found, expected, "{} on {} bytes", engine.name(), text.len());
        let source = Memory::new("text", text);
        for buffer_bytes in [1, 7, 64, 4096] {
            if text.len() / buffer_bytes > 2000 {
                continue;
            }
            for access in [Access::Window, Access::Read] {
                let cut = Cut { access, workers: 2, buffers: 3, buffer_bytes };
                let found = run(&searcher, &source, cut);
                assert_eq!(found, expected, "{} in chunks: {cut:?}", engine.name());
            }
        }
    }
}
