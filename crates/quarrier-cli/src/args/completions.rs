//! `quarrier completions`.

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use super::Parsed;

const EXAMPLES: &str = "\
Examples:
  quarrier completions bash >> ~/.bash_completion
  quarrier completions zsh > ~/.zfunc/_quarrier       (a folder of $fpath)
  quarrier completions fish > ~/.config/fish/completions/quarrier.fish

Packages and 'make install' install them.";

pub(super) fn command() -> Command {
    Command::new("completions")
        .about("Prints a completion script for a shell")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .value_parser(value_parser!(Shell))
                .required(true)
                .help("The shell"),
        )
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Parsed, String> {
    let shell = matches.get_one("shell").copied().unwrap_or(Shell::Bash);
    Ok(Parsed::Done(crate::commands::completions::print(shell)))
}
