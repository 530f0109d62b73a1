//! Usage errors in one line: the error, a suggestion, and where to find help.

use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options of ripgrep and grep that a search lacks, with the replacement.
const HABITS: &[(&str, &str)] = &[
    ("-a", "all bytes are searched, text or not"),
    ("--text", "all bytes are searched, text or not"),
    ("-b", "offsets are always printed"),
    ("-g", "name the files with a glob in quotes instead: 'logs/*.gz'"),
    ("--glob", "name the files with a glob in quotes instead: 'logs/*.gz'"),
    ("-h", "the source is always printed; --format json | jq selects the fields"),
    ("-P", "-E takes a regex, without back-references or look-around"),
    ("-r", "a folder is always searched with all files below it"),
    ("-R", "a folder is always searched with all files below it; links are not followed"),
    ("-S", "-i ignores case"),
    ("-u", "nothing is left out of a search"),
    ("-v", "lines that do not match are not printed; 'quarrier filter' takes NOT"),
    ("-z", "'zcat image.gz | quarrier search PATTERN -' searches compressed data"),
];

/// Formats clap's error in one line. `verb` is the first word typed, which need not be a command.
pub(super) fn one_line(error: &clap::Error, verb: Option<&OsStr>) -> String {
    let is_command = |verb: &&str| super::shown().find_subcommand(verb).is_some();
    let help = match verb.and_then(OsStr::to_str).filter(is_command) {
        Some(verb) => format!("quarrier {verb} --help"),
        None => "quarrier --help".to_string(),
    };
    let is_search = verb == Some(OsStr::new("search"));
    format!("{}; try '{help}'", gist(error, is_search))
}

/// The error and a suggestion, since people bring habits from other search tools.
pub(super) fn gist(error: &clap::Error, is_search: bool) -> String {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        // clap sorts by likelihood, the best last.
        Some(ContextValue::Strings(words)) => words.last().map(String::as_str),
        _ => None,
    };
    let meant =
        |kind| word(kind).map_or(String::new(), |word| format!(" (did you mean '{word}'?)"));
    match (error.kind(), word(ContextKind::InvalidArg), word(ContextKind::InvalidSubcommand)) {
        (ErrorKind::UnknownArgument, Some(option), _) => {
            let habit = HABITS.iter().find(|(habit, _)| is_search && *habit == option);
            match habit {
                Some((_, instead)) => format!("there is no option '{option}': {instead}"),
                None => {
                    format!("there is no option '{option}'{}", meant(ContextKind::SuggestedArg))
                }
            }
        }
        (ErrorKind::InvalidSubcommand, _, Some(verb)) => {
            format!("there is no command '{verb}'{}", meant(ContextKind::SuggestedSubcommand))
        }
        _ => words(&error.to_string()),
    }
}

/// clap's message without its usage block and its pointer to the help, in one line.
fn words(text: &str) -> String {
    let gist = text.split("\n\nUsage:").next().unwrap_or(text);
    let gist = gist.split("\n\nFor more information").next().unwrap_or(gist);
    let gist = gist.trim_start_matches("error: ").replace("\n\n  tip: ", "; ");
    let words: Vec<&str> = gist.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &[&str], expected: &str) {
        let error = super::super::command()
            .try_get_matches_from([&["quarrier"], line].concat())
            .expect_err("it is wrong");
        assert_eq!(one_line(&error, line.first().map(OsStr::new)), expected);
    }

    #[test]
    fn errors_suggest_a_spelling_and_point_to_the_help_of_the_command() {
        check(
            &["serach", "x"],
            "there is no command 'serach' (did you mean 'search'?); try 'quarrier --help'",
        );
        check(
            &["carve", "--dryrun"],
            "there is no option '--dryrun' (did you mean '--dry-run'?); try 'quarrier carve --help'",
        );
        check(
            &["filter", "--verbose"],
            "there is no option '--verbose'; try 'quarrier filter --help'",
        );
        check(
            &["--vresion"],
            "there is no option '--vresion' (did you mean '--version'?); try 'quarrier --help'",
        );
    }

    #[test]
    fn an_option_of_ripgrep_is_answered_with_the_replacement() {
        let error = super::super::command()
            .try_get_matches_from(["quarrier", "search", "x", "-v"])
            .expect_err("it is wrong");
        assert!(
            one_line(&error, Some(OsStr::new("search"))).contains("'quarrier filter' takes NOT")
        );
    }
}
