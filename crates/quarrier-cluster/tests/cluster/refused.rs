//! What is refused, and how it is said.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::lab::{Cluster, Draw, Lab, bytes, finished, text};

#[test]
fn a_unit_that_ends_three_workers_is_refused_and_the_others_are_searched() {
    let lab = Lab::new();
    let all = bytes(&mut Draw::new(5), 40_000);
    lab.file("source", &all);
    let arguments = ["search", "-e", "2026", "--format", "json", "source"];
    let plain = text(&lab.run(&arguments).stdout);
    let unit = 4_000_u64;
    let mut command = lab.command(
        &[&["local", "--workers", "2", "--"], &arguments[..], &["--unit-size", "4000"]].concat(),
    );
    command.env("QUARRIER_CLUSTER_ENDS_AT", "12000");
    let output = finished(command, Duration::from_secs(120));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("source: bytes 12000..16000 were not searched"), "{said}");
    let offset = |line: &str| -> u64 {
        let digits = line.split("\"offset\":").nth(1).unwrap();
        digits.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    let expected: Vec<&str> =
        plain.lines().filter(|line| !(12_000..12_000 + unit).contains(&offset(line))).collect();
    assert_eq!(text(&output.stdout).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_worker_of_another_version_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n0.0.7");
        }
    });
    let lab = Lab::new();
    lab.file("source", b"abc");
    for arguments in [vec!["worker", &at], vec!["search", "b", "source", "--cluster", &at]] {
        let output = lab.run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is version 0.0.7") && said.contains("use one version"), "{said}");
    }
}

#[test]
fn nobody_listens_beyond_this_machine_without_certificates() {
    let lab = Lab::new();
    for arguments in [
        vec!["scheduler", "--listen", "0.0.0.0:0"],
        vec!["worker", "127.0.0.1:1", "--listen", "0.0.0.0"],
    ] {
        let output = lab.run(&arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--tls"), "{said}");
    }
}

#[test]
fn a_missing_scheduler_and_a_wrong_address_are_errors() {
    let lab = Lab::new();
    lab.file("source", b"abc");
    for (at, part) in [("127.0.0.1:1", "does not answer"), ("nonsense", "is not an address")] {
        let output = lab.run(&["search", "b", "source", "--cluster", at]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_search_without_workers_ends_with_an_error() {
    let (lab, cluster) = (Lab::new(), Cluster::start(0));
    lab.file("source", b"abc");
    let since = Instant::now();
    let output = lab.run(&["search", "b", "source", "--cluster", &cluster.at]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no worker"), "{said}");
    assert!(since.elapsed() < Duration::from_secs(40));
}

#[test]
fn options_that_need_the_whole_search_are_refused() {
    let lab = Lab::new();
    lab.file("source", b"abc");
    for option in ["--histogram", "--where", "--plan", "-n"] {
        let output = lab.run(&["search", "b", "source", "--cluster", "127.0.0.1:1", option]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--cluster"), "{said}");
    }
}
