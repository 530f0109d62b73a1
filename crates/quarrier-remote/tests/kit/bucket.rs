//! A small server of buckets for tests: objects by key, lists them page by page in the formats of S3 and
//! Azure, stores and removes them, and fails on demand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Numbered from 0.
    pub(crate) number: u64,
    pub(crate) method: String,
    /// The bucket and the key; the key of a listing is empty.
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) fields: BTreeMap<String, String>,
}

impl Asked {
    pub(crate) fn is_listing(&self) -> bool {
        self.query.contains_key("list-type") || self.query.get("comp").is_some_and(|c| c == "list")
    }
}

/// How the server responds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Serve,
    /// Sends this status, with a body that holds a secret.
    Status(u16),
    /// Does what was requested, and closes the connection without a response.
    ServeAndCut,
    /// Sends this body with status 200.
    Body(String),
    /// Sends the client to this place, with status 302.
    Redirect(String),
}

type Plan = Box<dyn Fn(&Asked) -> Act + Send + Sync>;

/// A string that must not be shown.
pub(crate) const SECRET: &str = "hidden";

struct Shared {
    /// By bucket and key: bytes and version.
    objects: Mutex<BTreeMap<(String, String), (Vec<u8>, u64)>>,
    plan: Mutex<Plan>,
    page: u64,
    version: AtomicU64,
    log: Mutex<Vec<Asked>>,
    is_stopped: AtomicBool,
}

/// A running server, stopped when dropped.
pub(crate) struct Buckets {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Buckets {
    /// A server that lists `page` objects at a time.
    pub(crate) fn new(page: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            objects: Mutex::default(),
            plan: Mutex::new(Box::new(|_| Act::Serve)),
            page,
            version: AtomicU64::new(0),
            log: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                // Errors caused by clients that disconnect do not matter.
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Buckets { address, shared }
    }

    /// Fails as planned from now on.
    pub(crate) fn plan(&self, plan: impl Fn(&Asked) -> Act + Send + Sync + 'static) {
        *self.shared.plan.lock().unwrap() = Box::new(plan);
    }

    pub(crate) fn put(&self, bucket: &str, key: &str, bytes: impl Into<Vec<u8>>) {
        self.shared.put(bucket, key, bytes.into());
    }

    pub(crate) fn get(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let objects = self.shared.objects.lock().unwrap();
        objects.get(&(bucket.to_string(), key.to_string())).map(|(bytes, _)| bytes.clone())
    }

    pub(crate) fn remove(&self, bucket: &str, key: &str) {
        let mut objects = self.shared.objects.lock().unwrap();
        objects.remove(&(bucket.to_string(), key.to_string()));
    }

    /// All keys of a bucket.
    pub(crate) fn keys(&self, bucket: &str) -> Vec<String> {
        let objects = self.shared.objects.lock().unwrap();
        objects.keys().filter(|(of, _)| of == bucket).map(|(_, key)| key.clone()).collect()
    }

    /// All requests received.
    pub(crate) fn log(&self) -> Vec<Asked> {
        self.shared.log.lock().unwrap().clone()
    }

    /// The URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The environment variables for a client of any of the three clouds.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let url = self.url();
        let set = |name: &str, value: &str| (name.to_string(), value.to_string());
        vec![
            // A proxy of the machine may not reach this server.
            set("no_proxy", "127.0.0.1"),
            set("AWS_ACCESS_KEY_ID", "akid"),
            set("AWS_SECRET_ACCESS_KEY", SECRET),
            set("AWS_ENDPOINT_URL", &url),
            set("GOOGLE_BASE_URL", &url),
            set("GOOGLE_SKIP_SIGNATURE", "true"),
            set("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            // The secret in base64.
            set("AZURE_STORAGE_ACCOUNT_KEY", "aGlkZGVu"),
            set("AZURE_STORAGE_ENDPOINT", &url),
        ]
    }
}

impl Drop for Buckets {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// A response: status, header fields, body.
type Response = (u16, String, Vec<u8>);

impl Shared {
    fn put(&self, bucket: &str, key: &str, bytes: Vec<u8>) -> u64 {
        let version = self.version.fetch_add(1, Ordering::SeqCst);
        let key = (bucket.to_string(), key.to_string());
        self.objects.lock().unwrap().insert(key, (bytes, version));
        version
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut out = stream;
        while let Some((mut asked, body)) = read_request(&mut reader)? {
            if self.is_stopped.load(Ordering::SeqCst) {
                break;
            }
            {
                let mut log = self.log.lock().unwrap();
                asked.number = log.len() as u64;
                log.push(asked.clone());
            }
            let act = (self.plan.lock().unwrap())(&asked);
            let (status, fields, body) = match act {
                Act::Status(status) => {
                    let body = format!("<Error><Token>{SECRET}</Token></Error>");
                    (status, String::new(), body.into_bytes())
                }
                Act::Body(ref body) => (200, String::new(), body.clone().into_bytes()),
                Act::Redirect(ref to) => (302, format!("Location: {to}\r\n"), Vec::new()),
                Act::Serve | Act::ServeAndCut => self.respond(&asked, body),
            };
            if act == Act::ServeAndCut {
                break;
            }
            let is_partial = fields.contains("Content-Range");
            let status = if status == 200 && is_partial { 206 } else { status };
            write!(out, "HTTP/1.1 {status} X\r\n{fields}Content-Length: {}\r\n\r\n", body.len())?;
            out.write_all(&body)?;
        }
        Ok(())
    }

    fn respond(&self, asked: &Asked, body: Vec<u8>) -> Response {
        let name = (asked.bucket.clone(), asked.key.clone());
        let there = self.objects.lock().unwrap().get(&name).cloned();
        match asked.method.as_str() {
            "GET" if asked.is_listing() => (200, String::new(), self.list(asked).into_bytes()),
            "GET" => get(asked, there),
            "PUT" => {
                let is_new = asked.fields.contains_key("if-none-match")
                    || asked.fields.get("x-goog-if-generation-match").is_some_and(|is| is == "0");
                if is_new && there.is_some() {
                    return (412, String::new(), Vec::new());
                }
                let version = self.put(&name.0, &name.1, body);
                (200, format!("ETag: \"{version}\"\r\n"), Vec::new())
            }
            "DELETE" => {
                self.objects.lock().unwrap().remove(&name);
                (204, String::new(), Vec::new())
            }
            _ => (405, String::new(), Vec::new()),
        }
    }

    /// A page of objects, with the folders that a delimiter makes of them.
    fn list(&self, asked: &Asked) -> String {
        let of = |name: &str| asked.query.get(name).cloned().unwrap_or_default();
        let is_azure = asked.query.contains_key("comp");
        let token = if is_azure { of("marker") } else { of("continuation-token") };
        let (prefix, delimiter) = (of("prefix"), of("delimiter"));
        let objects = self.objects.lock().unwrap();
        let (mut entries, mut folders) = (Vec::new(), Vec::<String>::new());
        let mut next = None;
        let after = token.strip_prefix("after:").unwrap_or_default();
        for ((_, key), (bytes, version)) in
            objects.iter().filter(|((of, _), _)| *of == asked.bucket)
        {
            if !key.starts_with(&prefix) || !token.is_empty() && key.as_str() <= after {
                continue;
            }
            if (entries.len() + folders.len()) as u64 == self.page {
                next = Some(last(&entries, &folders));
                break;
            }
            let rest = &key[prefix.len()..];
            match rest.find('/').filter(|_| !delimiter.is_empty()) {
                Some(at) => {
                    let folder = format!("{prefix}{}", &rest[..=at]);
                    // After a page ends with a folder, the next one begins after its keys.
                    let is_known = after.starts_with(&folder) || folders.contains(&folder);
                    if !is_known {
                        folders.push(folder);
                    }
                }
                None => entries.push((key.clone(), bytes.len(), *version)),
            }
        }
        if is_azure { azure(&entries, next) } else { amazon(&entries, &folders, next) }
    }
}

/// The last key or folder of a page; a folder with a mark after all of its keys.
fn last(entries: &[(String, usize, u64)], folders: &[String]) -> String {
    let key = entries.last().map(|(key, ..)| key.clone()).unwrap_or_default();
    let folder = folders.last().map(|folder| format!("{folder}\u{10FFFF}")).unwrap_or_default();
    format!("after:{}", key.max(folder))
}

fn amazon(entries: &[(String, usize, u64)], folders: &[String], next: Option<String>) -> String {
    let mut text = "<ListBucketResult>".to_string();
    for (key, length, version) in entries {
        text += &format!(
            "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
             <ETag>&quot;{version}&quot;</ETag><Size>{length}</Size></Contents>",
            escaped(key)
        );
    }
    for folder in folders {
        text += &format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(folder));
    }
    text += &format!("<IsTruncated>{}</IsTruncated>", next.is_some());
    if let Some(next) = next {
        text += &format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(&next));
    }
    text + "</ListBucketResult>"
}

fn azure(entries: &[(String, usize, u64)], next: Option<String>) -> String {
    let mut text = "<EnumerationResults><Blobs>".to_string();
    for (key, length, version) in entries {
        text += &format!(
            "<Blob><Name>{}</Name><Properties><Last-Modified>Thu, 01 Jan 2026 00:00:00 GMT\
             </Last-Modified><Etag>{version}</Etag><Content-Length>{length}</Content-Length>\
             <Content-Type>x</Content-Type></Properties></Blob>",
            escaped(key)
        );
    }
    let next = next.map_or(String::new(), |next| escaped(&next));
    text + &format!("</Blobs><NextMarker>{next}</NextMarker></EnumerationResults>")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // Line breaks would be normalised.
    text.replace('\r', "&#13;").replace('\u{1}', "&#1;")
}

fn get(asked: &Asked, there: Option<(Vec<u8>, u64)>) -> Response {
    let Some((bytes, version)) = there else { return (404, String::new(), Vec::new()) };
    let etag = format!("\"{version}\"");
    if asked.fields.get("if-match").is_some_and(|known| *known != etag) {
        return (412, String::new(), Vec::new());
    }
    let range = asked.fields.get("range").and_then(|range| range.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
        return (200, format!("ETag: {etag}\r\n"), bytes);
    };
    let length = bytes.len();
    let (start, end) = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) => (first, length.min(last + 1)),
        (Err(_), Ok(tail)) => (length.saturating_sub(tail), length),
        _ => (0, length),
    };
    if start >= end {
        return (416, format!("Content-Range: bytes */{length}\r\n"), Vec::new());
    }
    let fields = format!("ETag: {etag}\r\nContent-Range: bytes {start}-{}/{length}\r\n", end - 1);
    (200, fields, bytes[start..end].to_vec())
}

/// Reads a request with its body; `None` if the client is done.
fn read_request(reader: &mut impl BufRead) -> std::io::Result<Option<(Asked, Vec<u8>)>> {
    let mut line = String::new();
    if reader.by_ref().take(100_000).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_string();
    let url = words.next().unwrap_or_default();
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let (bucket, key) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(&value.replace('+', " ")))
    });
    let mut asked = Asked {
        number: 0,
        method,
        bucket: decoded(bucket),
        key: decoded(key),
        query: query.collect(),
        fields: BTreeMap::new(),
    };
    loop {
        let mut field = String::new();
        reader.by_ref().take(100_000).read_line(&mut field)?;
        let field = field.trim_end();
        if field.is_empty() {
            break;
        }
        let (name, value) = field.split_once(':').unwrap_or((field, ""));
        asked.fields.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    assert!(!asked.fields.contains_key("transfer-encoding"), "a body without a length");
    let length = asked.fields.get("content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Some((asked, body)))
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, more @ ..] = rest {
        let hex = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}
