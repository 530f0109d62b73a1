//! Any bytes as two conditions and a statement: an answer or an error with its position, never a
//! panic, in bounded time. Bound conditions must keep the laws of three-valued logic.

use quarrier_filter::{Error, Expr, naive, sql};
use quarrier_messages::{Field, Kind, Schema, Value};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target =
    Target { name: "condition", run, once: ONCE, seeds: SEEDS, words: WORDS };

const ONCE: &[&[u8]] =
    &[&[b'('; 20_000], b"INTERVAL INTERVAL INTERVAL INTERVAL INTERVAL INTERVAL x"];

const SEEDS: &[&[u8]] = &[
    b"i = 1 AND t LIKE 'a%b_' ESCAPE '!'\0d BETWEEN SYMMETRIC 1.5 AND 2e0 OR b IS NOT UNKNOWN",
    b"(i, t) IN ((1, 'a'), (2, NULL))\0CASE t WHEN 'a' THEN i / (i - 1) ELSE -i END > 0",
    b"POSITION('a' IN t || 'x') = CHAR_LENGTH(TRIM(LEADING ' ' FROM SUBSTRING(t FROM 2 FOR 3)))",
    b"day + INTERVAL '1-2' YEAR TO MONTH < DATE '2020-02-29'\0EXTRACT(SECOND FROM at) = 1",
    b"(day, at) OVERLAPS (day, INTERVAL '3 04:05:06' DAY TO SECOND)\0t SIMILAR TO '(a|b)*[^c]{2}'",
    b"CAST(i AS CHAR(3)) = '1  '\0COALESCE(n, i, d, f) <> NULLIF(f, 1e0) AND t ~ '^a+$'",
    b"SELECT i AS x, \"a.b[0]\" FROM m WHERE a.b[0] > 1 ORDER BY x DESC NULLS FIRST LIMIT 1 OFFSET 2",
    b"SELECT COUNT(*) FROM m -- all\n/* of /* it */ */ WHERE OVERLAY(t PLACING 'x' FROM 1) IS NULL",
];

const WORDS: &[&[u8]] = &[
    b" AND ",
    b" OR ",
    b"NOT ",
    b" IS ",
    b"NULL",
    b"TRUE",
    b"UNKNOWN",
    b" BETWEEN ",
    b"SYMMETRIC ",
    b" IN (",
    b" LIKE ",
    b" ESCAPE ",
    b" SIMILAR TO ",
    b" LIKE_REGEX ",
    b" OVERLAPS ",
    b"CASE ",
    b" WHEN ",
    b" THEN ",
    b" ELSE ",
    b" END",
    b"CAST(",
    b" AS ",
    b"CHAR(3)",
    b"NUMERIC(38, 37)",
    b"INTERVAL ",
    b"'1' DAY",
    b"DATE '2020-01-31'",
    b"TIMESTAMP '1970-01-01 00:00:00'",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"1e308",
    b".5",
    b"0.00000000000000000001",
    b"COALESCE(",
    b"NULLIF(",
    b"SUBSTRING(",
    b" FROM ",
    b" FOR ",
    b"TRIM(",
    b"POSITION(",
    b"EXTRACT(",
    b"OVERLAY(",
    b" PLACING ",
    b"UPPER(",
    b"||",
    b"::",
    b"(",
    b")",
    b",",
    b"'",
    b"\"",
    b"%",
    b"_",
    b"\0",
    b"--",
    b"/*",
    b"*/",
    b"i",
    b"d",
    b"f",
    b"b",
    b"t",
    b"day",
    b"at",
    b"n",
    b"a.b[0]",
    b"SELECT ",
    b" FROM m",
    b" WHERE ",
    b" ORDER BY ",
    b" LIMIT 1",
    b"{2,}",
    b"[^a]",
];

fn schema() -> Schema {
    let field = |name: &str, kind| Field { name: name.into(), kind };
    Schema {
        fields: vec![
            field("i", Kind::Integer),
            field("d", Kind::Decimal { scale: 2 }),
            field("f", Kind::Float),
            field("b", Kind::Boolean),
            field("t", Kind::Text),
            field("day", Kind::Date),
            field("at", Kind::Timestamp),
            field("n", Kind::Null),
            field("a.b[0]", Kind::Integer),
        ],
    }
}

fn rows() -> [Vec<Value>; 3] {
    let decimal = |mantissa| Value::Decimal { mantissa, scale: 2 };
    [
        vec![Value::Null; 9],
        vec![
            Value::Integer(1),
            decimal(-250),
            Value::Float(0.5),
            Value::Boolean(true),
            Value::Text("aé b".into()),
            Value::Date(18_262),
            Value::Timestamp(1),
            Value::Null,
            Value::Integer(7),
        ],
        vec![
            Value::Integer(i64::MIN),
            decimal(i128::from(i64::MAX)),
            Value::Float(f64::NAN),
            Value::Boolean(false),
            Value::Text("".into()),
            Value::Date(-719_162),
            Value::Timestamp(i64::MIN),
            Value::Null,
            Value::Integer(i64::MAX),
        ],
    ]
}

/// True, false, UNKNOWN, or an error for any reason.
type Outcome = Result<Option<bool>, ()>;

/// Binds the conditions in `bytes` and checks them.
pub fn run(bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let schema = schema();
    if let Err(error) = sql::statement(&text, "m", &schema) {
        check_said(&error);
    }
    let mut parts = text.splitn(2, '\0');
    let mut next = || match sql::condition(parts.next()?, &schema) {
        Ok(condition) => Some(condition),
        Err(error) => {
            check_said(&error);
            None
        }
    };
    let Some(first) = next() else { return Verdict::Skipped };
    let second = next().unwrap_or_else(|| first.clone());
    for row in &rows() {
        check(&first, &second, row);
    }
    Verdict::Checked
}

/// Checks that an error is one line, and shorter than the text it refers to.
fn check_said(error: &Error) {
    let said = error.to_string();
    assert!(said.len() < 2_000, "{said}");
}

fn check(first: &Expr, second: &Expr, row: &[Value]) {
    let of = |condition: &Expr| -> Outcome { naive::truth(condition, row).map_err(|_| ()) };
    let (a, b) = (of(first), of(second));
    assert_eq!(of(&Expr::Not(Box::new(first.clone()))), a.map(|truth| truth.map(|truth| !truth)));
    let pair = || vec![first.clone(), second.clone()];
    let turned = || vec![second.clone(), first.clone()];
    let (and, or) = (of(&Expr::And(pair())), of(&Expr::Or(pair())));
    assert_eq!(and, joined(a, b, false), "AND");
    assert_eq!(or, joined(a, b, true), "OR");
    assert_eq!(of(&Expr::And(turned())), and, "AND the other way round");
    assert_eq!(of(&Expr::Or(turned())), or, "OR the other way round");
}

fn joined(a: Outcome, b: Outcome, decisive: bool) -> Outcome {
    match (a, b) {
        (Ok(Some(truth)), _) | (_, Ok(Some(truth))) if truth == decisive => Ok(Some(decisive)),
        (Err(()), _) | (_, Err(())) => Err(()),
        (Ok(None), _) | (_, Ok(None)) => Ok(None),
        _ => Ok(Some(!decisive)),
    }
}
