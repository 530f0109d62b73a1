//! PostgreSQL functions that describe the server rather than data.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Int64Array, ListBuilder, StringArray, StringBuilder, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::{as_int64_array, as_string_array};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use quarrier_wire::{kind, statement_names};

use super::names::quoted;

/// The answer of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Text(&'static str),
    Number(i64),
    Truth(bool),
    /// NULL, as a string.
    Nothing,
    /// A list of strings.
    Strings(&'static [&'static str]),
    /// The name of a type.
    Format,
    /// A setting, by its name.
    Setting,
    /// The second argument.
    Second,
    /// The first argument, in double quotes if it needs them.
    Quoted,
    /// The parts of a qualified name.
    Parts,
    /// A template with the other arguments in it.
    Filled,
}

use Answer::{
    Filled, Format, Nothing, Number, Parts, Quoted, Second, Setting, Strings, Text, Truth,
};

const ALL: &[(&str, Answer)] = &[
    ("version", Text(concat!("PostgreSQL 15.13 (quarrier ", env!("CARGO_PKG_VERSION"), ")"))),
    ("current_database", Text("quarrier")),
    ("current_catalog", Text("quarrier")),
    ("current_schema", Text("public")),
    ("current_schemas", Strings(&["pg_catalog", "public"])),
    ("current_setting", Setting),
    ("set_config", Second),
    ("pg_get_userbyid", Text("quarrier")),
    ("pg_table_is_visible", Truth(true)),
    ("pg_type_is_visible", Truth(true)),
    ("pg_function_is_visible", Truth(true)),
    ("has_schema_privilege", Truth(true)),
    ("has_table_privilege", Truth(true)),
    ("has_database_privilege", Truth(true)),
    ("has_column_privilege", Truth(true)),
    ("has_any_column_privilege", Truth(true)),
    ("has_function_privilege", Truth(true)),
    ("has_type_privilege", Truth(true)),
    ("has_sequence_privilege", Truth(true)),
    ("has_tablespace_privilege", Truth(true)),
    ("has_language_privilege", Truth(true)),
    ("pg_has_role", Truth(true)),
    ("pg_is_in_recovery", Truth(false)),
    ("pg_is_wal_replay_paused", Truth(false)),
    ("pg_is_other_temp_schema", Truth(false)),
    ("pg_relation_is_publishable", Truth(false)),
    ("pg_backend_pid", Number(0)),
    ("pg_my_temp_schema", Number(0)),
    ("pg_relation_size", Number(0)),
    ("pg_total_relation_size", Number(0)),
    ("pg_table_size", Number(0)),
    ("pg_indexes_size", Number(0)),
    ("pg_database_size", Number(0)),
    ("pg_stat_get_numscans", Number(0)),
    ("pg_char_to_encoding", Number(6)),
    ("txid_current", Number(1)),
    ("pg_advisory_unlock_all", Nothing),
    ("pg_encoding_to_char", Text("UTF8")),
    ("pg_size_pretty", Text("")),
    ("format_type", Format),
    ("quote_ident", Quoted),
    ("parse_ident", Parts),
    ("format", Filled),
    ("pg_get_expr", Nothing),
    ("pg_get_viewdef", Nothing),
    ("pg_get_indexdef", Nothing),
    ("pg_get_constraintdef", Nothing),
    ("pg_get_ruledef", Nothing),
    ("pg_get_triggerdef", Nothing),
    ("pg_get_functiondef", Nothing),
    ("pg_get_function_arguments", Nothing),
    ("pg_get_partkeydef", Nothing),
    ("pg_get_serial_sequence", Nothing),
    ("pg_get_function_result", Nothing),
    ("pg_get_function_identity_arguments", Nothing),
    ("pg_tablespace_location", Nothing),
    ("obj_description", Nothing),
    ("col_description", Nothing),
    ("shobj_description", Nothing),
    ("inet_server_addr", Nothing),
    ("inet_server_port", Number(5_433)),
    ("pg_postmaster_start_time", Nothing),
    ("array_lower", Number(1)),
    ("array_to_string", Nothing),
];

/// Returns whether a name is one of these functions.
pub(super) fn has(name: &str) -> bool {
    // Only PostgreSQL's own functions count: DataFusion has all others that SQL defines.
    ALL.iter().any(|(known, _)| *known == name)
}

/// Registers the functions.
pub(super) fn register(context: &SessionContext) {
    for (name, answer) in ALL {
        context.register_udf(ScalarUDF::new_from_impl(CatalogFunction::new(name, *answer)));
    }
}

/// Replaces the keywords for the current user by the user's name.
pub(super) fn with_user(text: &str, user: &str) -> quarrier_wire::Result<String> {
    let words = ["current_user", "session_user", "current_role", "user"];
    if !statement_names(text)?.names_any(&words) {
        return Ok(text.to_string());
    }
    let quoted = format!("'{}'", user.replace('\'', "''"));
    quarrier_wire::with_words(text, |word| {
        let is_one = words[..3].iter().any(|known| known.eq_ignore_ascii_case(word));
        is_one.then(|| quoted.clone())
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
/// A function of PostgreSQL's catalogs with a fixed answer.
struct CatalogFunction {
    name: &'static str,
    answer: Answer,
    signature: Signature,
}

impl CatalogFunction {
    fn new(name: &'static str, answer: Answer) -> Self {
        let any = vec![TypeSignature::VariadicAny, TypeSignature::Nullary];
        CatalogFunction { name, answer, signature: Signature::one_of(any, Volatility::Stable) }
    }
}

impl ScalarUDFImpl for CatalogFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.answer {
            Number(_) => DataType::Int64,
            Truth(_) => DataType::Boolean,
            Strings(_) | Parts => DataType::new_list(DataType::Utf8, true),
            _ => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let scalar = |value: ScalarValue| Ok(ColumnarValue::Scalar(value));
        match self.answer {
            Text(text) => scalar(ScalarValue::from(text)),
            Number(number) => scalar(ScalarValue::from(number)),
            Truth(truth) => scalar(ScalarValue::from(truth)),
            Nothing => scalar(ScalarValue::Utf8(None)),
            Strings(strings) => {
                let values: Vec<ScalarValue> =
                    strings.iter().map(|it| ScalarValue::from(*it)).collect();
                let list = ScalarValue::new_list_nullable(&values, &DataType::Utf8);
                scalar(ScalarValue::List(list))
            }
            Format => {
                let numbers = argument(&arguments, 0, &DataType::Int64, rows)?;
                let numbers: &Int64Array = as_int64_array(&numbers)?;
                let modifiers = argument(&arguments, 1, &DataType::Int64, rows)?;
                let modifiers: &Int64Array = as_int64_array(&modifiers)?;
                let names = numbers.iter().zip(modifiers).map(|(number, modifier)| {
                    let number = number?;
                    match modifier.map(|modifier| modifier - 4) {
                        Some(packed @ 0..) if number == i64::from(kind::NUMERIC) => {
                            Some(format!("numeric({},{})", packed >> 16, packed & 0xFFFF))
                        }
                        _ => Some(kind_name(number)),
                    }
                });
                Ok(ColumnarValue::Array(Arc::new(names.collect::<StringArray>())))
            }
            Setting => mapped(&arguments, 0, rows, |name| Some(setting(name).to_string())),
            Second => mapped(&arguments, 1, rows, |value| Some(value.to_string())),
            Quoted => mapped(&arguments, 0, rows, |name| Some(quoted(name))),
            Parts => parts_of_names(&arguments, rows),
            Filled => filled(&arguments, rows),
        }
    }
}

fn argument(
    arguments: &ScalarFunctionArgs,
    place: usize,
    data: &DataType,
    rows: usize,
) -> Result<ArrayRef> {
    let Some(value) = arguments.args.get(place) else { return Ok(new_null_array(data, rows)) };
    let array = value.to_array(rows)?;
    Ok(cast(&array, data)?)
}

fn mapped(
    arguments: &ScalarFunctionArgs,
    place: usize,
    rows: usize,
    map: impl Fn(&str) -> Option<String>,
) -> Result<ColumnarValue> {
    let strings = argument(arguments, place, &DataType::Utf8, rows)?;
    let strings: &StringArray = as_string_array(&strings)?;
    let mapped: StringArray = strings.iter().map(|text| map(text?)).collect();
    Ok(ColumnarValue::Array(Arc::new(mapped)))
}

/// Returns the parts of each name, as a list.
fn parts_of_names(arguments: &ScalarFunctionArgs, rows: usize) -> Result<ColumnarValue> {
    let names = argument(arguments, 0, &DataType::Utf8, rows)?;
    let mut lists = ListBuilder::new(StringBuilder::new());
    for name in as_string_array(&names)? {
        match name {
            Some(name) => {
                let parts = super::names::parts(name).ok_or_else(|| {
                    exec_datafusion_err!("string is not a valid identifier: \"{name}\"")
                })?;
                lists.append_value(parts.iter().map(Some));
            }
            None => lists.append_null(),
        }
    }
    Ok(ColumnarValue::Array(Arc::new(lists.finish())))
}

/// Fills the other arguments into a template.
fn filled(arguments: &ScalarFunctionArgs, rows: usize) -> Result<ColumnarValue> {
    let strings = (0..arguments.args.len().max(1))
        .map(|place| argument(arguments, place, &DataType::Utf8, rows))
        .collect::<Result<Vec<_>>>()?;
    let strings = strings.iter().map(|it| as_string_array(it)).collect::<Result<Vec<_>>>()?;
    let (template, values) = strings.split_at(1);
    let texts = (0..rows).map(|row| {
        let at = |array: &&StringArray| array.is_valid(row).then(|| array.value(row).to_string());
        let Some(template) = template.first().and_then(at) else { return Ok(None) };
        let values: Vec<Option<String>> = values.iter().map(at).collect();
        super::names::filled(&template, &values).map(Some)
    });
    let texts = texts.collect::<Result<StringArray>>()?;
    Ok(ColumnarValue::Array(Arc::new(texts)))
}

/// Settings that `current_setting` and `pg_settings` show.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("block_size", "8192"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("default_table_access_method", "heap"),
    ("integer_datetimes", "on"),
    ("jit", "on"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", "15.13"),
    ("server_version_num", "150013"),
    ("standard_conforming_strings", "on"),
];

fn setting(name: &str) -> &'static str {
    let known = SETTINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map_or("", |(_, value)| value)
}

/// Returns the SQL name of a type.
pub(super) fn kind_name(number: i64) -> String {
    let number = u32::try_from(number).unwrap_or_default();
    let plain = match number {
        kind::BOOL => "boolean",
        kind::INT2 => "smallint",
        kind::INT4 => "integer",
        kind::INT8 => "bigint",
        kind::FLOAT4 => "real",
        kind::FLOAT8 => "double precision",
        kind::TIMESTAMP => "timestamp without time zone",
        kind::TIMESTAMPTZ => "timestamp with time zone",
        kind::TIME => "time without time zone",
        kind::VARCHAR => "character varying",
        kind::BPCHAR => "character",
        other => match kind::item(other) {
            Some(item) => return format!("{}[]", kind_name(i64::from(item))),
            None => kind::ALL.iter().find(|it| it.0 == other).map_or("???", |it| it.1),
        },
    };
    plain.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_sql_names() {
        let names = [20, 25, 1114, 1016, 1].map(kind_name);
        assert_eq!(names, ["bigint", "text", "timestamp without time zone", "bigint[]", "???"]);
    }
}
