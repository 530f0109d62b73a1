//! Tables at a URL.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::harness::TestEngine;

/// The number of requests that the server answers before it stops.
const REQUESTS_MAX: usize = 64;

/// Serves `body` and its ranges at any path except `/nothing`, on a local port.
fn serve(body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(REQUESTS_MAX) {
            let body = body.clone();
            thread::spawn(move || answer(stream.unwrap(), &body));
        }
    });
    format!("http://{address}")
}

/// Answers one request and closes the connection.
fn answer(mut stream: TcpStream, body: &[u8]) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
    let range = range.and_then(|range| {
        let (start, end) = range.trim().split_once('-')?;
        let start: usize = start.parse().ok()?;
        let end = end.parse().map_or(body.len(), |last: usize| (last + 1).min(body.len()));
        (start < end).then_some((start, end))
    });
    let (status, more, part) = match range {
        _ if head.contains(" /nothing") => ("404 Not Found", String::new(), &[][..]),
        Some((start, end)) => {
            let more = format!("content-range: bytes {start}-{}/{}\r\n", end - 1, body.len());
            ("206 Partial Content", more, &body[start..end])
        }
        None => ("200 OK", String::new(), body),
    };
    let length = part.len();
    let part = if head.starts_with("head ") { &[][..] } else { part };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\naccept-ranges: bytes\r\n{more}\
         etag: \"1\"\r\nconnection: close\r\n\r\n"
    );
    // A client that needs no more closes the connection.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(part));
}

#[test]
fn a_url_is_a_table() {
    let server = serve(crate::harness::orders().into_bytes());
    let engine = TestEngine::new();
    let sql = format!("SELECT count(*), sum(orders.qty) FROM '{server}/orders.ndjson'");
    let (_folder, local) = TestEngine::of_orders();
    let expected = local.value("SELECT count(*), sum(qty) FROM m").unwrap();
    assert_eq!(engine.value(&sql).unwrap(), expected);
    // The query of a URL is not part of its name.
    engine.open("m", &format!("{server}/orders.ndjson?key=secret")).unwrap();
    assert_eq!(engine.value("SELECT count(*) FROM m WHERE qty > 500").unwrap(), {
        local.value("SELECT count(*) FROM m WHERE qty > 500").unwrap()
    });
}

#[test]
fn missing_urls_are_one_line_errors() {
    let server = serve(Vec::new());
    let engine = TestEngine::new();
    let said = engine.refusal(&format!("SELECT * FROM '{server}/nothing?key=secret'"));
    assert!(said.contains("/nothing") && !said.contains("secret"), "{said}");
}
