//! Statements about the connection.

use std::sync::Arc;
use std::time::Duration;

use crate::answers::Stop;
use crate::failure::{Failure, Result, state};
use crate::kind;
use crate::sql::{Count, Utility};

use super::extended::{PATIENCE, no_portal};
use super::run::{Form, describe_columns};
use super::state::{
    Columns, Portal, Progress, Session, Statement, Status, TextMeaning, columns_of,
};

fn one_text_column(name: &str) -> Columns {
    Arc::new([(name.to_string(), kind::TEXT)])
}

impl Session {
    /// Runs a statement about the connection, with results in text; `describes` if columns must be
    /// described as well.
    pub(super) async fn utility(
        &mut self,
        utility: &Utility,
        text: &str,
        describes: bool,
    ) -> Result<()> {
        self.utility_as(utility, text, describes, &[]).await
    }

    pub(super) async fn utility_as(
        &mut self,
        utility: &Utility,
        text: &str,
        describes: bool,
        formats: &[bool],
    ) -> Result<()> {
        self.check_transaction(utility.ends_transaction())?;
        match utility {
            Utility::Begin => self.begin_transaction(),
            Utility::Commit => {
                if let Err(failure) = self.settle().await {
                    // A failed COMMIT ends the transaction as well.
                    self.status = Status::Idle;
                    self.end_portals();
                    return Err(failure);
                }
                self.end_transaction(true);
            }
            Utility::Rollback => {
                self.settle().await?;
                self.end_transaction(false);
            }
            Utility::Savepoint(tag) => self.done(tag),
            Utility::RollbackTo => {
                if self.status == Status::Failed {
                    self.status = Status::Open;
                }
                self.done("ROLLBACK");
            }
            Utility::Set { name, value } => self.set(name, value)?,
            Utility::Show(name) => self.show(name, describes)?,
            Utility::Reset(name) => {
                match name {
                    Some(name) => self.settings.reset(name),
                    None => self.settings.reset_all(),
                }
                self.report_all();
                self.done("RESET");
            }
            Utility::Discard(what) => self.discard(what)?,
            Utility::Deallocate(name) => self.deallocate(name.as_deref())?,
            Utility::Declare { name, is_held, query } => {
                self.declare(name, *is_held, query).await?;
            }
            Utility::Fetch { name, count, is_move, patience } => {
                self.fetch(name, (*count, *patience), *is_move, describes, formats).await?;
            }
            Utility::Close(name) => {
                match name {
                    Some(name) => {
                        self.portals.remove(name).ok_or_else(|| no_portal(name))?;
                    }
                    None => self.portals.retain(|_, portal| !portal.is_cursor),
                }
                self.done(if name.is_none() { "CLOSE CURSOR ALL" } else { "CLOSE CURSOR" });
            }
            Utility::CopyOut { query, options } => {
                Box::pin(self.copy_out(query, options, text)).await?;
            }
            Utility::CopyIn { table, columns, options } => {
                Box::pin(self.copy_in((table, columns), options, text)).await?;
            }
            Utility::Quiet(tag) => self.done(tag),
        }
        Ok(())
    }

    fn done(&mut self, tag: &str) {
        self.wire.out.complete(tag);
    }

    fn warn(&mut self, state: &'static str, said: &str) {
        self.wire.out.warning(&Failure::new(state, said));
    }

    fn begin_transaction(&mut self) {
        if self.status == Status::Idle {
            self.status = Status::Open;
            self.has_changed = false;
        } else {
            self.warn("25001", "there is already a transaction in progress");
        }
        self.done("BEGIN");
    }

    fn end_transaction(&mut self, commits: bool) {
        let has_failed = self.status == Status::Failed;
        if self.status == Status::Idle {
            self.warn(state::NO_TRANSACTION, "there is no transaction in progress");
        }
        if !commits && self.has_changed && self.status != Status::Idle {
            self.warn("01000", "changes made since BEGIN are already durable and remain");
        }
        self.status = Status::Idle;
        self.has_changed = false;
        self.end_portals();
        self.done(if commits && !has_failed { "COMMIT" } else { "ROLLBACK" });
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if !matches!(name, "transaction" | "role") {
            self.settings.set(name, value)?;
            if let Some((name, value)) = self.settings.report(name) {
                self.wire.out.parameter(name, value);
            }
        }
        self.done("SET");
        Ok(())
    }

    fn report_all(&mut self) {
        self.settings.reported().for_each(|(name, value)| self.wire.out.parameter(name, value));
    }

    fn show(&mut self, name: &str, describes: bool) -> Result<()> {
        let value = self.settings.get(name)?.to_string();
        if describes {
            describe_columns(&one_text_column(name), &[], &mut self.wire.out);
        }
        self.wire.out.message(b'D', |out| {
            out.extend(1_u16.to_be_bytes());
            out.extend((value.len() as u32).to_be_bytes());
            out.extend(value.as_bytes());
        });
        self.done("SHOW");
        Ok(())
    }

    fn discard(&mut self, what: &str) -> Result<()> {
        match what {
            "ALL" if self.status != Status::Idle => {
                let said = "DISCARD ALL cannot run inside a transaction block";
                return Err(Failure::new("25001", said));
            }
            "ALL" => {
                self.statements.clear();
                self.portals.clear();
                self.settings.reset_all();
                self.report_all();
            }
            "PLANS" | "SEQUENCES" | "TEMP" | "TEMPORARY" => {}
            other => {
                let said = format!("syntax error at or near \"{other}\"");
                return Err(Failure::new(state::SYNTAX, said));
            }
        }
        self.done(&format!("DISCARD {what}"));
        Ok(())
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<()> {
        let Some(name) = name else {
            self.statements.clear();
            self.done("DEALLOCATE ALL");
            return Ok(());
        };
        if self.statements.remove(name).is_none() {
            let said = format!("prepared statement \"{name}\" does not exist");
            return Err(Failure::new(state::NO_STATEMENT, said));
        }
        self.done("DEALLOCATE");
        Ok(())
    }

    async fn declare(&mut self, name: &str, is_held: bool, query: &str) -> Result<()> {
        if self.status == Status::Idle && !is_held {
            let said = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(Failure::new(state::NO_TRANSACTION, said));
        }
        if self.portals.contains_key(name) {
            let said = format!("cursor \"{name}\" already exists");
            return Err(Failure::new(state::CURSOR_TAKEN, said));
        }
        let activity = self.begin(query, Stop::default());
        let prepared = self.prepared(&activity, query, &[], true).await?;
        drop(activity);
        super::simple::no_parameters(prepared.parameters.len())?;
        if prepared.columns.is_none() {
            let said = "a cursor requires a query that returns rows";
            return Err(Failure::new(state::SYNTAX, said));
        }
        let statement =
            Statement { text: query.to_string(), meaning: TextMeaning::Query(prepared) };
        let portal = Portal {
            statement: Arc::new(statement),
            values: Vec::new(),
            formats: Vec::new(),
            progress: Progress::New,
            is_held,
            is_cursor: true,
        };
        self.keep(name, portal)?;
        self.done("DECLARE CURSOR");
        Ok(())
    }

    async fn fetch(
        &mut self,
        name: &str,
        (count, patience): (Count, Option<Duration>),
        is_move: bool,
        describes: bool,
        formats: &[bool],
    ) -> Result<()> {
        let portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        if describes
            && !is_move
            && let TextMeaning::Query(prepared) = &portal.statement.meaning
            && let Some(columns) = &prepared.columns
        {
            describe_columns(&columns_of(columns), &[], &mut self.wire.out);
        }
        let rows_max = match count {
            Count::Rows(rows) => rows,
            Count::All => u64::MAX,
        };
        // Even ALL takes only the current rows if they have no end.
        let wanted = (rows_max, Some(patience.unwrap_or(PATIENCE)));
        let form = if is_move { Form::Nothing } else { Form::Rows(formats) };
        let (portal, sent) = self.advance(portal, wanted, Some(form)).await;
        self.portals.insert(name.to_string(), portal);
        let rows = sent?.map_or(0, |sent| sent.rows);
        self.done(&format!("{} {rows}", if is_move { "MOVE" } else { "FETCH" }));
        Ok(())
    }

    /// The columns of a utility statement's result.
    pub(super) fn columns_of_utility(&self, utility: &Utility) -> Result<Option<Columns>> {
        match utility {
            Utility::Show(name) => Ok(Some(one_text_column(name))),
            Utility::Fetch { name, is_move: false, .. } => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                match &portal.statement.meaning {
                    TextMeaning::Query(prepared) => {
                        Ok(prepared.columns.as_ref().map(|columns| columns_of(columns)))
                    }
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }
}
