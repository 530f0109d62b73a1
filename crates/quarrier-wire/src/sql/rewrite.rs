//! Rewrites PostgreSQL-specific syntax in clients' catalog queries for other engines: drops the
//! schema `pg_catalog`, and replaces operators and types by standard ones.

use super::tokens::{Kind, Token, tokens};
use crate::failure::Result;

/// The names in a statement, according to its tokens, in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementNames {
    /// All words and names.
    pub names: Vec<String>,
    /// Names followed by a parenthesis.
    pub called: Vec<String>,
    /// Names followed by a point: schemas, and qualifiers of columns.
    pub before_points: Vec<String>,
}

/// Returns the names in a statement.
///
/// # Errors
/// If the statement is incomplete.
pub fn statement_names(text: &str) -> Result<StatementNames> {
    let mut found = StatementNames::default();
    let all = tokens(text)?;
    for (place, token) in all.iter().enumerate() {
        let Some(name) = token.name().map(|name| name.to_ascii_lowercase()) else { continue };
        let mark = all.get(place + 1).filter(|next| next.kind == Kind::Mark).map(|next| next.text);
        match mark {
            Some("(") => found.called.push(name.clone()),
            Some(".") => found.before_points.push(name.clone()),
            _ => {}
        }
        found.names.push(name);
    }
    Ok(found)
}

/// Returns the types to which parameters are cast directly: `$1::int`.
///
/// # Errors
/// If the statement is incomplete.
pub fn cast_kinds(text: &str) -> Result<Vec<(usize, u32)>> {
    let all = tokens(text)?;
    let kinds = all.windows(5).filter_map(|five| {
        let [dollar, number, a, b, name] = five else { return None };
        let is_cast = dollar.is_mark("$") && a.is_mark(":") && b.is_mark(":");
        let place = number.text.parse::<usize>().ok()?.checked_sub(1)?;
        let index = all.iter().position(|token| token.start == name.start)?;
        let rest = &all[index..];
        let kind = kind_named(&kind_of(rest))?;
        let is_list = length(rest) > if name.is("pg_catalog") { 3 } else { 1 };
        let list = crate::kind::ALL.iter().find(|known| known.0 == kind).map(|known| known.3);
        is_cast.then_some((place, if is_list { list? } else { kind }))
    });
    Ok(kinds.collect())
}

/// Returns the parameters that represent a list of names: `relkind = ANY ($1)`.
///
/// # Errors
/// If the statement is incomplete.
pub fn lists_of_names(text: &str) -> Result<Vec<usize>> {
    let all = tokens(text)?;
    let places = all.windows(5).filter_map(|five| {
        let [any, open, dollar, number, close] = five else { return None };
        let is_list =
            any.is("ANY") && open.is_mark("(") && dollar.is_mark("$") && close.is_mark(")");
        is_list.then(|| number.text.parse::<usize>().ok()?.checked_sub(1)).flatten()
    });
    Ok(places.collect())
}

fn kind_named(name: &str) -> Option<u32> {
    use crate::kind;
    Some(match name {
        "int" | "integer" => kind::INT4,
        "bigint" => kind::INT8,
        "smallint" => kind::INT2,
        "real" => kind::FLOAT4,
        "double" | "float" => kind::FLOAT8,
        "decimal" => kind::NUMERIC,
        "boolean" => kind::BOOL,
        "regtype" | "regproc" => kind::OID,
        // A name, or a number in quotes.
        "regclass" => kind::TEXT,
        other => return kind::ALL.iter().find(|known| known.1 == other).map(|known| known.0),
    })
}

impl StatementNames {
    /// Whether any of these names occurs.
    pub fn names_any(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }
}

/// Replaces words in a statement.
///
/// # Errors
/// If the statement is incomplete.
pub fn with_words(text: &str, of: impl Fn(&str) -> Option<String>) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for token in tokens(text)?.iter().filter(|token| token.kind == Kind::Word) {
        if let Some(instead) = of(token.text) {
            out.push_str(&text[at..token.start]);
            out.push_str(&instead);
            at = token.end();
        }
    }
    out.push_str(&text[at..]);
    Ok(out)
}

/// Types that only PostgreSQL has; numbers and strings replace them.
const OWN_KINDS: &[&str] = &[
    "regclass",
    "regtype",
    "regproc",
    "regprocedure",
    "regnamespace",
    "regrole",
    "oid",
    "name",
    "char",
    "xid",
];

/// Rewrites a statement in standard syntax. `number` returns the OID of a table, for
/// `'t'::regclass`.
///
/// # Errors
/// If the statement is incomplete.
pub fn plain(text: &str, number: impl Fn(&str) -> Option<u32>) -> Result<String> {
    let all = tokens(text)?;
    let mut out = String::with_capacity(text.len());
    let mut rest = &all[..];
    while let Some((first, after)) = rest.split_first() {
        rest = match rest {
            // OPERATOR(pg_catalog.~)
            [operator, open, schema, point, inner @ ..]
                if operator.is("OPERATOR")
                    && open.is_mark("(")
                    && schema.is("pg_catalog")
                    && point.is_mark(".") =>
            {
                let end = inner.iter().position(|it| it.is_mark(")")).unwrap_or(inner.len());
                out.push(' ');
                inner[..end].iter().for_each(|mark| out.push_str(mark.text));
                out.push(' ');
                inner.get(end + 1..).unwrap_or_default()
            }
            // COLLATE pg_catalog.default
            [collate, inner @ ..] if collate.is("COLLATE") => match inner {
                [_, point, _, tail @ ..] if point.is_mark(".") => tail,
                [_, tail @ ..] => tail,
                [] => &[],
            },
            // pg_catalog.name
            [schema, point, tail @ ..] if schema.is("pg_catalog") && point.is_mark(".") => tail,
            // (SELECT c.relkind = 'c' FROM pg_class c WHERE …): returns at most one row, which the
            // engine does not know
            [select, alias, point, column, equals, value, from, ..]
                if select.is("SELECT")
                    && point.is_mark(".")
                    && column.is("relkind")
                    && equals.is_mark("=")
                    && from.is("FROM") =>
            {
                let (alias, value) = (alias.text, value.text);
                out.push_str(&format!("SELECT bool_or({alias}.relkind = {value}) "));
                &rest[6..]
            }
            // array_upper(current_schemas(false), 1): the end of a series must be a constant number
            [function, open, schemas, inner_open, implicit, inner_close, comma, one, close, ..]
                if function.is("array_upper")
                    && open.is_mark("(")
                    && schemas.is("current_schemas")
                    && inner_open.is_mark("(")
                    && inner_close.is_mark(")")
                    && comma.is_mark(",")
                    && one.text == "1"
                    && close.is_mark(")") =>
            {
                out.push_str(if implicit.is("true") { "2 " } else { "1 " });
                &rest[9..]
            }
            // typreceive != 0: the catalogs have names of functions, and '-' for none
            [function, inner @ ..] if is_function(function) && against_none(inner) > 0 => {
                let compared = against_none(inner);
                out.push_str(function.text);
                out.push(' ');
                inner[..compared].iter().for_each(|mark| out.push_str(mark.text));
                out.push_str(" '-' ");
                &inner[compared + 1..]
            }
            // 'name'::regclass and x::kind
            [value, a, b, inner @ ..] if a.is_mark(":") && b.is_mark(":") && is_own(inner) => {
                written(value, kind_of(inner), &number, &mut out);
                &inner[length(inner)..]
            }
            [a, b, inner @ ..] if a.is_mark(":") && b.is_mark(":") && is_own(inner) => {
                &inner[length(inner)..]
            }
            _ => {
                word(first, text, after, &mut out);
                after
            }
        };
    }
    Ok(out)
}

/// Whether this is a column of `pg_type` that refers to a function.
fn is_function(token: &Token<'_>) -> bool {
    const COLUMNS: &[&str] = &[
        "typinput",
        "typoutput",
        "typreceive",
        "typsend",
        "typmodin",
        "typmodout",
        "typanalyze",
        "typsubscript",
    ];
    COLUMNS.iter().any(|name| token.is(name))
}

/// Returns the number of tokens of a comparison operator before the number 0; 0 if there is none.
fn against_none(tokens: &[Token<'_>]) -> usize {
    let is_comparison = |it: &&Token<'_>| ["=", "!", "<", ">"].iter().any(|mark| it.is_mark(mark));
    let marks = tokens.iter().take_while(is_comparison).count();
    if tokens.get(marks).is_some_and(|it| it.text == "0") { marks } else { 0 }
}

/// Returns the number of tokens of a type's name, with `pg_catalog.` and `[]`.
fn length(tokens: &[Token<'_>]) -> usize {
    let name = match tokens {
        [schema, point, _, ..] if schema.is("pg_catalog") && point.is_mark(".") => 3,
        _ => 1,
    };
    match tokens.get(name..) {
        Some([open, close, ..]) if open.is_mark("[") && close.is_mark("]") => name + 2,
        _ => name,
    }
}

fn kind_of(tokens: &[Token<'_>]) -> String {
    let token = match tokens {
        [schema, point, kind, ..] if schema.is("pg_catalog") && point.is_mark(".") => Some(kind),
        [kind, ..] => Some(kind),
        [] => None,
    };
    token.and_then(Token::name).unwrap_or_default()
}

fn is_own(tokens: &[Token<'_>]) -> bool {
    OWN_KINDS.contains(&kind_of(tokens).as_str())
}

fn written(
    value: &Token<'_>,
    kind: String,
    number: &impl Fn(&str) -> Option<u32>,
    out: &mut String,
) {
    if kind == "regclass"
        && let Some(name) = value.string()
    {
        let last = name.rsplit('.').next().unwrap_or_default();
        let number = number(last.trim().trim_matches('"'));
        let number = number.or_else(|| name.parse().ok()).unwrap_or(0);
        out.push_str(&number.to_string());
        out.push(' ');
        return;
    }
    if kind == "regproc"
        && let Some(name) = value.string().filter(|name| name.starts_with("pg_catalog."))
    {
        out.push_str(&format!("'{}' ", name["pg_catalog.".len()..].replace('\'', "''")));
        return;
    }
    if matches!(kind.as_str(), "oid" | "regtype" | "regproc")
        && let Some(digits) = value.string().filter(|text| text.parse::<u32>().is_ok())
    {
        // A number in quotes.
        out.push_str(&digits);
        out.push(' ');
        return;
    }
    out.push_str(value.text);
    out.push(' ');
}

/// Appends a word, and a space if the original has one.
fn word(token: &Token<'_>, text: &str, after: &[Token<'_>], out: &mut String) {
    match token.string() {
        Some(string) if token.kind == Kind::Text && !token.text.starts_with('\'') => {
            out.push_str(&super::written::quoted(&string));
        }
        _ => out.push_str(token.text),
    }
    let touches = after.first().is_some_and(|next| next.start == token.end());
    if !touches && token.end() <= text.len() {
        out.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plainly(text: &str) -> String {
        let number = |name: &str| (name == "orders").then_some(16_385);
        plain(text, number).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_single_row_of_a_relation_is_declared() {
        let asked =
            "OR (SELECT c.relkind = 'c' FROM pg_catalog.pg_class c WHERE c.oid = t.typrelid)";
        let plain = "OR (SELECT bool_or(c.relkind = 'c') FROM pg_class c WHERE c.oid = t.typrelid)";
        assert_eq!(plainly(asked), plain);
    }

    #[test]
    fn functions_are_compared_with_none() {
        let asked =
            "WHERE (typreceive != 0 OR t.typsend <> 0) AND typreceive::TEXT != 'x' AND typlen = 0";
        let plain = "WHERE (typreceive != '-' OR t.typsend <> '-' ) AND typreceive::TEXT != 'x' AND typlen = 0";
        assert_eq!(plainly(asked), plain);
    }

    #[test]
    fn postgres_syntax_becomes_standard() {
        for (said, meant) in [
            (
                "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relname OPERATOR(pg_catalog.~) \
                 '^(t)$' COLLATE pg_catalog.default",
                "SELECT c.relname FROM pg_class c WHERE c.relname ~ '^(t)$'",
            ),
            ("SELECT 'public.orders'::regclass", "SELECT 16385"),
            (
                "SELECT '16385'::pg_catalog.oid, a.x::pg_catalog.regtype::pg_catalog.text",
                "SELECT 16385 , a.x ::text",
            ),
            ("SELECT a::int, b :: oid[]", "SELECT a::int, b"),
            ("SELECT E'a\\n', $x$y$x$", "SELECT 'a ', 'y'"),
        ] {
            assert_eq!(plainly(said), meant, "{said}");
        }
    }

    #[test]
    fn casts_determine_the_types_of_parameters() {
        let kinds =
            cast_kinds("SELECT $2::int, x = any($1::oid[]), $3::pg_catalog.text, $4").unwrap();
        assert_eq!(kinds, [(1, crate::kind::INT4), (0, 1028), (2, crate::kind::TEXT)]);
        let found = statement_names("SELECT version(), a.\"B\" FROM Pg_Class").unwrap();
        assert_eq!(found.called, ["version"]);
        assert_eq!(found.before_points, ["a"]);
        assert!(found.names.contains(&"pg_class".to_string()));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(pg_catalog|OPERATOR|COLLATE|oid|::|[.:()'a\\[\\]$ ])*") {
            let _ = plain(&text, |_| None);
            let _ = (statement_names(&text), cast_kinds(&text));
        }
    }
}
