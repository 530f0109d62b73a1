//! A small HTTP/1.1 server that serves one object and fails on demand.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// Numbered from 0.
    pub(crate) number: usize,
    pub(crate) path: String,
    pub(crate) fields: Vec<String>,
    pub(crate) range: Option<Range<u64>>,
    /// Whether the range was requested as a suffix.
    pub(crate) is_tail: bool,
}

/// How the server responds.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Responds correctly.
    Serve,
    /// Responds correctly, after a delay.
    Late(Duration),
    /// Sends this status, with these header fields and no body.
    Status(u16, String),
    /// Closes the connection after this many bytes of the body.
    Cut(usize),
    /// Announces and sends this many bytes less than the range has.
    Short(usize),
    /// Sends a chunked body, without a length, that ends this many bytes early.
    Chunked(usize),
    /// Sends a chunked body with this many extra bytes.
    Overlong(usize),
    /// Shifts Content-Range by this many bytes, and sends the bytes of the shifted range.
    Moved(i64),
    /// Ignores the range.
    Whole,
    /// Ignores the range, and sends a body without a length.
    WholeUncounted,
    /// Serves another object of the same length, with these version fields.
    Version(String),
    /// Sends the body byte by byte, with a pause after each.
    Loris(Duration),
    /// Sends the head but never the body.
    Stall,
    /// Sends nothing.
    Silence,
}

type Plan = Box<dyn Fn(&Ask) -> Act + Send + Sync>;

struct Shared {
    object: Vec<u8>,
    fields: String,
    plan: Plan,
    log: Mutex<Vec<Ask>>,
    under_way: AtomicUsize,
    under_way_max: AtomicUsize,
    stopped: AtomicBool,
}

/// A running server, stopped when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Marks a request as in progress until dropped.
struct UnderWay<'s>(&'s Shared);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    /// Serves `object` with an ETag.
    pub(crate) fn new(object: Vec<u8>, plan: impl Fn(&Ask) -> Act + Send + Sync + 'static) -> Self {
        Server::with_fields(object, "ETag: \"one\"\r\n", plan)
    }

    /// Serves `object`; `fields` are its version fields.
    pub(crate) fn with_fields(
        object: Vec<u8>,
        fields: &str,
        plan: impl Fn(&Ask) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            object,
            fields: fields.to_string(),
            plan: Box::new(plan),
            log: Mutex::default(),
            under_way: AtomicUsize::new(0),
            under_way_max: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                // Errors caused by clients that disconnect do not matter.
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Server { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        self.url_of("/object.img")
    }

    pub(crate) fn url_of(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn object(&self) -> &[u8] {
        &self.shared.object
    }

    /// All requests received.
    pub(crate) fn log(&self) -> Vec<Ask> {
        self.shared.log.lock().unwrap().clone()
    }

    /// The ranges requested after opening.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        self.log().into_iter().skip(1).filter_map(|ask| ask.range).collect()
    }

    /// The maximum number of concurrent requests.
    pub(crate) fn under_way_max(&self) -> usize {
        self.shared.under_way_max.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some(mut ask) = read_ask(&mut reader)? {
            if self.stopped.load(Ordering::SeqCst) {
                break;
            }
            let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            let _under_way = UnderWay(self);
            if let (true, Some(range)) = (ask.is_tail, &mut ask.range) {
                let length = self.object.len() as u64;
                *range = length.saturating_sub(range.end)..length;
            }
            self.under_way_max.fetch_max(now, Ordering::SeqCst);
            {
                let mut log = self.log.lock().unwrap();
                ask.number = log.len();
                log.push(ask.clone());
            }
            self.answer(&mut stream, &ask, (self.plan)(&ask))?;
        }
        Ok(())
    }

    fn answer(&self, out: &mut TcpStream, ask: &Ask, act: Act) -> std::io::Result<()> {
        let length = self.object.len() as u64;
        let asked = ask.range.clone().unwrap_or(0..length);
        let mut range = asked.start..asked.end.min(length);
        if ask.range.is_some() && range.start >= length && !matches!(act, Act::Status(..)) {
            return write!(
                out,
                "HTTP/1.1 416 No\r\nContent-Range: bytes */{length}\r\nContent-Length: 0\r\n\r\n"
            );
        }
        let mut fields = self.fields.clone();
        match &act {
            Act::Status(status, fields) => {
                return write!(out, "HTTP/1.1 {status} X\r\n{fields}Content-Length: 0\r\n\r\n");
            }
            Act::Silence => return self.sleep(Duration::from_secs(20)),
            Act::Late(time) => self.sleep(*time)?,
            Act::Moved(by) => {
                let start = range.start.saturating_add_signed(*by).min(length - 1);
                range = start..(start + (range.end - range.start)).min(length);
            }
            Act::Version(other) => fields.clone_from(other),
            _ => {}
        }
        let body = &self.object[range.start as usize..range.end as usize];
        let part = format!(
            "HTTP/1.1 206 Part\r\n{fields}Content-Range: bytes {}-{}/{length}\r\n",
            range.start,
            range.end.saturating_sub(1)
        );
        match act {
            Act::Whole => {
                write!(out, "HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n")?;
                out.write_all(&self.object)
            }
            Act::WholeUncounted => {
                write!(out, "HTTP/1.1 200 OK\r\n{fields}Connection: close\r\n\r\n")?;
                out.write_all(&self.object)?;
                Err(ErrorKind::ConnectionReset.into())
            }
            _ if ask.range.is_none() => {
                write!(out, "HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n")?;
                out.write_all(&self.object)
            }
            Act::Chunked(missing) | Act::Overlong(missing) => {
                let is_overlong = matches!(act, Act::Overlong(_));
                let body = match is_overlong {
                    true => [body, &vec![b'!'; missing]].concat(),
                    false => body[..body.len().saturating_sub(missing)].to_vec(),
                };
                write!(out, "{part}Transfer-Encoding: chunked\r\n\r\n")?;
                for chunk in body.chunks(10_000) {
                    write!(out, "{:x}\r\n", chunk.len())?;
                    out.write_all(chunk)?;
                    write!(out, "\r\n")?;
                }
                write!(out, "0\r\n\r\n")
            }
            Act::Short(bytes) => {
                let bytes = bytes.min(body.len());
                write!(out, "{part}Content-Length: {bytes}\r\n\r\n")?;
                out.write_all(&body[..bytes])
            }
            Act::Cut(bytes) => {
                write!(out, "{part}Content-Length: {}\r\n\r\n", body.len())?;
                out.write_all(&body[..bytes.min(body.len())])?;
                Err(ErrorKind::ConnectionReset.into())
            }
            Act::Stall => {
                write!(out, "{part}Content-Length: {}\r\n\r\n", body.len())?;
                self.sleep(Duration::from_secs(20))
            }
            Act::Loris(pause) => {
                write!(out, "{part}Content-Length: {}\r\n\r\n", body.len())?;
                for byte in body {
                    out.write_all(&[*byte])?;
                    self.sleep(pause)?;
                }
                Ok(())
            }
            _ => {
                write!(out, "{part}Content-Length: {}\r\n\r\n", body.len())?;
                out.write_all(body)
            }
        }
    }

    /// Sleeps, unless the server is stopped.
    fn sleep(&self, time: Duration) -> std::io::Result<()> {
        let step = Duration::from_millis(20);
        let mut left = time;
        while left > step {
            if self.stopped.load(Ordering::SeqCst) {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            thread::sleep(step);
            left -= step;
        }
        thread::sleep(left);
        Ok(())
    }
}

/// Reads the next request of a connection; `None` if the client is done.
fn read_ask(reader: &mut impl BufRead) -> std::io::Result<Option<Ask>> {
    let mut line = String::new();
    if reader.by_ref().take(10_000).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_string();
    let mut ask = Ask { number: 0, path, fields: Vec::new(), range: None, is_tail: false };
    loop {
        let mut field = String::new();
        reader.by_ref().take(10_000).read_line(&mut field)?;
        let field = field.trim_end();
        if field.is_empty() {
            return Ok(Some(ask));
        }
        let lower = field.to_ascii_lowercase();
        if let Some(range) = lower.strip_prefix("range: bytes=") {
            let (first, last) = range.split_once('-').unwrap();
            ask.is_tail = first.is_empty();
            // For a suffix range, the caller computes the start.
            let last: u64 = last.parse().unwrap();
            ask.range = Some(match first {
                "" => 0..last,
                first => first.parse().unwrap()..last + 1,
            });
        }
        ask.fields.push(field.to_string());
    }
}
