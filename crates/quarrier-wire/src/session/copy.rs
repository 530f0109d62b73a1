//! COPY to and from the client.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_schema::{DataType, Field};
use bytes::Bytes;

use crate::answers::{Ingest, IngestTarget, Marks, Stop, TableInfo};
use crate::board::add;
use crate::copy::{BINARY_END, Reader, Target, begin};
use crate::failure::{Failure, Result, state};
use crate::kind;
use crate::protocol::Frontend;
use crate::sql::{CopyFormat, CopyOptions};

use super::run::{Form, send_rows, until};
use super::simple::no_parameters;
use super::state::{Activity, Begins, Session};

/// Number of bytes at which messages are passed on.
const HANDED_BYTES: usize = 256 << 10;

impl Session {
    pub(super) async fn copy_out(
        &mut self,
        query: &str,
        options: &CopyOptions,
        text: &str,
    ) -> Result<()> {
        let stop = Stop::default();
        let mut activity = self.begin(text, stop.clone());
        let done = self.copied_out(query, options, &mut activity, &stop).await;
        if let Err(failure) = &done {
            activity.begun.failed(failure);
        }
        done
    }

    async fn copied_out(
        &mut self,
        query: &str,
        options: &CopyOptions,
        activity: &mut Activity,
        stop: &Stop,
    ) -> Result<()> {
        let prepared = self.prepared(activity, query, &[], false).await?;
        no_parameters(prepared.parameters.len())?;
        let begins = self.begun(activity, &prepared, Vec::new(), stop).await?;
        let Begins::Rows(mut cursor) = begins else {
            return Err(Failure::new(state::SYNTAX, "COPY requires a query that returns rows"));
        };
        activity.drop_deadline_if_live(&cursor);
        let is_binary = options.format == CopyFormat::Binary;
        self.wire.out.copy_begins(b'H', is_binary, cursor.columns.len());
        let names = cursor.columns.iter().map(|(name, _)| name.as_str());
        let mut head = Vec::new();
        begin(names, options, &mut head);
        if !is_binary && !head.is_empty() {
            self.wire.out.message(b'd', |out| out.extend(&head));
        }
        let has_begun = AtomicBool::new(false);
        let form = Form::Copy(options, &has_begun);
        let sent = send_rows(&mut self.wire, activity, &mut cursor, u64::MAX, &form).await?;
        if is_binary {
            let head = if sent.rows == 0 { head } else { Vec::new() };
            self.wire.out.message(b'd', |out| {
                out.extend(&head);
                out.extend(BINARY_END);
            });
        }
        self.wire.out.copy_done();
        self.wire.out.complete(&format!("COPY {}", sent.rows));
        Ok(())
    }

    pub(super) async fn copy_in(
        &mut self,
        (table, columns): (&str, &[String]),
        options: &CopyOptions,
        text: &str,
    ) -> Result<()> {
        self.settle().await?;
        let activity = self.begin(text, Stop::default());
        let answers = Arc::clone(&self.shared.answers);
        let looking = answers.table(&self.asker, table);
        let info = until(&mut self.wire, &activity, looking).await?;
        let columns = columns_in(&info, columns)?;
        let format = Some("json".to_string());
        let target =
            IngestTarget { table: info.name, format, is_whole: true, ..IngestTarget::default() };
        let beginning = answers.ingest(&self.asker, target);
        let ingest = until(&mut self.wire, &activity, beginning).await?;
        let is_binary = options.format == CopyFormat::Binary;
        self.wire.out.copy_begins(b'G', is_binary, columns.len());
        let reader = Reader::new(options.clone(), columns);
        self.wire.is_bulk = true;
        let done = self.copied_in(reader, ingest, &activity).await;
        self.wire.is_bulk = false;
        match done {
            Ok((rows, marks)) => {
                add(&self.shared.board.counts.messages, marks.messages);
                self.has_changed = true;
                self.wire.out.complete(&format!("COPY {rows}"));
                Ok(())
            }
            Err(failure) => {
                activity.begun.failed(&failure);
                Err(failure)
            }
        }
    }

    async fn copied_in(
        &mut self,
        mut reader: Reader,
        mut ingest: Box<dyn Ingest>,
        activity: &Activity,
    ) -> Result<(u64, Marks)> {
        let mut messages = Vec::new();
        loop {
            let taken = self.next_of_copy(activity).await?;
            match Frontend::parse(taken.kind, &taken.body)? {
                Frontend::CopyData(bytes) => reader.push(bytes, &mut messages)?,
                Frontend::CopyDone => break,
                Frontend::CopyFail(why) => {
                    let said = format!("COPY from stdin failed: {why}");
                    return Err(Failure::new(state::CANCELLED, said));
                }
                // A client of the extended protocol may send these in advance.
                Frontend::Flush | Frontend::Sync => {}
                _ => {
                    let said = "unexpected message during COPY from stdin";
                    return Err(Failure::fatal(state::PROTOCOL, said));
                }
            }
            if messages.len() >= HANDED_BYTES {
                let room = Vec::with_capacity(HANDED_BYTES + HANDED_BYTES / 4);
                let handed = Bytes::from(std::mem::replace(&mut messages, room));
                until(&mut self.wire, activity, ingest.push(handed)).await?;
            }
        }
        reader.finish(&mut messages)?;
        if !messages.is_empty() {
            until(&mut self.wire, activity, ingest.push(messages.into())).await?;
        }
        let marks = until(&mut self.wire, activity, ingest.finish()).await?;
        Ok((reader.rows, marks))
    }

    /// Receives the next message of a COPY.
    async fn next_of_copy(&mut self, activity: &Activity) -> Result<super::wire::ClientMessage> {
        let stop = activity.begun.stop().clone();
        tokio::select! {
            biased;
            () = stop.wait() => Err(activity.begun.running.ended()),
            taken = self.next() => taken?.ok_or_else(|| {
                Failure::fatal(state::PROTOCOL, "the client disconnected during a COPY")
            }),
        }
    }
}

fn target(field: &Field) -> Target {
    let scale = match field.data_type() {
        DataType::Decimal128(_, scale) => u8::try_from(*scale).ok(),
        _ => None,
    };
    Target { name: field.name().clone(), kind: kind::of(field.data_type()), scale }
}

/// Returns the target columns: the listed ones, or all.
fn columns_in(info: &TableInfo, listed: &[String]) -> Result<Vec<Target>> {
    let fields = info.columns.fields();
    if fields.is_empty() {
        let said = format!("table \"{}\" has no columns yet; load messages first", info.name);
        return Err(Failure::new(state::NO_COLUMN, said));
    }
    let is_listed = |field: &Field| {
        let kind = kind::of(field.data_type());
        kind == kind::JSON || kind::item(kind).is_some()
    };
    if let Some(list) = fields.iter().find(|it| is_listed(it) && listed.is_empty()) {
        let said = format!("column \"{}\" is a list, which COPY does not write", list.name());
        return Err(Failure::new(state::UNSUPPORTED, said));
    }
    if listed.is_empty() {
        return Ok(fields.iter().map(|field| target(field)).collect());
    }
    let one = |name: &String| {
        let field = fields.iter().find(|field| field.name() == name);
        let field = field.ok_or_else(|| {
            let said = format!("column \"{name}\" of relation \"{}\" does not exist", info.name);
            Failure::new(state::NO_COLUMN, said)
        })?;
        Ok(target(field))
    };
    listed.iter().map(one).collect()
}
