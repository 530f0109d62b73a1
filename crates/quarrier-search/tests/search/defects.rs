//! Each defect of the older carver that this engine replaces has a test here.

use quarrier_core::pipeline::Access;
use quarrier_core::source::Memory;
use quarrier_search::{EngineName, Finding};

use super::engines::noise;
use super::oracle::{Cut, OraclePattern, all, engines, run, searcher};

fn cut(workers: usize, buffer_bytes: usize) -> Cut {
    Cut { access: Access::Read, workers, buffers: workers + 1, buffer_bytes }
}

#[test]
fn a_pattern_across_a_buffer_border_is_reported_once() {
    let pattern = [OraclePattern::literal(b"0123456789")];
    for place in 4080..4110 {
        let mut text = vec![b'.'; 9000];
        text[place..place + 10].copy_from_slice(b"0123456789");
        for engine in engines(&pattern) {
            let source = Memory::new("text", &text[..]);
            let found = run(&searcher(&pattern, engine), &source, cut(2, 4096));
            assert_eq!(found, [Finding { offset: place as u64, pattern: 0, length: 10 }]);
        }
    }
}

#[test]
fn a_short_last_read_shows_no_stale_bytes() {
    // The buffer's second filling is short; the first left the pattern in its tail.
    let pattern = [OraclePattern::literal(b"STALE")];
    let mut text = vec![b'.'; 4096 + 10];
    text[4000..4005].copy_from_slice(b"STALE");
    let source = Memory::new("text", &text[..]);
    let one_buffer = Cut { access: Access::Read, workers: 1, buffers: 1, buffer_bytes: 4096 };
    let found = run(&searcher(&pattern, EngineName::Auto), &source, one_buffer);
    assert_eq!(found.len(), 1);
}

#[test]
fn offsets_are_right_with_any_number_of_workers() {
    let pattern = [OraclePattern::literal(b"needle")];
    let mut text: Vec<u8> = noise(3).take(300_000).collect();
    for place in (0..text.len() - 6).step_by(997) {
        text[place..place + 6].copy_from_slice(b"needle");
    }
    let expected = all(&pattern, &text);
    let source = Memory::new("text", &text[..]);
    for workers in 1..=8 {
        assert_eq!(
            run(&searcher(&pattern, EngineName::Auto), &source, cut(workers, 5000)),
            expected
        );
    }
}

#[test]
fn results_past_any_room_are_kept() {
    let pattern = [OraclePattern::literal(b"x")];
    let text = vec![b'x'; 200_000];
    let source = Memory::new("text", &text[..]);
    let found = run(&searcher(&pattern, EngineName::Auto), &source, cut(3, 65_536));
    assert_eq!(found.len(), text.len());
}

#[test]
fn a_pattern_at_offset_0_and_at_the_very_end_is_found() {
    for length in [4usize, 5, 64, 4096, 4100] {
        let pattern = [OraclePattern::literal(b"edge")];
        let mut text = vec![b'.'; length];
        text[..4].copy_from_slice(b"edge");
        text[length - 4..].copy_from_slice(b"edge");
        let expected = all(&pattern, &text);
        let source = Memory::new("text", &text[..]);
        for engine in engines(&pattern) {
            for buffer_bytes in [1, 4, 63, 4096] {
                let found = run(&searcher(&pattern, engine), &source, cut(2, buffer_bytes));
                assert_eq!(found, expected, "{} {length} {buffer_bytes}", engine.name());
            }
        }
    }
}
