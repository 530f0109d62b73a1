//! Bodies of requests and answers.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::time::timeout;

use crate::failure::{Failure, Result, state};

/// The body of an answer.
pub(super) type Body = UnsyncBoxBody<Bytes, Failure>;

/// One that is there.
pub(super) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// One that comes in pieces; after an error the connection is cut, so that nobody takes it for whole.
pub(super) fn pieces(stream: impl Stream<Item = Result<Bytes>> + Send + 'static) -> Body {
    StreamBody::new(stream.map_ok(Frame::data)).boxed_unsync()
}

/// The next bytes of a request; None at its end.
pub(super) async fn next(body: &mut Incoming, time: Duration) -> Result<Option<Bytes>> {
    loop {
        let frame = timeout(time, body.frame()).await;
        let frame = frame.map_err(|_| Failure::new(state::IDLE, "the request does not go on"))?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(Failure::new(
                    state::PROTOCOL,
                    format!("the request breaks off: {error}"),
                ));
            }
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// All bytes of a request, at most `bytes_max`.
pub(super) async fn all(body: &mut Incoming, bytes_max: usize, time: Duration) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(bytes) = next(body, time).await? {
        if all.len() + bytes.len() > bytes_max {
            let said = format!("the request is longer than {bytes_max} bytes");
            return Err(Failure::new(state::LIMIT, said));
        }
        all.extend_from_slice(&bytes);
    }
    Ok(all)
}
