//! `/subscribe`: sends rows as they arrive, as server-sent events.
//!
//! ```text
//!  id: 7013                    the mark; a browser that reconnects sends the last one
//!  event: insert               or snapshot, delete, fault, progress, error
//!  data: {"id":8491,"price":771.05}
//! ```

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};

use crate::answers::{Asker, Reply, Stop};
use crate::board::Begun;
use crate::failure::{Failure, Result, state};
use crate::rows::{Batch, FormKey, View, quoted, row_object};
use crate::shared::Shared;
use crate::sql::{SubscribeText, split, subscribe_text};

use super::body::{self, Body};
use super::door::fields;

/// Number of columns before those of the query: mark and change.
const LEADING: usize = 2;

pub(super) async fn answered(
    request: &Request<Incoming>,
    asker: Asker,
    shared: &Arc<Shared>,
) -> Result<Response<Body>> {
    let text = asked(request)?.to_string();
    let stop = Stop::default();
    let begun = shared.board.begin(&asker, &text, stop.clone());
    begun.running.mark_endless();
    let beginning = async {
        let prepared = shared.answers.prepare(&asker, &text, &[], false).await?;
        shared.answers.run(&asker, &prepared, Vec::new(), &stop).await
    };
    let begins = tokio::select! {
        biased;
        () = stop.wait() => Err(begun.running.ended()),
        begins = beginning => begins,
    };
    match begins.inspect_err(|failure| begun.failed(failure))? {
        Reply::Rows(rows) if rows.is_live => {
            let events = events(Flow { begun, stop }, rows.batches);
            let mut response = Response::new(body::pieces(events));
            let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            Ok(response)
        }
        _ => Err(Failure::new(state::UNSUPPORTED, "the statement has no rows to subscribe to")),
    }
}

/// Parses the subscription: `?sql=`, with options next to it, after the last event that the client
/// saw.
fn asked(request: &Request<Incoming>) -> Result<SubscribeText> {
    let query = fields(request.uri().query().unwrap_or_default())
        .ok_or_else(|| Failure::new(state::ENCODING, "the statement is not UTF-8"))?;
    let sql = query.iter().find(|(name, _)| name == "sql").map(|(_, value)| value.as_str());
    let [statement] = split(sql.unwrap_or_default())?[..] else {
        let said = "expected one statement, as ?sql=SELECT+*+FROM+t";
        return Err(Failure::new(state::SYNTAX, said));
    };
    let mut asked = match subscribe_text(statement)? {
        Some(asked) => asked,
        None => SubscribeText::of(statement),
    };
    for (name, value) in query.iter().filter(|(name, _)| name != "sql") {
        asked.with(name, value)?;
    }
    if let Some(last) = request.headers().get("last-event-id") {
        let mark = last.to_str().ok().and_then(|text| text.parse().ok());
        let mark =
            mark.ok_or_else(|| Failure::new(state::PARAMETER, "Last-Event-ID is not a mark"))?;
        if asked.every.is_none() {
            (asked.after, asked.has_snapshot) = (Some(mark), false);
        }
    }
    Ok(asked)
}

/// A running subscription.
struct Flow {
    begun: Begun,
    stop: Stop,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.set();
    }
}

fn events(
    flow: Flow,
    batches: BoxStream<'static, Result<Batch>>,
) -> BoxStream<'static, Result<Bytes>> {
    let events = stream::unfold(Some((flow, batches)), |going| async {
        let (flow, mut batches) = going?;
        let next = tokio::select! {
            biased;
            () = flow.stop.wait() => Err(flow.begun.running.ended()),
            batch = batches.next() => batch.transpose(),
        };
        let written = next.and_then(|batch| batch.as_ref().map(shared).transpose());
        match written {
            Ok(None) => None,
            Ok(Some((bytes, rows))) => {
                flow.begun.sent(rows);
                Some((Ok(bytes), Some((flow, batches))))
            }
            Err(failure) => {
                flow.begun.failed(&failure);
                // The client gets the error as an event.
                Some((Ok(of_failure(&failure)), None))
            }
        }
    });
    events.boxed()
}

/// Returns rows as events, which equal subscriptions share, and their number.
fn shared(batch: &Batch) -> Result<(Bytes, u64)> {
    Ok((batch.encoded(FormKey::Events, written)?, batch.num_rows() as u64))
}

/// Writes rows as events.
fn written(batch: &RecordBatch) -> Result<Vec<u8>> {
    let schema = batch.schema_ref();
    let columns = batch.columns().iter().map(View::of).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
    let ([mark, change, ..], true) = (&columns[..], columns.len() >= LEADING) else {
        return Err(Failure::new(state::INTERNAL, "rows without their marks"));
    };
    let (mut out, mut what) = (Vec::new(), Vec::new());
    let (mut id, mut next) = (Vec::new(), Vec::new());
    for row in 0..batch.num_rows() {
        what.clear();
        change.text(row, &mut what)?;
        let event: &[u8] = match what.as_slice() {
            b"=" => b"snapshot",
            b"+" => b"insert",
            b"-" => b"delete",
            b"!" => b"fault",
            _ => b"progress",
        };
        id.clear();
        next.clear();
        mark.text(row, &mut id)?;
        if row + 1 < batch.num_rows() {
            mark.text(row + 1, &mut next)?;
        }
        // A client that resumes after a row must get the others with the same mark: the replacement of a
        // deleted row, or further conditions.
        if id != next {
            out.extend_from_slice(b"id: ");
            out.extend_from_slice(&id);
            out.push(b'\n');
        }
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(event);
        out.extend_from_slice(b"\ndata: ");
        if event == b"progress" {
            out.extend_from_slice(b"{\"mark\":");
            mark.text(row, &mut out)?;
            out.push(b'}');
        } else {
            let shown = names.iter().copied().zip(&columns).skip(LEADING);
            row_object(shown, row, &mut out)?;
        }
        out.extend_from_slice(b"\n\n");
    }
    Ok(out)
}

fn of_failure(failure: &Failure) -> Bytes {
    let mut out = b"event: error\ndata: {\"error\":".to_vec();
    quoted(&failure.message, &mut out);
    out.extend_from_slice(b",\"code\":");
    quoted(failure.state, &mut out);
    out.extend_from_slice(b"}\n\n");
    Bytes::from(out)
}
