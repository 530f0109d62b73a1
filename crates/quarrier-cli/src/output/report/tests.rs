//! The page as a whole: complete, escaped and small for any run.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use quarrier_carve::folder::Row;
use quarrier_carve::{Extent, Status};
use quarrier_core::pipeline::{
    Access, Chunk, Emitter, Kernel, Need, Pipeline, Run, Span, Stage, Timeline,
};
use quarrier_core::source::Memory;

use super::{CarvedReport, Report, SourceRun, carved_html, html};

#[path = "../../../../quarrier-report/tests/kit/well_formed.rs"]
mod well_formed;

use well_formed::check_page;

/// Adds up the bytes, which takes long enough to be recorded.
struct Sum;

impl Kernel for Sum {
    type Output = u64;

    fn need(&self) -> Need {
        Need::default()
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, u64>) {
        *emit.output() = chunk.owned().iter().map(|byte| u64::from(*byte)).sum();
    }
}

fn run(bytes: usize, workers: usize, access: Access) -> Run {
    let source = Memory::new("memory", vec![7u8; bytes]);
    let pipeline = Pipeline::new(&source).workers(workers).buffer_bytes(64 * 1024).access(access);
    let mut total = 0;
    let run = pipeline.run(&Sum, &mut |_: &Chunk<'_>, sum: &mut u64| total += std::mem::take(sum));
    assert_eq!(black_box(total), 7 * bytes as u64);
    run.expect("memory can be read")
}

fn source<'a>(name: &'a str, timeline: &'a Timeline, elapsed: Duration) -> SourceRun<'a> {
    SourceRun {
        name,
        length_bytes: 1 << 20,
        elapsed,
        timeline,
        ceiling_bytes_per_second: None,
        hits: &[],
        unreadable: &[],
    }
}

fn span(start_ms: u64, end_ms: u64) -> Span {
    let (start, end) = (Duration::from_millis(start_ms), Duration::from_millis(end_ms));
    Span { stage: Stage::Work, start, end, busy: end - start, bytes: 1000 }
}

/// Renders the page, checks what holds for every page, and returns it.
fn check(report: &Report<'_>) -> String {
    let page = html(report);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for loads in ["http://", "https://", "src="] {
        assert!(!page.contains(loads), "{loads}");
    }
    check_page(&page);
    page
}

fn check_sources(sources: &[SourceRun<'_>]) -> String {
    check(&Report { title: "quarrier search", facts: &[], sources, patterns: &[] })
}

const EVIL: &str =
    "</title><script>alert(1)</script>\" onload='x' &amp;\0\n\x1b[31m\u{202e}gpj.exe";

#[test]
fn input_is_escaped_everywhere() {
    let run = run(1 << 20, 2, Access::Queue);
    let facts = [(EVIL.to_string(), EVIL.to_string())];
    let patterns = [(EVIL.to_string(), 3)];
    let mut timeline = run.timeline.clone();
    timeline.agents.push((EVIL.to_string(), vec![span(0, 1)]));
    let sources = [EVIL, EVIL].map(|name| source(name, &timeline, run.elapsed));
    let page =
        check(&Report { title: EVIL, facts: &facts, sources: &sources, patterns: &patterns });
    assert_eq!(page.matches("<script").count(), 0);
    assert!(!page.contains("\" onload"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload='x' &amp;amp;"));
    assert!(page.contains("\\x00\\n\\x1b[31m\\u{202e}gpj.exe"));
}

#[test]
fn only_the_page_of_carved_files_has_a_script() {
    let nothing = Report { title: "search", facts: &[], sources: &[], patterns: &[] };
    assert!(!check(&nothing).contains("<script"));
    let nothing = CarvedReport {
        title: "carve",
        facts: &[],
        range: 0..100,
        unreadable: &[],
        folder: None,
        link: None,
    };
    let page = carved_html(&nothing, std::iter::empty());
    check_page(&page);
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn carved_files_are_mapped_counted_and_listed() {
    let row = |kind: &str, offset: u64, status: Status| Row {
        source: EVIL.to_string(),
        kind: kind.to_string(),
        offset,
        length: 1000,
        extents: vec![Extent { offset, length: 1000 }],
        status,
        reason: EVIL.to_string(),
        container: None,
        place: None,
        known: None,
        hashes: Default::default(),
        sha256: "0123456789abcdef".repeat(4),
        path: format!("{kind}/{EVIL}"),
    };
    let report = CarvedReport {
        title: EVIL,
        facts: &[(EVIL.to_string(), EVIL.to_string())],
        range: 0..100_000,
        unreadable: &[2000..3000, 70_000..70_100],
        folder: None,
        link: Some("../out put"),
    };
    let rows = [
        row("jpg", 512, Status::Valid),
        row("zip", 9000, Status::Partial),
        row(EVIL, 60_000, Status::Header),
    ];
    let page = carved_html(&report, rows.into_iter());
    check_page(&page);
    for part in ["href=\"../out%20put/jpg/", "jpg · 0x200 – 0x600", "<title>unreadable</title>"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("<td class=\"n mono\">").count(), 3);
}

#[test]
fn a_page_without_anything_is_whole() {
    check_sources(&[]);
    check_sources(&[source("nothing", &Timeline::default(), Duration::ZERO)]);
    check_sources(&[source("no agents", &Timeline::default(), Duration::from_secs(1))]);
    let timeline = Timeline::default();
    let empty = source("empty", &timeline, Duration::ZERO);
    check_sources(&[SourceRun { length_bytes: 0, ..empty }]);
}

#[test]
fn few_spans_and_no_time_can_be_drawn() {
    let mut timeline = Timeline::default();
    timeline.agents.push(("worker 1".to_string(), Vec::new()));
    check_sources(&[source("no spans", &timeline, Duration::from_secs(1))]);
    timeline.agents[0].1.push(span(0, 0));
    check_sources(&[source("a span without length", &timeline, Duration::ZERO)]);
    timeline.agents[0].1 = vec![span(2, 5)];
    for elapsed in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1_000_000)] {
        let page = check_sources(&[source("one span", &timeline, elapsed)]);
        assert!(page.contains("<rect class=\"c1\""), "{elapsed:?}");
    }
}

#[test]
fn odd_hits_ceilings_and_ranges_can_be_drawn() {
    let run = run(1 << 20, 1, Access::Window);
    let ceilings =
        [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY), Some(1e-9), Some(1e18)];
    let hits: [&[u64]; 5] = [&[], &[0; 100], &[5], &[0, u64::MAX, u64::MAX], &[1; 257]];
    let ranges: [&[Range<u64>]; 3] = [&[], &[0..512, 512..1 << 20], &[5..5, 10..u64::MAX]];
    for length_bytes in [0, 1, 1 << 20, u64::MAX] {
        for ceiling_bytes_per_second in ceilings {
            for hits in hits {
                for unreadable in ranges {
                    let plain = source("odd", &run.timeline, run.elapsed);
                    let odd = SourceRun {
                        length_bytes,
                        ceiling_bytes_per_second,
                        hits,
                        unreadable,
                        ..plain
                    };
                    check_sources(&[odd]);
                }
            }
        }
    }
}

#[test]
fn one_agent_and_many_agents_have_their_lanes() {
    for (workers, lanes) in [(1, 1), (64, 64), (100, 50)] {
        let run = run(8 << 20, workers, Access::Window);
        let page = check_sources(&[source("lanes", &run.timeline, run.elapsed)]);
        assert_eq!(page.matches("class=\"plot lane\"").count(), lanes, "{workers} workers");
    }
}

#[test]
fn the_page_stays_small() {
    let spans: Vec<Span> = (0..4096).map(|n| span(n * 10, n * 10 + n % 10)).collect();
    let mut timeline = Timeline::default();
    timeline.agents = (0..64).map(|n| (format!("worker {n}"), spans.clone())).collect();
    let elapsed = Duration::from_secs(41);
    let page = check_sources(&[source("many spans", &timeline, elapsed)]);
    assert!(page.len() < 500_000, "{} bytes", page.len());

    timeline.agents.truncate(2);
    let sources: Vec<_> = (0..1000).map(|_| source("many", &timeline, elapsed)).collect();
    let page = check_sources(&sources);
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    assert!(page.contains("800 more sources not listed. The 24 that took longest"));
}

#[test]
fn patterns_past_the_hundredth_are_counted() {
    let patterns: Vec<(String, u64)> = (0..1500).map(|n| (format!("p{n}"), n / 10)).collect();
    let page = check(&Report { title: "", facts: &[], sources: &[], patterns: &patterns });
    assert_eq!(page.matches("<td class=\"text\">p").count(), 100);
    assert!(
        page.contains("And 1,390 more patterns with 97,300 findings. 10 patterns were not found.")
    );
    let none = [("only".to_string(), 0)];
    let page = check(&Report { title: "", facts: &[], sources: &[], patterns: &none });
    assert!(page.contains("1 pattern was not found."));
}
