//! The arguments of a call: string literals.

use datafusion::logical_expr::Expr;

use crate::{Error, Result};

/// The strings that a table function was called with: at least `least`, at most `most`.
pub(super) fn strings(
    usage: &str,
    exprs: &[Expr],
    least: usize,
    most: usize,
) -> Result<Vec<String>> {
    if !(least..=most).contains(&exprs.len()) {
        return Err(Error::text(format!("{} arguments were given; write {usage}", exprs.len())));
    }
    exprs.iter().map(|expr| text(usage, expr)).collect()
}

fn text(usage: &str, expr: &Expr) -> Result<String> {
    let found = match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_string),
        _ => None,
    };
    found.ok_or_else(|| {
        Error::text(format!("{expr} is not a string in single quotes; write {usage}"))
    })
}

/// Splits options into words at whitespace, except within single or double quotes.
pub(super) fn words(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => word.get_or_insert_default().push(character),
            None if character == '\'' || character == '"' => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            None if character.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(character),
        }
    }
    match quote {
        Some(open) => Err(Error::text(format!("the options {text} have an unterminated {open}"))),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn options_are_cut_at_blanks_outside_of_quotes() {
        let cut = |text| words(text).unwrap();
        assert_eq!(cut("  -i  --aligned 512 "), ["-i", "--aligned", "512"]);
        assert_eq!(cut("--cache 'my folder' ''"), ["--cache", "my folder", ""]);
        assert!(words("--cache 'my").is_err());
    }
}
