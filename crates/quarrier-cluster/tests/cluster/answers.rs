//! The rows of a cluster are those of one process.

use super::lab::{Cluster, Draw, Lab, assert_same, bytes};

/// Options with patterns of all kinds, some of which match across the borders of units.
const PATTERNS: &[&[&str]] = &[
    &["-e", "invoice"],
    &["-e", "invoice", "-e", "ab", "-i"],
    &["-x", "FF D8 FF ??"],
    &["-x", "61 [1-3] 62"],
    &["-e", "Rechnung", "--utf16"],
    &["-E", "[a-z]+@[a-z.]+"],
    &["-E", "a+b*", "-E", "[0-9]{1,4}"],
    &["-E", r"(?s:a.*?b)", "--regex-max-length", "300"],
    &["-E", r"[abcd\n]{1,70}", "-e", "2026"],
    &["-e", "ab", "-w"],
    &["-e", "a", "--aligned", "3"],
    &["--features", "email"],
    &["-f", "patterns.txt"],
    &["-f", "patterns.txt", "--encodings", "utf-16be", "--xor"],
    &["-e", "example", "--range", "100..5000"],
    &["-e", "nowhere to be found"],
];

const FORMATS: &[&[&str]] =
    &[&[], &["--format", "json"], &["--format", "csv"], &["--format", "arrow"], &["-c"]];

#[test]
fn the_rows_of_random_searches_equal_those_of_one_process() {
    let lab = Lab::new();
    lab.file(
        "patterns.txt",
        b"# names\nyear = 2026\nhex:FF D8 FF\nmail = re:[a-z]+@\nutf16:Rech\n",
    );
    let clusters: Vec<Cluster> = [1, 2, 3, 4].map(Cluster::start).into();
    for seed in 0..40 {
        let mut draw = Draw::new(seed);
        let sources: Vec<String> = (0..=draw.below(4)).map(|number| format!("s{number}")).collect();
        for source in &sources {
            let length = *draw.one_of(&[0, 1, 700, 9_000, 60_000, 300_000]);
            lab.file(source, &bytes(&mut draw, length));
        }
        let total: u64 = sources.iter().map(|s| lab.path().join(s).metadata().unwrap().len()).sum();
        let unit = (total / (1 + draw.below(24)) + 1 + draw.below(50)).to_string();
        let mut arguments = vec!["search"];
        arguments.extend(*draw.one_of(PATTERNS));
        arguments.extend(*draw.one_of(FORMATS));
        arguments.extend(sources.iter().map(String::as_str));
        let plain = lab.run(&arguments);
        let cluster = draw.one_of(&clusters);
        let at = cluster.at.as_str();
        let spread = lab.run(&[&arguments[..], &["--cluster", at, "--unit-size", &unit]].concat());
        let about = format!("{seed}: {arguments:?}, units of {unit}\n{}", cluster.logs());
        assert_same(&plain, &spread, &about);
    }
}

#[test]
fn a_source_that_is_missing_is_reported_like_in_one_process() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    lab.file("here", b"an invoice");
    let arguments = ["search", "invoice", "gone", "here"];
    let plain = lab.run(&arguments);
    let spread = lab.run(&[&arguments[..], &["--cluster", &cluster.at]].concat());
    assert_same(&plain, &spread, "");
    assert_eq!(plain.stderr, spread.stderr);
    assert_eq!(spread.status.code(), Some(2));
}

#[test]
fn a_unit_may_take_longer_than_the_checks_for_its_client() {
    let (lab, mut cluster) = (Lab::new(), Cluster::start(0));
    cluster.add_worker(0, &[("QUARRIER_CLUSTER_WAITS", "500")]);
    cluster.wait_for(1);
    lab.file("source", &bytes(&mut Draw::new(29), 5_000));
    let arguments = ["search", "-e", "2026", "--format", "json", "source"];
    let plain = lab.run(&arguments);
    let since = std::time::Instant::now();
    let spread = [&arguments[..], &["--cluster", &cluster.at, "--unit-size", "1000"]].concat();
    assert_same(&plain, &lab.run(&spread), &cluster.logs());
    assert!(since.elapsed() > std::time::Duration::from_millis(2_500));
    // No unit was tried twice.
    let status = cluster.status();
    assert!(status.contains("\"units_running\":0,\"units_ended\":5"), "{status}");
}

#[test]
fn the_environment_names_the_cluster() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    lab.file("here", b"an invoice");
    let mut command = lab.command(&["search", "invoice", "here"]);
    command.env("QUARRIER_CLUSTER", &cluster.at);
    let spread = super::lab::finished(command, std::time::Duration::from_secs(60));
    assert_same(&lab.run(&["search", "invoice", "here"]), &spread, "");
    assert!(cluster.status().contains("\"units_ended\":1"), "{}", cluster.status());
    let mut command = lab.command(&["search", "invoice", "here", "--context", "2"]);
    command.env("QUARRIER_CLUSTER", &cluster.at);
    let plain = super::lab::finished(command, std::time::Duration::from_secs(60));
    let said = super::lab::text(&plain.stderr);
    assert!(said.contains("because of --context"), "{said}");
}
