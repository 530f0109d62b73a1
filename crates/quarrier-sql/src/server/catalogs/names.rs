//! Names in strings: quotes them, splits them, and fills them into templates.

use datafusion::common::{Result, exec_datafusion_err, exec_err};

/// PostgreSQL's keywords that cannot name everything without quotes, sorted.
#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric",
    "authorization", "between", "bigint", "binary", "bit", "boolean", "both", "case", "cast",
    "char", "character", "check", "coalesce", "collate", "collation", "column", "concurrently",
    "constraint", "create", "cross", "current_catalog", "current_date", "current_role",
    "current_schema", "current_time", "current_timestamp", "current_user", "dec", "decimal",
    "default", "deferrable", "desc", "distinct", "do", "else", "end", "except", "exists",
    "extract", "false", "fetch", "float", "for", "foreign", "freeze", "from", "full", "grant",
    "greatest", "group", "grouping", "having", "ilike", "in", "initially", "inner", "inout",
    "int", "integer", "intersect", "interval", "into", "is", "isnull", "join", "lateral",
    "leading", "least", "left", "like", "limit", "localtime", "localtimestamp", "national",
    "natural", "nchar", "none", "normalize", "not", "notnull", "null", "nullif", "numeric",
    "offset", "on", "only", "or", "order", "out", "outer", "overlaps", "overlay", "placing",
    "position", "precision", "primary", "real", "references", "returning", "right", "row",
    "select", "session_user", "setof", "similar", "smallint", "some", "substring", "symmetric",
    "system_user", "table", "tablesample", "then", "time", "timestamp", "to", "trailing",
    "treat", "trim", "true", "union", "unique", "user", "using", "values", "varchar",
    "variadic", "verbose", "when", "where", "window", "with",
];

/// Writes a name as an identifier, in quotes where PostgreSQL would read it otherwise.
pub(super) fn quoted(name: &str) -> String {
    let is_start = |b: u8| b.is_ascii_lowercase() || b == b'_';
    let is_plain = name.bytes().next().is_some_and(is_start)
        && name.bytes().all(|b| is_start(b) || b.is_ascii_digit());
    let is_keyword = KEYWORDS.binary_search(&name).is_ok();
    if is_plain && !is_keyword {
        return name.to_string();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Splits a qualified name at its points: `a."B.c"` into `a` and `B.c`. Returns `None` if it is invalid.
pub(super) fn parts(name: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(inner) => quoted_part(inner)?,
            None => {
                let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
                let end = rest.find(|c: char| !is_letter(c)).unwrap_or(rest.len());
                let part = &rest[..end];
                if part.is_empty() || part.starts_with(|c: char| c.is_ascii_digit() || c == '$') {
                    return None;
                }
                (part.to_lowercase(), &rest[end..])
            }
        };
        parts.push(part);
        rest = match after.trim_start().strip_prefix('.') {
            Some(more) => more.trim_start(),
            None if after.trim().is_empty() => return Some(parts),
            None => return None,
        };
    }
}

/// Returns a name that begins after a quote, and the text after it.
fn quoted_part(text: &str) -> Option<(String, &str)> {
    let mut part = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        part.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                part.push('"');
                rest = more;
            }
            None if part.is_empty() => return None,
            None => return Some((part, after)),
        }
    }
}

/// Replaces `%s`, `%I`, `%L`, each also with a position as in `%2$s`, and `%%`.
pub(super) fn filled(template: &str, values: &[Option<String>]) -> Result<String> {
    let mut out = String::with_capacity(template.len());
    let mut next = 0;
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(more) = after.strip_prefix('%') {
            out.push('%');
            rest = more;
            continue;
        }
        let after = match after.split_once('$') {
            Some((digits, more)) if digits.parse::<usize>().is_ok_and(|number| number > 0) => {
                next = digits.parse::<usize>().unwrap_or(1) - 1;
                more
            }
            _ => after,
        };
        let mut letters = after.chars();
        let kind = letters.next();
        let value = values
            .get(next)
            .ok_or_else(|| exec_datafusion_err!("too few arguments for format()"))?;
        next += 1;
        match (kind, value) {
            (Some('s'), value) => out.push_str(value.as_deref().unwrap_or_default()),
            (Some('I'), Some(name)) => out.push_str(&quoted(name)),
            (Some('I'), None) => {
                return exec_err!("null values cannot be formatted as an SQL identifier");
            }
            (Some('L'), Some(text)) => {
                out.push_str(&format!("'{}'", text.replace('\'', "''")));
            }
            (Some('L'), None) => out.push_str("NULL"),
            (Some(other), _) => {
                return exec_err!("format() has no type \"%{other}\": use %s, %I or %L");
            }
            (None, _) => return exec_err!("unterminated format() type specifier"),
        }
        rest = letters.as_str();
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap in a test reports its line")]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_by_postgresql() {
        assert!(KEYWORDS.is_sorted());
        for (name, expected) in [
            ("orders", "orders"),
            ("public", "public"),
            ("user", "\"user\""),
            ("Orders", "\"Orders\""),
            ("a\"b", "\"a\"\"b\""),
            ("1st", "\"1st\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(name), expected);
        }
    }

    #[test]
    fn names_are_split_at_their_points() {
        let split = |name: &str| parts(name).map(|parts| parts.join("|"));
        assert_eq!(split("Orders").unwrap(), "orders");
        assert_eq!(split(" public . \"My.\"\"T\"\"\" ").unwrap(), "public|My.\"T\"");
        for wrong in ["", ".", "a.", "1a", "a b", "\"a", "\"\"", "a-b"] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn templates_are_filled() {
        let values = [Some("a b".to_string()), Some("it's".to_string()), None];
        let fill = |template: &str| filled(template, &values);
        assert_eq!(fill("%I.%s %% %L").unwrap(), "\"a b\".it's % NULL");
        assert_eq!(fill("%2$L %1$s").unwrap(), "'it''s' a b");
        for wrong in ["%", "%d", "%3$I", "%4$s", "%s%s%s%s"] {
            assert!(fill(wrong).is_err(), "{wrong}");
        }
    }
}
