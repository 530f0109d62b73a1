//! `POST /tables/NAME`: appends messages to a table.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use hyper::{Request, Response};
use tokio::time::timeout;

use crate::answers::{Asker, IngestTarget, Marks};
use crate::board::{Ending, add};
use crate::failure::{Failure, Result, state};
use crate::rows::quoted;
use crate::shared::Shared;

use super::body::{self, Body};

pub(super) async fn taken(
    request: Request<Incoming>,
    table: String,
    asker: Asker,
    shared: &Arc<Shared>,
) -> Result<Response<Body>> {
    let target = target_of(table, request.headers())?;
    let text = format!("POST /tables/{}", target.table);
    let begun = shared.board.begin(&asker, &text, crate::answers::Stop::default());
    let running = Arc::clone(&begun.running);
    let work = async {
        let mut ingest = shared.answers.ingest(&asker, target).await?;
        let mut incoming = request.into_body();
        while let Some(bytes) = body::next(&mut incoming, shared.limits.message_time).await? {
            ingest.push(bytes).await?;
        }
        ingest.finish().await
    };
    let bounded = async {
        match shared.limits.statement_time {
            Some(time) => timeout(time, work).await.unwrap_or_else(|_| {
                running.end(Ending::TooLong);
                Err(running.ended())
            }),
            None => work.await,
        }
    };
    let marks = tokio::select! {
        biased;
        () = begun.stop().wait() => Err(running.ended()),
        marks = bounded => marks,
    };
    let marks = marks.inspect_err(|failure| begun.failed(failure))?;
    add(&shared.board.counts.messages, marks.messages);
    add(&shared.board.counts.rejected, marks.rejected);
    Ok(super::text("application/json", said(&marks)))
}

fn said(marks: &Marks) -> String {
    let Marks { first, last, messages, rejected, durable, .. } = marks;
    let mut out = format!(
        "{{\"first\":{first},\"last\":{last},\"messages\":{messages},\"rejected\":{rejected},\
         \"durable\":{durable}"
    );
    if marks.is_duplicate {
        out.push_str(",\"duplicate\":true");
    }
    if let Some(reason) = &marks.reason {
        let mut text = Vec::new();
        quoted(reason, &mut text);
        out.push_str(",\"reason\":");
        out.push_str(&String::from_utf8_lossy(&text));
    }
    out.push_str("}\n");
    out
}

fn target_of(table: String, headers: &HeaderMap) -> Result<IngestTarget> {
    let text = |name: &str| -> Result<Option<String>> {
        let Some(value) = headers.get(name) else { return Ok(None) };
        let value = value.to_str().map_err(|_| {
            Failure::new(state::PARAMETER, format!("the header {name} is not text"))
        })?;
        Ok(Some(value.to_string()))
    };
    let kind = text(header::CONTENT_TYPE.as_str())?.unwrap_or_default();
    let format = match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" | "application/x-ndjson" | "application/jsonl" => Some("json"),
        "text/csv" => Some("csv"),
        "application/xml" | "text/xml" => Some("xml"),
        _ => None,
    };
    if text(header::CONTENT_ENCODING.as_str())?.is_some_and(|it| it != "identity") {
        return Err(Failure::new(state::UNSUPPORTED, "send the messages without Content-Encoding"));
    }
    let sequence = text("sequence")?.map(|number| {
        number.parse::<u64>().map_err(|_| {
            Failure::new(state::PARAMETER, format!("Sequence: '{number}' is not an integer"))
        })
    });
    let (sequence, publisher) = (sequence.transpose()?, text("publisher")?);
    if sequence.is_some() && publisher.is_none() {
        return Err(Failure::new(state::PARAMETER, "Sequence requires Publisher"));
    }
    Ok(IngestTarget {
        table,
        format: format.map(str::to_string),
        publisher,
        sequence,
        is_whole: false,
    })
}
