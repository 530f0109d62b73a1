//! Conditions and statements drawn from the grammar of SQL, most of them valid; then with some of
//! their words removed, repeated or moved. Bound conditions must keep the laws of three-valued
//! logic; others must be errors of one short line.

use arbitrary::{Result, Unstructured};

use crate::{Target, Verdict, condition};

/// See the module.
pub const TARGET: Target = Target {
    name: "statement",
    run,
    once: &[&[]],
    seeds: &[],
    words: &[b"\0\0\0\0", b"\xFF\xFF\xFF\xFF"],
};

/// Maximum nesting of drawn expressions.
const DEPTH_MAX: usize = 5;

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Time,
}

const KINDS: [Kind; 3] = [Kind::Number, Kind::Text, Kind::Time];

/// Draws two conditions and a statement, and checks them.
pub fn run(bytes: &[u8]) -> Verdict {
    let mut u = Unstructured::new(bytes);
    let Ok(inputs) = drawn(&mut u) else { return Verdict::Skipped };
    let mut verdict = Verdict::Skipped;
    for text in &inputs {
        if condition::run(text.as_bytes()) == Verdict::Checked {
            verdict = Verdict::Checked;
        }
    }
    verdict
}

/// Draws two conditions, joined by a zero byte, and a statement: as drawn, and mutated.
fn drawn(u: &mut Unstructured<'_>) -> Result<[String; 4]> {
    let conditions = format!("{}\0{}", truth(u, 0)?, truth(u, 0)?);
    let statement = statement(u)?;
    Ok([changed(u, &conditions)?, changed(u, &statement)?, conditions, statement])
}

/// Moves, removes or repeats some words of the text.
fn changed(u: &mut Unstructured<'_>, text: &str) -> Result<String> {
    let mut words: Vec<&str> = text.split_inclusive([' ', '(', ')', ',']).collect();
    for _ in 0..u.int_in_range(1..=3)? {
        if words.is_empty() {
            break;
        }
        let (from, to) = (u.choose_index(words.len())?, u.choose_index(words.len())?);
        match u.int_in_range(0..=3)? {
            0 => drop(words.remove(from)),
            1 => words.insert(to, words[from]),
            2 => words.swap(from, to),
            _ => {
                words[from] =
                    *u.choose(&["NULL ", "( ", ") ", "NOT ", "'", "9e999 ", "\u{202e} "])?
            }
        }
    }
    Ok(words.concat())
}

fn statement(u: &mut Unstructured<'_>) -> Result<String> {
    let outputs = match u.int_in_range(0..=3)? {
        0 => "*".to_string(),
        1 => "COUNT(*)".to_string(),
        2 => "DISTINCT t".to_string(),
        _ => {
            let one = |u: &mut Unstructured<'_>| Ok(format!("{} AS x", any(u, 2)?));
            (0..u.int_in_range(1..=3)?).map(|_| one(u)).collect::<Result<Vec<_>>>()?.join(", ")
        }
    };
    let mut text = format!("SELECT {outputs} FROM m");
    if u.ratio(3, 4)? {
        text += &format!(" WHERE {}", truth(u, 1)?);
    }
    if u.ratio(1, 4)? {
        text += &format!(" GROUP BY {}", column(u)?);
    }
    if u.ratio(1, 2)? {
        let order = u.choose(&["", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"])?;
        text += &format!(" ORDER BY {}{order}", column(u)?);
    }
    if u.ratio(1, 2)? {
        text += &format!(" LIMIT {}", u.choose(&["0", "1", "9223372036854775807", "NULL", "-1"])?);
    }
    if u.ratio(1, 4)? {
        text += " OFFSET 2";
    }
    Ok(text)
}

fn column(u: &mut Unstructured<'_>) -> Result<&'static str> {
    u.choose(&["i", "d", "f", "b", "t", "day", "at", "n", "a.b[0]", "\"a.b[0]\"", "other"]).copied()
}

fn any(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let kind = *u.choose(&KINDS)?;
    value(u, kind, depth)
}

/// Draws a condition.
fn truth(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    if depth >= DEPTH_MAX {
        return Ok(u.choose(&["b", "i = 1", "t IS NULL", "TRUE", "f < 0.5"])?.to_string());
    }
    let deeper = depth + 1;
    let kind = *u.choose(&KINDS)?;
    let not = *u.choose(&["", "NOT "])?;
    Ok(match u.int_in_range(0..=12)? {
        0 => format!("({} AND {})", truth(u, deeper)?, truth(u, deeper)?),
        1 => format!("({} OR {})", truth(u, deeper)?, truth(u, deeper)?),
        2 => format!("NOT ({})", truth(u, deeper)?),
        3 => {
            let truths = ["TRUE", "FALSE", "UNKNOWN", "NULL"];
            format!("({}) IS {not}{}", truth(u, deeper)?, u.choose(&truths)?)
        }
        4 => format!(
            "{} {not}BETWEEN {}{} AND {}",
            value(u, kind, deeper)?,
            u.choose(&["", "SYMMETRIC "])?,
            value(u, kind, deeper)?,
            value(u, kind, deeper)?
        ),
        5 => {
            let list = (0..u.int_in_range(1..=4)?).map(|_| value(u, kind, deeper));
            let list = list.collect::<Result<Vec<_>>>()?.join(", ");
            format!("{} {not}IN ({list})", value(u, kind, deeper)?)
        }
        6 => {
            let pattern =
                u.choose(&["'a%'", "'_b%'", "'%!%%' ESCAPE '!'", "'' || t", "NULL", "'[a-'"])?;
            let by = u.choose(&["LIKE", "SIMILAR TO", "LIKE_REGEX"])?;
            format!("{} {not}{by} {pattern}", value(u, Kind::Text, deeper)?)
        }
        7 => format!("{} IS {not}NULL", any(u, deeper)?),
        8 => format!(
            "CASE WHEN {} THEN {} ELSE {} END",
            truth(u, deeper)?,
            truth(u, deeper)?,
            truth(u, deeper)?
        ),
        9 => format!(
            "({}, {}) {} ({}, {})",
            value(u, kind, deeper)?,
            value(u, Kind::Number, deeper)?,
            u.choose(&["=", "<", ">=", "<>"])?,
            value(u, kind, deeper)?,
            value(u, Kind::Number, deeper)?
        ),
        10 => {
            format!("{} IS {not}DISTINCT FROM {}", value(u, kind, deeper)?, value(u, kind, deeper)?)
        }
        _ => {
            let by = *u.choose(&["=", "<>", "<", "<=", ">", ">="])?;
            format!("{} {by} {}", value(u, kind, deeper)?, value(u, kind, deeper)?)
        }
    })
}

/// Draws an expression of a type.
fn value(u: &mut Unstructured<'_>, kind: Kind, depth: usize) -> Result<String> {
    if depth >= DEPTH_MAX || u.ratio(1, 3)? {
        return Ok(leaf(u, kind)?.to_string());
    }
    let deeper = depth + 1;
    if u.ratio(1, 5)? {
        let (first, second) = (value(u, kind, deeper)?, value(u, kind, deeper)?);
        return Ok(match u.int_in_range(0..=2)? {
            0 => format!("COALESCE({first}, {second})"),
            1 => format!("NULLIF({first}, {second})"),
            _ => format!("CASE WHEN {} THEN {first} ELSE {second} END", truth(u, deeper)?),
        });
    }
    match kind {
        Kind::Number => number(u, deeper),
        Kind::Text => text(u, deeper),
        Kind::Time => time(u, deeper),
    }
}

fn leaf(u: &mut Unstructured<'_>, kind: Kind) -> Result<&'static str> {
    const NUMBERS: &[&str] = &[
        "i",
        "d",
        "f",
        "a.b[0]",
        "0",
        "1",
        "-1",
        "0.10",
        "1e300",
        "9223372036854775807",
        "18446744073709551615",
        "99999999999999999999999999999999999999",
        "NULL",
    ];
    const TEXTS: &[&str] = &["t", "''", "'a'", "'it''s'", "'é'", "n", "U&'\\0041'"];
    const TIMES: &[&str] = &[
        "day",
        "at",
        "DATE '2020-02-29'",
        "DATE '0001-01-01'",
        "TIMESTAMP '2024-01-02 03:04:05.678'",
        "DATE '9999-12-31'",
    ];
    match kind {
        Kind::Number => u.choose(NUMBERS).copied(),
        Kind::Text => u.choose(TEXTS).copied(),
        Kind::Time => u.choose(TIMES).copied(),
    }
}

fn number(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    Ok(match u.int_in_range(0..=7)? {
        0 => format!("-({})", value(u, Kind::Number, depth)?),
        1 => format!("CHAR_LENGTH({})", value(u, Kind::Text, depth)?),
        2 => format!(
            "POSITION({} IN {})",
            value(u, Kind::Text, depth)?,
            value(u, Kind::Text, depth)?
        ),
        3 => {
            let field = u.choose(&["YEAR", "MONTH", "DAY", "HOUR", "SECOND"])?;
            format!("EXTRACT({field} FROM {})", value(u, Kind::Time, depth)?)
        }
        4 => {
            let to = u.choose(&[
                "INTEGER",
                "SMALLINT",
                "NUMERIC(38, 37)",
                "DOUBLE PRECISION",
                "DECIMAL(1)",
            ])?;
            let from = *u.choose(&[Kind::Number, Kind::Text])?;
            format!("CAST({} AS {to})", value(u, from, depth)?)
        }
        _ => {
            let by = *u.choose(&["+", "-", "*", "/"])?;
            format!("({} {by} {})", value(u, Kind::Number, depth)?, value(u, Kind::Number, depth)?)
        }
    })
}

fn text(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    Ok(match u.int_in_range(0..=5)? {
        0 => format!("({} || {})", value(u, Kind::Text, depth)?, value(u, Kind::Text, depth)?),
        1 => format!(
            "SUBSTRING({} FROM {} FOR {})",
            value(u, Kind::Text, depth)?,
            value(u, Kind::Number, depth)?,
            value(u, Kind::Number, depth)?
        ),
        2 => format!("TRIM(BOTH 'a' FROM {})", value(u, Kind::Text, depth)?),
        3 => {
            let case = u.choose(&["UPPER", "LOWER"])?;
            format!("{case}({})", value(u, Kind::Text, depth)?)
        }
        4 => {
            let to = u.choose(&["CHAR(3)", "VARCHAR(2)", "VARCHAR"])?;
            let kind = *u.choose(&KINDS)?;
            format!("CAST({} AS {to})", value(u, kind, depth)?)
        }
        _ => format!(
            "OVERLAY({} PLACING 'x' FROM {})",
            value(u, Kind::Text, depth)?,
            value(u, Kind::Number, depth)?
        ),
    })
}

fn time(u: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let span = *u.choose(&[
        "INTERVAL '1' DAY",
        "INTERVAL '1-2' YEAR TO MONTH",
        "INTERVAL '-3 04:05:06.789' DAY TO SECOND",
        "INTERVAL '999999999' MONTH",
        "INTERVAL '1' SECOND * 3",
    ])?;
    Ok(match u.int_in_range(0..=3)? {
        0 => format!("({} - {span})", value(u, Kind::Time, depth)?),
        1 => format!(
            "CAST({} AS {})",
            value(u, Kind::Time, depth)?,
            u.choose(&["DATE", "TIMESTAMP"])?
        ),
        _ => format!("({} + {span})", value(u, Kind::Time, depth)?),
    })
}
