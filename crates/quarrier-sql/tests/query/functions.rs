//! Table functions return the rows of the libraries, and conditions are pushed down to them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use quarrier_carve::folder::{Row, described};
use quarrier_carve::{Carved, Carver, Keep, View};
use quarrier_core::source::Memory;
use quarrier_search::{Finding, Pattern, Searcher};

use crate::harness::{Folder, TestEngine};

const PATTERNS: &str = "alpha = needle\nhex:00 FF ?0\nre:[0-9]{3}-[0-9]{3}\n";
/// An image of one pixel.
const GIF: &[u8] =
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\
\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

struct Place {
    folder: Folder,
    asked: TestEngine,
}

impl Place {
    fn new() -> Self {
        Place { folder: Folder::new(), asked: TestEngine::new() }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.path(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    fn ask(&self, text: &str) -> Vec<String> {
        self.asked.rows(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn plan(&self, text: &str) -> String {
        self.ask(&format!("EXPLAIN {text}")).join("\n")
    }

    fn error(&self, text: &str) -> String {
        self.asked.rows(text).unwrap_err().to_string()
    }
}

/// Text, numbers and binary data, with matches at both ends.
fn image() -> Vec<u8> {
    let mut bytes = b"needle at the start 123-456 needle".to_vec();
    for number in 0..20_000_u32 {
        bytes.extend(format!("line {number:06}-{number:06} ").bytes());
        if number % 777 == 0 {
            bytes.extend([0, 0xff, 0x30, 0, 0xff, 0x10]);
            bytes.extend(b"needle");
        }
    }
    bytes.extend(b"the last needle");
    bytes
}

fn patterns() -> Vec<Pattern> {
    quarrier_search::parse_file(PATTERNS.as_bytes()).unwrap()
}

fn found(bytes: &[u8]) -> Vec<Finding> {
    Searcher::builder().build(patterns()).unwrap().find_all(bytes).unwrap()
}

/// A finding as a row: offset, length, pattern, name.
fn row(finding: &Finding) -> String {
    let pattern = &patterns()[finding.pattern as usize];
    let name = pattern.name.as_deref().unwrap_or("NULL");
    format!("{}|{}|{}|{name}", finding.offset, finding.length, pattern.text)
}

#[test]
fn search_finds_what_the_library_finds_in_order() {
    let place = Place::new();
    let (image_path, bytes) = (place.write("disk.img", &image()), image());
    let patterns_path = place.write("patterns.txt", PATTERNS.as_bytes());
    let expected: Vec<String> = found(&bytes).iter().map(row).collect();
    assert!(expected.len() > 100);
    for patterns in [patterns_path.as_str(), PATTERNS] {
        let text = format!(
            "SELECT \"offset\", length, pattern, name FROM search('{image_path}', '{patterns}')"
        );
        assert_eq!(place.ask(&text), expected);
    }
    let counted = format!(
        "SELECT count(*), count(name), min(\"offset\") FROM search('{image_path}', '{patterns_path}')"
    );
    let named = found(&bytes).iter().filter(|finding| finding.pattern == 0).count();
    assert_eq!(place.ask(&counted), [format!("{}|{named}|0", expected.len())]);
}

#[test]
fn files_whose_names_are_not_utf8_have_names_of_their_own() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    for name in [&b"a\xfe.csv"[..], b"a\xff.csv"] {
        let path = place.folder.path("").join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, b"x\n1\n").unwrap();
    }
    let folder = place.folder.path("").display().to_string();
    let folder = folder.trim_end_matches('/');
    let [one, two] = [r"a\xfe.csv", r"a\xff.csv"].map(|name| format!("{folder}/{name}"));
    for from in [folder.to_string(), format!("{folder}/a*"), format!("{folder}/*.csv")] {
        let text = format!("SELECT source FROM search('{from}', 'x')");
        assert_eq!(place.ask(&text), [&*one, &*two], "{from}");
    }
    let text = format!("SELECT source, \"offset\" FROM search('{two}', 're:1')");
    assert_eq!(place.ask(&text), [format!("{two}|2")]);
    assert_eq!(place.ask(&format!("SELECT x FROM '{two}'")), ["1"]);
    let text = format!("SELECT filename, x FROM '{folder}/*.csv' ORDER BY filename");
    assert_eq!(place.ask(&text), [format!("{one}|1"), format!("{two}|1")]);
}

#[test]
fn findings_have_the_matched_bytes_as_text() {
    let place = Place::new();
    let path = place.write("f", b"k=a k=b\xFF k=a A\0b\0");
    let of = |options: &str| format!("search('{path}', 're:k=[^ ]*\nab', '{options}')");
    let text = format!("SELECT match FROM {}", of("-i --utf16"));
    assert_eq!(place.ask(&text), ["k=a", "k=b\\xff", "k=a", "Ab"]);
    let text = format!(
        "SELECT match, count(*) AS n FROM {} GROUP BY match ORDER BY n DESC, match LIMIT 1",
        of("-i")
    );
    assert_eq!(place.ask(&text), ["k=a|2"]);
}

#[test]
fn findings_are_counted_without_rows() {
    let place = Place::new();
    let image_path = place.write("disk.img", &image());
    // Strings and names that several patterns share, and a pattern without findings.
    let patterns = "alpha = needle\nalpha = the\nneedle\nbeta = line 00\nhex:00 FF ?0\nnowhere";
    let table = format!("search('{image_path}', '{patterns}')");
    // The same findings, counted by DataFusion from rows.
    let rows = format!("(SELECT * FROM {table} ORDER BY length LIMIT 1000000) AS f");
    for condition in
        ["", " WHERE \"offset\" > 100000", " WHERE name = 'alpha'", " WHERE pattern = 'x'"]
    {
        for (list, groups) in [
            ("count(*) AS n", ""),
            ("count(*) AS n, count(1) AS m", ""),
            ("pattern, count(*) AS n", " GROUP BY pattern ORDER BY pattern"),
            ("name, count(*) AS n", " GROUP BY name ORDER BY name"),
            ("count(*) AS n, name, pattern", " GROUP BY name, pattern ORDER BY name, pattern"),
        ] {
            let counted = format!("SELECT {list} FROM {table}{condition}{groups}");
            let plan = place.plan(&counted);
            assert!(plan.contains("counted"), "{counted}: {plan}");
            let naive = format!("SELECT {list} FROM {rows}{condition}{groups}");
            assert!(!place.plan(&naive).contains("counted"), "{naive}");
            assert_eq!(place.ask(&counted), place.ask(&naive), "{counted}");
        }
    }
    for list in
        ["source, count(*)", "pattern, count(name)", "name, min(length)", "length, count(*)"]
    {
        let group = list.split(',').next().unwrap();
        let text = format!("SELECT {list} FROM {table} GROUP BY {group}");
        assert!(!place.plan(&text).contains("counted"), "{text}");
    }
    let kept = format!("SELECT count(*) FILTER (WHERE length > 3) FROM {table}");
    assert!(!place.plan(&kept).contains("counted"), "{kept}");
    let part = format!("SELECT count(*) FROM (SELECT * FROM {table} LIMIT 7) AS f");
    assert_eq!(place.ask(&part), ["7"]);
}

#[test]
fn offset_conditions_become_the_search_range() {
    let place = Place::new();
    let (path, bytes) = (place.write("disk.img", &image()), image());
    let findings = found(&bytes);
    // From the start of one finding to the start of another, which is excluded.
    let (from, to) = (findings[40].offset, findings[90].offset);
    for (condition, range) in [
        (format!("\"offset\" >= {from} AND \"offset\" < {to}"), (from, to)),
        (format!("{from} <= \"offset\" AND \"offset\" <= {to}"), (from, to + 1)),
        (format!("\"offset\" BETWEEN {from} AND {to}"), (from, to + 1)),
        (format!("\"offset\" = {from}"), (from, from + 1)),
    ] {
        for patterns in ["alpha = needle\nhex:00 FF ?0", PATTERNS] {
            let table = format!("search('{path}', '{patterns}')");
            let text = format!("SELECT \"offset\", length FROM {table} WHERE {condition}");
            let has_regex = patterns == PATTERNS;
            let expected: Vec<String> = findings
                .iter()
                .filter(|f| (range.0..range.1).contains(&f.offset) && (has_regex || f.pattern < 2))
                .map(|finding| format!("{}|{}", finding.offset, finding.length))
                .collect();
            assert_eq!(place.ask(&text), expected, "{condition}");
            let plan = place.plan(&text);
            // The matches of a regex depend on the matches before them.
            let start = if has_regex { 0 } else { range.0 };
            assert!(plan.contains(&format!("range={start}..{}", range.1)), "{plan}");
            assert!(!plan.contains("FilterExec"), "{plan}");
        }
    }
    let text = format!("SELECT count(*) FROM search('{path}', 'needle') WHERE \"offset\" < 0");
    assert_eq!(place.ask(&text), ["0"]);
}

#[test]
fn pattern_conditions_select_patterns() {
    let place = Place::new();
    let (path, bytes) = (place.write("disk.img", &image()), image());
    for (condition, chosen) in [
        ("name = 'alpha'", vec![0]),
        ("name IS NULL", vec![1, 2]),
        ("pattern LIKE '%-%' OR name LIKE 'al%'", vec![0, 2]),
        ("name = 'beta'", vec![]),
    ] {
        let text =
            format!("SELECT \"offset\" FROM search('{path}', '{PATTERNS}') WHERE {condition}");
        let expected: Vec<String> = found(&bytes)
            .iter()
            .filter(|finding| chosen.contains(&finding.pattern))
            .map(|finding| finding.offset.to_string())
            .collect();
        assert_eq!(place.ask(&text), expected, "{condition}");
        let plan = place.plan(&text);
        assert!(plan.contains(&format!("patterns={} of 3", chosen.len())), "{plan}");
    }
}

#[test]
fn a_limit_ends_the_search() {
    let place = Place::new();
    let path = place.folder.path("sparse.img");
    // Zeros everywhere: without stopping, this would take minutes.
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let table = format!("search('{}', 'hex:00 00 00 00')", path.display());
    let limited = format!("SELECT \"offset\" FROM {table} LIMIT 3");
    assert_eq!(place.ask(&limited), ["0", "1", "2"]);
    assert!(place.plan(&limited).contains("limit=3"));
    let ordered = format!("SELECT \"offset\" FROM {table} ORDER BY \"offset\" LIMIT 2");
    assert_eq!(place.ask(&ordered), ["0", "1"]);
    let filtered = format!("SELECT \"offset\" FROM {table} WHERE \"offset\" % 7 = 5 LIMIT 2");
    // Any rows may come first, since batches are filtered in parallel.
    let chosen: Vec<u64> =
        place.ask(&filtered).iter().map(|offset| offset.parse().unwrap()).collect();
    assert_eq!(chosen.len(), 2, "{chosen:?}");
    assert!(chosen.iter().all(|offset| offset % 7 == 5), "{chosen:?}");
    // The last row that is needed need not fill a batch.
    let path = place.write("rare.img", b"a needle");
    File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let text = format!("SELECT \"offset\" FROM search('{path}', 'needle') LIMIT 1");
    assert_eq!(place.ask(&text), ["2"]);
}

#[test]
fn options_are_those_of_the_command_line() {
    let place = Place::new();
    let path = place.write("disk.img", b"Needle needle NEEDLE n\0e\0e\0d\0l\0e\0");
    let count =
        |options: &str| format!("SELECT count(*) FROM search('{path}', 'needle', '{options}')");
    for (options, expected) in [
        ("", "1"),
        ("-i", "3"),
        ("--utf16", "2"),
        ("--ignore-case --aligned 7", "3"),
        ("-i --range 1..13", "1"),
        ("--workers 1 --engine naive", "1"),
    ] {
        assert_eq!(place.ask(&count(options)), [expected], "{options}");
    }
    let error = place.error(&count("--aligned x"));
    assert!(error.contains("aligned"), "{error}");
    let error = place.error(&count("--max-count 3"));
    assert!(error.contains("LIMIT"), "{error}");
}

#[test]
fn several_files_are_searched_in_turn() {
    let place = Place::new();
    let one = place.write("a1.bin", b"..needle");
    let other = place.write("a2.bin", b"needle..needle");
    let glob = place.folder.path("a*.bin").display().to_string();
    let text = format!("SELECT source, \"offset\" FROM search('{glob}', 'needle')");
    let expected = [format!("{one}|2"), format!("{other}|0"), format!("{other}|8")];
    assert_eq!(place.ask(&text), expected);
    // A range applies to each of them.
    let text = format!("{text} WHERE \"offset\" < 3");
    assert_eq!(place.ask(&text), expected[..2]);
    let text = format!("{text} LIMIT 1");
    assert_eq!(place.ask(&text), expected[..1]);
}

#[test]
fn search_errors_are_reported() {
    let place = Place::new();
    let path = place.write("disk.img", b"needle");
    for (text, part) in [
        ("search('nowhere.img', 'needle')".to_string(), "nowhere.img"),
        (format!("search('{path}', 'patterns.txt')"), "no such file"),
        (format!("search('{path}', 're:(')"), "unclosed"),
        (format!("search('{path}')"), "write search("),
        (format!("search('{path}', 5)"), "single quotes"),
        (format!("search('{path}', 'a', 'b', 'c')"), "4 arguments"),
    ] {
        let error = place.error(&format!("SELECT * FROM {text}"));
        assert!(error.contains(part), "{text}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

/// Collects rows as in the report.
#[derive(Default)]
struct Report(Mutex<Vec<Row>>);

impl Keep for Report {
    fn keep(&self, carved: &Carved, view: &mut View<'_>) -> io::Result<()> {
        let row = described("disk.img", carved, view)?;
        self.0.lock().unwrap().push(row);
        Ok(())
    }
}

/// Whole images, and a broken one.
fn disk() -> Vec<u8> {
    let mut bytes = vec![0x55; 1 << 20];
    for place in [512, 40_960, 999_936] {
        bytes[place..place + GIF.len()].copy_from_slice(GIF);
    }
    bytes[70_144..70_144 + 20].copy_from_slice(&GIF[..20]);
    bytes
}

fn carved() -> Vec<Row> {
    let report = Report::default();
    Carver::new().run(&Memory::new("disk.img", disk()), &report).unwrap();
    let mut rows = report.0.into_inner().unwrap();
    rows.sort_by_key(|row| row.offset);
    rows
}

#[test]
fn carve_finds_the_files_of_the_report_and_writes_nothing() {
    let place = Place::new();
    let path = place.write("disk.img", &disk());
    let expected: Vec<String> = carved()
        .iter()
        .map(|row| {
            let extents: Vec<_> = row.extents.iter().map(|e| [e.offset, e.length]).collect();
            format!(
                "{}|{}|{}|{:?}|{}|{}|{}|{}",
                row.kind,
                row.offset,
                row.length,
                extents,
                row.status.name(),
                row.reason,
                row.sha256,
                row.path
            )
            .replace("], [", "],[")
            .replace(", ", ",")
        })
        .collect();
    assert!(expected.len() >= 3);
    let text = format!(
        "SELECT type, \"offset\", length, extents, status, reason, sha256, path \
         FROM carve('{path}') ORDER BY \"offset\""
    );
    let rows = place.ask(&text);
    let rows: Vec<String> = rows.iter().map(|row| row.replace(", ", ",")).collect();
    assert_eq!(rows, expected);
    let left: Vec<_> = std::fs::read_dir(place.folder.path("")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the image itself");
}

#[test]
fn extents_are_a_list_of_pairs() {
    let place = Place::new();
    place.write("disk.img", &disk());
    let extent = carved()[0].extents[0];
    let pair = format!("[[{},{}]]", extent.offset, extent.length);
    let sql = "SELECT extents FROM carve('disk.img') ORDER BY \"offset\" LIMIT 1";
    for (format, expected) in
        [("json", format!("{{\"extents\":{pair}}}\n")), ("csv", format!("extents\n\"{pair}\"\n"))]
    {
        let output = place.folder.run(&[sql, "--format", format]);
        assert_eq!(crate::harness::text(&output.stdout), expected, "{output:?}");
    }
    let output = place.folder.run(&[sql]);
    assert!(crate::harness::text(&output.stdout).contains(&pair), "{output:?}");
}

#[test]
fn type_and_status_conditions_restrict_carving() {
    let place = Place::new();
    let path = place.write("disk.img", &disk());
    let count = |condition: &str| {
        carved()
            .iter()
            .filter(|row| match condition {
                "status = 'valid'" => row.status.name() == "valid",
                "status <> 'valid'" => row.status.name() != "valid",
                "type IN ('gif', 'jpg')" => row.kind == "gif",
                _ => false,
            })
            .count()
    };
    for condition in
        ["status = 'valid'", "status <> 'valid'", "type IN ('gif', 'jpg')", "type = 'never'"]
    {
        let text = format!("SELECT count(*) FROM carve('{path}') WHERE {condition}");
        let expected = count(condition).to_string();
        assert_eq!(place.ask(&text), [expected], "{condition}");
        let plan = place.plan(&text);
        assert!(!plan.contains("FilterExec"), "{plan}");
    }
    let text = format!("SELECT path FROM carve('{path}') LIMIT 1");
    assert_eq!(place.ask(&text).len(), 1);
    let error = place.error("SELECT * FROM carve('nowhere.img')");
    assert!(error.contains("nowhere.img"), "{error}");
}

#[test]
fn gauge_measures_only_when_queried() {
    let place = Place::new();
    let plan = place.plan("SELECT measurement, value, unit FROM gauge('memory')");
    assert!(plan.contains("GaugeExec: areas=memory"), "{plan}");
    let text = "SELECT area, measurement, parameters, threads, block_bytes, access, value, unit, \
                stddev, runs, disturbed, conditions FROM gauge() LIMIT 0";
    assert_eq!(place.ask(text), [""; 0]);
    let error = place.error("SELECT * FROM gauge('moon')");
    assert!(error.contains("cpu, memory, disk, network"), "{error}");
}

#[test]
fn findings_are_joined_with_messages() {
    let place = Place::new();
    let path = place.write("disk.img", &image());
    let notes = place.write("notes.ndjson", b"{\"name\":\"alpha\",\"severity\":3}\n");
    assert!(Path::new(&notes).exists());
    let text = format!(
        "SELECT n.severity, count(*) FROM search('{path}', '{PATTERNS}') AS s \
         JOIN '{notes}' AS n ON s.name = n.name GROUP BY n.severity"
    );
    let named = found(&image()).iter().filter(|finding| finding.pattern == 0).count();
    assert_eq!(place.ask(&text), [format!("3|{named}")]);
}
