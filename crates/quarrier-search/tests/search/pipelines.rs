//! Findings do not depend on how bytes reach the engines.

use std::io::Write;
use std::ops::{ControlFlow, Range};

use proptest::prelude::*;
use quarrier_core::pipeline::{Access, Pipeline};
use quarrier_core::source::{FileSource, Memory, Source, SplitSource};
use quarrier_search::{EngineName, Finding, Options, Pattern};

use super::oracle::{Cut, OraclePattern, all, engines, run, searcher, searcher_with};

fn patterns() -> Vec<OraclePattern> {
    [&b"abab"[..], b"b", b"\0\0\0\0", b"\0a", b"aaaaaaaaab", b"ab\0ab"]
        .iter()
        .map(|p| OraclePattern::literal(p))
        .collect()
}

fn text(length: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(0u8)], 0..length)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_source_access_and_cut_gives_the_same_findings(
        text in text(20_000),
        buffer_bytes in prop_oneof![1usize..40, 1000usize..9000],
        workers in 1usize..9,
        buffers in 1usize..12,
    ) {
        let patterns = patterns();
        let buffer_bytes = buffer_bytes.max(text.len() / 300 + 1);
        let expected = all(&patterns, &text);
        let searcher = searcher(&patterns, EngineName::Auto);
        let file = file_of(&text);
        let opened = FileSource::open(file.path()).unwrap();
        let memory = Memory::new("memory", &text[..]);
        let split = split_of(&text);
        let sources: [&dyn Source; 3] = [&memory, &opened, &split];
        for source in sources {
            for access in [Access::Window, Access::Read, Access::Queue, Access::Uring] {
                let cut = Cut { access, workers, buffers, buffer_bytes };
                prop_assert_eq!(&run(&searcher, source, cut), &expected, "{} {:?}", source.name(), cut);
            }
        }
    }

    #[test]
    fn a_stream_has_the_findings_of_memory(text in text(20_000), piece in 1usize..5000, buffer_bytes in 1usize..9000) {
        let patterns = patterns();
        let buffer_bytes = buffer_bytes.max(text.len() / 300 + 1);
        let searcher = searcher(&patterns, EngineName::Auto);
        let mut found = Vec::new();
        let mut sink = searcher.sink(|_, findings| {
            found.extend_from_slice(findings);
            ControlFlow::Continue(())
        });
        let nothing = Memory::new("-", Vec::new());
        let mut reader = InPieces(&text, piece);
        Pipeline::new(&nothing)
            .workers(3)
            .buffer_bytes(buffer_bytes)
            .run_stream("-", &mut reader, &searcher, &mut sink)
            .unwrap();
        drop(sink);
        prop_assert_eq!(found, all(&patterns, &text));
    }

    #[test]
    fn a_range_is_searched_as_if_it_were_the_whole(text in text(3_000), a in 0u64..3_000, b in 0u64..3_000) {
        let patterns = patterns();
        let length = text.len() as u64;
        let range = a.min(b).min(length)..a.max(b).min(length);
        let expected: Vec<Finding> = all(&patterns, &text[range.start as usize..range.end as usize])
            .into_iter()
            .map(|f| Finding { offset: f.offset + range.start, ..f })
            .collect();
        for engine in engines(&patterns) {
            let searcher = searcher(&patterns, engine);
            let source = Memory::new("memory", &text[..]);
            prop_assert_eq!(&in_range(&searcher, &source, range.clone()), &expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_of_several_ranges_is_searched_as_if_it_were_the_whole(
        text in text(30_000),
        borders in prop::collection::btree_set(0u64..30_000, 0..40),
        buffer_bytes in prop_oneof![1usize..40, 1000usize..9000],
    ) {
        let length = text.len() as u64;
        let borders: Vec<u64> = borders.into_iter().map(|at| at.min(length)).collect();
        let ranges: Vec<Range<u64>> = borders.chunks_exact(2).map(|two| two[0]..two[1]).collect();
        let mut patterns: Vec<Pattern> = patterns().iter().map(OraclePattern::pattern).collect();
        for regex in ["^a", "b$", "a[ab]*b", r"\bab"] {
            patterns.push(Pattern::regex(regex).unwrap());
        }
        let searcher = searcher_with(patterns, Options::default());
        let file = file_of(&text);
        let opened = FileSource::open(file.path()).unwrap();
        let memory = Memory::new("memory", &text[..]);
        let expected: Vec<Finding> = ranges
            .iter()
            .flat_map(|range| {
                let all = searcher.find_all(&text[range.start as usize..range.end as usize]);
                let at = |f: Finding| Finding { offset: f.offset + range.start, ..f };
                all.unwrap().into_iter().map(at)
            })
            .collect();
        let sources: [&dyn Source; 2] = [&memory, &opened];
        for source in sources {
            for access in [Access::Window, Access::Read, Access::Queue, Access::Uring] {
                let mut found = Vec::new();
                let mut sink = searcher.sink(|_, findings| {
                    found.extend_from_slice(findings);
                    ControlFlow::Continue(())
                });
                let pipeline = Pipeline::new(source).ranges(&ranges).access(access).workers(3);
                let run = pipeline.buffer_bytes(buffer_bytes.max(text.len() / 300 + 1));
                let run = run.run(&searcher, &mut sink).unwrap();
                drop(sink);
                prop_assert_eq!(&found, &expected, "{} {:?}", source.name(), access);
                let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
                prop_assert_eq!(run.bytes, bytes);
            }
        }
    }
}

/// A reader that returns a few bytes at a time.
struct InPieces<'t>(&'t [u8], usize);

impl std::io::Read for InPieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(self.1).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn file_of(text: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    file
}

/// Splits a text into parts of odd sizes, some empty.
fn split_of(text: &[u8]) -> SplitSource {
    let third = text.len() / 3;
    let (a, rest) = text.split_at(third);
    let (b, c) = rest.split_at(rest.len() / 2);
    let part = |bytes: &[u8]| Box::new(Memory::new("part", bytes.to_vec())) as Box<dyn Source>;
    SplitSource::new("split", vec![part(a), part(b""), part(b), part(c)]).unwrap()
}

fn in_range(
    searcher: &quarrier_search::Searcher,
    source: &dyn Source,
    range: Range<u64>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut sink = searcher.sink(|_, findings| {
        found.extend_from_slice(findings);
        ControlFlow::Continue(())
    });
    Pipeline::new(source)
        .range(range)
        .buffer_bytes(512)
        .workers(2)
        .run(searcher, &mut sink)
        .unwrap();
    drop(sink);
    found
}

#[test]
fn zeros_in_holes_are_found_and_other_patterns_at_their_edges() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    let file = std::fs::File::create(&path).unwrap();
    let length = 1 << 20;
    file.set_len(length).unwrap();
    std::os::unix::fs::FileExt::write_at(&file, b"abab", 700_000).unwrap();
    let mut text = vec![0u8; length as usize];
    text[700_000..700_004].copy_from_slice(b"abab");
    let source = FileSource::open(&path).unwrap();
    for patterns in [
        vec![OraclePattern::literal(b"abab")],
        vec![OraclePattern::literal(b"\0\0\0a"), OraclePattern::literal(b"b\0\0\0\0\0")],
        vec![OraclePattern::literal(&[0; 9]), OraclePattern::literal(b"\0abab\0")],
    ] {
        let expected = all(&patterns, &text);
        let searcher = searcher(&patterns, EngineName::Auto);
        for access in [Access::Window, Access::Read, Access::Queue, Access::Uring] {
            let cut = Cut { access, workers: 2, buffers: 4, buffer_bytes: 100_000 };
            assert_eq!(run(&searcher, &source, cut), expected, "{cut:?}");
        }
    }
}

#[test]
fn more_findings_than_are_held_are_in_order_and_complete() {
    // Two million findings in one chunk, flushed in parts, with overlap between the parts.
    let text = vec![b'z'; 1_200_000];
    let patterns = [OraclePattern::literal(b"zz"), OraclePattern::literal(b"zzzzzzzzzzzzz")];
    let searcher = searcher(&patterns, EngineName::Auto);
    let source = Memory::new("memory", &text[..]);
    let cut = Cut { access: Access::Window, workers: 2, buffers: 3, buffer_bytes: 1 << 20 };
    let found = run(&searcher, &source, cut);
    assert!(found.is_sorted());
    assert_eq!(found.len(), (text.len() - 1) + (text.len() - 12));
}
