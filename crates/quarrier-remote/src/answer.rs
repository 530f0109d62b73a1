//! Checks a server's response to a range request before any of its bytes are used.

use std::time::Duration;

use quarrier_sparse::Span;
use reqwest::StatusCode;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, LAST_MODIFIED,
    RETRY_AFTER,
};

/// The validators that distinguish versions of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) length: u64,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
}

impl Version {
    fn of(headers: &HeaderMap, length: u64) -> Self {
        Version { length, etag: text(headers, &ETAG), last_modified: text(headers, &LAST_MODIFIED) }
    }

    /// Describes the validator in `now` that shows another version, if any. A missing field proves
    /// nothing: some servers omit fields at times.
    fn difference(&self, now: &Version) -> Option<String> {
        if self.length != now.length {
            return Some(format!("it had {} bytes and now has {}", self.length, now.length));
        }
        match (&self.etag, &now.etag) {
            (Some(then), Some(now)) if then != now => {
                return Some(format!("its ETag was {then} and is {now}"));
            }
            // A strong ETag identifies the bytes, so the date does not matter.
            (Some(then), Some(_)) if !then.starts_with("W/") => return None,
            _ => {}
        }
        match (&self.last_modified, &now.last_modified) {
            (Some(then), Some(now)) if then != now => {
                Some(format!("it was modified {then} and now {now}"))
            }
            _ => None,
        }
    }

    /// Whether `now` has the validator (ETag or date) by which this version is compared.
    fn carries_validator_of(&self, now: &Version) -> bool {
        let lost_etag = self.etag.is_some() && now.etag.is_none();
        let lost_date = self.etag.is_none() && self.last_modified.is_some();
        !lost_etag && (!lost_date || now.last_modified.is_some())
    }
}

/// The bytes that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeRequest {
    Span(Span),
    /// The last bytes of the object: this many.
    Tail(u64),
    Whole,
}

/// A usable response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The body is this range of the object; `is_counted` means that the server states its length.
    Range { span: Span, version: Version, is_counted: bool },
    /// The body is the whole object, with its length if the server states it.
    Whole { length: Option<u64>, etag: Option<String>, last_modified: Option<String> },
    /// The object is empty.
    Empty(Version),
    /// The range is outside of the object, and the server does not state the object's length.
    NotInObject,
}

/// An unusable response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another attempt may succeed, after the given delay if the server requests one.
    Again {
        reason: String,
        after: Option<Duration>,
    },
    NotFound,
    Denied(u16),
    Status(u16),
    /// The object has another version.
    Changed(String),
}

fn again(reason: impl Into<String>) -> Refusal {
    Refusal::Again { reason: reason.into(), after: None }
}

/// Checks the response to the request `asked`, for an object whose known version is `known`.
pub(crate) fn judge(
    status: StatusCode,
    headers: &HeaderMap,
    asked: RangeRequest,
    known: Option<&Version>,
) -> Result<Answer, Refusal> {
    match status.as_u16() {
        206 => judge_range(headers, asked, known),
        200 => judge_whole(headers, known),
        404 | 410 => Err(Refusal::NotFound),
        code @ (401 | 403) => Err(Refusal::Denied(code)),
        412 => Err(Refusal::Changed("its validator has changed".to_string())),
        416 => judge_unsatisfiable(headers, known),
        _ if is_temporary(status) => {
            let (reason, after) = temporary(status, headers);
            Err(Refusal::Again { reason, after })
        }
        code => Err(Refusal::Status(code)),
    }
}

/// Whether another attempt may succeed after a response with this status.
pub(crate) fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 425 | 429 | 500..=599)
}

/// The reason for another attempt after a response with a temporary status, and the delay that the server
/// requests.
pub(crate) fn temporary(status: StatusCode, headers: &HeaderMap) -> (String, Option<Duration>) {
    let seconds = text(headers, &RETRY_AFTER).and_then(|text| text.parse().ok());
    let reason = format!("the server responds with status {}", status.as_u16());
    (reason, seconds.map(Duration::from_secs))
}

fn judge_range(
    headers: &HeaderMap,
    asked: RangeRequest,
    known: Option<&Version>,
) -> Result<Answer, Refusal> {
    refuse_encoding(headers)?;
    let Some(value) = text(headers, &CONTENT_RANGE) else {
        return Err(again("the server sends a part without stating which"));
    };
    let Some((span, total)) = parse_content_range(&value) else {
        return Err(again(format!("the server sends an invalid Content-Range '{value}'")));
    };
    let Some(length) = total.or(known.map(|known| known.length)) else {
        return Err(again("the server does not state the length of the object"));
    };
    if span.end() > length {
        return Err(again(format!("the server sends an invalid Content-Range '{value}'")));
    }
    let version = Version::of(headers, length);
    same_version(known, &version)?;
    let (asked, is_right) = match asked {
        RangeRequest::Span(asked) => {
            (asked, span.offset == asked.offset && span.end() <= asked.end())
        }
        RangeRequest::Tail(bytes) => {
            let tail = Span::new(length.saturating_sub(bytes), bytes.min(length));
            (tail, span == tail)
        }
        RangeRequest::Whole => (Span::new(0, length), false),
    };
    if !is_right {
        return Err(again(format!(
            "the server sends bytes {}..{} instead of {}..{}",
            span.offset,
            span.end(),
            asked.offset,
            asked.end()
        )));
    }
    let counted = content_length(headers)?;
    if counted.is_some_and(|counted| counted != span.length) {
        return Err(again("the length of the body differs from Content-Range"));
    }
    Ok(Answer::Range { span, version, is_counted: counted.is_some() })
}

fn judge_whole(headers: &HeaderMap, known: Option<&Version>) -> Result<Answer, Refusal> {
    refuse_encoding(headers)?;
    let length = content_length(headers)?;
    if let Some(known) = known {
        let now = Version::of(headers, length.unwrap_or(known.length));
        same_version(Some(known), &now)?;
        return Err(again("the server sends the whole object instead of a part"));
    }
    let Version { etag, last_modified, .. } = Version::of(headers, 0);
    Ok(Answer::Whole { length, etag, last_modified })
}

fn judge_unsatisfiable(headers: &HeaderMap, known: Option<&Version>) -> Result<Answer, Refusal> {
    let total = text(headers, &CONTENT_RANGE)
        .and_then(|value| value.strip_prefix("bytes */").and_then(|total| total.parse().ok()));
    match (known, total) {
        (Some(known), Some(total)) if total != known.length => {
            Err(Refusal::Changed(format!("it had {} bytes and now has {total}", known.length)))
        }
        (Some(_), _) => Err(again("the server reports that the object has no such bytes")),
        (None, Some(0)) => Ok(Answer::Empty(Version::of(headers, 0))),
        (None, _) => Ok(Answer::NotInObject),
    }
}

fn same_version(known: Option<&Version>, now: &Version) -> Result<(), Refusal> {
    let Some(known) = known else { return Ok(()) };
    if let Some(what) = known.difference(now) {
        return Err(Refusal::Changed(what));
    }
    if !known.carries_validator_of(now) {
        return Err(again("the server does not state the version of the object"));
    }
    Ok(())
}

/// Compressed bytes are not those of the object.
fn refuse_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    match text(headers, &CONTENT_ENCODING) {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            Err(again(format!("the server sends it compressed ({encoding})")))
        }
        _ => Ok(()),
    }
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    match text(headers, &CONTENT_LENGTH) {
        None => Ok(None),
        Some(value) => match value.parse() {
            Ok(length) => Ok(Some(length)),
            Err(_) => Err(again(format!("the server sends an invalid length '{value}'"))),
        },
    }
}

/// Parses `bytes FIRST-LAST/TOTAL`, where TOTAL may be `*`.
fn parse_content_range(value: &str) -> Option<(Span, Option<u64>)> {
    let (range, total) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.trim().split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = match total.trim() {
        "*" => None,
        total => Some(total.parse().ok()?),
    };
    let length = last.checked_sub(first)?.checked_add(1)?;
    first.checked_add(length)?;
    Some((Span { offset: first, length }, total))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(|value| value.trim().to_string())
}

#[cfg(test)]
mod tests;
