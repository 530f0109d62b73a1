//! Converts the engine's errors to those of the Python package.

use quarrier_native::sql::Refused;
use quarrier_sql::{Cause, Error};

pub(crate) fn refused(error: Error) -> Refused {
    match error {
        Error::Cancelled => Refused::Stopped,
        Error::Table { name, reason } => Refused::Table { name, reason },
        error => {
            let reason = error.to_string();
            match error.cause() {
                Cause::Statement => placed(reason),
                Cause::Column => Refused::UnknownColumn { reason },
                Cause::Value => Refused::Value { reason },
                Cause::Memory => Refused::Memory { reason },
                _ => Refused::Engine { reason },
            }
        }
    }
}

/// Splits the position `line 2, column 7: …` off the start of an error.
fn placed(text: String) -> Refused {
    let place = || {
        let (line, rest) = text.strip_prefix("line ")?.split_once(", column ")?;
        let (column, reason) = rest.split_once(": ")?;
        Some(((line.parse().ok()?, column.parse().ok()?), reason.to_string()))
    };
    match place() {
        Some((place, reason)) => Refused::Statement { reason, place: Some(place) },
        None => Refused::Statement { reason: text, place: None },
    }
}
