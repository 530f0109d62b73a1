//! SUBSCRIBE through the server: the changes add up to SELECT's answer, with writers, kills, pauses
//! and resumed subscriptions.

#![allow(clippy::disallowed_methods, reason = "a test may panic if the system refuses a thread")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::harness::{Folder, PATIENCE};
use crate::serve::{Served, serve};

/// The number of histories of each kind of table, unless the environment sets it.
const HISTORIES: u64 = 25;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

fn grown() -> (Folder, Served) {
    let folder = Folder::new();
    let served = serve(&folder, &["--data", "d", "--segment", "4M"]);
    served.ask("CREATE TABLE t (id bigint, word text, price numeric(9,2))");
    (folder, served)
}

/// The whole output of `COPY (SUBSCRIBE …) TO STDOUT`.
fn copied(served: &Served, subscription: &str) -> Vec<Vec<String>> {
    let rows = served.ask(&format!("COPY (SUBSCRIBE {subscription}) TO STDOUT"));
    rows.lines().map(|line| line.split('\t').map(str::to_string).collect()).collect()
}

#[test]
fn snapshot_rows_come_before_changes() {
    let (_folder, served) = grown();
    served.ask("INSERT INTO t VALUES (1, 'a', 1.5), (2, 'b', 700), (3, NULL, 800.25)");
    served.ask("INSERT INTO t VALUES (4, 'd', 900)");
    let query = "(SELECT id, word, price * 2 AS twice FROM t WHERE price > 500)";
    let found = copied(&served, &format!("{query} WITH (snapshot) AS OF 3 UP TO 4"));
    let expected = [
        ["2", "=", "2", "b", "1400.00"],
        ["3", "=", "3", "\\N", "1600.50"],
        ["4", "+", "4", "d", "1800.00"],
        ["4", ">", "\\N", "\\N", "\\N"],
    ];
    assert_eq!(found, expected);
    // Without a snapshot, only changes after the mark. A table's name means all of its rows.
    let found = copied(&served, "t AS OF 2 UP TO 3");
    assert_eq!(found, [["3", "+", "3", "\\N", "800.25"], ["3", ">", "\\N", "\\N", "\\N"]]);
    // Everything was committed after the first time, and nothing after the second.
    let since = copied(&served, "(SELECT id FROM t) SINCE '2020-01-01' UP TO 1");
    assert_eq!(since, [["1", "+", "1"], ["1", ">", "\\N"]]);
    let since =
        copied(&served, "(SELECT id FROM t) SINCE TIMESTAMP '2200-01-01 00:00:00Z' UP TO 4");
    assert_eq!(since, [["4", ">", "\\N"]]);
    let simple = served.ask("SUBSCRIBE (SELECT word FROM T) AS OF 0 UP TO 2");
    assert_eq!(simple, "1|+|a\n2|+|b\n2|>|\n");
}

#[test]
fn unsupported_subscriptions_are_refused_with_a_remedy() {
    let (_folder, served) = grown();
    for (subscription, code, word) in [
        ("SUBSCRIBE (SELECT count(*) FROM t)", "0A000", "every"),
        ("SUBSCRIBE (SELECT id FROM t ORDER BY id LIMIT 1)", "0A000", "every"),
        ("SUBSCRIBE (SELECT word, count(*) FROM t GROUP BY word)", "42601", "every"),
        ("SUBSCRIBE (SELECT nothing FROM t)", "42601", "nothing"),
        ("SUBSCRIBE (SELECT id FROM nowhere)", "42P01", "nowhere"),
        ("SUBSCRIBE (SELECT id FROM t) AS OF 99", "0A000", "no mark 99"),
        ("SUBSCRIBE (SELECT id FROM t) AS OF 1 WITH (every = '1s')", "0A000", "AS OF"),
        ("SUBSCRIBE (SELECT id FROM t) WITH (fast)", "22023", "fast"),
        ("SUBSCRIBE (SELECT id FROM t", "42601", "syntax"),
    ] {
        let said = served.refused(subscription);
        assert!(said.contains(&format!("ERROR:  {code}:")) && said.contains(word), "{said}");
    }
    let folder = Folder::new();
    let without = serve(&folder, &[]);
    assert!(without.refused("SUBSCRIBE (SELECT 1)").contains("--data"));
}

#[test]
fn repeated_queries_send_differences() {
    let (_folder, served) = grown();
    served.ask("INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)");
    let query = "(SELECT word, count(*) AS n FROM t GROUP BY word)";
    let subscribe = format!("SUBSCRIBE {query} WITH (snapshot, every = '10ms') UP TO 5");
    let mut events = Events::open(&served, &subscribe, None);
    let mut first = [events.next().unwrap(), events.next().unwrap()];
    first.sort_by(|one, other| one.2.cmp(&other.2));
    assert_eq!(first[0].1, "snapshot");
    assert_eq!(
        [&*first[0].2, &*first[1].2],
        ["{\"word\":\"a\",\"n\":2}", "{\"word\":\"b\",\"n\":1}"]
    );
    served.ask("INSERT INTO t VALUES (4, 'a', 4), (5, 'c', 5)");
    let mut changes = Vec::new();
    for (_, kind, data) in events {
        if kind != "progress" {
            changes.push(format!("{kind} {data}"));
        }
    }
    changes.sort();
    let expected = [
        "delete {\"word\":\"a\",\"n\":2}",
        "insert {\"word\":\"a\",\"n\":3}",
        "insert {\"word\":\"c\",\"n\":1}",
    ];
    assert_eq!(changes, expected);
}

#[test]
fn rows_meet_the_standing_conditions_of_a_table() {
    let (_folder, served) = grown();
    served.ask(
        "CREATE TABLE rules (number bigint PRIMARY KEY, condition text) \
         WITH (on_conflict = 'replace')",
    );
    served.ask("INSERT INTO rules VALUES (7, 'price > 500'), (8, 'word = ''a'' AND price < 900')");
    served.ask("INSERT INTO t VALUES (1, 'a', 600), (2, 'b', 1)");
    served.ask("INSERT INTO rules VALUES (7, '10 / (id - 3) > 1'), (9, 'id >')");
    served.ask("INSERT INTO t VALUES (3, 'a', 5), (4, NULL, 6)");
    served.ask("DELETE FROM rules WHERE number = 8");
    served.ask("INSERT INTO t VALUES (5, 'a', 7)");
    let matching = "MATCHING rules (number, condition)";
    let found = copied(&served, &format!("(SELECT id FROM t) {matching} AS OF 0 UP TO 10"));
    let expected = [
        ["3", "+", "7", "1"],
        ["3", "+", "8", "1"],
        ["7", "!", "7", "3"],
        ["7", "+", "8", "3"],
        ["7", "!", "9", "3"],
        ["8", "+", "7", "4"],
        ["10", "+", "7", "5"],
        ["10", ">", "\\N", "\\N"],
    ];
    let mut sorted = found.clone();
    sorted.sort_by_key(|row| (row[0].parse::<u64>().unwrap(), row[2].clone()));
    assert_eq!(sorted, expected);
    let snapshot =
        format!("(SELECT id FROM t WHERE id < 3) {matching} WITH (snapshot) AS OF 4 UP TO 4");
    assert_eq!(
        copied(&served, &snapshot),
        [["3", "=", "7", "1"], ["3", "=", "8", "1"], ["4", ">", "\\N", "\\N"],]
    );
    // Only the last event of a mark has an id, so that nobody resumes between two of them.
    let events =
        Events::open(&served, &format!("SUBSCRIBE (SELECT id FROM t) {matching} UP TO 3"), Some(0));
    let shown: Vec<(u64, String, String)> = events.filter(|event| event.1 != "progress").collect();
    let data = |number: u64| format!("{{\"condition_id\":{number},\"id\":1}}");
    let inserted = |mark, number| (mark, "insert".to_string(), data(number));
    assert_eq!(shown, [inserted(NO_MARK, 7), inserted(3, 8)]);
    for (subscription, code, word) in [
        ("(SELECT id FROM t) MATCHING t (word, id)", "0A000", "strings"),
        ("(SELECT id FROM t) MATCHING rules (id, condition)", "0A000", "number"),
        ("(SELECT id FROM t) MATCHING nowhere", "42P01", "nowhere"),
        ("(SELECT id FROM t) MATCHING rules (number)", "42601", "two of its columns"),
        ("(SELECT count(*) FROM t) MATCHING rules WITH (every = '1s')", "0A000", "MATCHING"),
    ] {
        let said = served.refused(&format!("SUBSCRIBE {subscription}"));
        assert!(said.contains(&format!("ERROR:  {code}:")) && said.contains(word), "{said}");
    }
}

#[test]
fn cursors_fetch_available_rows() {
    let (_folder, served) = grown();
    served.ask("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)");
    let said = served.psql(&[
        "-c",
        "BEGIN",
        "-c",
        "DECLARE c CURSOR FOR SUBSCRIBE (SELECT id FROM t) AS OF 0",
        "-c",
        "FETCH 1 c",
        "-c",
        "FETCH 100 c WITH (timeout = '5s')",
        "-c",
        "FETCH ALL c WITH (timeout = '1ms')",
        "-c",
        "COMMIT",
    ]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said, "BEGIN\nDECLARE CURSOR\n1|+|1\n2|+|2\n2|>|\nCOMMIT\n");
}

/// In place of the mark of a row that another with the same mark follows.
const NO_MARK: u64 = u64::MAX;

/// Server-sent events: mark, kind, data.
struct Events {
    stream: BufReader<TcpStream>,
}

impl Events {
    fn open(served: &Served, sql: &str, last: Option<u64>) -> Events {
        let mut stream = TcpStream::connect(served.addresses().1).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let encoded: String = sql.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let last = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        let host = served.addresses().1;
        let head = format!("GET /subscribe?sql={encoded} HTTP/1.1\r\nHost: {host}\r\n{last}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
        }
        Events { stream }
    }
}

impl Iterator for Events {
    type Item = (u64, String, String);

    /// `None` at the end, or if the server was killed.
    fn next(&mut self) -> Option<Self::Item> {
        let (mut mark, mut kind, mut data) = (None, None, None);
        loop {
            let mut line = String::new();
            match self.stream.read_line(&mut line) {
                Ok(1..) => {}
                _ => return None,
            }
            let line = line.trim_end();
            // Chunk lengths are between the lines.
            match line.split_once(": ") {
                Some(("id", value)) => mark = value.parse().ok(),
                Some(("event", value)) => kind = Some(value.to_string()),
                Some(("data", value)) => data = Some(value.to_string()),
                // Only the last row of a mark has it.
                _ if data.is_some() => return Some((mark.unwrap_or(NO_MARK), kind?, data?)),
                _ if line == "0" => return None,
                _ => {}
            }
        }
    }
}

/// The snapshot and all changes up to a mark add up to the table at that mark, however often the
/// reader disconnects and resumes, while a writer writes and the server is killed.
#[test]
fn changes_add_up_to_the_table() {
    let histories = std::env::var("QUARRIER_HISTORIES").ok();
    let histories = histories.map_or(HISTORIES, |text| text.parse().unwrap());
    for seed in 0..histories {
        history(seed);
        keyed_history(seed);
    }
}

fn history(seed: u64) {
    let mut random = Random(seed);
    let (folder, served) = grown();
    let mut served = Some(served);
    let mut next = 0;
    let condition = ["price > 50", "word LIKE 'w1%'", "id % 3 = 0 OR word IS NULL", "TRUE"]
        [random.below(4) as usize];
    let query = format!("SELECT id FROM t WHERE {condition}");
    let (mut seen, mut mark) = (Vec::new(), None);
    for step in 0..6 {
        let server =
            served.take().unwrap_or_else(|| serve(&folder, &["--data", "d", "--segment", "4M"]));
        let statements: Vec<String> = (0..1 + random.below(4))
            .map(|_| {
                let rows: Vec<String> = (0..1 + random.below(50))
                    .map(|_| {
                        next += 1;
                        let word = match random.below(5) {
                            0 => "NULL".to_string(),
                            _ => format!("'w{}'", random.below(30)),
                        };
                        format!("({next}, {word}, {}.25)", random.below(100))
                    })
                    .collect();
                format!("INSERT INTO t VALUES {}", rows.join(", "))
            })
            .collect();
        let subscribe = match mark {
            None => format!("SUBSCRIBE ({query}) WITH (snapshot, progress = '5ms')"),
            Some(_) => format!("SUBSCRIBE ({query}) WITH (progress = '5ms')"),
        };
        let mut events = Events::open(&server, &subscribe, mark);
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for statement in &statements {
                    server.ask(statement);
                }
            });
            // Some readers disconnect before they have read everything.
            let rows_max = if random.below(2) == 0 { random.below(60) } else { u64::MAX };
            let mut rows = 0;
            while rows < rows_max {
                let was_done = writer.is_finished();
                assert!(begun.elapsed() < PATIENCE, "seed {seed}: at {mark:?} of {next}");
                let Some((at, kind, data)) = events.next() else { panic!("the server left") };
                mark = Some(at);
                match kind.as_str() {
                    "progress" if was_done && at >= next => break,
                    "progress" => {}
                    "snapshot" | "insert" => {
                        let id = data.trim_start_matches("{\"id\":").trim_end_matches('}');
                        seen.push((at, id.parse::<u64>().unwrap()));
                        rows += 1;
                    }
                    other => panic!("{other}: {data}"),
                }
            }
        });
        let what = format!("seed {seed}, step {step}");
        assert!(seen.is_sorted_by(|one, other| one.0 < other.0), "{what}: once each, in order");
        let there = server.ask(&format!("SELECT id FROM t WHERE {condition} ORDER BY id"));
        let there: Vec<u64> = there.lines().map(|line| line.parse().unwrap()).collect();
        // The table was empty at the start, so the numbers of messages equal their marks.
        let there: Vec<u64> =
            there.into_iter().filter(|id| mark.is_some_and(|mark| *id <= mark)).collect();
        let ids: Vec<u64> = seen.iter().map(|(_, id)| *id).collect();
        assert_eq!(ids, there, "{what}");
        match random.below(3) {
            0 => server.kill(),
            _ => served = Some(server),
        }
    }
}

/// A statement that replaces, adds or removes rows of the table `k`.
fn change(random: &mut Random) -> String {
    if random.below(4) == 0 {
        return format!("DELETE FROM k WHERE id = {}", random.below(40));
    }
    let row = |random: &mut Random| {
        let (id, price) = (random.below(40), random.below(100));
        let rule = match random.below(3) {
            0 => "NULL".to_string(),
            _ => format!("'w{}'", random.below(30)),
        };
        format!("({id}, {rule}, {price}.25)")
    };
    let rows: Vec<String> = (0..1 + random.below(9)).map(|_| row(random)).collect();
    format!("INSERT INTO k VALUES {}", rows.join(", "))
}

/// Reads a subscription until a condition holds, and applies its changes to the rows; returns the last mark.
fn fold(
    events: &mut Events,
    rows: &mut BTreeMap<String, u64>,
    mut is_enough: impl FnMut(u64, &str) -> bool,
) -> Option<u64> {
    let (mut mark, begun) = (None, Instant::now());
    loop {
        assert!(begun.elapsed() < PATIENCE, "at {mark:?}");
        let (at, kind, data) = events.next()?;
        // A row that another with the same mark follows has no mark of its own.
        mark = Some(at).filter(|at| *at != NO_MARK).or(mark);
        match kind.as_str() {
            "snapshot" | "insert" => *rows.entry(data).or_default() += 1,
            "delete" => {
                let count = rows.get_mut(&data).expect("a row that was not there is gone");
                *count -= 1;
                if *count == 0 {
                    rows.remove(&data);
                }
            }
            "progress" => {}
            other => panic!("{other}: {data}"),
        }
        // Nobody may stop between two rows with one mark.
        if at != NO_MARK && is_enough(at, &kind) {
            return mark;
        }
    }
}

/// As [`history`], over a table with a key: the rows are replaced and deleted. The snapshot as of the reader's
/// mark is the oracle. The reader stays until it has the first snapshot, which has no rows that were replaced
/// before its end.
fn keyed_history(seed: u64) {
    let mut random = Random(seed ^ 0x6b65_7973);
    let (folder, served) = grown();
    served.ask(
        "CREATE TABLE k (id bigint PRIMARY KEY, word text, price numeric(9,2)) \
         WITH (on_conflict = 'replace')",
    );
    let mut served = Some(served);
    let condition = ["price > 50", "word LIKE 'w1%'", "id % 3 = 0 OR word IS NULL", "TRUE"]
        [random.below(4) as usize];
    let query = format!("SELECT id, word, price FROM k WHERE {condition}");
    let (mut rows, mut mark) = (BTreeMap::new(), None);
    for step in 0..6 {
        let server =
            served.take().unwrap_or_else(|| serve(&folder, &["--data", "d", "--segment", "4M"]));
        let statements: Vec<String> =
            (0..1 + random.below(6)).map(|_| change(&mut random)).collect();
        let snapshot = if mark.is_none() { "snapshot, " } else { "" };
        let subscribe = format!("SUBSCRIBE ({query}) WITH ({snapshot}progress = '5ms')");
        let mut events = Events::open(&server, &subscribe, mark);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for statement in &statements {
                    server.ask(statement);
                }
            });
            let rows_max = if random.below(2) == 0 { random.below(30) } else { u64::MAX };
            let (mut count, mut has_snapshot) = (0, mark.is_some());
            let read = fold(&mut events, &mut rows, |_, kind| {
                count += u64::from(kind != "progress");
                has_snapshot |= kind == "progress";
                let is_done = writer.is_finished() && kind == "progress";
                has_snapshot && (count >= rows_max || is_done)
            });
            mark = read.or(mark);
        });
        let as_of = mark.expect("a mark");
        let snapshot = format!("SUBSCRIBE ({query}) WITH (snapshot) AS OF {as_of} UP TO {as_of}");
        let mut expected = BTreeMap::new();
        fold(&mut Events::open(&server, &snapshot, None), &mut expected, |at, kind| {
            kind == "progress" && at >= as_of
        });
        assert_eq!(rows, expected, "seed {seed}, step {step}, as of {as_of}");
        match random.below(3) {
            0 => server.kill(),
            _ => served = Some(server),
        }
    }
}

#[test]
fn subscribers_are_notified_of_a_shutdown() {
    let (_folder, served) = grown();
    let mut events = Events::open(&served, "SELECT * FROM t", None);
    assert_eq!(events.next().unwrap().1, "progress");
    assert_eq!(served.end(), Some(0));
    let mut rest = String::new();
    let _ = events.stream.read_to_string(&mut rest);
    assert!(rest.contains("event: error") && rest.contains("57P01"), "{rest}");
}
