//! Endings: dropped, stopped, permanently gone. Nobody hangs.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quarrier_core::source::Source;
use quarrier_remote::{Error, RemoteSource};

use crate::server::{Act, Server};
use crate::{exact, hasty, noise, remote};

/// A server that responds to opening, then sends nothing.
fn mute() -> Server {
    Server::new(noise(100_000, 1), |ask| match ask.number {
        0 => Act::Serve,
        _ => Act::Silence,
    })
}

/// Waits until the server has received a request for more than the head.
fn wait_for_a_request(server: &Server) {
    while server.log().len() < 2 {
        thread::sleep(Duration::from_millis(1));
    }
}

fn read(source: &RemoteSource) -> ErrorKind {
    source.read_at(50_000, &mut [0; 10]).unwrap_err().kind()
}

#[test]
fn readers_get_an_error_when_the_client_is_dropped() {
    let server = mute();
    let mut options = exact();
    options.timeouts.progress = Duration::from_secs(3600);
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| read(&source));
        wait_for_a_request(&server);
        drop(remote);
        assert_eq!(waiting.join().unwrap(), ErrorKind::ConnectionAborted);
    });
    assert_eq!(read(&source), ErrorKind::ConnectionAborted);
    // Held bytes can still be read.
    assert_eq!(source.read_at(0, &mut [0; 1]).unwrap(), 1);
}

#[test]
fn readers_get_an_error_when_the_stop_flag_is_set() {
    let server = mute();
    let stop = Arc::new(AtomicBool::new(false));
    let mut options = exact();
    options.timeouts.progress = Duration::from_secs(3600);
    options.stop = Some(Arc::clone(&stop));
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| read(&source));
        wait_for_a_request(&server);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(waiting.join().unwrap(), ErrorKind::ConnectionAborted);
    });
    let error = remote.open(&server.url()).unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error}");
}

#[test]
fn requests_of_a_source_that_is_dropped_end_with_it() {
    // Reads complete; fetches ahead do not.
    let server = Server::new(noise(8 << 20, 2), |ask| match &ask.range {
        Some(range) if range.start >= 400_000 => Act::Silence,
        _ => Act::Serve,
    });
    let mut options = hasty();
    options.timeouts.progress = Duration::from_secs(3600);
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    source.announce(0..8 << 20);
    source.read_at(0, &mut [0; 100_000]).unwrap();
    let ahead = || server.log().iter().any(|ask| ask.range.clone().unwrap().start >= 400_000);
    while !ahead() {
        thread::sleep(Duration::from_millis(1));
    }
    drop(source);
    // All permits are free again: the same number of requests as before is possible.
    let again = Server::new(noise(100_000, 3), |_| Act::Serve);
    let source = remote.open(&again.url()).unwrap();
    source.read_at(50_000, &mut [0; 10]).unwrap();
}

#[test]
fn a_range_that_cannot_be_had_is_an_error_of_that_range_alone() {
    let server = Server::new(noise(1_000_000, 4), |ask| match &ask.range {
        Some(range) if range.contains(&500_000) => Act::Status(500, String::new()),
        _ => Act::Serve,
    });
    let remote = remote(hasty());
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = [0; 1000];
    let error = source.read_at(499_500, &mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other, "{error}");
    assert!(error.to_string().contains("status 500"), "{error}");
    for offset in [498_000, 501_000, 700_000] {
        source.read_at(offset, &mut bytes).unwrap();
        assert_eq!(bytes, server.object()[offset as usize..][..1000]);
    }
}

#[test]
fn a_failed_read_ahead_does_not_fail_the_read() {
    // The read itself succeeds; rounded up, it would reach the bad byte.
    let server = Server::new(noise(1_000_000, 5), |ask| match &ask.range {
        Some(range) if range.contains(&500_200) => Act::Status(500, String::new()),
        _ => Act::Serve,
    });
    let remote = remote(hasty());
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = [0; 100];
    source.read_at(500_000, &mut bytes).unwrap();
    assert_eq!(bytes, server.object()[500_000..][..100]);
}

#[test]
fn a_server_that_is_gone_for_good_is_not_tried_for_ever() {
    let server = Server::new(noise(10_000_000, 6), |ask| match ask.number {
        0 => Act::Serve,
        _ => Act::Status(503, String::new()),
    });
    let mut options = exact();
    options.retry.attempts_max = 5;
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    let kinds: Vec<_> =
        (1..10).map(|n| source.read_at(n * 1_000_000, &mut [0; 10]).unwrap_err().kind()).collect();
    // Three ranges fail; the fourth error reports that the server is gone.
    let is_gone = [false, false, false, true, true, true, true, true, true];
    for (kind, is_gone) in kinds.into_iter().zip(is_gone) {
        assert_eq!(kind == ErrorKind::NotConnected, is_gone);
    }
    // Only the first range was tried five times.
    assert_eq!(server.log().len(), 1 + 5 + 8);
}

#[test]
fn a_server_that_comes_back_is_read_on() {
    let server = Server::new(noise(100_000, 7), |ask| match ask.number {
        1..=30 => Act::Status(503, String::new()),
        _ => Act::Serve,
    });
    let mut options = exact();
    options.retry.attempts_max = 2;
    let remote = remote(options);
    let source = remote.open(&server.url()).unwrap();
    let started = Instant::now();
    while source.read_at(50_000, &mut [0; 10]).is_err() {
        assert!(started.elapsed() < Duration::from_secs(30));
    }
    assert!(server.log().len() > 31);
}
