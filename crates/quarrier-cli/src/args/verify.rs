//! `quarrier verify`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use quarrier::OpenOptions;

use super::cache::{header_arg, headers_alone};
use super::quiet_arg;
use crate::log::log_arg;

/// `quarrier verify`.
#[derive(Debug)]
pub(crate) struct Verify {
    pub(crate) folder: PathBuf,
    /// Where the source is now; `None` if it has not moved.
    pub(crate) source: Option<OsString>,
    /// Options for opening the source.
    pub(crate) open: OpenOptions,
    pub(crate) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  quarrier verify recovered
  quarrier verify recovered --source /mnt/evidence/disk.img

FOLDER is an output folder of 'quarrier carve' or of 'quarrier files --extract'.
Its case.json has the hash of every written file, and of the source if all of it
was read. 'verify' hashes each again; files that case.json does not list, and a
changed case.json, are differences, too.

Exit status: 0 nothing has changed, 1 something differs (a line each), 2
wrong use or failure, 3 the source could not be compared, 130 interrupted.";

pub(super) fn command() -> Command {
    Command::new("verify")
        .about("Verifies an output folder, and the source it came from, against case.json")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .required(true)
                .help("The output folder"),
        )
        .arg(
            Arg::new("source")
                .long("source")
                .value_name("SOURCE")
                .value_parser(value_parser!(OsString))
                .help("The new location of the source, if it was moved"),
        )
        .args([header_arg(), quiet_arg(), log_arg()])
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Verify, String> {
    let folder: &PathBuf = matches.get_one("folder").ok_or("no folder was given")?;
    Ok(Verify {
        folder: folder.clone(),
        source: matches.get_one("source").cloned(),
        open: headers_alone(matches)?,
        quiet: matches.get_flag("quiet"),
    })
}
