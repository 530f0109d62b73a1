//! Options of `quarrier search` on matches and their lines.

use std::path::PathBuf;

use clap::{Arg, ArgAction, value_parser};

use super::flag;
use crate::quantity::size_in;

pub(super) fn match_args() -> Vec<Arg> {
    let list = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .action(ArgAction::Append)
            .help(help)
            .help_heading("Matches")
    };
    vec![
        flag("histogram", "Print one row for each pattern and distinct match, most frequent first")
            .conflicts_with_all(["count", "context", "line-number", "only-matching"])
            .conflicts_with_all(["files-with-matches", "line-context"])
            .conflicts_with_all(["before-context", "after-context"])
            .help_heading("Matches"),
        Arg::new("histogram-memory")
            .long("histogram-memory")
            .value_name("SIZE")
            .default_value("1G")
            .value_parser(size_in(1 << 20..=1 << 50))
            .requires("histogram")
            .help("Memory of the histogram; beyond it, new distinct matches are left out and reported")
            .help_heading("Matches"),
        list(
            "stop-list",
            "Leave out findings whose match is in this file, one a line; repeatable. Feature \
             files and stop lists of bulk_extractor are accepted unchanged",
        ),
        list("alert-list", "Report only findings whose match is in this file, one a line; repeatable"),
    ]
}

/// The line options of ripgrep. A newline ends a line; of long lines the nearest 16 KiB are shown.
pub(super) fn line_args() -> Vec<Arg> {
    let lines = |id: &'static str, short: char, help: &'static str| {
        Arg::new(id)
            .short(short)
            .long(id)
            .value_name("N")
            .value_parser(value_parser!(u64))
            .conflicts_with_all(["context", "only-matching"])
            .help(help)
            .help_heading("Lines")
    };
    vec![
        lines("after-context", 'A', "Show the line of each finding, and N after it"),
        lines("before-context", 'B', "Show the line of each finding, and N before it"),
        lines("line-context", 'C', "Show the line of each finding, and N on either side"),
        flag("line-number", "Print line numbers").short('n').help_heading("Lines"),
        flag("only-matching", "Print only the matching bytes, a line for each finding")
            .short('o')
            .conflicts_with_all(["count", "files-with-matches", "context"])
            .help_heading("Lines"),
    ]
}
