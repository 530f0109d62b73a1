//! PostgreSQL's types by their OIDs, and their equivalents in Arrow.

use arrow_schema::DataType;

/// Boolean.
pub const BOOL: u32 = 16;
/// Bytes.
pub const BYTEA: u32 = 17;
/// A single byte, in catalogs.
pub const CHAR: u32 = 18;
/// A name, in catalogs.
pub const NAME: u32 = 19;
/// An integer of 64 bits.
pub const INT8: u32 = 20;
/// An integer of 16 bits.
pub const INT2: u32 = 21;
/// An integer of 32 bits.
pub const INT4: u32 = 23;
/// A string.
pub const TEXT: u32 = 25;
/// A list of strings.
pub const TEXTS: u32 = 1009;
/// An object's identifier, in catalogs.
pub const OID: u32 = 26;
/// JSON.
pub const JSON: u32 = 114;
/// A floating-point number of 32 bits.
pub const FLOAT4: u32 = 700;
/// A floating-point number of 64 bits.
pub const FLOAT8: u32 = 701;
/// An unknown type.
pub const UNKNOWN: u32 = 705;
/// A string padded with spaces.
pub const BPCHAR: u32 = 1042;
/// A string of limited length.
pub const VARCHAR: u32 = 1043;
/// A date.
pub const DATE: u32 = 1082;
/// A time of day.
pub const TIME: u32 = 1083;
/// A timestamp without a time zone.
pub const TIMESTAMP: u32 = 1114;
/// A timestamp with a time zone.
pub const TIMESTAMPTZ: u32 = 1184;
/// An interval.
pub const INTERVAL: u32 = 1186;
/// An exact number.
pub const NUMERIC: u32 = 1700;
/// A UUID.
pub const UUID: u32 = 2950;
/// JSON in PostgreSQL's binary form.
pub const JSONB: u32 = 3802;

/// The OID of each type, its name, the bytes of its values (-1 if they vary), and the OID of its
/// lists.
pub const ALL: &[(u32, &str, i16, u32)] = &[
    (BOOL, "bool", 1, 1000),
    (BYTEA, "bytea", -1, 1001),
    (CHAR, "char", 1, 1002),
    (NAME, "name", 64, 1003),
    (INT8, "int8", 8, 1016),
    (INT2, "int2", 2, 1005),
    (INT4, "int4", 4, 1007),
    (TEXT, "text", -1, 1009),
    (OID, "oid", 4, 1028),
    (JSON, "json", -1, 199),
    (FLOAT4, "float4", 4, 1021),
    (FLOAT8, "float8", 8, 1022),
    (BPCHAR, "bpchar", -1, 1014),
    (VARCHAR, "varchar", -1, 1015),
    (DATE, "date", 4, 1182),
    (TIME, "time", 8, 1183),
    (TIMESTAMP, "timestamp", 8, 1115),
    (TIMESTAMPTZ, "timestamptz", 8, 1185),
    (INTERVAL, "interval", 16, 1187),
    (NUMERIC, "numeric", -1, 1231),
    (UUID, "uuid", 16, 2951),
    (JSONB, "jsonb", -1, 3807),
];

/// Returns the bytes of a type's values; -1 if they vary.
pub fn size(kind: u32) -> i16 {
    ALL.iter().find(|known| known.0 == kind).map_or(-1, |known| known.2)
}

/// Returns the type of a list's items; `None` if the type is not a list.
pub fn item(list: u32) -> Option<u32> {
    ALL.iter().find(|known| known.3 == list).map(|known| known.0)
}

/// Returns the type of lists of a type.
fn list_of(item: u32) -> Option<u32> {
    ALL.iter().find(|known| known.0 == item).map(|known| known.3)
}

/// Returns the type that represents a column of Arrow.
pub fn of(data: &DataType) -> u32 {
    use DataType as D;
    match data {
        D::Boolean => BOOL,
        D::Int8 | D::Int16 | D::UInt8 => INT2,
        D::Int32 | D::UInt16 => INT4,
        D::Int64 | D::UInt32 => INT8,
        D::UInt64 | D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) | D::Decimal256(..) => {
            NUMERIC
        }
        D::Float16 | D::Float32 => FLOAT4,
        D::Float64 => FLOAT8,
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => BYTEA,
        D::Date32 | D::Date64 => DATE,
        D::Time32(_) | D::Time64(_) => TIME,
        D::Timestamp(_, None) => TIMESTAMP,
        D::Timestamp(_, Some(_)) => TIMESTAMPTZ,
        D::Interval(_) | D::Duration(_) => INTERVAL,
        D::Dictionary(_, values) => of(values),
        D::RunEndEncoded(_, values) => of(values.data_type()),
        D::List(field) | D::LargeList(field) | D::FixedSizeList(field, _) => {
            let item = of(field.data_type());
            if item == JSON { JSON } else { list_of(item).unwrap_or(JSON) }
        }
        D::Struct(_) | D::Map(..) | D::Union(..) | D::ListView(_) | D::LargeListView(_) => JSON,
        D::Null | D::Utf8 | D::LargeUtf8 | D::Utf8View => TEXT,
    }
}
