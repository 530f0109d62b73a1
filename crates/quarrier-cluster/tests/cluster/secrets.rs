//! Secrets in the names of sources.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use super::lab::{Cluster, Draw, Lab, assert_same, bytes, finished, text};
use super::orders::write_all;

const SECRET: &str = "5ecretSignature";

/// Serves bytes at any path, with ranges.
fn serve(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let bytes = Arc::new(bytes);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, bytes) = (stream.unwrap(), Arc::clone(&bytes));
            std::thread::spawn(move || answer(&stream, &bytes));
        }
    });
    at
}

fn answer(mut stream: &TcpStream, bytes: &[u8]) -> Option<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let mut range = 0..bytes.len();
    let mut is_part = false;
    for line in lines {
        let line = line.ok()?.to_ascii_lowercase();
        if let Some(wanted) = line.strip_prefix("range: bytes=") {
            let (start, end) = wanted.split_once('-')?;
            let end = end.parse::<usize>().map_or(bytes.len(), |end| (end + 1).min(bytes.len()));
            (range, is_part) = (start.parse().ok()?..end, true);
        }
        if line.is_empty() {
            break;
        }
    }
    let status = if is_part { "206 Partial Content" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\naccept-ranges: bytes\r\netag: \"e1\"\r\ncontent-length: {}\r\n\
         content-range: bytes {}-{}/{}\r\n\r\n",
        range.len(),
        range.start,
        range.end.saturating_sub(1),
        bytes.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    if !first.starts_with("HEAD") {
        stream.write_all(&bytes[range]).ok()?;
    }
    Some(())
}

#[test]
fn signatures_of_urls_are_neither_in_logs_nor_in_the_status() {
    let (lab, cluster) = (Lab::new(), Cluster::start(2));
    let at = serve(bytes(&mut Draw::new(17), 200_000));
    let url = format!("http://{at}/disk.img?X-Amz-Signature={SECRET}");
    let arguments = ["search", "-e", "2026", "--format", "json", &url];
    let plain = lab.run(&arguments);
    assert_eq!(plain.status.code(), Some(0), "{}", text(&plain.stderr));
    let spread = [&arguments[..], &["--cluster", &cluster.at, "--unit-size", "30000"]].concat();
    let spread = lab.run(&spread);
    assert_same(&plain, &spread, &cluster.logs());
    let said = [cluster.logs(), cluster.status(), text(&spread.stdout), text(&spread.stderr)];
    assert!(!said.concat().contains(SECRET), "{said:?}");
    let status = lab.run(&["status", &cluster.at]);
    assert!(!text(&status.stdout).contains(SECRET));
}

#[test]
fn signatures_in_statements_are_neither_in_logs_nor_in_the_status() {
    let (lab, cluster) = (Lab::new(), Cluster::start(2));
    write_all(&lab, 1, 500);
    let parquet = std::fs::read(lab.path().join("orders/0.parquet")).unwrap();
    let lines: String = (0..4_000).map(|at| format!("{{\"a\":{at},\"b\":\"x{at}\"}}\n")).collect();
    let image = bytes(&mut Draw::new(17), 100_000);
    let name = |at: String, name: &str| format!("http://{at}/{name}?X-Amz-Signature={SECRET}");
    let messages = name(serve(lines.into_bytes()), "a.ndjson");
    let (orders, disk) = (name(serve(parquet), "orders.parquet"), name(serve(image), "disk.img"));
    for sql in [
        format!("SELECT sum(a), max(b) FROM '{messages}' WHERE a > 7"),
        format!("SELECT symbol, sum(qty) AS q FROM '{orders}' GROUP BY symbol ORDER BY symbol"),
        format!("SELECT * FROM search('{disk}', 're:202[0-9]') ORDER BY offset"),
        format!("SELECT count(*) FROM carve('{disk}')"),
        format!("SELECT nothing FROM '{messages}'"),
        format!("SELECT a / (a - a) FROM '{messages}'"),
    ] {
        let plain = lab.run(&["query", &sql, "--format", "json"]);
        let mut command =
            lab.command(&["query", &sql, "--format", "json", "--cluster", &cluster.at]);
        command.env("QUARRIER_CLUSTER_UNIT", "30000");
        let spread = finished(command, Duration::from_secs(60));
        assert_same(&plain, &spread, &format!("{sql}\n{}", cluster.logs()));
        let said = [cluster.logs(), cluster.status(), text(&spread.stdout)];
        assert!(!said.concat().contains(SECRET), "{sql}: {said:?}");
    }
    let done = cluster.status().matches("\"state\":\"done\"").count();
    assert!(done >= 6, "{}", cluster.status());
}

#[test]
fn headers_are_not_sent_to_workers() {
    let lab = Lab::new();
    let header = format!("Authorization: Bearer {SECRET}");
    let output = lab.run(&[
        "search",
        "b",
        "http://127.0.0.1:1/x",
        "--header",
        &header,
        "--cluster",
        "127.0.0.1:1",
    ]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--header") && !said.contains(SECRET), "{said}");
}
