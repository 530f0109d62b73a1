//! Valid and invalid responses.

use super::*;

fn span(offset: u64, length: u64) -> Span {
    Span { offset, length }
}

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    fields
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
        .collect()
}

fn known() -> Version {
    Version { length: 1000, etag: Some("\"a\"".to_string()), last_modified: None }
}

fn check(status: u16, fields: &[(&'static str, &str)]) -> Result<Answer, Refusal> {
    judge(
        StatusCode::from_u16(status).unwrap(),
        &headers(fields),
        RangeRequest::Span(span(10, 90)),
        Some(&known()),
    )
}

#[track_caller]
fn is_tried_again(answer: Result<Answer, Refusal>) {
    assert!(matches!(answer, Err(Refusal::Again { .. })), "{answer:?}");
}

#[track_caller]
fn is_changed(answer: Result<Answer, Refusal>) {
    assert!(matches!(answer, Err(Refusal::Changed(_))), "{answer:?}");
}

#[test]
fn the_requested_range_is_accepted() {
    let fields =
        [("content-range", "bytes 10-99/1000"), ("content-length", "90"), ("etag", "\"a\"")];
    let version = known();
    assert_eq!(
        check(206, &fields),
        Ok(Answer::Range { span: span(10, 90), version, is_counted: true })
    );
}

#[test]
fn a_part_that_begins_right_and_ends_early_is_taken() {
    let fields = [("content-range", "bytes 10-19/*"), ("etag", "\"a\"")];
    let answer = check(206, &fields).unwrap();
    assert!(
        matches!(answer, Answer::Range { span: s, is_counted: false, .. } if s == span(10, 10))
    );
}

#[test]
fn another_part_than_asked_for_is_never_taken() {
    for range in [
        "bytes 11-99/1000",
        "bytes 9-99/1000",
        "bytes 10-100/1000",
        "bytes 0-999/1000",
        "bytes 99-10/1000",
        "bytes 10-18446744073709551615/1000",
        "bytes */1000",
        "items 10-99/1000",
        "",
    ] {
        is_tried_again(check(206, &[("content-range", range), ("etag", "\"a\"")]));
    }
    is_tried_again(check(206, &[("etag", "\"a\"")]));
    let short =
        [("content-range", "bytes 10-99/1000"), ("content-length", "89"), ("etag", "\"a\"")];
    is_tried_again(check(206, &short));
    let packed =
        [("content-range", "bytes 10-99/1000"), ("content-encoding", "gzip"), ("etag", "\"a\"")];
    is_tried_again(check(206, &packed));
}

#[test]
fn a_part_of_another_version_is_never_taken() {
    is_changed(check(206, &[("content-range", "bytes 10-99/1000"), ("etag", "\"b\"")]));
    is_changed(check(206, &[("content-range", "bytes 10-99/1001"), ("etag", "\"a\"")]));
    is_changed(check(412, &[]));
    is_changed(check(416, &[("content-range", "bytes */5")]));
    is_changed(check(200, &[("content-length", "5")]));
    is_tried_again(check(206, &[("content-range", "bytes 10-99/1000")]));
}

#[test]
fn dates_distinguish_versions_without_a_strong_etag() {
    let version = |etag: Option<&str>, date: &str| Version {
        length: 5,
        etag: etag.map(str::to_string),
        last_modified: Some(date.to_string()),
    };
    assert!(version(None, "Mon").difference(&version(None, "Tue")).is_some());
    assert!(version(Some("W/\"a\""), "Mon").difference(&version(Some("W/\"a\""), "Tue")).is_some());
    assert!(version(Some("\"a\""), "Mon").difference(&version(Some("\"a\""), "Tue")).is_none());
    assert!(version(None, "Mon").difference(&version(Some("\"a\""), "Mon")).is_none());
}

#[test]
fn an_unsatisfiable_range_reveals_an_empty_object() {
    let judge = |fields: &[(&'static str, &str)]| {
        judge(
            StatusCode::RANGE_NOT_SATISFIABLE,
            &headers(fields),
            RangeRequest::Span(span(0, 10)),
            None,
        )
    };
    assert!(matches!(judge(&[("content-range", "bytes */0")]), Ok(Answer::Empty(_))));
    assert_eq!(judge(&[]), Ok(Answer::NotInObject));
}

#[test]
fn temporary_failures_are_retried_and_permanent_ones_are_not() {
    for status in [408, 429, 500, 502, 503, 504] {
        is_tried_again(check(status, &[]));
    }
    let busy = check(503, &[("retry-after", "7")]);
    assert!(matches!(busy, Err(Refusal::Again { after: Some(after), .. }) if after.as_secs() == 7));
    assert_eq!(check(404, &[]), Err(Refusal::NotFound));
    assert_eq!(check(403, &[]), Err(Refusal::Denied(403)));
    assert_eq!(check(400, &[]), Err(Refusal::Status(400)));
}

#[test]
fn a_tail_is_taken_where_it_reaches_from_its_begin_to_the_end() {
    let judge = |range: &str, bytes: u64| {
        let fields = headers(&[("content-range", range)]);
        judge(StatusCode::PARTIAL_CONTENT, &fields, RangeRequest::Tail(bytes), None)
    };
    assert!(
        matches!(judge("bytes 900-999/1000", 100), Ok(Answer::Range { span: s, .. }) if s == span(900, 100))
    );
    assert!(
        matches!(judge("bytes 0-999/1000", 5000), Ok(Answer::Range { span: s, .. }) if s == span(0, 1000))
    );
    for range in ["bytes 0-99/1000", "bytes 900-998/1000", "bytes 899-999/1000", "bytes 900-999/*"]
    {
        is_tried_again(judge(range, 100));
    }
}
