//! CREATE TABLE: declares the columns of a stored table.

use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, CreateTableOptions, DataType,
    ExactNumberInfo, Expr, Ident, IndexColumn, ObjectName, SqlOption, TableConstraint,
};
use quarrier::kept::{DefinedColumn, Definition, Retention, retention_from};
use quarrier_messages::{DIGITS_MAX, Kind};
use quarrier_wire::{Failure, Result, state};

/// A table to create.
#[derive(Debug)]
pub(super) struct Create {
    pub(super) name: String,
    pub(super) definition: Definition,
    /// The bounds of the table.
    pub(super) retention: Retention,
    /// Whether IF NOT EXISTS is given.
    pub(super) is_optional: bool,
}

fn not_there(what: &str) -> Failure {
    Failure::new(state::UNSUPPORTED, format!("{what} is not supported here"))
}

/// Folds a name as PostgreSQL does: to lower case, unless it is quoted.
pub(super) fn folded(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    }
}

/// Returns the name of a table, which must be in the only schema.
pub(super) fn table_name(name: &ObjectName) -> Result<String> {
    let parts: Option<Vec<String>> =
        name.0.iter().map(|part| part.as_ident().map(folded)).collect();
    match parts.as_deref() {
        Some([table]) => Ok(table.clone()),
        Some([schema, table]) if schema == "public" => Ok(table.clone()),
        _ => Err(Failure::new("3F000", format!("{name}: there is one schema, public"))),
    }
}

pub(super) fn create(tree: &CreateTable) -> Result<Create> {
    for (is_there, what) in [
        (tree.or_replace, "OR REPLACE"),
        (tree.temporary, "TEMPORARY"),
        (tree.external, "EXTERNAL"),
        (tree.query.is_some(), "CREATE TABLE AS"),
        (tree.like.is_some() || tree.clone.is_some(), "LIKE"),
        (tree.inherits.is_some() || tree.partition_of.is_some(), "INHERITS"),
        (tree.partition_by.is_some(), "PARTITION BY"),
        (tree.primary_key.is_some(), "a primary key outside of the constraints"),
    ] {
        if is_there {
            return Err(not_there(what));
        }
    }
    let columns = tree.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
    let wrong = |error: quarrier_messages::Error| Failure::new("42611", error.to_string());
    let definition = Definition::new(columns).map_err(wrong)?;
    let (replaces, retention) = options(tree)?;
    let definition = match (key(tree)?, replaces) {
        (None, false) => definition,
        (Some(key), true) => {
            let names: Vec<&str> = key.iter().map(String::as_str).collect();
            definition.with_key(&names).map_err(wrong)?
        }
        (Some(_), false) => {
            let hint = "WITH (on_conflict = 'replace') lets a row replace the one with its key";
            return Err(not_there("a key that refuses rows").hint(hint));
        }
        (None, true) => {
            let said = "on_conflict needs a key: PRIMARY KEY (columns)";
            return Err(Failure::new(state::PARAMETER, said));
        }
    };
    let name = table_name(&tree.name)?;
    Ok(Create { name, definition, retention, is_optional: tree.if_not_exists })
}

/// Returns the columns of the primary key, by name.
fn key(tree: &CreateTable) -> Result<Option<Vec<String>>> {
    let mut keys: Vec<Vec<String>> = Vec::new();
    for def in &tree.columns {
        let is_key = |it: &&ColumnOptionDef| matches!(it.option, ColumnOption::PrimaryKey(_));
        keys.extend(def.options.iter().filter(is_key).map(|_| vec![folded(&def.name)]));
    }
    for constraint in &tree.constraints {
        let TableConstraint::PrimaryKey(key) = constraint else {
            return Err(not_there(&constraint.to_string()));
        };
        let name = |column: &IndexColumn| match &column.column.expr {
            Expr::Identifier(name) => Ok(folded(name)),
            other => Err(not_there(&format!("a key of {other}"))),
        };
        keys.push(key.columns.iter().map(name).collect::<Result<_>>()?);
    }
    if keys.len() > 1 {
        let said = format!("multiple primary keys for table \"{}\" are not allowed", tree.name);
        return Err(Failure::new("42P16", said));
    }
    Ok(keys.pop())
}

/// Returns whether a row replaces the one with the same key, and the bounds of the table.
fn options(tree: &CreateTable) -> Result<(bool, Retention)> {
    let (CreateTableOptions::With(options) | CreateTableOptions::Options(options)) =
        &tree.table_options
    else {
        return Ok((false, Retention::default()));
    };
    let (mut replaces, mut retention) = (false, Retention::default());
    for option in options {
        let SqlOption::KeyValue { key, value } = option else {
            return Err(not_there(&format!("WITH ({option})")));
        };
        let said = match value {
            Expr::Value(value) => value.value.clone().into_string(),
            Expr::Identifier(word) => Some(folded(word)),
            _ => None,
        };
        match folded(key).as_str() {
            "on_conflict" => {
                if !said.is_some_and(|said| said.eq_ignore_ascii_case("replace")) {
                    let said = format!("on_conflict must be 'replace', not {value}");
                    return Err(Failure::new(state::PARAMETER, said));
                }
                replaces = true;
            }
            "retention" => {
                let read = retention_from(said.as_deref().unwrap_or_default());
                let wrong =
                    |error: quarrier::Error| Failure::new(state::PARAMETER, error.to_string());
                retention = read.map_err(wrong)?;
            }
            _ => return Err(not_there(&format!("WITH ({option})"))),
        }
    }
    Ok((replaces, retention))
}

fn column(def: &ColumnDef) -> Result<DefinedColumn> {
    let (kind, digits) = kind(&def.data_type)?;
    let mut is_required = false;
    for option in &def.options {
        match &option.option {
            ColumnOption::Null => {}
            ColumnOption::NotNull => is_required = true,
            ColumnOption::PrimaryKey(_) => is_required = true,
            other => return Err(not_there(&format!("column {}: {other}", def.name))),
        }
    }
    Ok(DefinedColumn { name: folded(&def.name).into(), kind, digits, is_required })
}

fn kind(data: &DataType) -> Result<(Kind, u8)> {
    use DataType as D;
    Ok(match data {
        D::SmallInt(None) | D::Int2(None) | D::Int(None) | D::Int4(None) => whole(),
        D::Integer(None) | D::BigInt(None) | D::Int8(None) => whole(),
        D::Real | D::Float4 | D::Float8 | D::DoublePrecision => (Kind::Float, DIGITS_MAX),
        D::Double(ExactNumberInfo::None) | D::Float(_) => (Kind::Float, DIGITS_MAX),
        D::Numeric(digits) | D::Decimal(digits) | D::Dec(digits) => exact(digits)?,
        D::Bool | D::Boolean => (Kind::Boolean, DIGITS_MAX),
        D::Date => (Kind::Date, DIGITS_MAX),
        D::Timestamp(..) | D::Datetime(_) => (Kind::Timestamp, DIGITS_MAX),
        D::Text | D::Varchar(None) | D::CharacterVarying(None) | D::String(None) => {
            (Kind::Text, DIGITS_MAX)
        }
        other => {
            let hint = "supported types are bigint, numeric(p, s), double precision, boolean, date, \
                        timestamp and text, and their aliases";
            return Err(not_there(&format!("the type {other}")).hint(hint));
        }
    })
}

fn whole() -> (Kind, u8) {
    (Kind::Integer, DIGITS_MAX)
}

fn exact(said: &ExactNumberInfo) -> Result<(Kind, u8)> {
    let (digits, scale) = match said {
        ExactNumberInfo::None => {
            let hint = "give precision and scale, as in numeric(18, 4)";
            return Err(not_there("numeric without precision").hint(hint));
        }
        ExactNumberInfo::Precision(digits) => (*digits, 0),
        ExactNumberInfo::PrecisionAndScale(digits, scale) => (*digits, *scale),
    };
    let digits = u8::try_from(digits).ok().filter(|digits| (1..=DIGITS_MAX).contains(digits));
    let scale = u8::try_from(scale).ok();
    match (digits, scale) {
        (Some(digits), Some(scale)) if scale <= digits => Ok((Kind::Decimal { scale }, digits)),
        _ => {
            let said =
                format!("numeric has a precision of 1 to {DIGITS_MAX}, and at most that scale");
            Err(Failure::new(state::PARAMETER, said))
        }
    }
}
