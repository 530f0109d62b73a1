//! Completion of words, columns and files.

use quarrier_report::is_harmful;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "LIMIT",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "USING",
    "UNION",
    "DISTINCT",
    "COUNT(*)",
    "DESCRIBE",
    "EXPLAIN ANALYZE",
    "COPY",
    "BETWEEN",
    "LIKE",
    "SHOW TABLES",
    "WITH",
];

/// Completes words.
pub(super) struct Typing {
    words: Vec<String>,
}

impl Typing {
    /// Completes keywords, and `names` of tables and columns.
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        // The editor displays a line verbatim, so harmful names must not get into it.
        let is_usable = |name: &String| !name.is_empty() && !name.contains(is_harmful);
        let names = names.into_iter().filter(is_usable);
        let mut words: Vec<String> =
            WORDS.iter().map(ToString::to_string).chain(names.map(written)).collect();
        words.sort();
        words.dedup();
        Typing { words }
    }
}

/// A name, quoted where a statement has to quote it.
fn written(name: String) -> String {
    let is_plain = name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain { name } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let is_break = |c: char| c.is_whitespace() || matches!(c, '(' | ',' | '\'' | '=' | '<');
        let after = |place: usize| place + line[place..].chars().next().map_or(1, char::len_utf8);
        let start = line[..at].rfind(is_break).map_or(0, after);
        if line[..start].ends_with('\'') {
            return Ok((start, files(&line[start..at])));
        }
        // `table.column`
        let start = line[start..at].rfind('.').map_or(start, |place| after(start + place));
        let begun = &line[start..at];
        let fits = |word: &&String| {
            let word = word.strip_prefix('"').unwrap_or(word);
            word.get(..begun.len()).is_some_and(|head| head.eq_ignore_ascii_case(begun))
        };
        let pair = |word: &String| Pair { display: word.clone(), replacement: word.clone() };
        Ok((start, self.words.iter().filter(fits).map(pair).collect()))
    }
}

/// Files whose names have this prefix.
fn files(begun: &str) -> Vec<Pair> {
    let (folder, head) = begun.rsplit_once('/').map_or(("", begun), |(f, head)| (f, head));
    let listed = if folder.is_empty() { "." } else { folder };
    let Ok(entries) = std::fs::read_dir(listed) else { return Vec::new() };
    let mut pairs: Vec<Pair> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.starts_with(head).then_some(name)?;
            // The editor displays a line verbatim, so harmful names must not get into it.
            let name = (!name.contains(is_harmful)).then_some(name)?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let end = if is_folder { "/" } else { "" };
            let gap = if folder.is_empty() { "" } else { "/" };
            Some(Pair { display: name.clone(), replacement: format!("{folder}{gap}{name}{end}") })
        })
        .collect();
    pairs.sort_by(|a, b| a.display.cmp(&b.display));
    pairs
}

impl Hinter for Typing {
    type Hint = String;
}

impl Highlighter for Typing {}

impl Validator for Typing {}

impl Helper for Typing {}

#[cfg(test)]
mod tests {
    use super::*;
    use rustyline::history::DefaultHistory;

    /// The completions of the end of `line`.
    fn completed(line: &str) -> (usize, Vec<String>) {
        let names = ["orders", "price", "Preis in €", "odd\u{202e}"].map(ToString::to_string);
        let history = DefaultHistory::new();
        let (start, pairs) = Typing::new(names)
            .complete(line, line.len(), &Context::new(&history))
            .unwrap_or_default();
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    #[test]
    fn columns_are_completed_after_tables_commas_and_comparisons() {
        for line in ["pri", "SELECT orders.pri", "SELECT a,pri", "WHERE 5<pri", "SELECT max(PRI"] {
            let expected = (line.len() - 3, vec!["price".to_string()]);
            assert_eq!(completed(line), expected, "{line}");
        }
    }

    #[test]
    fn unusual_names_are_quoted_and_harmful_ones_omitted() {
        assert_eq!(completed("SELECT Prei").1, ["\"Preis in €\""]);
        assert_eq!(completed("SELECT odd").1, [""; 0]);
        assert_eq!(completed("sel").1, ["SELECT"]);
    }
}
