//! The hidden command `quarrier help-man`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::Parsed;

pub(super) fn command() -> Command {
    Command::new("help-man").hide(true).about("Writes this help as man pages").arg(
        Arg::new("folder")
            .value_name("FOLDER")
            .value_parser(value_parser!(PathBuf))
            .required(true)
            .help("Where they are written; it is made where it is not there"),
    )
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Parsed, String> {
    let folder: PathBuf = matches.get_one("folder").cloned().unwrap_or_default();
    crate::commands::pages::write(&folder).map(Parsed::Done)
}
