//! Reads a `Cargo.toml` into flat entries: enough of TOML for our manifests.
//!
//! `[package] version.workspace = true`, `version = { workspace = true }` and
//! `package.version.workspace = true` all become the one entry
//! `["package", "version", "workspace"] = true`, so that a rule need not know
//! how it was written.

/// A value with its full key and its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<String>,
    /// A string without its quotes; any other value in its source form.
    pub(crate) value: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// The table of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `dependencies` and `build-dependencies`: users of the crate build them.
    Normal,
    /// `dev-dependencies`: only the crate's own tests build them.
    Dev,
}

/// A package that another is built with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The package's real name, even if the manifest renames it.
    pub(crate) package: String,
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

/// A parsed manifest. Lines that could not be parsed are skipped, because cargo refuses a broken
/// manifest before this tool runs.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    entries: Vec<Entry>,
}

impl Manifest {
    pub(crate) fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = Vec::new();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let mut statement = without_comment(line).trim().to_owned();
            if statement.starts_with('[') {
                section = split_key(statement.trim_matches(['[', ']']));
                continue;
            }
            while !is_complete(&statement) {
                let Some((_, line)) = lines.next() else { break };
                statement.push('\n');
                statement.push_str(without_comment(line).trim());
            }
            manifest.add(&section, &statement, index + 1);
        }
        manifest
    }

    fn add(&mut self, section: &[String], statement: &str, line: usize) {
        let [key, value] = split(statement, '=', 2)[..] else {
            return;
        };
        let mut full_key = section.to_vec();
        full_key.extend(split_key(key));
        let value = value.trim();
        let inner = value.strip_prefix('{').and_then(|v| v.strip_suffix('}'));
        if let Some(inner) = inner {
            for statement in split(inner, ',', usize::MAX) {
                self.add(&full_key, statement, line);
            }
        } else {
            self.entries.push(Entry { key: full_key, value: unquoted(value).to_owned(), line });
        }
    }

    /// Returns the entry with exactly this key, if there is one.
    pub(crate) fn get(&self, key: &[&str]) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Returns the values of `key` in every table of the array, such as `path` in `[[bin]]`.
    pub(crate) fn all<'a>(&'a self, key: &'a [&str]) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |entry| entry.key == key)
    }

    /// Returns the dependencies of the package, for any target. `workspace` is the root's manifest,
    /// which may rename an inherited dependency.
    pub(crate) fn dependencies(&self, workspace: &Manifest) -> Vec<Dependency> {
        let mut found: Vec<(Dependency, &[String])> = Vec::new();
        for entry in &self.entries {
            let Some((kind, table)) = dependency_table(&entry.key) else {
                continue;
            };
            let key = &entry.key[..=table];
            let name = &entry.key[table];
            let inherited = ["workspace", "dependencies", name, "package"];
            let package = workspace
                .get(&inherited)
                .filter(|_| self.has(key, "workspace"))
                .or_else(|| self.find(key, "package"))
                .map_or(name, |entry| &entry.value);
            if !found.iter().any(|(_, seen)| *seen == key) {
                let dependency = Dependency { package: package.clone(), kind, line: entry.line };
                found.push((dependency, key));
            }
        }
        found.into_iter().map(|(dependency, _)| dependency).collect()
    }

    fn find(&self, table: &[String], last: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            entry.key.split_last().is_some_and(|(name, before)| name == last && before == table)
        })
    }

    fn has(&self, table: &[String], last: &str) -> bool {
        self.find(table, last).is_some()
    }
}

/// Returns the kind of dependency that `key` defines, and the index of its name in `key`.
fn dependency_table(key: &[String]) -> Option<(Kind, usize)> {
    let start = match key.first()?.as_str() {
        "target" => 2,
        _ => 0,
    };
    let kind = match key.get(start)?.as_str() {
        "dependencies" | "build-dependencies" => Kind::Normal,
        "dev-dependencies" => Kind::Dev,
        _ => return None,
    };
    (key.len() > start + 1).then_some((kind, start + 1))
}

/// Returns the parts of a dotted key, without quotes.
fn split_key(key: &str) -> Vec<String> {
    split(key, '.', usize::MAX).into_iter().map(|part| unquoted(part.trim()).to_owned()).collect()
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

fn without_comment(line: &str) -> &str {
    let end = plain(line).find(|&(_, c, _)| c == '#');
    end.map_or(line, |(at, _, _)| &line[..at])
}

/// Whether every bracket of the statement is closed.
fn is_complete(statement: &str) -> bool {
    plain(statement).last().is_none_or(|(_, c, depth)| {
        depth == 0 && !matches!(c, '[' | '{') || depth == 1 && matches!(c, ']' | '}')
    })
}

/// Returns at most `parts` pieces of `text` between the separators outside of quotes and brackets.
fn split(text: &str, separator: char, parts: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, c, depth) in plain(text) {
        if c == separator && depth == 0 && pieces.len() + 1 < parts {
            pieces.push(&text[start..at]);
            start = at + c.len_utf8();
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Returns the characters outside of quotes, each with its offset and the number of open brackets
/// before it.
fn plain(text: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let mut quote = None;
    let mut escaped = false;
    let mut open = 0_usize;
    text.char_indices().filter_map(move |(at, c)| {
        if let Some(end) = quote {
            if escaped {
                escaped = false;
            } else if c == '\\' && end == '"' {
                escaped = true;
            } else if c == end {
                quote = None;
            }
            return None;
        }
        let depth = open;
        match c {
            '"' | '\'' => {
                quote = Some(c);
                return None;
            }
            '[' | '{' => open += 1,
            ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        Some((at, c, depth))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, &str, usize)]) {
        let found: Vec<(String, String, usize)> = Manifest::parse(text)
            .entries
            .into_iter()
            .map(|entry| (entry.key.join("|"), entry.value, entry.line))
            .collect();
        let expected: Vec<(String, String, usize)> = expected
            .iter()
            .map(|(key, value, line)| ((*key).to_owned(), (*value).to_owned(), *line))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn three_ways_to_write_a_key_are_one() {
        for text in [
            "[package]\nversion.workspace = true",
            "[package]\nversion = { workspace = true }",
            "#\npackage.version.workspace = true # inherited",
            "[package.version]\nworkspace=true",
        ] {
            check(text, &[("package|version|workspace", "true", 2)]);
        }
    }

    #[test]
    fn quotes_hide_comments_dots_and_brackets() {
        check(
            "[target.'cfg(target_os = \"linux\")'.dependencies]\nio = \"1 # [x\\\"]\" # why\nb = 1",
            &[
                ("target|cfg(target_os = \"linux\")|dependencies|io", "1 # [x\\\"]", 2),
                ("target|cfg(target_os = \"linux\")|dependencies|b", "1", 3),
            ],
        );
    }

    #[test]
    fn values_over_many_lines_are_one_entry() {
        check(
            "a = [\n  \"x\", # first\n  [1],\n]\nb = { c = 1, d = [\n 2, 3 ] }\n[[bin]]\npath = \"p\"",
            &[
                ("a", "[\n\"x\",\n[1],\n]", 1),
                ("b|c", "1", 5),
                ("b|d", "[\n2, 3 ]", 5),
                ("bin|path", "p", 8),
            ],
        );
    }

    #[test]
    fn dependencies_of_every_table_are_found_under_their_own_name() {
        let workspace = Manifest::parse(
            "[workspace.dependencies]\nshort = { package = \"long\", version = \"1\" }",
        );
        let manifest = Manifest::parse(
            "[dependencies]\nshort.workspace = true\nnick = { version = \"2\", package = \"real\" }\n\
             [dependencies.tabled]\nversion = \"1\"\nfeatures = []\n\
             [target.'cfg(unix)'.dependencies]\nunixy = \"1\"\n\
             [build-dependencies]\nbuilder = \"1\"\n\
             [dev-dependencies]\nproptest.workspace = true\n\
             [features]\ndependencies = []",
        );
        let found: Vec<(String, Kind, usize)> = manifest
            .dependencies(&workspace)
            .into_iter()
            .map(|dependency| (dependency.package, dependency.kind, dependency.line))
            .collect();
        let expected = [
            ("long", Kind::Normal, 2),
            ("real", Kind::Normal, 3),
            ("tabled", Kind::Normal, 5),
            ("unixy", Kind::Normal, 8),
            ("builder", Kind::Normal, 10),
            ("proptest", Kind::Dev, 12),
        ]
        .map(|(package, kind, line)| (package.to_owned(), kind, line));
        assert_eq!(found, expected);
    }
}
