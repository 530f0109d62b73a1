//! PostgreSQL's protocol, message by message.

use std::time::{Duration, Instant};

use quarrier_core::sync::lock;
use quarrier_wire::Limits;

use crate::client::{Client, connect, framed, kinds};
use crate::toy::{served, served_to};

fn parse(name: &str, text: &str, declared: &[u32]) -> Vec<u8> {
    let mut body = format!("{name}\0{text}\0").into_bytes();
    body.extend((declared.len() as u16).to_be_bytes());
    declared.iter().for_each(|kind| body.extend(kind.to_be_bytes()));
    framed(b'P', &body)
}

fn bind(portal: &str, name: &str, values: &[Option<&[u8]>], format: u16, results: u16) -> Vec<u8> {
    let mut body = format!("{portal}\0{name}\0").into_bytes();
    body.extend([0, 1]);
    body.extend(format.to_be_bytes());
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            None => body.extend((-1_i32).to_be_bytes()),
            Some(value) => {
                body.extend((value.len() as u32).to_be_bytes());
                body.extend(*value);
            }
        }
    }
    body.extend([0, 1]);
    body.extend(results.to_be_bytes());
    framed(b'B', &body)
}

fn execute(portal: &str, rows_max: u32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.extend(rows_max.to_be_bytes());
    framed(b'E', &body)
}

fn describe(what: u8, name: &str) -> Vec<u8> {
    let mut body = vec![what];
    body.extend(format!("{name}\0").bytes());
    framed(b'D', &body)
}

const SYNC: &[u8] = b"S\0\0\0\x04";

#[test]
fn several_statements_are_answered_until_one_fails() {
    let served = served();
    let mut client = Client::new(served.postgres);
    let messages = client.query("SELECT 1; SELECT rows 3; nonsense; SELECT 1");
    assert_eq!(kinds(&messages), "TDCTDDDCEZ");
    let error = &messages[messages.len() - 2];
    assert_eq!((error.field('C').as_str(), error.field('H').as_str()), ("42601", "SELECT 1"));
    assert_eq!(kinds(&client.query(" ; ")), "IZ");
    let messages = client.query("DELETE all");
    assert_eq!(messages[0].body, b"DELETE 3\0");
}

#[test]
fn rows_in_text_are_written_like_postgres() {
    let served = served();
    let messages = Client::new(served.postgres).query("SELECT rows 7");
    let text = |row: usize| -> Vec<String> {
        let values = messages[row + 1].values().into_iter();
        values.map(|it| it.map_or("-".into(), |it| String::from_utf8(it).unwrap())).collect()
    };
    assert_eq!(
        text(5),
        [
            "5",
            "t\t5",
            "1.25",
            "f",
            "1970-01-06",
            "1970-01-01 00:00:05.000005",
            "6.25",
            "\\x0500",
            "see",
            "{0,NULL}"
        ]
    );
    assert_eq!(text(6), ["6", "-", "-", "-", "-", "-", "-", "-", "-", "-"]);
    assert_eq!(text(3)[9], "{}");
}

#[test]
fn values_are_bound_in_text_and_in_binary() {
    let served = served();
    let mut client = Client::new(served.postgres);
    client.send(&parse("s", "SELECT echo $1 $2 $3", &[23, 0, 17]));
    client.send(&describe(b'S', "s"));
    client.send(&bind("", "s", &[Some(b"7"), None, Some(b"\\x00ff")], 0, 0));
    client.send(&execute("", 0));
    client.send(&bind("", "s", &[Some(&7_i32.to_be_bytes()), Some(b"x"), Some(b"\0\xff")], 1, 1));
    client.send(&execute("", 0));
    client.send(SYNC);
    let messages = client.until_ready();
    assert_eq!(kinds(&messages), "1tT2DC2DCZ");
    let text = messages[4].values();
    assert_eq!(text, [Some(b"7".to_vec()), None, Some(b"\\x00ff".to_vec())]);
    let binary = messages[7].values();
    assert_eq!(binary, [Some(vec![0, 0, 0, 7]), Some(b"x".to_vec()), Some(vec![0, 255])]);
    client.send(&bind("", "s", &[Some(b"x"), None, None], 0, 0));
    client.send(SYNC);
    let messages = client.until_ready();
    assert_eq!((kinds(&messages).as_str(), messages[0].field('C').as_str()), ("EZ", "22P02"));
}

#[test]
fn a_portal_returns_as_many_rows_as_requested() {
    let served = served();
    let mut client = Client::new(served.postgres);
    client.query("BEGIN");
    client.send(&parse("", "SELECT rows 2500", &[]));
    client.send(&bind("p", "", &[], 0, 1));
    client.send(&describe(b'P', "p"));
    client.send(&execute("p", 1_200));
    client.send(SYNC);
    let messages = client.until_ready();
    assert_eq!(messages.iter().filter(|message| message.kind == 'D').count(), 1_200);
    assert_eq!(messages[messages.len() - 2].kind, 's');
    client.send(&execute("p", 0));
    client.send(SYNC);
    let messages = client.until_ready();
    assert_eq!(messages.iter().filter(|message| message.kind == 'D').count(), 1_300);
    let last = messages[1_299].values();
    assert_eq!(last[0].as_deref(), Some(&2_499_i64.to_be_bytes()[..]));
    // Outside of a transaction, it ends with Sync.
    client.query("COMMIT");
    client.send(&execute("p", 1));
    client.send(SYNC);
    assert_eq!(client.until_ready()[0].field('C'), "34000");
}

#[test]
fn cursors_are_fetched_in_parts() {
    let served = served();
    let mut client = Client::new(served.postgres);
    let failed = client.query("DECLARE c CURSOR FOR SELECT rows 5");
    assert_eq!(failed[0].field('C'), "25P01");
    client.query("BEGIN");
    assert_eq!(kinds(&client.query("DECLARE c CURSOR FOR SELECT rows 5")), "CZ");
    assert_eq!(kinds(&client.query("FETCH 2 FROM c")), "TDDCZ");
    let moved = client.query("MOVE NEXT c");
    assert_eq!(moved[0].body, b"MOVE 1\0");
    let rest = client.query("FETCH ALL c");
    assert_eq!(kinds(&rest), "TDDCZ");
    assert_eq!(rest[1].values()[0].as_deref(), Some(&b"3"[..]));
    assert_eq!(kinds(&client.query("FETCH c")), "TCZ");
    assert_eq!(kinds(&client.query("CLOSE c; COMMIT")), "CCZ");
}

#[test]
fn a_failed_transaction_accepts_only_its_end() {
    let served = served();
    let mut client = Client::new(served.postgres);
    let begun = client.query("BEGIN");
    assert_eq!(begun.last().unwrap().body, b"T");
    let failed = client.query("nonsense");
    assert_eq!(failed.last().unwrap().body, b"E");
    assert_eq!(client.query("SELECT 1")[0].field('C'), "25P02");
    let ended = client.query("COMMIT");
    assert_eq!((&ended[0].body[..], &ended[1].body[..]), (&b"ROLLBACK\0"[..], &b"I"[..]));
    client.query("BEGIN; DELETE all");
    let warned = client.query("ROLLBACK");
    assert_eq!(kinds(&warned), "NCZ");
}

#[test]
fn after_an_error_messages_are_skipped_until_sync() {
    let served = served();
    let mut client = Client::new(served.postgres);
    client.send(&parse("a", "nonsense", &[]));
    client.send(&bind("", "a", &[], 0, 0));
    client.send(&execute("", 0));
    client.send(SYNC);
    client.send(&parse("", "SELECT 1", &[]));
    client.send(SYNC);
    assert_eq!(kinds(&client.until_ready()), "EZ");
    assert_eq!(kinds(&client.until_ready()), "1Z");
}

#[test]
fn rows_are_sent_before_more_arrive() {
    let served = served();
    let mut client = Client::new(served.postgres);
    client.send(&framed(b'Q', b"SELECT slowly\0"));
    let first: Vec<_> = (0..4).map(|_| client.next().unwrap()).collect();
    assert_eq!(kinds(&first), "TDDD");
    // It ends when it is cancelled, even if it has no end.
    cancel(&client, served.postgres);
    let rest = client.until_ready();
    assert_eq!(rest[rest.len() - 2].field('C'), "57014");
    assert!(lock(&served.toy.stopped).last().unwrap().is_set());
    assert_eq!(kinds(&client.query("SELECT 1")), "TDCZ");
}

fn cancel(client: &Client, address: std::net::SocketAddr) {
    let mut bytes = vec![0, 0, 0, 16];
    bytes.extend(80_877_102_u32.to_be_bytes());
    bytes.extend(&client.key);
    std::io::Write::write_all(&mut connect(address), &bytes).unwrap();
}

#[test]
fn nobody_cancels_without_the_secret() {
    let served = served();
    let mut client = Client::new(served.postgres);
    client.send(&framed(b'Q', b"SELECT slowly\0"));
    let mut guess = Client { stream: connect(served.postgres), key: client.key.clone() };
    guess.key[4] ^= 1;
    cancel(&guess, served.postgres);
    let rows: Vec<_> = (0..8).map(|_| client.next().unwrap()).collect();
    assert_eq!(kinds(&rows), "TDDDDDDD");
}

#[test]
fn statements_end_at_their_timeout_and_with_their_client() {
    let served = served();
    let mut client = Client::new(served.postgres);
    client.query("SET statement_timeout = '100ms'");
    let ended = client.query("SELECT never");
    assert_eq!(kinds(&ended), "TEZ");
    assert!(ended[1].field('M').contains("statement timeout"));
    client.query("RESET ALL");
    client.send(&framed(b'Q', b"SELECT never\0"));
    client.next().unwrap();
    drop(client);
    let stop = lock(&served.toy.stopped).last().unwrap().clone();
    wait_for(|| stop.is_set() && served.board.clients().is_empty());
}

/// Waits for a condition that soon holds.
pub(crate) fn wait_for(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "it never happens");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_panic_ends_one_connection_alone() {
    let served = served();
    let mut other = Client::new(served.postgres);
    let mut client = Client::new(served.postgres);
    client.send(&framed(b'Q', b"SELECT panic\0"));
    while client.next().is_some() {}
    assert_eq!(kinds(&other.query("SELECT 1")), "TDCZ");
    wait_for(|| lock(&served.said).iter().any(|line| line.contains("internal error")));
    wait_for(|| served.board.clients().len() == 1 && served.board.running().is_empty());
}

#[test]
fn a_shutdown_lets_statements_finish() {
    let limits = Limits { grace_time: Duration::from_millis(500), ..Limits::default() };
    let mut served = served_to(None, limits);
    let mut idle = Client::new(served.postgres);
    let mut busy = Client::new(served.postgres);
    busy.send(&framed(b'Q', b"SELECT slowly\0"));
    busy.next().unwrap();
    served.end();
    let said = idle.next().unwrap();
    assert_eq!((said.kind, said.field('C').as_str()), ('E', "57P01"));
    assert!(idle.next().is_none());
    let mut last = None;
    while let Some(message) = busy.next() {
        last = Some(message);
    }
    assert_eq!(last.unwrap().field('C'), "57P01");
}

#[test]
fn copy_works_in_both_directions() {
    let served = served();
    let mut client = Client::new(served.postgres);
    let out = client.query("COPY (SELECT rows 2) TO STDOUT WITH (FORMAT csv, HEADER)");
    assert_eq!(kinds(&out), "HdddcCZ");
    assert_eq!(out[1].body, b"i,t,f,b,d,s,n,y,c,l\n");
    assert_eq!(
        out[3].body,
        b"1,t\t1,0.25,f,1970-01-02,1970-01-01 00:00:01.000001,1.25,\\x0100,bee,{0}\n"
    );
    client.send(&framed(b'Q', b"COPY t (b, a) FROM STDIN\0"));
    assert_eq!(client.next().unwrap().kind, 'G');
    for part in [&b"x\t1"[..], b"\n\\N\t2\n"] {
        client.send(&framed(b'd', part));
    }
    client.send(&framed(b'c', b""));
    let done = client.until_ready();
    assert_eq!(done[0].body, b"COPY 2\0");
    assert_eq!(*lock(&served.toy.taken), b"{\"b\":\"x\",\"a\":1}\n{\"a\":2}\n");
}

#[test]
fn a_copy_that_fails_leaves_nothing() {
    let served = served();
    let mut client = Client::new(served.postgres);
    let lines = [("f", &b"gave up\0"[..], "57014"), ("d", b"nonsense,x,1\n", "22P02")];
    for (kind, body, code) in lines {
        client.send(&framed(b'Q', b"COPY t FROM STDIN (FORMAT csv)\0"));
        assert_eq!(client.next().unwrap().kind, 'G');
        client.send(&framed(b'd', b"1,x,2.5\n"));
        client.send(&framed(kind.as_bytes()[0], body));
        // Later data belongs to no COPY.
        client.send(&framed(b'd', b"2,y,3\n"));
        let failed = client.until_ready();
        assert_eq!((kinds(&failed).as_str(), failed[0].field('C').as_str()), ("EZ", code));
    }
    assert!(lock(&served.toy.taken).is_empty());
    let none = client.query("COPY nowhere FROM STDIN");
    assert_eq!(none[0].field('C'), "42P01");
}

#[test]
fn interrupted_rows_end_with_an_error() {
    let served = served();
    let mut client = Client::new(served.postgres);
    assert_eq!(kinds(&client.query("SELECT broken")), "TDDDEZ");
    let copied = client.query("COPY (SELECT broken) TO STDOUT");
    assert_eq!(kinds(&copied), "HdddEZ");
    assert_eq!(copied[4].field('C'), "22012");
}
