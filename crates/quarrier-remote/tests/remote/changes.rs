//! An object that changes while it is read: the result is an error, never bytes of two versions.

use std::io::ErrorKind;

use quarrier_core::source::Source;
use quarrier_remote::{Error, Unnamed};

use crate::server::{Act, Server};
use crate::{exact, noise, remote};

/// Opens an object with the version `then`; from the second request on, the server acts as in
/// `act`.
#[track_caller]
fn check(then: &str, act: Act) {
    let server = Server::with_fields(noise(100_000, 1), then, move |ask| match ask.number {
        0 => Act::Serve,
        _ => act.clone(),
    });
    let remote = remote(exact());
    let source = remote.open(&server.url()).unwrap();
    let mut bytes = [0; 1000];
    let error = source.read_at(50_000, &mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle, "{error}");
    let error = error.into_inner().unwrap().downcast::<Unnamed>().unwrap();
    assert!(matches!(error.0, Error::Changed { .. }), "{error}");
    assert_eq!(bytes, [0; 1000]);
    let requests = server.log().len();
    // Permanent: nothing of the new version is mixed in.
    assert!(source.read_at(70_000, &mut bytes).is_err());
    assert_eq!(server.log().len(), requests);
}

#[test]
fn another_etag_is_an_error() {
    check("ETag: \"one\"\r\n", Act::Version("ETag: \"two\"\r\n".to_string()));
    check("ETag: W/\"one\"\r\n", Act::Version("ETag: W/\"two\"\r\n".to_string()));
}

#[test]
fn another_date_is_an_error() {
    let field = |day: &str| format!("Last-Modified: {day}, 01 Jan 2026 00:00:00 GMT\r\n");
    check(&field("Mon"), Act::Version(field("Tue")));
}

#[test]
fn a_precondition_that_fails_is_the_same_error() {
    check("ETag: \"one\"\r\n", Act::Status(412, String::new()));
}

#[test]
fn another_length_is_an_error_without_validators() {
    let other = "Content-Range: bytes 50000-50999/100001\r\n".to_string();
    check("", Act::Status(206, other));
    check("", Act::Status(416, "Content-Range: bytes */10\r\n".to_string()));
}

#[test]
fn requests_send_the_validator() {
    let server = Server::new(noise(100_000, 2), |_| Act::Serve);
    let remote = remote(exact());
    let source = remote.open(&server.url()).unwrap();
    source.read_at(50_000, &mut [0; 10]).unwrap();
    let fields = &server.log()[1].fields;
    assert!(fields.iter().any(|field| field.eq_ignore_ascii_case("if-match: \"one\"")));
}

#[test]
fn an_object_that_is_gone_while_it_is_read_is_an_error() {
    let server = Server::new(noise(100_000, 3), |ask| match ask.number {
        0 => Act::Serve,
        _ => Act::Status(404, String::new()),
    });
    let remote = remote(exact());
    let source = remote.open(&server.url()).unwrap();
    let error = source.read_at(50_000, &mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
