//! URLs as sources, served by a small server in the tests.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::harness::{Lab, Ran, drain, noise, places, run, wait};

/// The reaction to a request, by the path, the first requested byte, and the number of earlier
/// requests.
pub(crate) type Plan = fn(&str, u64, usize) -> Act;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Serve,
    Status(u16),
    /// Serve the object under another ETag.
    Changed,
    Silence,
}

/// Serves `object` until the test ends.
pub(crate) struct Server {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

/// The objects of a server, by the last part of the URL; an empty name matches any.
type Objects = Vec<(&'static str, Vec<u8>)>;

impl Server {
    pub(crate) fn new(object: Vec<u8>, plan: Plan) -> Self {
        Server::serving(vec![("", object)], plan)
    }

    /// A server with several objects that never fails; its URL is that of the first.
    pub(crate) fn with(objects: Objects) -> Self {
        let mut server = Server::serving(objects.clone(), well);
        server.url = server.url.replace("disk.img", objects[0].0);
        server
    }

    fn serving(object: Objects, plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/disk.img", listener.local_addr().unwrap());
        let (asked, object) = (Arc::new(AtomicUsize::new(0)), Arc::new(object));
        let counting = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (object, asked) = (Arc::clone(&object), Arc::clone(&counting));
                // Ignore a client that disconnects.
                thread::spawn(move || drop(serve(stream, &object, plan, &asked)));
            }
        });
        Server { url, asked }
    }

    /// A server that never fails.
    pub(crate) fn well(object: Vec<u8>) -> Self {
        Server::new(object, well)
    }

    pub(crate) fn requests(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn serve(
    stream: TcpStream,
    objects: &Objects,
    plan: Plan,
    asked: &AtomicUsize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_ascii_lowercase());
        }
        let path = lines[0].split(' ').nth(1).unwrap();
        let range = lines.iter().find_map(|line| line.strip_prefix("range: bytes=")).unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let is_asked = |name: &str| path.to_ascii_lowercase().ends_with(&name.to_ascii_lowercase());
        let Some((_, object)) = objects.iter().find(|(name, _)| is_asked(name)) else {
            write!(out, "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        };
        let body = &object[first..object.len().min(last + 1)];
        let act = plan(path, first as u64, asked.fetch_add(1, Ordering::SeqCst));
        let etag = if act == Act::Changed { "two" } else { "one" };
        match act {
            Act::Silence => thread::sleep(Duration::from_secs(60)),
            Act::Status(status) => {
                write!(out, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")?;
            }
            Act::Serve | Act::Changed => {
                write!(
                    out,
                    "HTTP/1.1 206 Part\r\nETag: \"{etag}\"\r\nContent-Length: {}\r\n\
                     Content-Range: bytes {first}-{}/{}\r\n\r\n",
                    body.len(),
                    first + body.len() - 1,
                    object.len()
                )?;
                out.write_all(body)?;
            }
        }
    }
}

/// Noise with a word in it at several places.
fn object(length: usize) -> Vec<u8> {
    let mut object = noise(length, 1);
    for at in (0..length - 6).step_by(length / 40 + 1) {
        object[at..at + 6].copy_from_slice(b"needle");
    }
    object
}

fn well(_: &str, _: u64, _: usize) -> Act {
    Act::Serve
}

/// The statistics of a run, after checking its rows.
#[track_caller]
fn stats(lab: &Lab, args: &[&str], expected: &[u64]) -> serde_json::Value {
    let all = [&["--stats", "stats.json"], args].concat();
    assert_eq!(lab.offsets(all), expected);
    serde_json::from_slice(&std::fs::read(lab.path("stats.json")).unwrap()).unwrap()
}

#[test]
fn a_url_gives_the_findings_of_the_file_and_reports_its_cost() {
    let object = object(40 << 20);
    let expected = places(&object, b"needle");
    let length = object.len();
    let server = Server::new(object, well);
    let lab = Lab::new();
    for args in [&["needle", &server.url][..], &["needle", &server.url, "--access", "read"]] {
        let before = server.requests();
        let stats = stats(&lab, args, &expected);
        let (requests, bytes) = (&stats["requests"], stats["bytes_fetched"].as_u64().unwrap());
        assert_eq!(requests.as_u64().unwrap() as usize, server.requests() - before);
        assert!(bytes >= length as u64 && bytes < length as u64 + 100_000, "{bytes}");
        assert!(server.requests() - before <= 20, "{requests} requests for 40 MiB");
        assert_eq!(stats["retries"], 0);
    }
}

#[test]
fn a_range_of_a_url_fetches_little_more() {
    let object = object(40 << 20);
    let from = 20 << 20;
    let expected: Vec<u64> = places(&object, b"needle")
        .into_iter()
        .filter(|&at| at >= from && at + 6 <= from + (2 << 20))
        .collect();
    let server = Server::new(object, well);
    let stats = stats(&Lab::new(), &["needle", "--range", "20M..22M", &server.url], &expected);
    assert!(stats["bytes_fetched"].as_u64().unwrap() < (2 << 20) + 100_000, "{stats}");
}

#[test]
fn a_second_run_with_a_cache_makes_hardly_any_requests() {
    let object = object(4 << 20);
    let expected = places(&object, b"needle");
    let server = Server::new(object, well);
    let lab = Lab::new();
    let args = ["needle", "--cache", "cache", &server.url];
    stats(&lab, &args, &expected);
    let before = server.requests();
    let stats = stats(&lab, &args, &expected);
    assert_eq!(server.requests() - before, 1);
    assert!(stats["bytes_from_cache"].as_u64().unwrap() > 4_000_000, "{stats}");
}

#[test]
fn an_unwritable_cache_is_reported_and_does_not_stop_the_search() {
    let server = Server::new(object(100_000), well);
    let lab = Lab::with("a file in the way");
    let ran = lab.search(["needle", "--cache", "f/cache", &server.url, "-c"]);
    ran.says(0, &["f/cache", "continuing without it"]);
}

#[test]
fn unopenable_urls_are_refused_in_one_line_without_secrets() {
    let missing = Server::new(object(1000), |_, _, _| Act::Status(404));
    let denied = Server::new(object(1000), |_, _, _| Act::Status(403));
    let lab = Lab::new();
    lab.search(["a", &missing.url]).refuses(&["/disk.img: the server has no such object"]);
    lab.search(["a", &denied.url]).refuses(&["denies access", "403"]);
    assert_eq!((missing.requests(), denied.requests()), (1, 1));
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://me:secret@127.0.0.1:{free}/x?X-Amz-Signature=secret");
    let ran = lab.search(["a", &url]);
    ran.refuses(&["cannot connect", "refused"]);
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
    lab.search(["a", "http://no-such-host.invalid/x"]).refuses(&["cannot connect"]);
    lab.search(["a", "s3://bucket"]).refuses(&["s3://BUCKET/KEY"]);
    // A server without TLS, addressed with https.
    let plain = missing.url.replace("http://", "https://");
    lab.search(["a", &plain]).refuses(&["cannot connect"]);
}

#[test]
fn the_log_says_why_a_request_was_tried_again_without_secrets() {
    let once_busy = || {
        Server::new(object(100_000), |_, _, number| match number {
            0 => Act::Status(503),
            _ => Act::Serve,
        })
    };
    let lab = Lab::new();
    let url = |server: &Server| format!("{}?X-Amz-Signature=secret", server.url);
    let server = once_busy();
    let ran = lab.search(["needle", &url(&server), "-c", "--log", "debug"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let retries = ran.stderr.lines().filter(|line| line.contains(": trying again "));
    let retries: Vec<&str> = retries.collect();
    assert_eq!(retries.len(), 1, "{ran:?}");
    for part in ["Z WARN quarrier_remote", "disk.img?…", " attempt=1 ", "503"] {
        assert!(retries[0].contains(part), "no {part}: {ran:?}");
    }
    assert!(
        ran.stderr.contains(" INFO quarrier::search::device: no GPU is used reason="),
        "{ran:?}"
    );
    assert!(!ran.stderr.contains("secret"), "{ran:?}");
    let server = once_busy();
    let ran = lab.search(["needle", &url(&server), "-c"]);
    assert!(!ran.stderr.contains("trying again"), "{ran:?}");
    let ran = lab.search(["needle", "--log", "loud", "f"]);
    ran.refuses(&["--log", "loud"]);
}

#[test]
fn the_report_shows_no_secrets() {
    let server = Server::new(object(100_000), well);
    let lab = Lab::new();
    let url = format!("{}?X-Amz-Signature=secret", server.url);
    lab.search(["needle", &url, "--report", "r.html", "-c"]).is_clean();
    let page = std::fs::read_to_string(lab.path("r.html")).unwrap();
    assert!(page.contains("disk.img?…") && !page.contains("secret"));
}

#[test]
fn an_object_that_changes_during_the_search_is_a_failure() {
    let server = Server::new(object(8 << 20), |_, first, _| match first {
        4_000_000.. => Act::Changed,
        _ => Act::Serve,
    });
    let ran = Lab::new().search(["needle", &server.url, "-c"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("changed on the server"), "{ran:?}");
}

#[test]
fn a_range_that_the_server_fails_to_give_is_listed_and_the_rest_is_searched() {
    let object = object(4 << 20);
    let bad = 0x20_0000u64..0x21_0000;
    let whole = places(&object, b"needle");
    let seen: Vec<u64> =
        whole.into_iter().filter(|at| at + 6 <= bad.start || *at >= bad.end).collect();
    // Fails for every request that begins in or before a piece of 64 KiB and reaches it.
    let server = Server::new(object, |_, first, _| match first {
        0x1F_0000..0x21_0000 => Act::Status(500),
        _ => Act::Serve,
    });
    let ran = Lab::new().search([
        "needle",
        "--format",
        "json",
        "--buffer-size",
        "64K",
        "--readers",
        "1",
        &server.url,
    ]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("could not be read"), "{ran:?}");
    let rows = crate::harness::parse_rows(ran.text());
    // Matches that begin in the preceding piece are unreadable as well.
    let expected: Vec<u64> =
        seen.into_iter().filter(|at| !(0x1F_0000 - 6..0x21_0000).contains(at)).collect();
    assert_eq!(rows.into_iter().map(|row| row.offset).collect::<Vec<_>>(), expected);
}

#[test]
fn a_server_that_is_gone_for_good_ends_the_search_soon() {
    let server = Server::new(object(64 << 20), |_, _, number| match number {
        0..4 => Act::Serve,
        _ => Act::Status(503),
    });
    let ran = Lab::new().search(["needle", &server.url, "-c"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("keeps failing"), "{ran:?}");
    assert!(server.requests() < 200, "{} requests", server.requests());
}

/// Starts a search, waits for a request, sends SIGINT.
fn interrupted(server: &Server, lab: &Lab, requests: usize) -> Ran {
    let mut command = lab.search_command(["needle", &server.url]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    while server.requests() < requests {
        thread::sleep(Duration::from_millis(1));
    }
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    // Kills the search if it hangs; its output is too short to fill a pipe.
    let status = wait(&mut child);
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    Ran::new(status, drain(out), &drain(err))
}

#[test]
fn ctrl_c_ends_a_search_that_waits_for_the_network() {
    let lab = Lab::new();
    let mute = Server::new(object(8 << 20), |_, _, number| match number {
        0 => Act::Serve,
        _ => Act::Silence,
    });
    interrupted(&mute, &lab, 2).says(130, &["disk.img: interrupted at byte 0"]);
    let never = Server::new(object(1000), |_, _, _| Act::Silence);
    interrupted(&never, &lab, 1).says(130, &["disk.img", "closed on request"]);
}

#[test]
fn a_bucket_is_read_with_the_settings_of_the_environment() {
    let object = object(100_000);
    let expected = places(&object, b"needle").len();
    let server = Server::new(object, |path, _, _| {
        let is_right = path.starts_with("/bucket/a/b.img?x-amz-") && path.contains("akid");
        if is_right { Act::Serve } else { Act::Status(400) }
    });
    let lab = Lab::new();
    let mut command = lab.search_command(["needle", "s3://bucket/a/b.img"]);
    command
        .env("AWS_ACCESS_KEY_ID", "akid")
        .env("AWS_SECRET_ACCESS_KEY", "hidden")
        .env("AWS_ENDPOINT_URL", server.url.trim_end_matches("/disk.img"));
    let ran = run(command, b"");
    assert_eq!(ran.is_clean().lines().len(), expected);
    assert!(ran.text().starts_with("s3://bucket/a/b.img"));
}
