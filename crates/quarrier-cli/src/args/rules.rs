//! Options of `quarrier search` with YARA rules in place of patterns.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use quarrier::rules::Scopes;

use crate::quantity::size_in;

/// Options that apply to patterns only.
const OPTIONS_OF_PATTERNS: [&str; 34] = [
    "pattern",
    "hex",
    "regex",
    "patterns",
    "features",
    "ignore-case",
    "word-regexp",
    "fixed-strings",
    "utf16",
    "utf16be",
    "encodings",
    "xor",
    "base64",
    "regex-max-length",
    "regex-memory",
    "range",
    "aligned",
    "context",
    "where",
    "unallocated",
    "histogram",
    "histogram-memory",
    "stop-list",
    "alert-list",
    "after-context",
    "before-context",
    "line-context",
    "line-number",
    "only-matching",
    "report",
    "to",
    "shard",
    "plan",
    "cluster",
];

/// Refuses options that rules replace or cannot support.
pub(super) fn refuse_with_rules(matches: &ArgMatches) -> Result<(), String> {
    let is_given = |id: &&&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    match OPTIONS_OF_PATTERNS.iter().find(is_given) {
        None => Ok(()),
        Some(id @ &("range" | "aligned")) => Err(format!(
            "--{id} cannot be used with --rules: a rule is evaluated over a whole source or \
             file; SOURCE#2 is the second partition"
        )),
        Some(&"where") => {
            Err("--where cannot be used with --rules: their rows have the file in the column scope"
                .to_string())
        }
        Some(&"unallocated") => {
            Err("--unallocated cannot be used with --rules: --scopes deleted,carved selects \
             deleted and carved files"
                .to_string())
        }
        Some(id @ &("to" | "shard" | "plan" | "cluster")) => Err(format!(
            "--{id} cannot be used with --rules: a rule is evaluated over a whole source; name a \
             part of the sources in each run"
        )),
        Some(id) => Err(format!(
            "--{id} cannot be used with --rules; search for patterns in a separate run"
        )),
    }
}

pub(super) fn rule_args() -> Vec<Arg> {
    vec![
        Arg::new("rules")
            .long("rules")
            .value_name("FILE.yar")
            .value_parser(value_parser!(PathBuf))
            .action(ArgAction::Append)
            .help(
                "Evaluate these YARA rules instead of patterns: print one row for each string \
                 found of each rule that holds in a scope. Scopes are the source and the \
                 allocated files of its file systems; -c counts them. '-' is standard input; \
                 repeatable",
            )
            .help_heading("Rules"),
        Arg::new("scopes")
            .long("scopes")
            .value_name("LIST")
            .default_value("source,files")
            .value_parser(|text: &str| text.parse::<Scopes>())
            .requires("rules")
            .help(
                "Scopes over which rules are evaluated: source, files (allocated ones), deleted \
                 (files whose bytes are known), carved (files found by their content), members \
                 (of zip, 7z, tar, gz, xz, bz2 and zst files), or all; joined by commas",
            )
            .help_heading("Rules"),
        Arg::new("rules-max-size")
            .long("rules-max-size")
            .value_name("SIZE")
            .default_value("1G")
            .value_parser(size_in(1..=1 << 40))
            .requires("rules")
            .help("Maximum size of a scope, which is held in memory; longer ones are skipped and reported")
            .help_heading("Rules"),
        Arg::new("rules-timeout")
            .long("rules-timeout")
            .value_name("SECONDS")
            .default_value("60")
            .value_parser(value_parser!(u64).range(1..=1 << 30))
            .requires("rules")
            .help("Maximum time for the rules of one scope; slower scopes are skipped and \
                   reported")
            .help_heading("Rules"),
    ]
}
