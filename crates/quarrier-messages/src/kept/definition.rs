//! The declared columns of a table, and the check that a message conforms to them.
//!
//! A table without a definition infers its columns from its messages. With one, messages that do not conform
//! are rejected before they reach the log, so the columns never change.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use crate::build::{Cell, FieldId, Row};
use crate::exact::{DIGITS_MAX, digits, rescaled};
use crate::{Error, Field, Kind, Result, Schema};

/// Maximum number of columns in a definition.
const COLUMNS_MAX: usize = 1_600;
/// Maximum length of a column's name in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Maximum number of columns in a key.
const KEY_COLUMNS_MAX: usize = 32;
/// The prefix of the line that declares the key.
const KEY_WORDS: &str = "key replace";

/// A declared column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinedColumn {
    /// The name.
    pub name: Box<str>,
    /// The type; with [`Kind::Null`], the column takes any value.
    pub kind: Kind,
    /// Maximum digits of an exact number, including those after the point; at most 38.
    pub digits: u8,
    /// Whether every message must have a value for the column.
    pub is_required: bool,
}

/// The columns of a declared table, and its key, if any.
///
/// ```
/// use quarrier_messages::Kind;
/// use quarrier_messages::kept::{DefinedColumn, Definition};
///
/// # fn main() -> quarrier_messages::Result<()> {
/// let column = |name: &str, kind| DefinedColumn {
///     name: name.into(),
///     kind,
///     digits: 38,
///     is_required: false,
/// };
/// let columns = vec![column("symbol", Kind::Text), column("bid", Kind::Decimal { scale: 4 })];
/// let quotes = Definition::new(columns)?.with_key(&["symbol"])?;
/// assert_eq!(quotes.key(), [0]);
/// assert!(quotes.columns()[0].is_required);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Definition {
    columns: Vec<DefinedColumn>,
    key: Vec<usize>,
}

fn wrong(reason: String) -> Error {
    Error::Store { place: "columns".to_string(), reason }
}

/// The reason why a message does not conform to the definition of its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The type of a value differs from that of its column.
    Kind,
    /// A number has more digits than its column.
    Digits,
    /// A required column has no value.
    Missing,
    /// A value has no column.
    Unknown,
}

impl Misfit {
    const ALL: [Misfit; 4] = [Misfit::Kind, Misfit::Digits, Misfit::Missing, Misfit::Unknown];

    /// Returns the reason for a [`Fault`](crate::Fault).
    pub fn words(self) -> &'static str {
        match self {
            Misfit::Kind => "a value has another type than its column",
            Misfit::Digits => "a number has more digits than its column",
            Misfit::Missing => "a required column has no value",
            Misfit::Unknown => "a field has no column in the table",
        }
    }

    /// Returns the misfit with this reason.
    pub fn of(words: &str) -> Option<Misfit> {
        Misfit::ALL.into_iter().find(|misfit| misfit.words() == words)
    }
}

impl Definition {
    /// Makes a definition of columns, whose names must differ in more than ASCII case.
    ///
    /// # Errors
    /// [`Error::Store`] if the columns are too many, or the name of one is not allowed.
    pub fn new(columns: Vec<DefinedColumn>) -> Result<Self> {
        if columns.len() > COLUMNS_MAX {
            return Err(wrong(format!("a table has at most {COLUMNS_MAX} columns")));
        }
        let mut names = HashSet::new();
        for DefinedColumn { name, .. } in &columns {
            let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
            if !is_name || name.contains(char::is_control) {
                return Err(wrong(format!(
                    "'{}' cannot be a name: 1 to {NAME_BYTES_MAX} bytes without control characters \
                     can",
                    name.escape_debug()
                )));
            }
            if !names.insert(name.to_ascii_lowercase()) {
                return Err(wrong(format!("the name '{name}' is repeated")));
            }
        }
        Ok(Definition { columns, key: Vec::new() })
    }

    /// Adds a primary key with upsert semantics: among rows with the same values in these columns, the table
    /// keeps only the latest. Every message must have values for them.
    ///
    /// # Errors
    /// [`Error::Store`] if the key has no columns or too many, if a column does not exist or occurs twice, if
    /// a column of the key has floats, or if any column of the table takes values of any type.
    pub fn with_key(mut self, names: &[&str]) -> Result<Self> {
        let mut key = Vec::with_capacity(names.len());
        for name in names {
            let place = self.columns.iter().position(|column| *column.name == **name);
            let place =
                place.ok_or_else(|| wrong(format!("the key's column '{name}' does not exist")))?;
            if key.contains(&place) {
                return Err(wrong(format!("'{name}' is in the key twice")));
            }
            key.push(place);
        }
        self.set_key(key)?;
        Ok(self)
    }

    fn set_key(&mut self, key: Vec<usize>) -> Result<()> {
        if key.is_empty() || key.len() > KEY_COLUMNS_MAX {
            return Err(wrong(format!("a key has 1 to {KEY_COLUMNS_MAX} columns")));
        }
        if let Some(any) = self.columns.iter().find(|column| column.kind == Kind::Null) {
            let name = &any.name;
            return Err(wrong(format!("'{name}' takes any type; a table with a key needs types")));
        }
        for place in &key {
            let column = &mut self.columns[*place];
            if column.kind == Kind::Float {
                let name = &column.name;
                return Err(wrong(format!("'{name}' has floats, which a key cannot have")));
            }
            column.is_required = true;
        }
        self.key = key;
        Ok(())
    }

    /// Returns the positions of the key's columns, in the order of the key; empty if the table has no key.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// Returns the columns in their order.
    pub fn columns(&self) -> &[DefinedColumn] {
        &self.columns
    }

    /// Returns the names and types of the columns.
    pub fn schema(&self) -> Schema {
        let field = |it: &DefinedColumn| Field { name: it.name.clone(), kind: it.kind };
        Schema { fields: self.columns.iter().map(field).collect() }
    }

    /// Formats one line per column: its type, whether it is required, and its name. If there is a key, a line
    /// with the positions of its columns comes first.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if !self.key.is_empty() {
            text.push_str(KEY_WORDS);
            for place in &self.key {
                let _ = write!(text, " {place}");
            }
            text.push('\n');
        }
        for DefinedColumn { name, kind, digits, is_required } in &self.columns {
            let word = match kind {
                Kind::Decimal { scale } => format!("decimal({digits},{scale})"),
                other => word(*other).to_string(),
            };
            let needs = if *is_required { "required" } else { "-" };
            // Writing to a String never fails.
            let _ = writeln!(text, "{word} {needs} {name}");
        }
        text
    }

    /// Parses the output of [`to_text`](Self::to_text); None for anything else.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let column = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let (word, needs, name) = (parts.next()?, parts.next()?, parts.next()?);
            let (kind, digits) = match word.strip_prefix("decimal(") {
                Some(rest) => {
                    let (digits, scale) = rest.strip_suffix(')')?.split_once(',')?;
                    (Kind::Decimal { scale: scale.parse().ok()? }, digits.parse().ok()?)
                }
                None => (KINDS.into_iter().find(|kind| self::word(*kind) == word)?, DIGITS_MAX),
            };
            let is_required = needs == "required";
            Some(DefinedColumn { name: name.into(), kind, digits, is_required })
        };
        let (key, rest) = match text.strip_prefix(KEY_WORDS) {
            Some(rest) => rest.split_once('\n')?,
            None => ("", text),
        };
        let columns = rest.lines().map(column).collect::<Option<Vec<_>>>()?;
        let mut definition = Definition::new(columns).ok()?;
        if text.starts_with(KEY_WORDS) {
            let places = key.split_ascii_whitespace().map(|place| place.parse().ok());
            let places = places.collect::<Option<Vec<usize>>>()?;
            let mut seen = HashSet::new();
            let is_place = |place: &usize| *place < definition.columns.len() && seen.insert(*place);
            if !places.iter().all(is_place) {
                return None;
            }
            definition.set_key(places).ok()?;
        }
        Some(definition)
    }
}

const KINDS: [Kind; 7] = [
    Kind::Null,
    Kind::Boolean,
    Kind::Integer,
    Kind::Float,
    Kind::Date,
    Kind::Timestamp,
    Kind::Text,
];

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "any",
        Kind::Boolean => "boolean",
        Kind::Integer => "integer",
        Kind::Decimal { .. } => "decimal",
        Kind::Float => "float",
        Kind::Date => "date",
        Kind::Timestamp => "timestamp",
        Kind::Text => "text",
    }
}

/// Receives the fields of messages, and checks each message.
pub(super) trait Judge: Row {
    /// Returns the fault of the message whose fields arrived, if any, and begins the next message.
    fn verdict(&mut self) -> Option<&'static str>;

    /// The last message is accepted.
    #[inline(always)]
    fn accepted(&mut self, message: &[u8]) {
        let _ = message;
    }

    /// The last message is rejected, or was accepted before.
    #[inline(always)]
    fn discarded(&mut self) {}
}

/// Checks whether messages conform to a definition.
pub(super) struct Checker<'d> {
    columns: &'d [DefinedColumn],
    names: HashMap<&'d str, FieldId>,
    misfit: Option<Misfit>,
    /// The number of the last message that had a value, by column.
    seen: Vec<u64>,
    message: u64,
    has_required: bool,
    /// Whether to reject strings made from floats or very long numbers: how many of their digits survive
    /// depends on the messages around them, so reading them again could yield other rows.
    has_key: bool,
}

impl<'d> Checker<'d> {
    pub(super) fn new(definition: &'d Definition) -> Self {
        let columns = &definition.columns;
        let names = columns.iter().enumerate();
        Checker {
            columns,
            names: names.map(|(place, it)| (&*it.name, FieldId::new(place))).collect(),
            misfit: None,
            seen: vec![0; columns.len()],
            message: 1,
            has_required: columns.iter().any(|column| column.is_required),
            has_key: !definition.key.is_empty(),
        }
    }

    fn judged(&mut self, field: FieldId, judge: impl FnOnce(&DefinedColumn) -> Option<Misfit>) {
        let misfit = match self.columns.get(field.index()) {
            Some(column) => {
                self.seen[field.index()] = self.message;
                judge(column)
            }
            None => Some(Misfit::Unknown),
        };
        self.misfit = self.misfit.or(misfit);
    }

    fn exact(&mut self, field: FieldId, mantissa: i128, scale: u8) {
        self.judged(field, |column| match column.kind {
            Kind::Null | Kind::Text | Kind::Float => None,
            Kind::Integer if scale == 0 && i64::try_from(mantissa).is_ok() => None,
            Kind::Integer if scale == 0 => Some(Misfit::Digits),
            Kind::Decimal { scale: to } => match rescaled(mantissa, scale, to) {
                Some(mantissa) if digits(mantissa) <= column.digits => None,
                _ => Some(Misfit::Digits),
            },
            _ => Some(Misfit::Kind),
        });
    }

    /// Returns whether a column rejects numbers that may lose digits.
    fn keeps_digits(&self, field: FieldId) -> bool {
        let is_text = |column: &DefinedColumn| column.kind == Kind::Text;
        self.has_key && self.columns.get(field.index()).is_some_and(is_text)
    }

    fn floating(&mut self, field: FieldId) {
        match self.keeps_digits(field) {
            true => self.judged(field, |_| Some(Misfit::Kind)),
            false => self.of_kinds(field, &[Kind::Float]),
        }
    }

    fn of_kinds(&mut self, field: FieldId, kinds: &[Kind]) {
        self.judged(field, |column| {
            let fits =
                matches!(column.kind, Kind::Null | Kind::Text) || kinds.contains(&column.kind);
            (!fits).then_some(Misfit::Kind)
        });
    }
}

impl Judge for Checker<'_> {
    fn verdict(&mut self) -> Option<&'static str> {
        let mut misfit = self.misfit.take();
        if self.has_required && misfit.is_none() {
            let mut both = self.columns.iter().zip(&self.seen);
            let is_missing = both.any(|(it, seen)| it.is_required && *seen != self.message);
            misfit = is_missing.then_some(Misfit::Missing);
        }
        self.message += 1;
        misfit.map(Misfit::words)
    }
}

impl Row for Checker<'_> {
    fn field(&mut self, name: &str) -> Option<FieldId> {
        let unknown = FieldId::new(self.columns.len());
        Some(self.names.get(name).copied().unwrap_or(unknown))
    }

    fn boolean(&mut self, field: FieldId, _value: bool) {
        self.of_kinds(field, &[Kind::Boolean]);
    }

    fn integer(&mut self, field: FieldId, value: i64) {
        self.exact(field, value.into(), 0);
    }

    fn decimal(&mut self, field: FieldId, mantissa: i64, scale: u8) {
        self.exact(field, mantissa.into(), scale);
    }

    fn number(&mut self, field: FieldId, number: Cell<'static>) {
        match number {
            Cell::Wide { mantissa, scale } if !self.keeps_digits(field) => {
                self.exact(field, mantissa.into(), scale);
            }
            _ => self.floating(field),
        }
    }

    fn float(&mut self, field: FieldId, _value: f64) {
        self.floating(field);
    }

    fn date(&mut self, field: FieldId, _days: i32) {
        self.of_kinds(field, &[Kind::Date, Kind::Timestamp]);
    }

    fn timestamp(&mut self, field: FieldId, _nanoseconds: i64) {
        self.of_kinds(field, &[Kind::Timestamp]);
    }

    fn text(&mut self, field: FieldId, value: &str) {
        match self.columns.get(field.index()).map(|column| column.kind) {
            Some(Kind::Date | Kind::Timestamp) => match Cell::of_time(value) {
                Some(Cell::Date(days)) => self.date(field, days),
                Some(Cell::Timestamp(nanoseconds)) => self.timestamp(field, nanoseconds),
                _ => self.of_kinds(field, &[]),
            },
            _ => self.of_kinds(field, &[]),
        }
    }

    fn null(&mut self, field: FieldId) {
        if let Some(seen) = self.seen.get_mut(field.index()) {
            *seen = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: Kind, digits: u8, is_required: bool) -> DefinedColumn {
        DefinedColumn { name: name.into(), kind, digits, is_required }
    }

    fn definition() -> Definition {
        Definition::new(vec![
            column("id", Kind::Integer, DIGITS_MAX, true),
            column("a price", Kind::Decimal { scale: 2 }, 6, false),
            column("at", Kind::Timestamp, DIGITS_MAX, false),
            column("note", Kind::Text, DIGITS_MAX, false),
        ])
        .unwrap()
    }

    #[test]
    fn a_definition_survives_a_round_trip() {
        let definition = definition();
        assert_eq!(Definition::of_text(&definition.to_text()), Some(definition));
        assert_eq!(Definition::of_text(""), Some(Definition::default()));
        let keyed = self::definition().with_key(&["at", "id"]).unwrap();
        assert_eq!(keyed.key(), [2, 0]);
        assert_eq!(Definition::of_text(&keyed.to_text()), Some(keyed));
        for text in [
            "integer -",
            "number - a",
            "decimal(4) - a",
            "integer - a\nfloat - A\n",
            "key replace 1\ninteger - a\n",
            "key replace\ninteger - a\n",
            "key replace 0 0\ninteger - a\n",
            "key replace 0\nfloat - a\n",
            "key replace x\ninteger - a\n",
            "key refuse 0\ninteger - a\n",
            "key replace 0",
        ] {
            assert_eq!(Definition::of_text(text), None, "{text}");
        }
    }

    #[test]
    fn names_that_no_column_may_have_are_refused() {
        for names in [&["a", "A"][..], &[""], &["a\nb"]] {
            let columns = names.iter().map(|name| column(name, Kind::Text, DIGITS_MAX, false));
            assert!(Definition::new(columns.collect()).is_err(), "{names:?}");
        }
    }

    #[test]
    fn keys_have_existing_columns_and_definitions_compare() {
        let columns =
            vec![column("id", Kind::Integer, 38, false), column("x", Kind::Float, 38, false)];
        let plain = Definition::new(columns).unwrap();
        for names in [&[][..], &["ID"], &["id", "id"], &["x"]] {
            assert!(plain.clone().with_key(names).is_err(), "{names:?}");
        }
        let keyed = plain.with_key(&["id"]).unwrap();
        assert!(keyed.columns()[0].is_required && !keyed.columns()[1].is_required);
        let any = Definition::new(vec![
            column("id", Kind::Integer, 38, false),
            column("any", Kind::Null, 38, false),
        ]);
        assert!(any.unwrap().with_key(&["id"]).is_err());
        let note = vec![column("id", Kind::Text, 38, false), column("note", Kind::Text, 38, false)];
        let keyed = Definition::new(note).unwrap().with_key(&["id"]).unwrap();
        let mut checker = Checker::new(&keyed);
        let (id, note) = (checker.field("id").unwrap(), checker.field("note").unwrap());
        checker.integer(id, 1);
        checker.float(note, 1e300);
        assert_eq!(checker.verdict().and_then(Misfit::of), Some(Misfit::Kind));
        checker.integer(id, 1);
        checker.number(note, Cell::exact(i128::from(i64::MAX) * 10, 0));
        assert_eq!(checker.verdict().and_then(Misfit::of), Some(Misfit::Kind));
    }

    #[test]
    fn misfits_are_reported_and_the_next_message_is_checked() {
        let definition = definition();
        let mut checker = Checker::new(&definition);
        let mut judge = |set: &dyn Fn(&mut Checker<'_>)| {
            set(&mut checker);
            checker.verdict().and_then(Misfit::of)
        };
        let of = |name: &str, checker: &mut Checker<'_>| checker.field(name).unwrap();
        let whole = |name: &'static str, value: i64| {
            move |checker: &mut Checker<'_>| {
                let field = of(name, checker);
                checker.integer(field, value);
            }
        };
        assert_eq!(judge(&whole("id", 7)), None);
        assert_eq!(judge(&whole("a price", 7)), Some(Misfit::Missing));
        assert_eq!(judge(&whole("other", 7)), Some(Misfit::Unknown));
        let with = |set: &dyn Fn(&mut Checker<'_>)| {
            let mut checker = Checker::new(&definition);
            whole("id", 1)(&mut checker);
            set(&mut checker);
            checker.verdict().and_then(Misfit::of)
        };
        assert_eq!(with(&whole("a price", 9_999)), None);
        assert_eq!(with(&whole("a price", 10_000)), Some(Misfit::Digits));
        let text = |name: &'static str, value: &'static str| {
            move |checker: &mut Checker<'_>| {
                let field = of(name, checker);
                checker.text(field, value);
            }
        };
        assert_eq!(with(&text("at", "2024-05-31T23:59:58.5Z")), None);
        assert_eq!(with(&text("at", "2024-05-31")), None);
        assert_eq!(with(&text("at", "yesterday")), Some(Misfit::Kind));
        assert_eq!(with(&text("a price", "1.00")), Some(Misfit::Kind));
        assert_eq!(with(&whole("note", 1)), None);
        assert_eq!(
            with(&|checker| {
                let field = of("a price", checker);
                checker.decimal(field, 1_255, 3);
            }),
            Some(Misfit::Digits)
        );
        assert_eq!(
            with(&|checker| {
                let field = of("id", checker);
                checker.null(field);
            }),
            Some(Misfit::Missing)
        );
    }
}
