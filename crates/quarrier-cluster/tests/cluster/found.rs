//! The rows of `search(…)` and `carve(…)` on a cluster are those of one process.

use std::process::{Output, Stdio};
use std::time::Duration;

use super::carved::{disk, file};
use super::killed::waited;
use super::lab::{Cluster, Draw, Lab, assert_same, bytes, finished, kill, text};

/// Patterns of all kinds, some of which match across the borders of units, and options.
const SEARCHES: &[&str] = &[
    "'invoice'",
    "'hex:FF D8 FF'",
    "'patterns.txt'",
    "'patterns.txt', '-i --utf16'",
    "'mail = re:[a-z]+@[a-z.]+'",
    "'re:a+b*'",
    "'re:(?s:a.*?b)', '--regex-max-length 300'",
    "'ab', '-w'",
    "'a', '--aligned 3'",
    "'PNG', '--range 100..5000'",
    "'nowhere to be found'",
];

/// What is selected from findings. Conditions on offsets and patterns reach the search.
const OF_FINDINGS: &[(&str, &str)] = &[
    ("*", "ORDER BY source, offset, pattern, length"),
    ("*", "WHERE offset >= 700 AND offset < 4000 ORDER BY source, offset, pattern, length"),
    ("offset, match", "WHERE name = 'year' OR pattern LIKE 'i%' ORDER BY offset, match"),
    ("count(*)", ""),
    ("source, pattern, count(*) AS n", "GROUP BY source, pattern ORDER BY source, pattern"),
    ("pattern, count(*) AS n", "GROUP BY pattern ORDER BY pattern"),
    ("length, match", "WHERE offset = 0 AND length > 3 ORDER BY length, match"),
    ("max(offset), min(length)", "WHERE pattern = 'nothing'"),
];

/// What is selected from carved files. Conditions on types and statuses reach the carver.
const OF_FILES: &[(&str, &str)] = &[
    ("*", "ORDER BY source, offset, path"),
    ("type, offset, sha256", "WHERE status = 'valid' ORDER BY source, offset, path"),
    ("source, type, count(*) AS n", "GROUP BY source, type ORDER BY source, type"),
    ("offset, status, reason", "WHERE type = 'png' OR type = 'zip' ORDER BY source, offset, path"),
    ("count(*)", "WHERE type = 'no such type'"),
    ("type, offset", "WHERE status <> 'valid' AND type <> 'gz' ORDER BY source, offset, path"),
];

fn write_all(lab: &Lab, draw: &mut Draw) -> u64 {
    let mut total = 0;
    for number in 0..3 {
        let name = format!("s{number}.dd");
        let length = *draw.one_of(&[0, 1, 700, 9_000, 60_000]);
        let files = draw.below(9);
        let content = [bytes(draw, length), disk(draw, files)].concat();
        total += content.len() as u64;
        lab.file(&name, &content);
    }
    total
}

fn query(lab: &Lab, sql: &str, more: &[&str], unit: &str) -> Output {
    let mut command = lab.command(&[&["query", sql, "--format", "csv"], more].concat());
    command.env("QUARRIER_CLUSTER_UNIT", unit);
    finished(command, Duration::from_secs(120))
}

#[test]
fn the_rows_of_random_statements_equal_those_of_one_process() {
    let lab = Lab::new();
    lab.file(
        "patterns.txt",
        b"# names\nyear = 2026\nhex:FF D8 FF\nmail = re:[a-z]+@\nutf16:Rech\n",
    );
    let clusters: Vec<Cluster> = [1, 3].map(Cluster::start).into();
    for seed in 0..24 {
        let mut draw = Draw::new(seed);
        let total = write_all(&lab, &mut draw);
        let source = *draw.one_of(&["s*.dd", "s1.dd", "s2.dd"]);
        let (table, (columns, rest)) = match draw.below(3) {
            0 => (format!("carve('{source}')"), *draw.one_of(OF_FILES)),
            _ => {
                let search = draw.one_of(SEARCHES);
                (format!("search('{source}', {search})"), *draw.one_of(OF_FINDINGS))
            }
        };
        let sql = format!("SELECT {columns} FROM {table} {rest}");
        let unit = (total / (1 + draw.below(24)) + 1 + draw.below(50)).to_string();
        let cluster = draw.one_of(&clusters);
        let plain = query(&lab, &sql, &[], &unit);
        let spread = query(&lab, &sql, &["--cluster", &cluster.at], &unit);
        let about = format!("{seed}: {sql}, units of {unit}\n{}", cluster.logs());
        assert_same(&plain, &spread, &about);
        assert_eq!(text(&plain.stderr), text(&spread.stderr), "{about}");
        assert_eq!(plain.status.code(), Some(0), "{about}");
    }
}

#[test]
fn findings_meet_tables() {
    let (lab, cluster) = (Lab::new(), Cluster::start(2));
    lab.file("s.dd", &bytes(&mut Draw::new(5), 60_000));
    lab.file("kinds.csv", b"pattern,kind\n2026,year\ninvoice,word\n");
    let sql = "SELECT k.kind, count(*) AS n, min(f.offset) AS o FROM search('s.dd', 're:invoice|2026') f \
               JOIN 'kinds.csv' k ON f.match = k.pattern GROUP BY k.kind ORDER BY k.kind";
    let plain = query(&lab, sql, &[], "7000");
    let spread = query(&lab, sql, &["--cluster", &cluster.at], "7000");
    assert_same(&plain, &spread, &cluster.logs());
    assert!(text(&plain.stdout).contains("year"), "{}", text(&plain.stdout));
    assert!(!cluster.status().contains("\"units_ended\":0"), "{}", cluster.status());
    let plan = query(&lab, &format!("EXPLAIN {sql}"), &["--cluster", &cluster.at], "7000");
    assert!(text(&plan.stdout).contains("on the workers of a cluster"), "{}", text(&plan.stdout));
    // The first rows are enough.
    let limited = "SELECT offset FROM search('s.dd', 'a') LIMIT 5";
    let rows = query(&lab, limited, &["--cluster", &cluster.at], "7000");
    assert_same(&query(&lab, limited, &[], "7000"), &rows, &cluster.logs());
}

#[test]
fn faults_are_those_of_one_process() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    lab.file("s.dd", &[&file(0)[..], b"an invoice"].concat());
    let on = ["--cluster", &cluster.at];
    for sql in [
        "SELECT * FROM search('gone.dd', 'a')",
        "SELECT * FROM search('s.dd', 're:(')",
        "SELECT * FROM search('s.dd', 'gone.txt')",
        "SELECT * FROM search('s.dd', 'a', '--no-such')",
        "SELECT * FROM carve('gone.dd')",
        "SELECT nothing FROM carve('s.dd')",
    ] {
        let (plain, spread) = (query(&lab, sql, &[], "9"), query(&lab, sql, &on, "9"));
        assert_same(&plain, &spread, sql);
        assert_eq!(text(&plain.stderr), text(&spread.stderr), "{sql}");
        assert_eq!(spread.status.code(), Some(2), "{sql}");
    }
    // Unallocated bytes depend on the whole source.
    let sql = "SELECT * FROM search('s.dd', 'a', '--unallocated')";
    let refused = query(&lab, sql, &on, "9");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("search(…) is not spread"), "{}", text(&refused.stderr));
}

#[test]
fn ctrl_c_ends_a_statement_and_removes_its_rows() {
    let (lab, mut cluster) = (Lab::new(), Cluster::start(0));
    cluster.add_worker(0, &[("QUARRIER_CLUSTER_WAITS", "300")]);
    cluster.wait_for(1);
    lab.file("s.dd", &bytes(&mut Draw::new(11), 60_000));
    let sql = "SELECT * FROM search('s.dd', 'a')";
    let mut command = lab.command(&["query", sql, "--cluster", &cluster.at]);
    command.env("QUARRIER_CLUSTER_UNIT", "1000");
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    kill(running.id(), "INT");
    let output = waited(running);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let rows = |name: &str| name.starts_with("quarrier-cluster-");
    let left = std::fs::read_dir(lab.path()).unwrap();
    assert!(!left.flatten().any(|entry| rows(&entry.file_name().to_string_lossy())));
}
