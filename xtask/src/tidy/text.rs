//! Rules on the lines of files: left-over marks, length, paths of one machine.
//!
//! The patterns are joined by `concat!`, so that this file does not match them.

use super::Problem;
use super::tree::Tree;

/// Marks that must not stay in the code, and the remedy for each.
const MARKS: [(&str, &str); 6] = [
    (concat!("#[ign", "ore"), "make the test run, or make it a benchmark or an example"),
    (concat!("to", "do!("), "write it, or return an error"),
    (concat!("unimpl", "emented!("), "write it, or return an error"),
    (concat!("d", "bg!("), "remove it"),
    (concat!("FIX", "ME"), "fix it, or open an issue"),
    (concat!("XX", "X"), "settle it, or open an issue"),
];

/// No mark for unfinished work stays in the code.
pub(crate) fn left_over_marks(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.text_files(&["rs", "py", "sh"]) {
        for (index, line) in text.lines().enumerate() {
            for (mark, remedy) in MARKS {
                if has_word(line, mark) {
                    let what = format!("`{mark}` is left over");
                    problems.push(Problem::new(path, index + 1, what, remedy));
                }
            }
        }
    }
    problems
}

/// Whether `word` is in `line` as a whole word, not as a part of a longer name.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let joins_before = word.starts_with(in_name) && before.is_some_and(in_name);
        let joins_after = word.ends_with(in_name) && after.is_some_and(in_name);
        !joins_before && !joins_after
    })
}

const FILE_LINES_MAX: usize = 700;
const EXCUSE: &str = "flat table";
const EXCUSE_LINES: usize = 5;

/// No code file is longer than a reader can keep in mind, except flat tables.
pub(crate) fn file_lengths(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.text_files(&["rs", "py"]) {
        let lines = text.lines().count();
        let excused =
            text.lines().take(EXCUSE_LINES).any(|line| line.to_lowercase().contains(EXCUSE));
        if lines > FILE_LINES_MAX && !excused {
            let what = format!("the file has {lines} lines, more than {FILE_LINES_MAX}");
            let remedy = format!(
                "split it, or say within the first {EXCUSE_LINES} lines that it is a {EXCUSE}"
            );
            problems.push(Problem::new(path, FILE_LINES_MAX + 1, what, remedy));
        }
    }
    problems
}

/// No file names a path that exists on one machine only.
pub(crate) fn machine_paths(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, bytes) in tree.files() {
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            if let Some(found) = machine_path(line) {
                let what = format!("`{found}` is a path of one machine");
                let remedy = "use a relative path, a temporary folder or a variable";
                problems.push(Problem::new(path, index + 1, what, remedy));
            }
        }
    }
    problems
}

/// Returns the first path in `line` that begins in a home or work folder.
fn machine_path(line: &[u8]) -> Option<String> {
    let starts = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let slashes = (0..line.len()).filter(|&at| line[at] == b'/');
    slashes.filter(|&at| at == 0 || !continues_a_path(line[at - 1])).find_map(|at| {
        let rest = &line[at..];
        let start = starts.iter().find(|s| rest.starts_with(s.as_bytes()))?;
        let name: String = rest[start.len()..]
            .iter()
            .take_while(|&&byte| is_in_name(byte))
            .map(|&byte| char::from(byte))
            .collect();
        // A home folder belongs to somebody; a placeholder in its place is fine.
        let is_named = !start.starts_with(concat!("/ho", "me")) || !name.is_empty();
        is_named.then(|| format!("{start}{name}"))
    })
}

/// Whether a slash after this byte continues a path, relative to a folder or to a variable, rather
/// than starting one.
fn continues_a_path(before: u8) -> bool {
    is_in_name(before) || matches!(before, b'~' | b'}' | b')' | b'*')
}

fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn marks_in_code_fail_each_on_its_line() {
        let text = [
            concat!("#[ign", "ore]"),
            concat!("#[ign", "ore = \"slow\"]"),
            concat!("x => to", "do!()"),
            concat!("unimpl", "emented!(\"x\")"),
            concat!("let a = d", "bg!(b);"),
            concat!("# FIX", "ME: later"),
            concat!("// (XX", "X)"),
        ]
        .join("\n");
        for path in ["a.rs", "b/c.py", "d.sh"] {
            let expected: Vec<String> = (1..=7).map(|line| format!("{path}:{line}")).collect();
            assert_eq!(places(left_over_marks, &[(path, &text)]), expected);
        }
    }

    #[test]
    fn parts_of_longer_names_and_other_files_pass() {
        let longer = concat!(
            "#[ign", "ored]\n", "my_to", "do!()\n", "ad", "bg!(x)\n", "XX", "XXXX\n", "aFIX", "MEd"
        );
        let mark = concat!("FIX", "ME");
        let files = [("a.rs", longer), ("b.md", mark), ("rs", mark)];
        assert!(places(left_over_marks, &files).is_empty());
    }

    #[test]
    fn files_longer_than_the_limit_fail_unless_they_are_flat_tables() {
        let long = "x\n".repeat(FILE_LINES_MAX + 1);
        let at_limit = "x\n".repeat(FILE_LINES_MAX);
        let excused = format!("//! Types.\n//!\n//! A Flat table of them.\n{long}");
        let excused_late = format!("{}// flat table\n{long}", "\n".repeat(EXCUSE_LINES));
        let files = [
            ("at_limit.rs", at_limit.as_str()),
            ("excused.rs", &excused),
            ("late.rs", &excused_late),
            ("long.py", &long),
            ("long.rs", &long),
            ("long.txt", &long),
        ];
        assert_eq!(places(file_lengths, &files), ["late.rs:701", "long.py:701", "long.rs:701"]);
    }

    #[test]
    fn paths_of_one_machine_fail_in_any_file() {
        for path in [
            concat!("/wo", "rk/x"),
            concat!("a\n\"/ro", "ot/.cargo\""),
            concat!("see /ho", "me/anna/data"),
            concat!("file:///wo", "rk/a b"),
            concat!("host:/ro", "ot/"),
        ] {
            let line = path.lines().count();
            assert_eq!(
                places(machine_paths, &[("f.bin", path)]),
                [format!("f.bin:{line}")],
                "{path}"
            );
        }
    }

    #[test]
    fn relative_paths_and_placeholders_pass() {
        for path in [
            concat!("target/wo", "rk/x"),
            concat!("https://example.org/wo", "rk/"),
            concat!("${TMP}/wo", "rk/ $(pwd)/ro", "ot/ ~/wo", "rk/"),
            concat!("/ho", "me/<name>/x or /ho", "me/"),
            concat!("/wo", "rkspace /ro", "ot"),
        ] {
            let found = places(machine_paths, &[("f.md", path)]);
            assert!(found.is_empty(), "{path}: {found:?}");
        }
    }
}
