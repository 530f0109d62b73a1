//! Relative links in Markdown lead to a file of the repository.

use super::Problem;
use super::tree::Tree;

/// Checks every `*.md`. A link that starts with `/` starts at the repository's root; a part after
/// `#` or `?` is not checked.
pub(crate) fn relative_links(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.text_files(&["md"]) {
        for (line, target) in targets(&text) {
            if is_elsewhere(&target) {
                continue;
            }
            let what = match resolve(path, &target) {
                Some(file) if tree.contains(&file) => continue,
                Some(file) => format!("the link leads to {file}, which git does not list"),
                None => format!("the link {target} leads out of the repository"),
            };
            let remedy = "fix the link or add the file";
            problems.push(Problem::new(path, line, what, remedy));
        }
    }
    problems
}

/// Whether a link leads to another site, or to a place on the same page.
fn is_elsewhere(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    let has_scheme = scheme.is_some_and(|scheme| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    target.is_empty() || target.starts_with('#') || target.starts_with("//") || has_scheme
}

/// Returns the path, from the root, that `target` means in the file `from`; `None` if it leads out
/// of the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.split(['#', '?']).next().unwrap_or_default();
    let target = percent_decoded(target);
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the target of every link and image, with its line, except in code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start_matches([' ', '\t', '>']);
        match (fence, fence_of(start)) {
            (None, Some(opening)) => fence = Some(opening),
            (Some(opening), Some(closing)) if closing.starts_with(opening) => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let line = without_code(line);
                found.extend(targets_in(&line).into_iter().map(|t| (index + 1, t)));
            }
        }
    }
    found
}

/// Returns the backticks or tildes that open or close a block of code.
fn fence_of(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    // A line such as ```code``` is a span, not a fence.
    let is_fence = length >= 3 && !line[length..].contains('`');
    is_fence.then(|| &line[..length])
}

/// Returns the line with its code spans emptied.
fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let after = from.trim_start_matches('`');
        let ticks = &from[..from.len() - after.len()];
        rest = match end_of_span(after, ticks.len()) {
            Some(end) => &after[end..],
            None => after,
        };
    }
    kept + rest
}

/// Returns the end of a code span that was opened by as many backticks.
fn end_of_span(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let length = text[start..].len() - text[start..].trim_start_matches('`').len();
        at = start + length;
        if length == ticks {
            return Some(at);
        }
    }
    None
}

fn targets_in(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for opening in ["](", " src=\"", " href=\""] {
        for (at, _) in line.match_indices(opening) {
            let rest = &line[at + opening.len()..];
            let target = match opening {
                "](" => inline_target(rest),
                _ => rest.split('"').next().unwrap_or_default(),
            };
            found.push(target.to_owned());
        }
    }
    found.extend(definition(line).map(str::to_owned));
    found
}

/// Returns the target at the start of `rest`, up to a title or the closing parenthesis.
fn inline_target(rest: &str) -> &str {
    let rest = rest.trim_start();
    if let Some((target, _)) = rest.strip_prefix('<').and_then(|r| r.split_once('>')) {
        return target;
    }
    let mut open = 0_usize;
    let end = rest.find(|c: char| {
        let ends = c.is_whitespace() || (c == ')' && open == 0);
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            _ => {}
        }
        ends
    });
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the target of `[name]: target`; footnotes have none.
fn definition(line: &str) -> Option<&str> {
    let after = line.trim_start().strip_prefix('[')?;
    let (name, rest) = after.split_once("]:")?;
    let is_name = !name.is_empty() && !name.starts_with('^') && !name.contains([']', '[']);
    is_name.then(|| inline_target(rest))
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const FILES: [(&str, &str); 3] = [("docs/a b.md", ""), ("docs/x(1).md", ""), ("LICENSE", "")];

    /// Checks which lines of `text`, as `docs/page.md`, have broken links.
    fn check(text: &str, expected: &[usize]) {
        let mut files = FILES.to_vec();
        files.push(("docs/page.md", text));
        let expected: Vec<String> =
            expected.iter().map(|line| format!("docs/page.md:{line}")).collect();
        assert_eq!(places(relative_links, &files), expected, "{text}");
    }

    #[test]
    fn links_to_files_folders_and_other_sites_pass() {
        check("[a](<a b.md>) [b](a%20b.md) [c](page.md#top) [d](x(1).md)", &[]);
        check("[a](../LICENSE \"title\") ![b](/LICENSE) [c](../docs/) [d](..)", &[]);
        check("[a](https://example.org/x) [b](mailto:a@b.c) [c](#here)", &[]);
        check("[a]: ../LICENSE\n[^1]: a note\n<a href=\"page.md\">", &[]);
    }

    #[test]
    fn links_that_lead_nowhere_fail_on_their_line() {
        check("[a](page.md)\n[b](gone.md)", &[2]);
        check("![a](../docs) [`b`](./gone/) [c](gone.md#x)", &[1, 1]);
        check("[a]: gone.md\n[b]\n\n<img src=\"gone.png\">", &[1, 4]);
        check("[a](../../outside.md)\n[b](/gone)", &[1, 2]);
        check("[a](pag.md", &[1]);
    }

    #[test]
    fn links_in_code_are_not_links() {
        check("`[a](gone.md)` and ``b ` [c](gone.md)``\n", &[]);
        check("```md\n[a](gone.md)\n```\n[b](gone.md)", &[4]);
        check("> ~~~~\n> ~~~\n> [a](gone.md)\n> ~~~~\n\n[b](gone.md)", &[6]);
        check("an odd ` tick [a](gone.md)", &[1]);
    }
}
