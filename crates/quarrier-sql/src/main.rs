//! `quarrier-sql`: SQL over messages, files and findings. `quarrier query` runs it.
//!
//! ```text
//!  arguments (quarrier-cli's) ─→ command: one statement after another, all at once, or a prompt
//!  serve …                   ─→ command::serve: clients answered by quarrier-wire
//!  explain …, over Parquet   ─→ quarrier-cli, with the Parquet reader that it lacks
//! ```

use std::process::ExitCode;

use quarrier_cli::guarded;

fn main() -> ExitCode {
    // No valid statement consists of only one of these words.
    if std::env::args_os().nth(1).is_some_and(|first| first == "explain") {
        return quarrier_cli::run(Some(&quarrier_parquet::Reader));
    }
    if std::env::args_os().nth(1).is_some_and(|first| first == "serve") {
        return guarded(|| quarrier_sql::serve(std::env::args_os().skip(2).collect()));
    }
    guarded(|| quarrier_sql::query(std::env::args_os().skip(1).collect(), None))
}
