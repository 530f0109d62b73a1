//! Opening: a single request gets the length and version, with the first bytes of the object, or
//! with the last if the name suggests a directory there.

use quarrier_sparse::{ReadAhead, Span};

use crate::answer::{Answer, RangeRequest, Refusal, Version};
use crate::attempts::{Attempts, CONNECT_ATTEMPTS_MAX, log_retry};
use crate::error::{Error, Result};
use crate::fault::{Fault, again};
use crate::link::{Body, Link, PendingResponse};
use crate::options::Options;

/// The properties of an object, and some of its bytes.
pub(crate) struct OpenedObject {
    pub(crate) version: Version,
    /// The offset of the bytes.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The bytes that the first request for an object asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstBytes {
    /// This many bytes from an offset on.
    From {
        /// The offset of the first one.
        offset: u64,
        /// Their number.
        length: u64,
    },
    /// This many bytes at the end.
    Last(u64),
}

impl FirstBytes {
    /// The request for at most `bytes_max` of the bytes; `None` for no bytes.
    fn request(self, bytes_max: u64) -> Option<RangeRequest> {
        match self {
            FirstBytes::From { offset, length } => {
                let length = length.min(bytes_max).min(u64::MAX - offset);
                (length > 0).then_some(RangeRequest::Span(Span { offset, length }))
            }
            FirstBytes::Last(bytes) => {
                let bytes = bytes.min(bytes_max);
                (bytes > 0).then_some(RangeRequest::Tail(bytes))
            }
        }
    }
}

/// Requests the `wanted` bytes of an object, by default its first or last ones, with the retries that the
/// options allow.
pub(crate) async fn open(
    link: &Link,
    name: &str,
    options: &Options,
    wanted: Option<FirstBytes>,
) -> Result<OpenedObject> {
    let mut attempts = Attempts::new(&options.retry, options.retry.attempts_max);
    let mut connects = 0;
    // These bytes stay in memory until they are read.
    let bytes_max = options.request_bytes_max.min(options.memory_bytes_max / 4);
    let wanted = wanted.and_then(|wanted| wanted.request(bytes_max));
    let mut asked = wanted.unwrap_or_else(|| first(name, options));
    loop {
        let fault = match attempt(link, options, asked, attempts.made > 0).await {
            // Not every server supports suffix ranges.
            Err(End::Fault(Fault::Refused(refusal)))
                if matches!(asked, RangeRequest::Tail(_)) && refusal != Refusal::NotFound =>
            {
                tracing::debug!(
                    source = name,
                    "the server does not support suffix ranges: requesting the head"
                );
                asked = RangeRequest::Span(HEAD);
                continue;
            }
            Ok(opened) => return Ok(opened),
            Err(End::Error(error)) => return Err(error.named(name)),
            Err(End::Fault(fault)) => fault,
        };
        let (reason, after) = match fault {
            Fault::Refused(Refusal::Again { reason, after }) => (reason, after),
            Fault::Connect { reason, is_final } => {
                connects += 1;
                if is_final || connects >= CONNECT_ATTEMPTS_MAX {
                    return Err(Error::Unreachable { source_name: name.to_string(), reason });
                }
                (reason, None)
            }
            other => return Err(final_error(name, other)),
        };
        match attempts.failed(false, after) {
            Some(wait) => {
                log_retry(name, 0, attempts.made, (wait, &reason));
                tokio::time::sleep(wait).await;
            }
            None => {
                let (source_name, attempts) = (name.to_string(), attempts.made);
                return Err(Error::Failed { source_name, offset: 0, attempts, reason });
            }
        }
    }
}

const HEAD: Span = Span { offset: 0, length: 16 << 10 };

/// The first request for an object.
fn first(name: &str, options: &Options) -> RangeRequest {
    if !options.read_ahead {
        return RangeRequest::Span(Span { offset: 0, length: 1 });
    }
    match ReadAhead::first(name.trim_end_matches("?…")) {
        Some(head) => RangeRequest::Span(head),
        None => RangeRequest::Tail(ReadAhead::TAIL_BYTES),
    }
}

/// The error for a fault that retrying does not change.
pub(crate) fn final_error(name: &str, fault: Fault) -> Error {
    let source_name = name.to_string();
    match fault {
        Fault::Refused(Refusal::NotFound) => Error::NotFound { source_name },
        Fault::Refused(Refusal::Denied(status)) => Error::Denied { source_name, status },
        Fault::Refused(Refusal::Status(status)) => Error::Status { source_name, status },
        Fault::Refused(Refusal::Changed(what)) => Error::Changed { source_name, what },
        Fault::Connect { reason, .. } | Fault::Refused(Refusal::Again { reason, .. }) => {
            Error::Unreachable { source_name, reason }
        }
        Fault::Setup(error) => error,
    }
}

enum End {
    Fault(Fault),
    Error(RangesUnsupported),
}

/// The server cannot serve ranges of this object.
struct RangesUnsupported {
    whole_bytes_max: u64,
}

impl RangesUnsupported {
    fn named(self, name: &str) -> Error {
        let source_name = name.to_string();
        Error::NoRanges { source_name, whole_bytes_max: self.whole_bytes_max }
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        End::Fault(fault)
    }
}

async fn attempt(
    link: &Link,
    options: &Options,
    asked: RangeRequest,
    is_retry: bool,
) -> Result<OpenedObject, End> {
    let mut started = link.send(asked, None, is_retry).await?;
    let begins_later = matches!(asked, RangeRequest::Span(span) if span.offset > 0);
    if started.answer == Answer::NotInObject && begins_later {
        started = link.send(RangeRequest::Span(HEAD), None, false).await?;
    }
    if started.answer == Answer::NotInObject {
        // Most likely an empty object, although the server does not say so.
        started = link.send(RangeRequest::Whole, None, false).await?;
    }
    let PendingResponse { answer, mut body } = started;
    match answer {
        Answer::Empty(version) => Ok(OpenedObject { version, offset: 0, bytes: Vec::new() }),
        Answer::NotInObject => Err(again("the server does not state the length").into()),
        Answer::Range { span, version, .. } => {
            let most = span.length as usize;
            let bytes = read(link, &mut body, most).await?;
            if bytes.as_ref().is_none_or(|bytes| bytes.len() != most) {
                return Err(again("the body has another length than announced").into());
            }
            Ok(OpenedObject { version, offset: span.offset, bytes: bytes.unwrap_or_default() })
        }
        Answer::Whole { length, etag, last_modified } => {
            let most = options.whole_bytes_max;
            if length.is_some_and(|length| length > most) {
                return Err(End::Error(RangesUnsupported { whole_bytes_max: most }));
            }
            if !body.is_delimited {
                return Err(again("the server does not state the length of the object").into());
            }
            let Some(bytes) = read(link, &mut body, most as usize).await? else {
                return Err(End::Error(RangesUnsupported { whole_bytes_max: most }));
            };
            if length.is_some_and(|length| length != bytes.len() as u64) {
                return Err(again("the body is shorter than announced").into());
            }
            let length = bytes.len() as u64;
            Ok(OpenedObject { version: Version { length, etag, last_modified }, offset: 0, bytes })
        }
    }
}

/// Reads the whole body; `None` if it has more than `most` bytes.
async fn read(link: &Link, body: &mut Body, most: usize) -> Result<Option<Vec<u8>>, Fault> {
    let mut bytes = Vec::new();
    while let Some(part) = body.next().await? {
        link.counting.fetched(part.len());
        if part.len() > most - bytes.len() {
            return Ok(None);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(Some(bytes))
}
