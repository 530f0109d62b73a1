//! The simple protocol: a string of statements, with results in text.

use crate::answers::Stop;
use crate::failure::Result;
use crate::sql::{split, utility};

use super::run::{Form, describe_columns, send_rows, tag};
use super::state::{Activity, Begins, Session};

impl Session {
    /// Runs all statements of a string until one fails.
    pub(super) async fn query(&mut self, text: &str) -> Result<()> {
        let statements = split(text)?;
        if statements.is_empty() {
            self.wire.out.empty_query();
        }
        for statement in statements {
            Box::pin(self.one(statement)).await?;
        }
        Ok(())
    }

    async fn one(&mut self, text: &str) -> Result<()> {
        if let Some(utility) = utility(text)? {
            return self.utility(&utility, text, true).await;
        }
        self.check_transaction(false)?;
        let stop = Stop::default();
        let mut activity = self.begin(text, stop.clone());
        let done = self.answered(&mut activity, text, &stop).await;
        if let Err(failure) = &done {
            activity.begun.failed(failure);
        }
        done
    }

    async fn answered(&mut self, activity: &mut Activity, text: &str, stop: &Stop) -> Result<()> {
        let prepared = self.prepared(activity, text, &[], false).await?;
        no_parameters(prepared.parameters.len())?;
        let rows = match self.begun(activity, &prepared, Vec::new(), stop).await? {
            Begins::Done(rows) | Begins::Sent(rows, _) => rows,
            Begins::Rows(mut cursor) => {
                activity.drop_deadline_if_live(&cursor);
                describe_columns(&cursor.columns, &[], &mut self.wire.out);
                let form = Form::Rows(&[]);
                let wire = &mut self.wire;
                let sent = send_rows(wire, activity, &mut cursor, u64::MAX, &form).await?;
                Some(sent.rows)
            }
        };
        self.wire.out.complete(&tag(&prepared.tag, rows));
        Ok(())
    }
}

/// Refuses parameters, whose values cannot be given here.
pub(super) fn no_parameters(count: usize) -> Result<()> {
    match count {
        0 => Ok(()),
        _ => Err(crate::Failure::new("42P02", "there is no parameter $1 in a statement by itself")),
    }
}
