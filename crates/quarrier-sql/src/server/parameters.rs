//! The parameters of a statement: their number, their values, and their types, which the client
//! specified or the context implies.

use std::collections::HashMap;

use datafusion::arrow::datatypes::DataType;
use quarrier::parameters::{Parameter, bind_numbered, numbered, replace_numbered};
use quarrier_wire::{Failure, Result, Value, cast_kinds, kind, state};

use super::failure::failed;
use crate::Engine;

/// Returns the number of parameters of a statement: the greatest number among them.
pub(super) fn count(text: &str) -> Result<usize> {
    numbered(text).map_err(|error| Failure::new(state::SYNTAX, error.to_string()))
}

/// Replaces the parameters of a statement, or of a part of it, by values.
pub(super) fn with_values(text: &str, values: &[Value]) -> Result<String> {
    let values: Vec<Parameter> = values.iter().map(parameter).collect();
    bind_numbered(text, &values).map_err(|error| Failure::new(state::PARAMETER, error.to_string()))
}

/// Replaces the parameters of a statement by the results of `of`, which gets their indices from 0.
pub(super) fn replaced(text: &str, of: impl Fn(usize) -> String) -> Result<String> {
    replace_numbered(text, |number| Ok(Some(of(number - 1))))
        .map_err(|error| Failure::new(state::SYNTAX, error.to_string()))
}

/// Converts a client's value.
fn parameter(value: &Value) -> Parameter {
    match value {
        Value::Null => Parameter::Null,
        Value::Bool(value) => Parameter::Boolean(*value),
        Value::Int(value) => Parameter::Number(value.to_string()),
        Value::Float(value) => Parameter::Float(*value),
        Value::Decimal(digits) => Parameter::Number(digits.clone()),
        Value::Text(text) => Parameter::Text(text.clone()),
        Value::Bytes(bytes) => Parameter::Bytes(bytes.clone()),
        Value::Date(date) => Parameter::Date(date.clone()),
        Value::Time(time) => Parameter::Time(time.clone()),
        Value::Timestamp(time) => Parameter::Timestamp(time.clone()),
        Value::List(values) => Parameter::List(values.iter().map(parameter).collect()),
    }
}

/// Returns the types of a statement's parameters.
pub(super) async fn kinds(
    engine: &Engine,
    text: &str,
    count: usize,
    declared: &[u32],
) -> Result<Vec<u32>> {
    let declared =
        |place: usize| declared.get(place).copied().filter(|it| !matches!(it, 0 | &kind::UNKNOWN));
    let mut kinds: Vec<Option<u32>> = (0..count).map(declared).collect();
    for (place, kind) in cast_kinds(text)? {
        if let Some(open @ None) = kinds.get_mut(place) {
            *open = Some(kind);
        }
    }
    if kinds.iter().any(Option::is_none) {
        let inferred = inferred(engine, text).await?;
        for (place, kind) in kinds.iter_mut().enumerate() {
            if kind.is_none() {
                *kind = inferred.get(&place).copied();
            }
        }
    }
    Ok(kinds.into_iter().map(|kind| kind.unwrap_or(kind::TEXT)).collect())
}

/// Infers the types of parameters from the plan; empty if none can be inferred.
async fn inferred(engine: &Engine, text: &str) -> Result<HashMap<usize, u32>> {
    let statements = engine.statements(text).map_err(|error| failed(&error))?;
    let [statement] = statements.as_slice() else {
        return Err(Failure::new(state::SYNTAX, "expected one statement"));
    };
    if let Ok(plan) = engine.plan(statement).await
        && let Ok(types) = plan.get_parameter_types()
    {
        let known = types.into_iter().filter_map(|(name, data)| {
            let number: usize = name.strip_prefix('$')?.parse().ok()?;
            Some((number.checked_sub(1)?, of(&data?)))
        });
        return Ok(known.collect());
    }
    // Reports invalid columns now, with strings in place of parameters.
    let with_strings = replaced(text, |_| " '' ".to_string())?;
    let statements = engine.statements(&with_strings).map_err(|error| failed(&error))?;
    for statement in &statements {
        if let Err(error) = engine.plan(statement).await
            && matches!(error.cause(), crate::Cause::Column)
        {
            return Err(failed(&error));
        }
    }
    Ok(HashMap::new())
}

/// Returns the type of a parameter that is compared with a column. It may be wider than the column,
/// so that larger numbers compare, too.
fn of(data: &DataType) -> u32 {
    match kind::of(data) {
        kind::INT2 | kind::INT4 => kind::INT8,
        kind::FLOAT4 => kind::FLOAT8,
        kind::JSON => kind::TEXT,
        other => other,
    }
}
