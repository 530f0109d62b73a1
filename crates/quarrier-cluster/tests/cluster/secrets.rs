//! Secrets in the names of sources.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use super::lab::{Cluster, Draw, Lab, assert_same, bytes, text};

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
