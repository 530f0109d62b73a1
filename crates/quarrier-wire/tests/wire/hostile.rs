//! Hostile and broken clients.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use quarrier_core::sync::lock;
use quarrier_wire::{Limits, Users, made_line};

use crate::client::{Client, connect, framed, get, kinds, startup};
use crate::protocol::wait_for;
use crate::toy::{Served, served, served_to};

fn quick() -> Served {
    let limits = Limits {
        login_time: Duration::from_millis(300),
        message_time: Duration::from_millis(300),
        send_time: Duration::from_millis(500),
        connections_max: 4,
        ..Limits::default()
    };
    served_to(None, limits)
}

/// Whether the server has disconnected.
fn is_left(stream: &mut std::net::TcpStream) -> bool {
    let mut rest = Vec::new();
    matches!(stream.read_to_end(&mut rest), Ok(_) | Err(_))
}

#[test]
fn a_message_with_a_too_large_length_is_refused_early() {
    let served = served();
    for bytes in
        [&b"Q\x3f\xff\xff\xff"[..], b"Q\0\0\0\x01", b"E\0\x7f\0\0", b"\xffabcd", b"S\0\0\0\x09"]
    {
        let mut client = Client::new(served.postgres);
        client.send(bytes);
        let said = client.next().unwrap();
        assert_eq!((said.kind, said.field('C').as_str()), ('E', "08P01"), "{bytes:?}");
        assert!(client.next().is_none());
    }
    for bytes in [&b"\x7f\xff\xff\xff"[..], b"\0\0\0\x01", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = connect(served.postgres);
        stream.write_all(bytes).unwrap();
        assert!(is_left(&mut stream));
    }
}

#[test]
fn large_messages_share_the_available_memory() {
    let limits = Limits { messages_bytes_max: 1 << 20, ..Limits::default() };
    let served = served_to(None, limits);
    let mut first = Client::new(served.postgres);
    let mut text = b"Q".to_vec();
    text.extend((900_004_u32).to_be_bytes());
    first.send(&text);
    // The first client holds its memory now, so nobody else gets as much.
    let mut second = Client::new(served.postgres);
    std::thread::sleep(Duration::from_millis(50));
    second.send(&text);
    assert_eq!(second.next().unwrap().field('C'), "53200");
    drop(first);
    let mut third = Client::new(served.postgres);
    third.send(&text);
    third.send(&[b' '; 899_999]);
    third.send(b"\0");
    assert_eq!(kinds(&third.until_ready()), "IZ");
}

#[test]
fn slow_clients_are_disconnected() {
    let served = quick();
    let mut silent = connect(served.postgres);
    let mut slow = connect(served.postgres);
    slow.write_all(&startup(&[("user", "ann")])[..7]).unwrap();
    assert!(is_left(&mut silent) && is_left(&mut slow));
    let mut inside = Client::new(served.postgres);
    inside.send(b"Q\0\0");
    let said = inside.next().unwrap();
    assert_eq!(said.field('C'), "57P05");
    let mut web = connect(served.http);
    web.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
    assert!(is_left(&mut web));
}

#[test]
fn clients_that_read_nothing_are_disconnected() {
    let served = quick();
    let mut client = Client::new(served.postgres);
    client.send(&framed(b'Q', b"SELECT rows 100000000\0"));
    wait_for(|| lock(&served.toy.stopped).last().is_some_and(quarrier_wire::Stop::is_set));
    let mut web = connect(served.http);
    web.write_all(b"GET /query?sql=SELECT+rows+100000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    wait_for(|| {
        let stopped = lock(&served.toy.stopped);
        stopped.len() == 2 && stopped[1].is_set()
    });
}

#[test]
fn one_client_too_many_is_refused_and_others_continue() {
    let served = quick();
    let mut clients: Vec<_> = (0..4).map(|_| Client::new(served.postgres)).collect();
    let mut more = Client { stream: connect(served.postgres), key: Vec::new() };
    more.send(&startup(&[("user", "ann")]));
    assert_eq!(more.next().unwrap().field('C'), "53300");
    for client in &mut clients {
        assert_eq!(kinds(&client.query("SELECT 1")), "TDCZ");
    }
    drop(clients);
    wait_for(|| served.board.clients().is_empty());
    Client::new(served.postgres);
}

#[test]
fn nobody_connects_without_a_password() {
    let line = made_line("ann", "pencil").unwrap();
    let served = served_to(Some(Users::of(&line, "users").unwrap()), Limits::default());
    assert_eq!(guess(served.postgres), "28P01");
    assert!(lock(&served.said).iter().any(|line| line.contains("\"ann\"")));
    // Statements before the password are not accepted.
    let mut client = Client { stream: connect(served.postgres), key: Vec::new() };
    client.send(&startup(&[("user", "ann")]));
    client.send(&framed(b'Q', b"SELECT 1\0"));
    client.next().unwrap();
    assert_eq!(client.next().unwrap().field('C'), "08P01");
}

/// Sends a wrong password, and receives the answer.
fn guess(address: std::net::SocketAddr) -> String {
    let mut client = Client { stream: connect(address), key: Vec::new() };
    client.send(&startup(&[("user", "ann")]));
    assert_eq!(client.next().unwrap().body, b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let mut first = b"SCRAM-SHA-256\0".to_vec();
    first.extend(9_u32.to_be_bytes());
    first.extend(b"n,,n=,r=a");
    client.send(&framed(b'p', &first));
    let answer = client.next().unwrap();
    let said = String::from_utf8(answer.body[4..].to_vec()).unwrap();
    let nonce = said.split(',').next().unwrap();
    let proof = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    client.send(&framed(b'p', format!("c=biws,{nonce},p={proof}").as_bytes()));
    let refused = client.next().unwrap();
    assert!(client.next().is_none());
    refused.field('C')
}

#[test]
fn wrong_passwords_in_a_loop_leave_the_log_small_and_others_unharmed() {
    const GUESSERS: usize = 40;
    const MORE: &str = " more wrong passwords in the last second";
    let line = made_line("ann", "pencil").unwrap();
    let served = served_to(Some(Users::of(&line, "users").unwrap()), Limits::default());
    let right = "Authorization: Basic YW5uOnBlbmNpbA==\r\n";
    let wrong = "Authorization: Basic YW5uOmVyYXNlcg==\r\n";
    std::thread::scope(|threads| {
        let guessers: Vec<_> = (0..GUESSERS)
            .map(|number| {
                let served = &served;
                threads.spawn(move || {
                    for _ in 0..2 {
                        match number % 2 {
                            0 => assert_eq!(guess(served.postgres), "28P01"),
                            _ => assert_eq!(get(served.http, "/status", wrong).0, 401),
                        }
                    }
                })
            })
            .collect();
        while guessers.iter().any(|it| !it.is_finished()) {
            assert_eq!(get(served.http, "/status", right).0, 200);
        }
    });
    let board = &served.board.counts.wrong_passwords;
    assert_eq!(board.load(Ordering::Acquire), 2 * GUESSERS as u64);
    // Each second has a few lines and one about the others, which comes with its end.
    let logged = || -> usize {
        let said = lock(&served.said);
        let counts = said.iter().map(|line| match line.strip_suffix(MORE) {
            Some(count) => count.parse().unwrap(),
            None => 1,
        });
        counts.sum()
    };
    wait_for(|| logged() == 2 * GUESSERS);
}

fn message() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(b"QPBDECSHXdcfpF".to_vec());
    let text = prop::sample::select(vec![
        &b"SELECT 1\0"[..],
        b"s\0SELECT echo $1\0\0\x01\0\0\0\x17",
        b"\0SELECT rows 3\0\0\0",
        b"p\0s\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x07\0\0",
        b"p\0\0\0\0\0\0\0\0",
        b"Ss\0",
        b"Pp\0",
        b"p\0\0\0\0\x01",
        b"COPY t FROM STDIN\0",
        b"BEGIN; DECLARE c CURSOR FOR SELECT rows 9\0",
        b"FETCH 2 c\0",
        b"1\tx\t2\n",
        b"",
    ]);
    let body = prop_oneof![text.prop_map(<[u8]>::to_vec), vec(any::<u8>(), 0..40)];
    (kind, body).prop_map(|(kind, body)| framed(kind, &body))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any messages in any order, cut anywhere: the connection ends or continues, and no other
    /// client is affected.
    #[test]
    fn no_messages_harm_the_others(
        messages in vec(message(), 1..12),
        broken in prop::option::of(vec(any::<u8>(), 1..30)),
    ) {
        static SERVED: std::sync::OnceLock<Served> = std::sync::OnceLock::new();
        let served = SERVED.get_or_init(served);
        let mut client = Client::new(served.postgres);
        let mut bytes: Vec<u8> = messages.concat();
        bytes.extend(broken.unwrap_or_default());
        // The server may have disconnected already.
        let _ = client.stream.write_all(&bytes);
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest);
        let said = lock(&served.said).clone();
        prop_assert!(said.is_empty(), "{said:?}");
        prop_assert_eq!(kinds(&Client::new(served.postgres).query("SELECT 1")), "TDCZ");
    }
}
