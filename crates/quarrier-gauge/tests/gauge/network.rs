//! The network: bytes arrive unchanged or an error is reported, and strangers end only their own
//! session.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use quarrier_gauge::network::{
    Course, DATAGRAM_BYTES_MAX, Job, Listener, MESSAGE_BYTES_MAX, Protocol, SessionOutcome,
    measure_job,
};
use quarrier_gauge::trial::{Effort, Session};
use quarrier_gauge::{Area, Error, Network, Reading, Result, Unit};

use crate::refusing::{Refused, with_refused};

fn effort() -> Effort {
    Effort {
        runs: 3,
        most_runs: 3,
        warm_up: Duration::ZERO,
        trial: Duration::from_millis(5),
        patience: Duration::from_millis(50),
        narrow: 0.5,
    }
}

fn run_over(network: &Network, job: Job) -> Result<Vec<Reading>> {
    let go = AtomicBool::new(false);
    let mut nobody = ();
    let runs = measure_job(&mut Session::new(effort(), &mut nobody, &go)?, network, &job)?;
    Ok(vec![runs.reading()])
}

fn run(job: Job) -> Vec<Reading> {
    run_over(&Network::default(), job).unwrap_or_else(|error| panic!("{job:?}: {error}"))
}

fn to(address: SocketAddr) -> Network {
    Network { peer: Some(address.to_string()), congestion: None }
}

fn job(protocol: Protocol, course: Course, message_bytes: usize, streams: usize) -> Job {
    Job { protocol, course, message_bytes, streams }
}

#[test]
fn messages_of_every_length_arrive_over_tcp() {
    for message_bytes in [1, 7, 64, 4095, 65_536, MESSAGE_BYTES_MAX] {
        let readings = run(job(Protocol::Tcp, Course::Throughput, message_bytes, 1));
        let [reading] = &readings[..] else { panic!("{readings:?}") };
        assert!(reading.value > 0.0);
        assert_eq!((reading.area, reading.unit), (Area::Network, Unit::BytesPerSecond));
        assert!(reading.parameters.text("congestion").is_some_and(|name| !name.is_empty()));
    }
}

#[test]
fn long_datagrams_arrive_where_the_kernel_does_not_send_pages() {
    for message_bytes in [40_000, DATAGRAM_BYTES_MAX] {
        let job = job(Protocol::Udp, Course::Throughput, message_bytes, 1);
        let readings = with_refused(Refused::SendingFiles, || run(job));
        let [rate] = &readings[..] else { panic!("{readings:?}") };
        assert!(rate.value > 0.0);
        assert_eq!(rate.parameters.text("calls"), Some("sendmmsg"));
    }
}

#[test]
fn datagrams_of_every_length_arrive_and_the_lost_are_counted() {
    for message_bytes in [1, 7, 8, 15, 16, 17, 64, 1472, 40_000, DATAGRAM_BYTES_MAX] {
        let readings = run(job(Protocol::Udp, Course::Throughput, message_bytes, 1));
        let [rate] = &readings[..] else { panic!("{readings:?}") };
        assert!(rate.value > 0.0);
        assert!(rate.notes.iter().any(|note| note.contains("datagrams lost")));
        assert!(rate.received_share.is_some_and(|share| share > 0.0 && share <= 1.0), "{rate:?}");
    }
}

#[test]
fn round_trips_have_times_over_both_protocols() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for message_bytes in [1, 64, 16_384, DATAGRAM_BYTES_MAX] {
            let readings = run(job(protocol, Course::RoundTrip, message_bytes, 1));
            let [reading] = &readings[..] else { panic!("{readings:?}") };
            let times = reading.percentiles.as_ref().unwrap();
            assert!(0.0 < times.p50 && times.p50 <= times.p99 && times.p99 <= times.max);
            assert_eq!(reading.unit, Unit::Seconds);
            assert_eq!(reading.parameters.text("load"), Some("closed loop"));
        }
    }
}

#[test]
fn offered_messages_are_timed_from_when_they_were_due() {
    let readings = run(job(Protocol::Tcp, Course::Offered(2_000.0), 64, 1));
    assert_eq!(readings[0].parameters.text("load"), Some("offered"));
    assert!(readings[0].percentiles.as_ref().unwrap().p50 > 0.0);
    // More than the link can carry: messages wait, and their waiting time counts.
    let readings = run(job(Protocol::Tcp, Course::Offered(1e7), 1024, 1));
    assert!(readings[0].value > 0.0);
}

#[test]
fn more_streams_than_cores_work() {
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for course in [Course::Throughput, Course::RoundTrip] {
            let readings = run(job(protocol, course, 1024, 8));
            assert!(readings[0].value > 0.0);
            assert_eq!(readings[0].parameters.integer("streams"), Some(8));
        }
    }
}

#[test]
fn congestion_control_is_set_or_the_refusal_reported() {
    let set = |name: &str| {
        let network = Network { peer: None, congestion: Some(name.to_owned()) };
        run_over(&network, job(Protocol::Tcp, Course::Throughput, 4096, 1))
    };
    // Every kernel has it, and permits it to every user.
    assert_eq!(set("reno").unwrap()[0].parameters.text("congestion"), Some("reno"));
    let reading = &set("no-such-one").unwrap()[0];
    assert!(reading.notes.iter().any(|note| note.contains("no-such-one refused")));
    assert!(matches!(set("a name\n"), Err(Error::BadRequest(_))));
    assert!(matches!(set("longer-than-any-name"), Err(Error::BadRequest(_))));
}

#[test]
fn what_cannot_be_measured_is_refused() {
    use Course::{Offered, RoundTrip, Throughput};
    for refused in [
        job(Protocol::Tcp, Throughput, 0, 1),
        job(Protocol::Tcp, Throughput, MESSAGE_BYTES_MAX + 1, 1),
        job(Protocol::Udp, RoundTrip, DATAGRAM_BYTES_MAX + 1, 1),
        job(Protocol::Tcp, Throughput, 1, 0),
        job(Protocol::Tcp, Throughput, 1, 1000),
        job(Protocol::Udp, Offered(1.0), 1, 1),
        job(Protocol::Tcp, Offered(f64::INFINITY), 1, 1),
    ] {
        let result = run_over(&Network::default(), refused);
        assert!(matches!(result, Err(Error::BadRequest(_))), "{refused:?}");
    }
}

#[test]
fn a_stop_ends_a_long_run_at_once() {
    let long = Effort { trial: Duration::from_secs(600), ..effort() };
    for (protocol, course) in [
        (Protocol::Tcp, Course::Throughput),
        (Protocol::Tcp, Course::RoundTrip),
        (Protocol::Tcp, Course::Offered(1.0)),
        (Protocol::Udp, Course::Throughput),
        (Protocol::Udp, Course::RoundTrip),
    ] {
        let stop = AtomicBool::new(false);
        let mut nobody = ();
        let mut session = Session::new(long.clone(), &mut nobody, &stop).unwrap();
        let job = job(protocol, course, 64, 2);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                stop.store(true, Ordering::Relaxed);
            });
            measure_job(&mut session, &Network::default(), &job)
        });
        assert!(matches!(result, Err(Error::Stopped)), "{job:?}: {result:?}");
    }
}

/// Runs a listener during `work`; returns how its sessions ended.
fn with_listener<T>(work: impl FnOnce(SocketAddr) -> T) -> (T, Vec<SessionOutcome>) {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.address().unwrap();
    let stop = AtomicBool::new(false);
    let heard = Mutex::new(Vec::new());
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let result = std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            listener.serve(&stop, &|_, what| heard.lock().unwrap().push(what)).unwrap();
        });
        work(address)
    });
    (result, heard.into_inner().unwrap())
}

#[test]
fn a_listener_serves_several_gauges_and_reports_each_session() {
    let (readings, heard) = with_listener(|address| {
        let network = to(address);
        let tcp = run_over(&network, job(Protocol::Tcp, Course::Throughput, 4096, 2)).unwrap();
        let udp = run_over(&network, job(Protocol::Udp, Course::RoundTrip, 64, 1)).unwrap();
        assert_eq!(tcp[0].parameters.text("path"), Some(&*address.to_string()));
        [tcp, udp]
    });
    assert!(readings.iter().all(|reading| reading[0].value > 0.0));
    // Two streams and a round trip, in at least one run.
    assert!(heard.len() >= 3, "{}", heard.len());
    for one in heard {
        assert!(matches!(one, SessionOutcome::Served { bytes, .. } if bytes > 0), "{one:?}");
    }
}

/// Returns everything that the listener answers to these bytes until it closes the connection.
fn answer_to(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    // The listener may have closed the connection before everything was sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// A client's first frame, with the offsets of the protocol's description.
fn hello(task: u8, message_bytes: u32, port: u16) -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[..8].copy_from_slice(b"qrgauge\n");
    frame[8] = 1;
    frame[10] = 1;
    frame[11] = task;
    frame[12..16].copy_from_slice(&message_bytes.to_le_bytes());
    frame[16..20].copy_from_slice(&1_000u32.to_le_bytes());
    frame[20..22].copy_from_slice(&port.to_le_bytes());
    frame
}

#[test]
fn a_strangers_bytes_end_their_session_with_a_reason() {
    let changed = |at: usize, byte: u8| {
        let mut frame = hello(1, 64, 0);
        frame[at] = byte;
        frame
    };
    let strangers: Vec<(Vec<u8>, &str)> = vec![
        (b"GET / HTTP/1.1\r\nHost: there\r\nAccept: */*\r\n\r\n".repeat(3), "not a gauge's"),
        (vec![0xff; 4096], "not a gauge's"),
        (vec![], "sent no valid request"),
        (hello(1, 64, 0)[..63].to_vec(), "sent no valid request"),
        (changed(8, 2), "version 2"),
        (changed(10, 9), "kind 9"),
        (changed(11, 0), "task 0"),
        (changed(11, 5), "task 5"),
        (hello(1, 0, 0), "messages of 0 bytes"),
        (hello(1, u32::MAX, 0), "messages of"),
        (changed(19, 0xff), "at most 600 s"),
        (changed(32, b'/'), "odd characters"),
        (changed(63, 1), "must be 0"),
        (hello(3, 1 << 20, 9), "at most 65507"),
    ];
    let count = strangers.len();
    let (reasons, heard) = with_listener(|address| {
        for (bytes, _) in &strangers {
            let answer = answer_to(address, bytes);
            assert!(answer.len() <= 64, "{} bytes for a stranger", answer.len());
        }
        // The listener still runs: it serves a gauge after all of them.
        run_over(&to(address), job(Protocol::Tcp, Course::RoundTrip, 64, 1)).unwrap();
        strangers.iter().map(|(_, reason)| *reason).collect::<Vec<_>>()
    });
    for reason in reasons {
        let is_reported = heard
            .iter()
            .any(|one| matches!(one, SessionOutcome::Ended(text) if text.contains(reason)));
        assert!(is_reported, "{reason}: {heard:?}");
    }
    let ended = heard.iter().filter(|one| matches!(one, SessionOutcome::Ended(_))).count();
    assert_eq!(ended, count);
}

#[test]
fn payload_that_differs_from_the_announced_one_is_counted_as_wrong() {
    let ((), heard) = with_listener(|address| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&hello(1, 64, 0)).unwrap();
        stream.write_all(&[7; 100_000]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert_eq!(answer.len(), 128);
        assert_eq!(answer[64 + 16..64 + 24], 100_000u64.to_le_bytes());
        assert_ne!(answer[64 + 40..64 + 48], [0; 8]);
    });
    assert!(matches!(&heard[..], [SessionOutcome::Ended(reason)] if reason.contains("differ")));
}

#[test]
fn datagrams_of_strangers_do_not_count() {
    let ((), heard) = with_listener(|address| {
        let mine = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let port = mine.local_addr().unwrap().port();
        stream.write_all(&hello(3, 64, port)).unwrap();
        let mut answer = [0; 64];
        stream.read_exact(&mut answer).unwrap();
        let port = u16::from_le_bytes([answer[12], answer[13]]);
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            stranger.send_to(&[1; 64], ("127.0.0.1", port)).unwrap();
        }
        mine.send_to(&[1; 64], ("127.0.0.1", port)).unwrap();
        let mut ended = hello(0, 0, 0);
        ended[10] = 3;
        ended[12..].fill(0);
        stream.write_all(&ended).unwrap();
        stream.read_exact(&mut answer).unwrap();
        // One arrived, and it differed from the announced one.
        assert_eq!(answer[24..32], 1u64.to_le_bytes());
        assert_eq!(answer[40..48], 1u64.to_le_bytes());
    });
    assert_eq!(heard.len(), 1);
}

#[test]
fn a_server_that_is_no_gauge_is_an_error_and_not_a_reading() {
    let answers: [&[u8]; 4] = [
        b"SSH-2.0-something that is long enough to be a frame of 64 bytes....",
        b"",
        &[0; 64],
        &[0xff; 200],
    ];
    for bytes in answers {
        let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = stranger.local_addr().unwrap();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = stranger.accept().unwrap();
                let mut frame = [0; 64];
                let _ = stream.read_exact(&mut frame);
                let _ = stream.write_all(bytes);
            });
            run_over(&to(address), job(Protocol::Tcp, Course::Throughput, 64, 1))
        });
        match result {
            Err(Error::Peer { reason, .. }) => {
                assert!(reason.contains("not a gauge's"), "{reason}")
            }
            Err(Error::Io { .. }) => assert!(bytes.len() < 64),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn without_a_listener_the_error_names_the_address() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let result = run_over(&to(free), job(Protocol::Tcp, Course::Throughput, 64, 1));
    let Err(Error::Io { subject, .. }) = result else { panic!("{result:?}") };
    assert_eq!(subject, free.to_string());
    let nowhere = Network { peer: Some("no port".to_owned()), congestion: None };
    assert!(run_over(&nowhere, job(Protocol::Tcp, Course::Throughput, 64, 1)).is_err());
}

#[test]
fn the_listener_survives_any_bytes_and_answers_little() {
    let (_, heard) = with_listener(|address| {
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 200,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        // A frame with some changed bytes, and random bytes after it. Tasks 3 and 4 would wait for
        // datagrams, but end at once with the stream.
        let frames = (
            1u8..6,
            prop::collection::vec((0usize..64, any::<u8>()), 0..4),
            prop::collection::vec(any::<u8>(), 0..300),
        );
        runner
            .run(&frames, |(task, changes, rest)| {
                let mut bytes = hello(task, 64, 9);
                for (at, byte) in changes {
                    bytes[at] = byte;
                }
                bytes.extend(&rest);
                let answer = answer_to(address, &bytes);
                // An answer, an account, and the echoed bytes.
                prop_assert!(answer.len() <= 128 + rest.len());
                Ok(())
            })
            .unwrap();
        run_over(&to(address), job(Protocol::Tcp, Course::RoundTrip, 64, 1)).unwrap();
    });
    assert!(heard.len() > 200);
}
