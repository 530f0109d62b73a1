//! Bodies of requests and responses.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::time::timeout;

use crate::failure::{Failure, Result, state};

/// The body of a response.
pub(super) type Body = UnsyncBoxBody<Bytes, Failure>;

/// Makes a body of these bytes.
pub(super) fn whole(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// Makes a body of pieces. After an error the connection is cut, so that no client takes the body
/// for complete.
pub(super) fn pieces(stream: impl Stream<Item = Result<Bytes>> + Send + 'static) -> Body {
    StreamBody::new(stream.map_ok(Frame::data)).boxed_unsync()
}

/// Reads the next bytes of a request; None at its end.
pub(super) async fn next(body: &mut Incoming, time: Duration) -> Result<Option<Bytes>> {
    loop {
        let frame = timeout(time, body.frame()).await;
        let frame = frame.map_err(|_| Failure::new(state::IDLE, "the request stalled"))?;
        match frame {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(Failure::new(
                    state::PROTOCOL,
                    format!("the request was cut off: {error}"),
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

/// Reads all bytes of a request, at most `bytes_max`.
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
