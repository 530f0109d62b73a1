//! Parquet behind a URL: what queries fetch, and that answers are those of the local file.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::{BloomFilterPosition, WriterProperties};
use quarrier_sql::{Error, Options};

use crate::bucket::Buckets;
use crate::harness::{Folder, PATIENCE, TestEngine, text};
use crate::random::Random;

const ROWS: usize = 40_000;
const GROUP_ROWS: usize = 5_000;
const PAGE_ROWS: usize = 500;
const GROUPS: usize = ROWS / GROUP_ROWS;

/// The bytes that the request for opening asks for.
const TAIL_BYTES: usize = 64 << 10;

/// Rows with an ascending `id`; most bytes are in `noise`, the strings.
fn rows() -> RecordBatch {
    let mut random = Random::new(7);
    let ids = (0..ROWS as i64).collect::<Vec<_>>();
    let noise = ids.iter().map(|_| format!("{:016x}{:016x}", random.next(), random.next()));
    let noise: ArrayRef = Arc::new(StringArray::from_iter_values(noise.collect::<Vec<_>>()));
    let few = ids.iter().map(|id| (id % 7 != 0).then_some(id % 5));
    let few: ArrayRef = Arc::new(few.collect::<Int64Array>());
    let parts = ids.iter().map(|id| (*id * 7919 % 10_007) as f64 / 8.0);
    let parts: ArrayRef = Arc::new(Float64Array::from_iter_values(parts));
    let keys = ids.iter().map(|id| id.wrapping_mul(6_364_136_223_846_793_005));
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    let ids: ArrayRef = Arc::new(Int64Array::from(ids));
    let columns = [("id", ids), ("noise", noise), ("few", few), ("part", parts), ("key", keys)];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(has_filters: bool) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_dictionary_enabled(false)
        .set_bloom_filter_enabled(has_filters)
        .set_bloom_filter_max_ndv(GROUP_ROWS as u64)
        .set_bloom_filter_fpp(0.01)
        .set_bloom_filter_position(BloomFilterPosition::End)
        .build();
    let (mut file, rows) = (Vec::new(), rows());
    let mut writer = ArrowWriter::try_new(&mut file, rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    file
}

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Serve,
    /// Sends the whole object, whatever the range.
    IgnoreRanges,
    /// Sends nothing.
    Stall,
}

struct Shared {
    body: Mutex<(Vec<u8>, &'static str)>,
    act: Mutex<Act>,
    /// The heads of requests, and the number of bytes sent for each.
    log: Mutex<Vec<(String, usize)>>,
}

/// A server of one object, under any path. It counts requests and bytes.
struct Server {
    url: String,
    shared: Arc<Shared>,
}

impl Server {
    fn new(body: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/rows.parquet", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            body: Mutex::new((body, "\"one\"")),
            act: Mutex::new(Act::Serve),
            log: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                // A client may disconnect.
                thread::spawn(move || drop(shared.serve(stream)));
            }
        });
        Server { url, shared }
    }

    fn act(self, act: Act) -> Self {
        *self.shared.act.lock().unwrap() = act;
        self
    }

    /// The requests and bytes since the last call.
    fn take(&self) -> (usize, usize) {
        let log = std::mem::take(&mut *self.shared.log.lock().unwrap());
        (log.len(), log.iter().map(|(_, bytes)| bytes).sum())
    }

    fn length(&self) -> usize {
        self.shared.body.lock().unwrap().0.len()
    }

    fn from(&self) -> String {
        format!("FROM '{}'", self.url)
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head)? == 0 {
                    return Ok(());
                }
            }
            let head = head.to_ascii_lowercase();
            let (body, etag) = self.body.lock().unwrap().clone();
            let act = *self.act.lock().unwrap();
            if act == Act::Stall {
                self.log.lock().unwrap().push((head, 0));
                thread::sleep(PATIENCE);
                return Ok(());
            }
            let range = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
            let range = range.and_then(|range| range.trim().split_once('-'));
            let range = range.filter(|_| act != Act::IgnoreRanges).map(|(start, end)| {
                let number = |text: &str| text.parse::<usize>().ok();
                match number(start) {
                    Some(start) => (start, number(end).map_or(body.len(), |last| last + 1)),
                    None => (body.len().saturating_sub(number(end).unwrap()), body.len()),
                }
            });
            let (status, start, end) = match range {
                Some((start, end)) => ("206 Part", start, end.min(body.len())),
                None => ("200 OK", 0, body.len()),
            };
            let place = format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, body.len());
            let place = if range.is_some() { &place } else { "" };
            self.log.lock().unwrap().push((head, end - start));
            write!(
                stream,
                "HTTP/1.1 {status}\r\nETag: {etag}\r\nContent-Length: {}\r\n{place}\r\n",
                end - start
            )?;
            stream.write_all(&body[start..end])?;
        }
    }
}

/// A server, and an engine of the local file as the table `m`.
fn server_and_local(has_filters: bool) -> (Server, TestEngine, Folder) {
    let (file, folder, local) = (parquet(has_filters), Folder::new(), TestEngine::new());
    let path = folder.path("rows.parquet");
    std::fs::write(&path, &file).unwrap();
    local.open("m", &path.display().to_string()).unwrap();
    (Server::new(file), local, folder)
}

#[test]
fn a_query_fetches_only_the_columns_that_it_reads() {
    let (server, local, _folder) = server_and_local(false);
    let far = TestEngine::new();
    let sum = far.value(&format!("SELECT sum(id) {}", server.from())).unwrap();
    assert_eq!(sum, local.value("SELECT sum(id) FROM m").unwrap());
    let (requests, bytes) = server.take();
    assert!(bytes < server.length() / 4, "{bytes} of {}", server.length());
    assert!(requests <= 1 + GROUPS, "{requests}");
    // The footer and the columns are in memory.
    far.value(&format!("SELECT max(id % 11) {}", server.from())).unwrap();
    assert_eq!(server.take(), (0, 0));
    // Neighbouring columns come with one request for each row group; some of the last are in memory.
    far.value(&format!("SELECT sum(few + part + key) {}", server.from())).unwrap();
    let (requests, bytes) = server.take();
    assert!(requests <= GROUPS && bytes < server.length() * 2 / 3, "{requests}, {bytes}");
}

#[test]
fn a_count_of_rows_fetches_only_the_footer() {
    let (server, _, _folder) = server_and_local(false);
    let far = TestEngine::new();
    for sql in ["count(*)", "count(id)", "min(id)", "max(key)"] {
        far.value(&format!("SELECT {sql} {}", server.from())).unwrap();
    }
    assert_eq!(server.take(), (1, TAIL_BYTES));
    // The name does not end with .parquet: the content is detected by a request for its start.
    let url = server.url.replace(".parquet", "?sig=secret");
    assert_eq!(far.value(&format!("SELECT count(*) FROM '{url}'")).unwrap(), ROWS.to_string());
    let (requests, bytes) = server.take();
    assert!(requests <= 3 && bytes <= 3 * TAIL_BYTES, "{requests}, {bytes}");
}

#[test]
fn row_groups_and_pages_without_rows_of_the_answer_are_not_fetched() {
    let (server, local, _folder) = server_and_local(false);
    let condition = "id BETWEEN 12000 AND 12003";
    let far = TestEngine::new().rows(&format!("SELECT * {} WHERE {condition}", server.from()));
    assert_eq!(far.unwrap(), local.rows(&format!("SELECT * FROM m WHERE {condition}")).unwrap());
    let (requests, bytes) = server.take();
    let group = server.length() / GROUPS;
    assert!(bytes < TAIL_BYTES + group / 2, "{bytes} of {}", server.length());
    assert!(requests <= 8, "{requests}");
    let none = TestEngine::new().rows(&format!("SELECT * {} WHERE id < 0", server.from()));
    assert!(none.unwrap().is_empty());
    assert_eq!(server.take().0, 1);
}

#[test]
fn bloom_filters_are_fetched_together() {
    let (server, _, _folder) = server_and_local(true);
    let far = TestEngine::new();
    let rows = far.rows(&format!("SELECT id {} WHERE noise = 'absent'", server.from()));
    // A filter rarely keeps a row group in error.
    assert!(rows.unwrap().is_empty());
    let (requests, bytes) = server.take();
    assert!(requests <= 6, "{requests}");
    assert!(bytes < server.length() / 3, "{bytes} of {}", server.length());
}

#[test]
fn answers_are_those_of_the_local_file() {
    let (server, local, _folder) = server_and_local(true);
    let far = TestEngine::new();
    far.open("m", &server.url).unwrap();
    for sql in [
        "SELECT * FROM m ORDER BY id LIMIT 3",
        "SELECT * FROM m ORDER BY noise DESC LIMIT 5 OFFSET 2",
        "SELECT few, count(*), sum(part), min(noise) FROM m GROUP BY few ORDER BY few",
        "SELECT count(*) FROM m WHERE few IS NULL AND part > 100",
        "SELECT a.id FROM m a JOIN m b ON a.id = b.key / 6364136223846793005 WHERE a.few = 3 \
         ORDER BY a.id LIMIT 10",
        "SELECT min(part), max(part), avg(part) FROM m WHERE noise LIKE 'a%'",
        "SELECT id, noise FROM m WHERE id IN (1, 4999, 5000, 39999) ORDER BY id",
        "SELECT count(DISTINCT key % 100) FROM m WHERE id > 20000 OR few = 1",
        "SELECT _line, id FROM m WHERE id = 17",
    ] {
        assert_eq!(far.rows(sql).unwrap(), local.rows(sql).unwrap(), "{sql}");
    }
}

#[test]
fn a_server_without_ranges_sends_the_file_once() {
    let (server, local, _folder) = server_and_local(false);
    let server = server.act(Act::IgnoreRanges);
    let far = TestEngine::new();
    let sql = "SELECT few, sum(id) FROM m GROUP BY few ORDER BY few";
    let found = far.rows(&sql.replace("FROM m", &server.from())).unwrap();
    assert_eq!(found, local.rows(sql).unwrap());
    assert_eq!(server.take(), (1, server.length()));
}

#[test]
fn a_file_that_changes_after_it_was_opened_is_an_error() {
    let (server, _, _folder) = server_and_local(false);
    let far = TestEngine::new();
    let url = format!("{}?sig=secret", server.url);
    far.open("m", &url).unwrap();
    server.shared.body.lock().unwrap().1 = "\"two\"";
    let said = far.refusal("SELECT sum(id) FROM m");
    assert!(said.starts_with(&format!("{}?…: changed on the server", server.url)), "{said}");
    server.shared.body.lock().unwrap().0.truncate(100_000);
    let far = TestEngine::new();
    let said = far.refusal(&format!("SELECT sum(id) FROM '{url}'"));
    assert!(said.starts_with(&server.url) && !said.contains("secret"), "{said}");
}

#[test]
fn a_server_that_stalls_can_be_left() {
    let (server, _, _folder) = server_and_local(false);
    let stop = Arc::new(AtomicBool::new(false));
    let options = Options { workers: 2, stop: Arc::clone(&stop), ..Options::default() };
    let far = TestEngine::with(options);
    far.open("m", &server.url).unwrap();
    let server = server.act(Act::Stall);
    let start = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
    });
    let ended = far.rows("SELECT sum(id) FROM m");
    assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    // Long before the server would be given up.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    drop(server);
}

#[test]
fn a_damaged_file_is_one_line_that_names_it_and_no_panic() {
    let whole = parquet(true);
    let server = Server::new(Vec::new());
    let mut random = Random::new(3);
    let mut refused = 0;
    for round in 0..60 {
        let mut body = whole.clone();
        let end = body.len();
        // In the footer, in its length, or anywhere.
        let at = [end - 1 - random.below(4_000), end - 5 - random.below(4), random.below(end)];
        body[at[round % 3]] ^= 1 << random.below(8);
        if round % 10 == 9 {
            body.drain(..random.below(end));
        }
        server.shared.body.lock().unwrap().0 = body;
        let sql = format!("SELECT count(noise), sum(id + few), max(part + key) {}", server.from());
        match TestEngine::new().rows(&sql) {
            Ok(rows) => assert_eq!(rows.len(), 1),
            Err(Error::Value { .. }) => {}
            Err(error) => {
                let said = error.to_string();
                // The name of a column may be damaged, too.
                let names_it =
                    said.starts_with(&server.url) || said.starts_with("there is no column");
                assert!(names_it && !said.contains('\n'), "{said}");
                assert!(!matches!(error, Error::Internal(_)), "{said}");
                refused += 1;
            }
        }
    }
    assert!(refused > 10, "{refused}");
}

fn ran(folder: &Folder, variables: &[(String, String)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
        .current_dir(folder.path(""))
        .args(arguments)
        .env("no_proxy", "127.0.0.1")
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap()
}

#[test]
fn headers_are_sent_and_requests_are_in_the_account() {
    let (server, _, folder) = server_and_local(false);
    let sql = format!("SELECT sum(id) {}", server.from());
    let header = ["--header", "X-Key: hidden", "--header=Authorization: Bearer hidden"];
    let output = ran(
        &folder,
        &[],
        &[&[&*sql, "--format", "csv", "--stats", "s.json"], &header[..]].concat(),
    );
    assert!(output.status.success(), "{output:?}");
    let log = server.shared.log.lock().unwrap().clone();
    for (head, _) in &log {
        assert!(head.contains("\r\nx-key: hidden\r\n"), "{head}");
        assert!(head.contains("\r\nauthorization: bearer hidden\r\n"), "{head}");
    }
    let stats = std::fs::read_to_string(folder.path("s.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    let (requests, bytes) = server.take();
    assert_eq!((&stats["requests"], &stats["bytes_fetched"]), (&requests.into(), &bytes.into()));
    assert!(!format!("{stats}{output:?}").contains("hidden"));
    let wrong = ran(&folder, &[], &[&sql, "--header", "hidden"]);
    let said = text(&wrong.stderr);
    assert!(wrong.status.code() == Some(2) && !said.contains("hidden"), "{said}");
}

#[test]
fn objects_of_a_bucket_are_one_table() {
    let (server, folder, file) = (Buckets::new(2), Folder::new(), parquet(false));
    for key in ["a/1.parquet", "a/2.parquet", "a/x.csv"] {
        server.put("lab", key, file.clone());
    }
    let sql = "SELECT filename, count(*), sum(id % 10) FROM 's3://lab/a/*.parquet' \
               GROUP BY filename ORDER BY filename";
    let output = ran(&folder, &server.settings(), &[sql, "--format", "csv"]);
    let lines: Vec<String> = text(&output.stdout).lines().skip(1).map(str::to_string).collect();
    let sum = ROWS * 9 / 2;
    let line = |number: u8| format!("s3://lab/a/{number}.parquet,{ROWS},{sum}");
    assert_eq!(lines, [line(1), line(2)], "{output:?}");
    let log = server.log();
    assert!(log.iter().filter(|asked| asked.is_listing()).count() <= 2);
    assert!(log.len() <= 2 + 2 * (1 + GROUPS), "{}", log.len());
}
