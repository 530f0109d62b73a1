//! Kills a server while clients write: every acknowledged message is stored exactly once, and no
//! message exists that nobody sent.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::harness::{Folder, PATIENCE};
use crate::serve::{request, serve};

/// The number of rounds, unless the environment sets it.
const ROUNDS: u64 = 20;
const CLIENTS: u64 = 8;

/// A client for the simple query protocol.
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    pub(crate) fn connect(address: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut client = Client(BufReader::new(stream));
        let words = b"\0\x03\0\0user\0ann\0database\0quarrier\0\0";
        let length = (4 + words.len() as u32).to_be_bytes();
        client.0.get_mut().write_all(&[&length[..], words].concat())?;
        client.until(b'Z')?;
        Ok(client)
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = (4 + body.len() as u32).to_be_bytes();
        self.0.get_mut().write_all(&[&[kind], &length[..], body].concat())
    }

    /// Reads up to a message of this type. Returns the first values of rows.
    fn until(&mut self, last: u8) -> io::Result<Vec<String>> {
        let mut rows = Vec::new();
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
            let mut body = vec![0; length];
            self.0.read_exact(&mut body)?;
            match head[0] {
                kind if kind == last => return Ok(rows),
                b'E' => return Err(io::Error::other(String::from_utf8_lossy(&body).into_owned())),
                b'D' => {
                    let bytes = u32::from_be_bytes([body[2], body[3], body[4], body[5]]) as usize;
                    rows.push(String::from_utf8_lossy(&body[6..6 + bytes]).into_owned());
                }
                _ => {}
            }
        }
    }

    pub(crate) fn ask(&mut self, sql: &str) -> io::Result<Vec<String>> {
        self.send(b'Q', &[sql.as_bytes(), b"\0"].concat())?;
        self.until(b'Z')
    }

    fn copy(&mut self, lines: &str) -> io::Result<()> {
        self.send(b'Q', b"COPY t FROM STDIN\0")?;
        self.until(b'G')?;
        for piece in lines.as_bytes().chunks(100) {
            self.send(b'd', piece)?;
        }
        self.send(b'c', b"")?;
        self.until(b'Z').map(drop)
    }
}

/// The messages that a client sent, with their outcomes.
#[derive(Default)]
struct WriterLog {
    /// Rows that one statement sent.
    sent: Vec<Vec<u64>>,
    /// Messages of acknowledged statements.
    acknowledged: Vec<u64>,
    /// A batch without a response, and its number.
    open: Option<(u64, u64, String)>,
}

/// Writes until the server is killed.
fn write(client: u64, (postgres, http): &(String, String), next: &AtomicU64) -> WriterLog {
    let mut log = WriterLog::default();
    let mut work = || -> io::Result<()> {
        let mut db = Client::connect(postgres)?;
        for step in 0.. {
            let count = if client.is_multiple_of(4) { 1 } else { 1 + (step * 7 + client) % 40 };
            let first = next.fetch_add(count, Ordering::Relaxed);
            let rows: Vec<u64> = (first..first + count).collect();
            log.sent.push(rows.clone());
            let listed = |one: &dyn Fn(&u64) -> String, between: &str| {
                rows.iter().map(one).collect::<Vec<_>>().join(between)
            };
            match client % 4 {
                0 | 1 => {
                    let values = listed(&|id| format!("({id}, 'client {client}')"), ", ");
                    db.ask(&format!("INSERT INTO t VALUES {values}"))?;
                }
                2 => db.copy(&listed(&|id| format!("{id}\tcopied\n"), ""))?,
                _ => {
                    let body = listed(&|id| format!("{{\"id\":{id},\"word\":\"posted\"}}\n"), "");
                    // Numbers increase over all rounds.
                    log.open = Some((client, first + 1, body.clone()));
                    post(http, client, first + 1, &body)?;
                    log.open = None;
                }
            }
            log.acknowledged.extend(&rows);
        }
        Ok(())
    };
    // The server was killed.
    let _ = work();
    log
}

fn post(http: &str, client: u64, sequence: u64, body: &str) -> io::Result<()> {
    let headers = format!("Publisher: client {client}\nSequence: {sequence}\n");
    let answer = request(http, "POST /tables/t", &headers, body.as_bytes())?;
    match answer.starts_with("HTTP/1.1 200") && answer.ends_with("}\n") {
        true => Ok(()),
        false => Err(io::Error::other(answer)),
    }
}

fn check(found: &[String], all: &[WriterLog]) {
    let found: Vec<u64> = found.iter().map(|id| id.parse().unwrap()).collect();
    let once: HashSet<u64> = found.iter().copied().collect();
    assert_eq!(once.len(), found.len(), "a message is there twice");
    for log in all {
        for id in &log.acknowledged {
            assert!(once.contains(id), "{id} was acknowledged, and is not there");
        }
    }
    let mut statements: HashMap<u64, usize> = HashMap::new();
    let sent: Vec<&Vec<u64>> = all.iter().flat_map(|log| &log.sent).collect();
    for (number, rows) in sent.iter().enumerate() {
        statements.extend(rows.iter().map(|id| (*id, number)));
    }
    let mut there = vec![0; sent.len()];
    for id in &once {
        let statement = statements.get(id);
        there[*statement.unwrap_or_else(|| panic!("nobody sent {id}"))] += 1;
    }
    for (rows, there) in sent.iter().zip(there) {
        assert!(there == 0 || there == rows.len(), "{there} rows of {rows:?} are there");
    }
}

#[test]
fn what_was_acknowledged_is_there_once_however_often_it_is_killed() {
    let rounds = std::env::var("QUARRIER_KILL_ROUNDS").ok().and_then(|it| it.parse().ok());
    let folder = Folder::new();
    let mut served = serve(&folder, &["--data", "d", "--quiet", "--segment", "4M"]);
    served.ask("CREATE TABLE t (id bigint NOT NULL, word text)");
    let (next, mut all) = (AtomicU64::new(1), Vec::new());
    let mut random = 0x9E37_79B9_u64 ^ u64::from(std::process::id());
    for _ in 0..rounds.unwrap_or(ROUNDS) {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let time = Duration::from_millis(30 + (random >> 33) % 400);
        let addresses = served.addresses();
        let logs: Vec<WriterLog> = std::thread::scope(|scope| {
            let begin = |client| {
                let (addresses, next) = (&addresses, &next);
                scope.spawn(move || write(client, addresses, next))
            };
            let clients: Vec<_> = (0..CLIENTS).map(begin).collect();
            std::thread::sleep(time);
            served.kill();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        all.extend(logs);
        served = serve(&folder, &["--data", "d", "--quiet", "--segment", "4M"]);
        let (postgres, http) = served.addresses();
        // A client without a response sends again, and no message is stored twice.
        for log in all.iter_mut().rev().take(CLIENTS as usize) {
            if let Some((client, sequence, body)) = log.open.take() {
                post(&http, client, sequence, &body).unwrap();
            }
        }
        let mut db = Client::connect(&postgres).unwrap();
        check(&db.ask("SELECT id FROM t").unwrap(), &all);
    }
    assert!(all.iter().all(|log| log.sent.iter().all(|rows| !rows.is_empty())));
    assert!(all.iter().any(|log| !log.acknowledged.is_empty()));
    assert_eq!(served.end(), Some(0));
}
