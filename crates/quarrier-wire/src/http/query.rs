//! `/query`: runs a statement, and sends its rows as Arrow, JSON or CSV.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response};
use tokio::time::{Instant, sleep_until};

use crate::answers::{Asker, Reply, Rows, Stop};
use crate::board::{Begun, Ending};
use crate::copy;
use crate::failure::{Failure, Result, state};
use crate::rows::{Batch, View, row_object};
use crate::shared::Shared;
use crate::sql::{CopyFormat, CopyOptions, split};

use super::body::{self, Body};
use super::door::fields;

/// Maximum bytes of a statement.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Number of rows to write at once.
const ROWS_AT_ONCE: usize = 8_192;

/// The format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Arrow,
    /// One array of objects.
    Json,
    /// One object per line.
    Lines,
    Csv,
}

impl Form {
    fn media(self) -> &'static str {
        match self {
            Form::Arrow => "application/vnd.apache.arrow.stream",
            Form::Json => "application/json",
            Form::Lines => "application/x-ndjson",
            Form::Csv => "text/csv; charset=utf-8",
        }
    }

    /// Returns the format that the request names, or else the one that the client accepts.
    fn of(named: Option<&str>, accept: &str) -> Result<Form> {
        match named {
            Some("arrow") => return Ok(Form::Arrow),
            Some("json") => return Ok(Form::Json),
            Some("ndjson" | "lines") => return Ok(Form::Lines),
            Some("csv") => return Ok(Form::Csv),
            Some(other) => {
                let said = format!("no format '{other}'; there are: arrow, json, ndjson, csv");
                return Err(Failure::new(state::PARAMETER, said));
            }
            None => {}
        }
        let first = accept.split(',').find_map(|kind| {
            Some(match kind.split(';').next().unwrap_or_default().trim() {
                "application/vnd.apache.arrow.stream" => Form::Arrow,
                "application/json" => Form::Json,
                "application/x-ndjson" | "application/jsonl" => Form::Lines,
                "text/csv" => Form::Csv,
                _ => return None,
            })
        });
        Ok(first.unwrap_or(Form::Lines))
    }
}

pub(super) async fn answered(
    request: Request<Incoming>,
    asker: Asker,
    shared: &Arc<Shared>,
) -> Result<Response<Body>> {
    let may_change = request.method() == Method::POST;
    let accept = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok());
    let accept = accept.unwrap_or_default().to_string();
    let (text, format) = asked(request, shared).await?;
    let form = Form::of(format.as_deref(), &accept)?;
    let [statement] = split(&text)?[..] else {
        return Err(Failure::new(state::SYNTAX, "expected one statement, as ?sql=SELECT+1"));
    };
    let stop = Stop::default();
    let begun = shared.board.begin(&asker, statement, stop.clone());
    let deadline = shared.limits.statement_time.and_then(|it| Instant::now().checked_add(it));
    let mut flow = Flow { begun, deadline, stop, form, is_first: true, is_counted: false };
    let begins = begin(&mut flow, shared, &asker, statement, may_change).await;
    match begins {
        Ok((tag, Reply::Done(rows) | Reply::Sent(rows, _))) => {
            let rows = rows.map_or("null".to_string(), |rows| rows.to_string());
            Ok(super::text("application/json", format!("{{\"done\":\"{tag}\",\"rows\":{rows}}}\n")))
        }
        Ok((_, Reply::Rows(rows))) => Ok(streamed(flow, rows)?),
        Err(failure) => {
            flow.begun.failed(&failure);
            Err(failure)
        }
    }
}

async fn begin(
    flow: &mut Flow,
    shared: &Arc<Shared>,
    asker: &Asker,
    statement: &str,
    may_change: bool,
) -> Result<(String, Reply)> {
    let stop = flow.stop.clone();
    let answering = async {
        let prepared = shared.answers.prepare(asker, statement, &[], false).await?;
        if !prepared.parameters.is_empty() {
            return Err(Failure::new("42P02", "there is no value for parameter $1"));
        }
        if prepared.changes && !may_change {
            return Err(Failure::new(
                "METHOD",
                "GET cannot change data; send this statement by POST",
            ));
        }
        let reply = match shared.answers.run(asker, &prepared, Vec::new(), &stop).await? {
            Reply::Sent(rows, durable) => {
                durable.await?;
                Reply::Done(rows)
            }
            reply => reply,
        };
        Ok((prepared.tag.clone(), reply))
    };
    flow.until(answering).await
}

/// Parses the request into the statement and the format of its rows.
async fn asked(
    request: Request<Incoming>,
    shared: &Arc<Shared>,
) -> Result<(String, Option<String>)> {
    let no_text = || Failure::new(state::ENCODING, "the statement is not UTF-8");
    let query = fields(request.uri().query().unwrap_or_default()).ok_or_else(no_text)?;
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_form = kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let value = |fields: &[(String, String)], name: &str| {
        fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    let format = value(&query, "format");
    if let Some(sql) = value(&query, "sql") {
        return Ok((sql, format));
    }
    let mut incoming = request.into_body();
    let time = shared.limits.message_time;
    let bytes = body::all(&mut incoming, TEXT_BYTES_MAX, time).await?;
    let text = String::from_utf8(bytes).map_err(|_| no_text())?;
    if !is_form {
        return Ok((text, format));
    }
    let form = fields(&text).ok_or_else(no_text)?;
    // With --data-binary, curl declares a form even if the body is not one.
    let sql = value(&form, "sql").unwrap_or(text);
    Ok((sql, format.or_else(|| value(&form, "format"))))
}

/// A statement whose rows are being sent.
struct Flow {
    begun: Begun,
    deadline: Option<Instant>,
    stop: Stop,
    form: Form,
    is_first: bool,
    is_counted: bool,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.set();
    }
}

impl Flow {
    /// Waits for `work`, but fails when the statement is to end.
    async fn until<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let running = &self.begun.running;
        let at = async {
            match self.deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.wait() => {}
            done = work => return done,
            () = at => running.end(Ending::TooLong),
        }
        Err(running.ended())
    }

    fn failed(&mut self, failure: &Failure) {
        if !std::mem::replace(&mut self.is_counted, true) {
            self.begun.failed(failure);
        }
    }

    /// Writes a batch of rows.
    fn written(&mut self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let schema = batch.schema_ref();
        let columns = batch.columns().iter().map(View::of).collect::<Result<Vec<_>>>()?;
        let names: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        for row in 0..batch.num_rows() {
            match self.form {
                Form::Csv => copy::row(&columns, row, &CSV(), &mut scratch, &mut out)?,
                form => {
                    if form == Form::Json && !self.is_first {
                        out.extend_from_slice(b",\n");
                    }
                    self.is_first = false;
                    row_object(names.iter().copied().zip(&columns), row, &mut out)?;
                    if form == Form::Lines {
                        out.push(b'\n');
                    }
                }
            }
        }
        Ok(out)
    }
}

/// The CSV of RFC 4180, with a header.
#[allow(non_snake_case, reason = "a constant in all but its String")]
fn CSV() -> CopyOptions {
    CopyOptions {
        format: CopyFormat::Csv,
        delimiter: b',',
        null: String::new(),
        has_header: true,
        quote: b'"',
        escape: b'"',
    }
}

fn streamed(flow: Flow, rows: Rows) -> Result<Response<Body>> {
    let media = flow.form.media();
    let stream: BoxStream<'static, Result<Bytes>> = match flow.form {
        Form::Arrow => arrow(flow, rows)?,
        _ => texts(flow, rows),
    };
    let mut response = Response::new(body::pieces(stream));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    Ok(response)
}

/// Cuts a batch so that no piece of text is large.
fn cut(batches: BoxStream<'static, Result<Batch>>) -> BoxStream<'static, Result<RecordBatch>> {
    let cut = batches.flat_map(|batch| {
        let pieces = match batch {
            Err(failure) => vec![Err(failure)],
            Ok(batch) => (0..batch.num_rows())
                .step_by(ROWS_AT_ONCE)
                .map(|start| Ok(batch.slice(start, ROWS_AT_ONCE.min(batch.num_rows() - start))))
                .collect(),
        };
        stream::iter(pieces)
    });
    cut.boxed()
}

fn texts(flow: Flow, rows: Rows) -> BoxStream<'static, Result<Bytes>> {
    let Rows { schema, batches, .. } = rows;
    let mut head = Vec::new();
    match flow.form {
        Form::Csv => {
            copy::begin(schema.fields().iter().map(|it| it.name().as_str()), &CSV(), &mut head);
        }
        Form::Json => head.extend_from_slice(b"["),
        _ => {}
    }
    let end = if flow.form == Form::Json { &b"]\n"[..] } else { b"" };
    let middle = stream::unfold(Some((flow, cut(batches))), |going| async {
        let (mut flow, mut batches) = going?;
        let next = flow.until(async { batches.next().await.transpose() }).await;
        let written = next.and_then(|batch| match batch {
            None => Ok(None),
            Some(batch) => {
                flow.begun.sent(batch.num_rows() as u64);
                flow.written(&batch).map(Some)
            }
        });
        match written {
            Ok(None) => None,
            Ok(Some(bytes)) => Some((Ok(Bytes::from(bytes)), Some((flow, batches)))),
            Err(failure) => {
                flow.failed(&failure);
                Some((Err(failure), None))
            }
        }
    });
    let piece = |bytes: Vec<u8>| stream::iter((!bytes.is_empty()).then(|| Ok(Bytes::from(bytes))));
    // After an error, the connection is cut without the closing bytes.
    piece(head).chain(middle).chain(piece(end.to_vec())).boxed()
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(state::INTERNAL, format!("rows cannot be written as Arrow: {error}"))
}

fn arrow(flow: Flow, rows: Rows) -> Result<BoxStream<'static, Result<Bytes>>> {
    let Rows { schema, batches, .. } = rows;
    let writer = StreamWriter::try_new(Vec::new(), &schema).map_err(broken)?;
    let batches = batches.map_ok(Batch::into_rows).boxed();
    let stream = stream::unfold(Some((flow, batches, writer, schema)), |going| async {
        let (mut flow, mut batches, mut writer, schema) = going?;
        let next = flow.until(async { batches.next().await.transpose() }).await;
        match next.and_then(|batch| packed(&mut writer, batch, &schema, &flow)) {
            Ok((bytes, true)) => Some((Ok(bytes), None)),
            Ok((bytes, false)) => Some((Ok(bytes), Some((flow, batches, writer, schema)))),
            Err(failure) => {
                flow.failed(&failure);
                Some((Err(failure), None))
            }
        }
    });
    Ok(stream.boxed())
}

/// Encodes a batch, or the end, as bytes.
fn packed(
    writer: &mut StreamWriter<Vec<u8>>,
    batch: Option<RecordBatch>,
    schema: &SchemaRef,
    flow: &Flow,
) -> Result<(Bytes, bool)> {
    let is_over = batch.is_none();
    match batch {
        None => writer.finish().map_err(broken)?,
        Some(batch) => {
            flow.begun.sent(batch.num_rows() as u64);
            // Columns may declare fewer NULLs than the announced schema.
            let columns = batch.columns().to_vec();
            let options =
                arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
            writer.write(&batch.map_err(broken)?).map_err(broken)?;
        }
    }
    Ok((Bytes::from(std::mem::take(writer.get_mut())), is_over))
}
