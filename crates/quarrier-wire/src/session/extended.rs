//! The extended protocol: prepares statements, binds values, and runs portals for as many rows as
//! requested.

use std::sync::Arc;
use std::time::Duration;

use crate::answers::Stop;
use crate::failure::{Failure, Result, state};
use crate::protocol::{Bound, Named, Target};
use crate::sql::{Utility, split, utility};
use crate::value;

use super::run::{Form, Sent, describe_columns, send_rows, tag};
use super::state::{
    Activity, Begins, Columns, Portal, Progress, Session, Statement, TextMeaning, columns_of,
};

/// Maximum time to wait for the first row of a subscription; its progress usually arrives earlier.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

impl Session {
    pub(super) async fn parse(&mut self, name: &str, text: &str, kinds: &[u32]) -> Result<()> {
        if !name.is_empty() && self.statements.contains_key(name) {
            let said = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new(state::STATEMENT_TAKEN, said));
        }
        let held: usize = self.statements.values().map(|statement| statement.text.len()).sum();
        let limits = &self.shared.limits;
        let is_full = self.statements.len() >= limits.statements_max
            || held + text.len() > limits.statement_bytes_max;
        if is_full && !name.is_empty() {
            return Err(Failure::new(state::LIMIT, "too many prepared statements; close some"));
        }
        let meaning = self.understood(text, kinds).await?;
        let statement = Arc::new(Statement { text: text.to_string(), meaning });
        self.statements.insert(name.to_string(), statement);
        self.wire.out.parse_complete();
        Ok(())
    }

    async fn understood(&mut self, text: &str, kinds: &[u32]) -> Result<TextMeaning> {
        let statement = match split(text)?.as_slice() {
            [] => return Ok(TextMeaning::Empty),
            [one] => *one,
            _ => {
                let said = "cannot insert multiple commands into a prepared statement";
                return Err(Failure::new(state::SYNTAX, said));
            }
        };
        if let Some(utility) = utility(statement)? {
            self.check_transaction(utility.ends_transaction())?;
            return Ok(TextMeaning::Utility(utility));
        }
        self.check_transaction(false)?;
        let activity = self.begin(text, Stop::default());
        let prepared = self.prepared(&activity, statement, kinds, true).await;
        if let Err(failure) = &prepared {
            activity.begun.failed(failure);
        }
        Ok(TextMeaning::Query(prepared?))
    }

    pub(super) fn bind(&mut self, bound: &Bound<'_>) -> Result<()> {
        let statement = self.statement(bound.statement)?;
        let kinds = statement.parameters();
        if kinds.len() != bound.values.len() {
            let said = format!(
                "bind message supplies {} parameters, but prepared statement \"{}\" requires {}",
                bound.values.len(),
                bound.statement,
                kinds.len()
            );
            return Err(Failure::new(state::PROTOCOL, said));
        }
        let is_binary = |place| super::run::is_binary(&bound.formats, place);
        let values = kinds.iter().zip(&bound.values).enumerate();
        let values = values.map(|(place, (kind, bytes))| {
            value::read(*kind, *bytes, is_binary(place)).map_err(|failure| {
                let message = format!("parameter ${}: {}", place + 1, failure.message);
                Failure { message, ..failure }
            })
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        if !bound.portal.is_empty() && self.portals.contains_key(bound.portal) {
            let said = format!("cursor \"{}\" already exists", bound.portal);
            return Err(Failure::new(state::CURSOR_TAKEN, said));
        }
        let portal = Portal {
            statement,
            values,
            formats: bound.results.clone(),
            progress: Progress::New,
            is_held: false,
            is_cursor: false,
        };
        self.keep(bound.portal, portal)?;
        self.wire.out.bind_complete();
        Ok(())
    }

    fn statement(&self, name: &str) -> Result<Arc<Statement>> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let said = format!("prepared statement \"{name}\" does not exist");
            Failure::new(state::NO_STATEMENT, said)
        })
    }

    pub(super) fn describe(&mut self, named: Named<'_>) -> Result<()> {
        let (columns, formats) = match named.target {
            Target::Statement => {
                let statement = self.statement(named.name)?;
                let columns = self.columns_of(&statement)?;
                self.wire.out.parameter_description(statement.parameters());
                (columns, Vec::new())
            }
            Target::Portal => {
                let portal = self.portals.get(named.name).ok_or_else(|| no_portal(named.name))?;
                let columns = match &portal.progress {
                    Progress::Rows(cursor) => Some(Arc::clone(&cursor.columns)),
                    _ => self.columns_of(&portal.statement)?,
                };
                (columns, portal.formats.clone())
            }
        };
        match columns {
            Some(columns) => describe_columns(&columns, &formats, &mut self.wire.out),
            None => self.wire.out.no_data(),
        }
        Ok(())
    }

    fn columns_of(&self, statement: &Statement) -> Result<Option<Columns>> {
        match &statement.meaning {
            TextMeaning::Empty => Ok(None),
            TextMeaning::Query(prepared) => Ok(prepared.columns.as_ref().map(|it| columns_of(it))),
            TextMeaning::Utility(utility) => self.columns_of_utility(utility),
        }
    }

    pub(super) async fn execute(&mut self, name: &str, rows_max: u32) -> Result<()> {
        let portal = self.portals.remove(name).ok_or_else(|| no_portal(name))?;
        let statement = Arc::clone(&portal.statement);
        let rows_max = if rows_max == 0 { u64::MAX } else { u64::from(rows_max) };
        match &statement.meaning {
            TextMeaning::Empty => {
                self.wire.out.empty_query();
                Ok(())
            }
            TextMeaning::Utility(utility) => {
                // The portal may run again, for FETCH.
                let formats = portal.formats.clone();
                self.portals.insert(name.to_string(), portal);
                self.utility_as(utility, &statement.text, false, &formats).await
            }
            TextMeaning::Query(_) => {
                self.check_transaction(false)?;
                let (portal, done) = self.advance(portal, (rows_max, None), None).await;
                self.portals.insert(name.to_string(), portal);
                let sent = done?;
                let TextMeaning::Query(prepared) = &statement.meaning else { return Ok(()) };
                match sent {
                    Some(sent) if !sent.is_over => self.wire.out.portal_suspended(),
                    Some(sent) => self.wire.out.complete(&tag(&prepared.tag, Some(sent.rows))),
                    None => self.wire.out.complete(&prepared.tag),
                }
                Ok(())
            }
        }
    }

    /// Takes rows from a portal, which it returns as well. `None` if the statement completed without
    /// rows; the number of rows is then that of the changed rows. For live rows, takes the available
    /// ones, after waiting up to `patience` for the first.
    pub(super) async fn advance(
        &mut self,
        mut portal: Portal,
        (rows_max, patience): (u64, Option<Duration>),
        form: Option<Form<'_>>,
    ) -> (Portal, Result<Option<Sent>>) {
        let stop = match &portal.progress {
            Progress::Rows(cursor) => cursor.stop.clone(),
            _ => Stop::default(),
        };
        let statement = Arc::clone(&portal.statement);
        let mut activity = self.begin(&statement.text, stop.clone());
        let done =
            self.advanced(&mut portal, (rows_max, patience, form), &mut activity, &stop).await;
        if let Err(failure) = &done {
            activity.begun.failed(failure);
            portal.progress = Progress::Done;
        }
        (portal, done)
    }

    async fn advanced(
        &mut self,
        portal: &mut Portal,
        (rows_max, patience, form): (u64, Option<Duration>, Option<Form<'_>>),
        activity: &mut Activity,
        stop: &Stop,
    ) -> Result<Option<Sent>> {
        let TextMeaning::Query(prepared) = &portal.statement.meaning else { return Ok(None) };
        if matches!(portal.progress, Progress::New) {
            let values = std::mem::take(&mut portal.values);
            match self.begun(activity, prepared, values, stop).await? {
                Begins::Rows(cursor) => portal.progress = Progress::Rows(cursor),
                Begins::Done(rows) | Begins::Sent(rows, _) => {
                    portal.progress = Progress::Done;
                    return Ok(rows.map(|rows| Sent { rows, is_over: true }));
                }
            }
        }
        let Progress::Rows(cursor) = &mut portal.progress else {
            return Ok(Some(Sent { rows: 0, is_over: true }));
        };
        activity.drop_deadline_if_live(cursor);
        if patience.is_some() || rows_max != u64::MAX {
            cursor.patience = Some(patience.unwrap_or(PATIENCE));
        }
        let form = form.unwrap_or(Form::Rows(&portal.formats));
        let sent = send_rows(&mut self.wire, activity, cursor, rows_max, &form).await?;
        if sent.is_over {
            portal.progress = Progress::Done;
        }
        Ok(Some(sent))
    }

    pub(super) fn close(&mut self, named: Named<'_>) {
        match named.target {
            Target::Statement => drop(self.statements.remove(named.name)),
            Target::Portal => drop(self.portals.remove(named.name)),
        }
        self.wire.out.close_complete();
    }
}

pub(super) fn no_portal(name: &str) -> Failure {
    Failure::new(state::NO_CURSOR, format!("cursor \"{name}\" does not exist"))
}

impl Utility {
    /// Whether it ends a transaction, even a failed one.
    pub(super) fn ends_transaction(&self) -> bool {
        matches!(self, Utility::Commit | Utility::Rollback | Utility::RollbackTo)
    }
}
