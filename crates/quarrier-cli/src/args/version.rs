//! The text of `--version`.

use std::sync::LazyLock;

use quarrier_search::EngineName;

/// The compiled-in features of both binaries.
const FEATURES: &str = "ewf http s3 io_uring opencl cuda";

/// The text of `quarrier --version`.
pub(super) fn long() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| with_features(""));
    &TEXT
}

/// The text of `quarrier-sql --version`.
pub(super) fn long_of_sql() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| with_features(" parquet sql"));
    &TEXT
}

/// Version and commit.
#[must_use]
pub fn build() -> String {
    format!("{}{}", clap::crate_version!(), commit(env!("QUARRIER_COMMIT")))
}

/// Version and commit, then the compiled-in features, then the engines of this CPU.
fn with_features(more_features: &str) -> String {
    let engines = EngineName::ALL.into_iter().filter(|engine| {
        engine.is_available() && !matches!(engine, EngineName::Auto | EngineName::Naive)
    });
    let engines: Vec<&str> = engines.map(EngineName::name).collect();
    format!("{}\nfeatures: {FEATURES}{more_features}\nengines here: {}", build(), engines.join(" "))
}

/// The date of the commit; empty if unknown.
pub(crate) fn day() -> &'static str {
    match env!("QUARRIER_COMMIT").split_once(' ') {
        Some((_, day)) if day.starts_with(|first: char| first.is_ascii_digit()) => day,
        _ => " ",
    }
}

fn commit(commit: &str) -> String {
    if commit.is_empty() { String::new() } else { format!(" ({commit})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_commit_is_left_out() {
        assert_eq!(commit(""), "");
        assert_eq!(commit("1234567 2026-01-01"), " (1234567 2026-01-01)");
    }

    #[test]
    fn the_version_comes_first_then_features_and_engines() {
        let text = long_of_sql();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with(clap::crate_version!()), "{text}");
        assert!(lines[1].ends_with(" parquet sql"), "{text}");
        assert!(lines[2].contains("gram") && !lines[2].contains("auto"), "{text}");
    }
}
