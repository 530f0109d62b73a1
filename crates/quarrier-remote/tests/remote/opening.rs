//! Opening: its cost, and invalid responses.

use std::io::ErrorKind;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier_core::source::{Source, read_full_at};
use quarrier_remote::{Error, FirstBytes};

use crate::server::{Act, Server};
use crate::{exact, hasty, noise, remote};

#[test]
fn opening_takes_one_request_for_the_first_bytes() {
    let server = Server::new(noise(100_000, 1), |_| Act::Serve);
    let remote = remote(hasty());
    let source = remote.open(&server.url()).unwrap();
    assert_eq!((source.length(), source.etag()), (100_000, Some("\"one\"")));
    let mut bytes = vec![0; 16 << 10];
    assert_eq!(source.read_at(0, &mut bytes).unwrap(), bytes.len());
    assert_eq!(bytes, server.object()[..bytes.len()]);
    let counters = source.counters();
    assert_eq!((counters.requests, counters.bytes_fetched), (1, 16 << 10));
    assert_eq!(server.log().len(), 1);
    assert_eq!(server.log()[0].range, Some(0..16 << 10));
}

#[test]
fn files_with_a_directory_at_the_end_are_opened_there() {
    let server = Server::new(noise(1_000_000, 1), |_| Act::Serve);
    let remote = remote(hasty());
    let source = remote.open(&server.url_of("/a.zip?signed")).unwrap();
    let mut bytes = vec![0; 64 << 10];
    let offset = 1_000_000 - (64 << 10);
    assert_eq!(source.read_at(offset, &mut bytes).unwrap(), bytes.len());
    assert_eq!(bytes, server.object()[offset as usize..]);
    assert_eq!((source.length(), server.log().len()), (1_000_000, 1));
}

#[test]
fn a_server_that_does_not_know_of_tails_is_asked_for_the_head() {
    for status in [400, 416, 501] {
        let server = Server::new(noise(100_000, 2), move |ask| match ask.is_tail {
            true => Act::Status(status, String::new()),
            false => Act::Serve,
        });
        let remote = remote(hasty());
        let source = remote.open(&server.url_of("/a.parquet")).unwrap();
        assert_eq!(source.length(), 100_000);
    }
}

#[test]
fn an_object_smaller_than_the_first_request_and_an_empty_one_are_opened_by_it() {
    for length in [0, 1, 100] {
        let server = Server::new(noise(length, 2), |_| Act::Serve);
        let remote = remote(hasty());
        let source = remote.open(&server.url()).unwrap();
        let mut bytes = vec![0; 200];
        assert_eq!(source.read_at(0, &mut bytes).unwrap(), length);
        assert_eq!(bytes[..length], *server.object());
        assert_eq!(source.read_at(length as u64, &mut bytes).unwrap(), 0);
        assert_eq!(server.log().len(), 1);
    }
}

#[test]
fn a_server_that_refuses_the_range_of_an_empty_object_without_its_length_is_asked_once_more() {
    let server = Server::new(Vec::new(), |ask| match ask.range {
        Some(_) => Act::Status(416, String::new()),
        None => Act::Serve,
    });
    assert_eq!(remote(hasty()).open(&server.url()).unwrap().length(), 0);
    assert_eq!(server.log().len(), 2);
}

#[test]
fn an_object_opened_by_the_bytes_that_are_read_first_costs_one_request() {
    let length = 1_000_000;
    let from = |offset, length| FirstBytes::From { offset, length };
    for (first, read) in [
        (from(0, length), 0..length),
        (from(300_000, 50_000), 300_000..350_000),
        // The part beyond the end is left out.
        (from(999_000, u64::MAX), 999_000..length),
        (FirstBytes::Last(50_000), 950_000..length),
        (FirstBytes::Last(u64::MAX), 0..length),
    ] {
        let server = Server::new(noise(length as usize, 2), |_| Act::Serve);
        let remote = remote(exact());
        let source = remote.open_reading(&server.url(), first, &AtomicBool::new(false)).unwrap();
        assert_eq!(source.length(), length);
        let mut bytes = vec![0; (read.end - read.start) as usize];
        assert_eq!(read_full_at(&source, read.start, &mut bytes).unwrap(), bytes.len());
        assert_eq!(bytes, server.object()[read.start as usize..read.end as usize]);
        assert_eq!(server.log().len(), 1, "{first:?}");
    }
}

#[test]
fn first_bytes_that_do_not_exist_open_the_object_by_its_head() {
    let beyond = FirstBytes::From { offset: 2_000, length: 10 };
    for (length, first, requests) in [
        (1_000, beyond, 2),
        (1_000, FirstBytes::Last(0), 1),
        (1_000, FirstBytes::From { offset: 5, length: 0 }, 1),
        (1_000, FirstBytes::From { offset: u64::MAX, length: u64::MAX }, 1),
        (0, FirstBytes::Last(100), 1),
        (0, beyond, 1),
    ] {
        let server = Server::new(noise(length, 2), |_| Act::Serve);
        let remote = remote(hasty());
        let source = remote.open_reading(&server.url(), first, &AtomicBool::new(false)).unwrap();
        let mut bytes = vec![0; 2_000];
        assert_eq!(read_full_at(&source, 0, &mut bytes).unwrap(), length);
        assert_eq!(bytes[..length], *server.object());
        assert_eq!(server.log().len(), requests, "{length} {first:?}");
    }
}

#[test]
fn a_missing_object_is_not_requested_again_by_its_head() {
    let server = Server::new(noise(10, 5), |_| Act::Status(404, String::new()));
    let last = FirstBytes::Last(100);
    let error = remote(hasty()).open_reading(&server.url(), last, &AtomicBool::new(false));
    assert!(matches!(error, Err(Error::NotFound { .. })), "{error:?}");
    assert_eq!(server.log().len(), 1);
}

#[test]
fn small_objects_are_read_whole_without_ranges() {
    let server = Server::new(noise(100_000, 3), |_| Act::Whole);
    let remote = remote(hasty());
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = vec![0; 100_000];
    assert_eq!(source.read_at(0, &mut bytes).unwrap(), 100_000);
    assert_eq!(bytes, server.object());
    assert_eq!(server.log().len(), 1);
}

#[test]
fn large_objects_without_ranges_are_a_clear_error() {
    let server = Server::new(noise(100_000, 3), |_| Act::Whole);
    let mut options = hasty();
    options.whole_bytes_max = 99_999;
    let error = remote(options).open(&server.url()).unwrap_err();
    assert!(matches!(error, Error::NoRanges { whole_bytes_max: 99_999, .. }), "{error}");
    assert!(error.to_string().contains("ignores ranges"), "{error}");
    assert_eq!(server.log().len(), 1);
}

#[test]
fn a_whole_body_without_a_detectable_end_is_rejected() {
    let server = Server::new(noise(1000, 4), |_| Act::WholeUncounted);
    let error = remote(hasty()).open(&server.url()).unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error}");
}

#[test]
fn missing_and_denied_objects_are_reported_without_retries() {
    for (status, kind) in [
        (404, ErrorKind::NotFound),
        (410, ErrorKind::NotFound),
        (401, ErrorKind::PermissionDenied),
        (403, ErrorKind::PermissionDenied),
        (400, ErrorKind::NotConnected),
    ] {
        let server = Server::new(noise(10, 5), move |_| Act::Status(status, String::new()));
        let error = remote(hasty()).open(&server.url()).unwrap_err();
        assert_eq!(std::io::Error::from(error).kind(), kind);
        assert_eq!(server.log().len(), 1);
    }
}

#[test]
fn a_server_that_fails_at_first_is_tried_again() {
    let server = Server::new(noise(1000, 6), |ask| match ask.number {
        0 => Act::Status(500, String::new()),
        1 => Act::Status(429, "Retry-After: 1\r\n".to_string()),
        2 => Act::Cut(3),
        3 => Act::Moved(1),
        4 => Act::Short(10),
        5 => Act::Stall,
        _ => Act::Serve,
    });
    let mut options = hasty();
    options.timeouts.progress = Duration::from_secs(5);
    let source_of = remote(options);
    let source = source_of.open(&server.url()).unwrap();
    assert_eq!((source.length(), source.counters().retries), (1000, 6));
}

#[test]
fn failed_connections_unknown_hosts_and_bad_urls_are_reported_soon() {
    let remote = remote(hasty());
    // No server listens on a port that was just released.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = remote.open(&format!("http://127.0.0.1:{port}/x")).unwrap_err();
    assert!(matches!(refused, Error::Unreachable { .. }), "{refused}");
    assert!(refused.to_string().contains("refused"), "{refused}");
    for url in ["ftp://host/x", "https://", "nothing", "s3://bucket", "http://[::1/x"] {
        let error = remote.open(url).unwrap_err();
        assert!(matches!(error, Error::BadUrl { .. }), "{error}");
    }
}

#[test]
fn a_query_is_sent_and_never_shown() {
    let server = Server::new(noise(100, 7), |_| Act::Serve);
    let remote = remote(hasty());
    let url = server.url_of("/a.img?X-Amz-Signature=secret&part=1");
    let source = remote.open(&url).unwrap();
    assert!(source.name().ends_with("/a.img?…"), "{}", source.name());
    assert!(!format!("{source:?}{remote:?}").contains("secret"));
    assert_eq!(server.log()[0].path, "/a.img?X-Amz-Signature=secret&part=1");
    drop(server);
    let error = remote.open(&url).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}

#[test]
fn a_user_and_a_password_are_sent_and_never_shown() {
    let server = Server::new(noise(100, 8), |_| Act::Serve);
    let url = server.url().replace("http://", "http://me:secret@");
    let source_of = remote(hasty());
    let source = source_of.open(&url).unwrap();
    assert!(!source.name().contains("secret") && !source.name().contains("me"));
    let fields = &server.log()[0].fields;
    let expected = "authorization: Basic bWU6c2VjcmV0";
    assert!(fields.iter().any(|field| field.eq_ignore_ascii_case(expected)), "{fields:?}");
}

#[test]
fn a_redirect_is_followed_once_and_remembered_until_it_is_refused() {
    let server = Server::new(noise(100_000, 9), |ask| match (ask.path.as_str(), ask.number) {
        ("/object.img", 0) => Act::Status(302, "Location: /first\r\n".to_string()),
        ("/object.img", _) => Act::Status(307, "Location: /second\r\n".to_string()),
        ("/first", number) if number > 2 => Act::Status(403, String::new()),
        _ => Act::Serve,
    });
    let remote = remote(exact());
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = [0; 10];
    for offset in [50_000, 60_000, 70_000] {
        source.read_at(offset, &mut bytes).unwrap();
        assert_eq!(bytes, server.object()[offset as usize..][..10]);
    }
    let paths: Vec<_> = server.log().into_iter().map(|ask| ask.path).collect();
    assert_eq!(
        paths,
        ["/object.img", "/first", "/first", "/first", "/object.img", "/second", "/second"]
    );
}

#[test]
fn an_object_of_a_bucket_is_asked_for_with_a_signature_that_is_not_shown() {
    let server = Server::new(noise(100_000, 10), |_| Act::Serve);
    let mut options = exact();
    let setting = |name: &str, value: &str| (name.to_string(), value.to_string());
    options.s3 = vec![
        setting("AWS_ACCESS_KEY_ID", "AKID"),
        setting("AWS_SECRET_ACCESS_KEY", "hidden"),
        setting("AWS_REGION", "eu-west-1"),
        setting("AWS_ENDPOINT_URL", &server.url_of("")),
        setting("AWS_EXECUTION_ENV", "of no concern"),
    ];
    let remote = remote(options.clone());
    let source = remote.open("s3://bucket/folder/a b.img").unwrap();
    let mut bytes = [0; 10];
    source.read_at(50_000, &mut bytes).unwrap();
    assert_eq!(bytes, server.object()[50_000..][..10]);
    assert_eq!(source.name(), "s3://bucket/folder/a b.img");
    let asks = server.log();
    assert_eq!(asks.len(), 2);
    assert!(asks[1].path.starts_with("/bucket/folder/a%20b.img?X-Amz-"), "{}", asks[1].path);
    assert!(asks[1].path.contains("AKID%2F") && asks[1].path.contains("eu-west-1"));
    assert!(!asks[1].path.contains("hidden"));

    options.s3.push(setting("aws_skip_signature", "true"));
    let remote = crate::remote(options);
    remote.open("s3://bucket/folder/a.img").unwrap();
    assert_eq!(server.log()[2].path, "/bucket/folder/a.img");
}

#[test]
fn objects_of_google_and_azure_are_requested_from_their_configured_hosts() {
    let server = Server::new(noise(100_000, 10), |_| Act::Serve);
    let mut options = exact();
    let setting = |name: &str, value: &str| (name.to_string(), value.to_string());
    let base = server.url_of("");
    options.s3 = vec![
        setting("GOOGLE_BASE_URL", &base),
        setting("GOOGLE_SKIP_SIGNATURE", "true"),
        setting("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        setting("AZURE_STORAGE_ACCOUNT_KEY", "aGlkZGVu"),
        setting("AZURE_STORAGE_ENDPOINT", &base),
    ];
    let remote = remote(options.clone());
    let source = remote.open("gs://bucket/folder/a b.img").unwrap();
    let mut bytes = [0; 10];
    source.read_at(50_000, &mut bytes).unwrap();
    assert_eq!(bytes, server.object()[50_000..][..10]);
    assert_eq!(source.name(), "gs://bucket/folder/a b.img");
    assert_eq!(server.log()[1].path, "/bucket/folder/a%20b.img");

    let source = remote.open("az://container/a.img").unwrap();
    assert_eq!(source.name(), "az://container/a.img");
    let path = &server.log()[2].path;
    assert!(path.contains("/container/a.img?") && path.contains("sig="), "{path}");
    assert!(!path.contains("aGlkZGVu") && !path.contains("hidden"), "{path}");

    options.s3.push(setting("azure_skip_signature", "true"));
    let remote = crate::remote(options);
    remote.open("az://container/a.img").unwrap();
    let path = &server.log()[3].path;
    assert!(path.ends_with("/container/a.img"), "{path}");
    assert!(crate::remote(exact()).open("az://container/a.img").is_err());
}
