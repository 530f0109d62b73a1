//! A client that sends any bytes on request.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than a server in these tests takes to answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// The key for cancelling its statements.
    pub(crate) key: Vec<u8>,
}

/// A message from the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: char,
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Returns the field of an error or notice with this code.
    pub(crate) fn field(&self, name: char) -> String {
        let fields = self.body.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let found = fields.filter(|it| it.starts_with(name)).map(|it| it[1..].to_string()).next();
        found.unwrap_or_default()
    }

    /// Returns the values of a row.
    pub(crate) fn values(&self) -> Vec<Option<Vec<u8>>> {
        let mut rest = &self.body[2..];
        let mut values = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = i32::from_be_bytes(*length);
            let (value, after) = after.split_at(length.max(0) as usize);
            values.push((length >= 0).then(|| value.to_vec()));
            rest = after;
        }
        values
    }
}

pub(crate) fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = (3_u32 << 16).to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend(format!("{name}\0{value}\0").bytes());
    }
    body.push(0);
    let mut bytes = (body.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend(body);
    bytes
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

impl Client {
    /// Connects and authenticates.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut client = Client { stream: connect(address), key: Vec::new() };
        client.send(&startup(&[("user", "ann")]));
        for message in client.until_ready() {
            if message.kind == 'K' {
                client.key = message.body;
            }
        }
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Receives the next message; None if the server disconnected.
    pub(crate) fn next(&mut self) -> Option<Message> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some(Message { kind: char::from(head[0]), body })
    }

    /// Receives all messages up to and including ReadyForQuery.
    pub(crate) fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().expect("the server left");
            let is_last = message.kind == 'Z';
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    /// Runs the statements of a string; returns all messages.
    pub(crate) fn query(&mut self, text: &str) -> Vec<Message> {
        self.send(&framed(b'Q', format!("{text}\0").as_bytes()));
        self.until_ready()
    }
}

pub(crate) fn kinds(messages: &[Message]) -> String {
    messages.iter().map(|message| message.kind).collect()
}

/// Sends an HTTP request; returns the status and the body, without chunks.
pub(crate) fn http(address: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let text = String::from_utf8_lossy(&all);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let body = match head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        true => unchunked(body),
        false => body.to_string(),
    };
    (status, body)
}

fn unchunked(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((length, after)) = rest.split_once("\r\n") {
        let Ok(length) = usize::from_str_radix(length, 16) else { break };
        let Some(chunk) = after.get(..length) else { break };
        out.push_str(chunk);
        rest = after.get(length + 2..).unwrap_or_default();
    }
    out
}

pub(crate) fn get(address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    let host = if headers.to_ascii_lowercase().contains("host:") {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    http(address, &format!("GET {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n"))
}

pub(crate) fn post(address: SocketAddr, path: &str, headers: &str, body: &str) -> (u16, String) {
    let length = body.len();
    http(
        address,
        &format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}"
        ),
    )
}
