//! Words that docs/writing.md rules out in pages for users.

use super::Problem;
use super::text::has_word;
use super::tree::Tree;

/// Words that hide the actor or are not the field's, and their replacements.
const RULED_OUT: [(&str, &str); 21] = [
    ("told", "detected, reported, given or distinguished"),
    ("tell", "detect, report or distinguish"),
    ("tells", "detects, reports or distinguishes"),
    ("untold", "not reported"),
    ("foreseen", "predicted"),
    ("at its most", "peak"),
    ("at their most", "peak"),
    ("gone through", "iterated over"),
    ("to be had", "available"),
    ("wish", "request"),
    ("wished", "requested"),
    ("texts", "strings"),
    ("anew", "again"),
    ("truth value", "boolean"),
    ("truth values", "booleans"),
    ("point in time", "timestamp"),
    ("points in time", "timestamps"),
    ("Who", "the actor as the subject"),
    ("Whoever", "the actor as the subject"),
    ("whoever", "the actor as the subject"),
    ("Printed is", "it prints"),
];

/// Generated pages, and the page that quotes such words.
const EXCUSED: [&str; 3] = ["docs/cli.md", "docs/python.md", "docs/writing.md"];

/// Pages for users contain none of these words.
pub(crate) fn words(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.text_files(&["md"]) {
        let is_read = path.starts_with("docs/")
            || matches!(path, "README.md" | "CHANGELOG.md" | "CONTRIBUTING.md");
        if !is_read || EXCUSED.contains(&path) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            for (word, instead) in RULED_OUT {
                if has_word(line, word) {
                    let what = format!("'{word}' is ruled out by docs/writing.md");
                    problems.push(Problem::new(path, index + 1, what, format!("write {instead}")));
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn ruled_out_words_fail_on_their_line_in_pages_for_users() {
        let text = "It is told.\nWho reads\n`points in time`\nPrinted is a row\n";
        for path in ["docs/a.md", "docs/tutorials/b.md", "README.md"] {
            let expected: Vec<String> = (1..=4).map(|line| format!("{path}:{line}")).collect();
            assert_eq!(places(words, &[(path, text)]), expected);
        }
    }

    #[test]
    fn parts_of_longer_words_and_other_pages_pass() {
        let files = [
            ("docs/a.md", "contexts, wishbone, Whose\n"),
            ("docs/cli.md", "told\n"),
            ("docs/writing.md", "told\n"),
            ("fuzz/README.md", "told\n"),
            ("crates/a/src/lib.rs", "// told\n"),
        ];
        assert!(places(words, &files).is_empty());
    }
}
