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
    /// Counted from 0.
    pub(crate) number: usize,
    pub(crate) path: String,
    pub(crate) fields: Vec<String>,
    pub(crate) range: Option<Range<u64>>,
    /// The range was asked for as the last bytes.
    pub(crate) is_tail: bool,
}

/// The server's reaction.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// As a good server does.
    Serve,
    /// As a good server does, after a while.
    Late(Duration),
    /// This status, with these fields and no body.
    Status(u16, String),
    /// Cuts the connection after this many bytes of the body.
    Cut(usize),
    /// Announces and sends this many bytes less than the range has.
    Short(usize),
    /// A chunked body, without a length, that ends this many bytes early.
    Chunked(usize),
    /// A chunked body with this many bytes too many.
    Overlong(usize),
    /// Content-Range is shifted by this many bytes; the bytes are those it names.
    Moved(i64),
    /// The range is ignored.
    Whole,
    /// The range is ignored, and the body has no length.
    WholeUncounted,
    /// Other version fields, another object, the same length.
    Version(String),
    /// The body comes byte by byte, with a pause after each.
    Loris(Duration),
    /// The head comes, and the body never.
    Stall,
    /// Nothing comes at all.
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

/// A server, until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Says that a request is under way as long as it lives.
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
                // A client that goes away is no concern of the server's.
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

    /// All requests so far.
    pub(crate) fn log(&self) -> Vec<Ask> {
        self.shared.log.lock().unwrap().clone()
    }

    /// The ranges asked for after opening.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        self.log().into_iter().skip(1).filter_map(|ask| ask.range).collect()
    }

    /// The most requests that were under way at once.
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

/// The next request of a connection; None when the client is done.
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
            // A tail is moved to the end by whoever knows where that is.
            let last: u64 = last.parse().unwrap();
            ask.range = Some(match first {
                "" => 0..last,
                first => first.parse().unwrap()..last + 1,
            });
        }
        ask.fields.push(field.to_string());
    }
}
