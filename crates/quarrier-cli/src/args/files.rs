//! `quarrier files`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use quarrier::LostFolders;

use super::cache::{CacheArgs, cache_args};
use super::{color_arg, flag, format_arg, format_of, hash_arg, json_arg, quiet_arg, stats_arg};
use crate::log::log_arg;
use crate::output::Format;

/// `quarrier files`.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) source: OsString,
    /// A path or a glob.
    pub(crate) only: Option<String>,
    pub(crate) deleted: bool,
    pub(crate) lost_folders: LostFolders,
    /// Output folder; `None` to only list.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) hashes: Vec<String>,
    pub(crate) bodyfile: bool,
    pub(crate) format: Format,
    pub(crate) cache: CacheArgs,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
    /// The command line as typed, for the case file.
    pub(crate) line: String,
}

const EXAMPLES: &str = "\
Examples:
  quarrier files disk.img
  quarrier files disk.img /Users/Public --deleted
  quarrier files image.E01 '*.jpg' --deleted --extract -o pictures
  quarrier files disk.img '#2/Documents' --format json | jq -r .path
  quarrier files disk.img --deleted --bodyfile > body.txt
  quarrier files https://example.org/disk.img /Windows/System32/config

It reads ext2 to ext4, XFS, Btrfs, FAT, exFAT, NTFS, HFS+, APFS and ISO 9660,
in a source that holds one of them or in the partitions of a GPT, an MBR or
an Apple partition map. --deleted also lists deleted files with the metadata
and extents that remain; files whose parent folder is lost are in
/$OrphanFiles. On FAT and exFAT, finding these takes the time to read the free
clusters; --lost-folders says when to do so: in local sources, always or
never. FAT stores local times without a zone; they are shown as UTC.

PATH is a file, or a folder with everything below it. In GLOB, * and ? match
within a name, and ** matches any number of folders. A glob without a slash
matches names in all folders. '#2/…' are paths of the second partition.

With --extract, names that lead outside of the folder are changed, links are
written as files with their target, and ~INODE is appended to a name that is
taken.

Exit status: 0 files were listed, 1 none, 2 wrong use or failure, 3 part of a
file system is damaged or could not be read (each location is reported), 130
interrupted.";

pub(super) fn command() -> Command {
    Command::new("files")
        .about("Lists the files of the file systems in an image, and extracts them")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .value_parser(value_parser!(OsString))
                .required(true)
                .help("The image or device"),
        )
        .arg(
            Arg::new("only")
                .value_name("PATH|GLOB")
                .help("Only this file or folder, or the matches of this glob"),
        )
        .arg(flag("deleted", "List deleted files, too"))
        .arg(
            Arg::new("lost-folders")
                .long("lost-folders")
                .value_name("WHEN")
                .value_parser(LostFolders::NAMES)
                .default_value("local")
                .help("When --deleted searches free clusters of FAT and exFAT for lost folders"),
        )
        .arg(flag("extract", "Write the files into the folder of -o").requires("output"))
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .requires("extract")
                .help("Output folder of --extract; must be new or empty"),
        )
        .arg(
            hash_arg("Hashes of each extracted file, in rows and case.json; SHA-256 always")
                .requires("extract"),
        )
        .arg(
            flag("bodyfile", "Print a bodyfile, as mactime and timeline tools read it")
                .conflicts_with("json")
                .help_heading("Output"),
        )
        .args(cache_args())
        .args([format_arg(), json_arg(), color_arg(), quiet_arg(), stats_arg()])
        .arg(log_arg())
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Files, String> {
    let source: &OsString = matches.get_one("source").ok_or("no source was given")?;
    let (bodyfile, format) = (matches.get_flag("bodyfile"), format_of(matches)?);
    if bodyfile && format != Format::Text {
        return Err("--bodyfile is a separate format; leave out --format".to_string());
    }
    Ok(Files {
        source: source.clone(),
        only: matches.get_one("only").cloned(),
        deleted: matches.get_flag("deleted"),
        lost_folders: matches
            .get_one::<String>("lost-folders")
            .and_then(|when| LostFolders::named(when))
            .unwrap_or_default(),
        folder: matches.get_one("output").cloned(),
        hashes: matches.get_many("hash").unwrap_or_default().cloned().collect(),
        bodyfile,
        format,
        cache: CacheArgs::of(matches)?,
        quiet: matches.get_flag("quiet"),
        stats: matches.get_one("stats").cloned(),
        line: super::search::typed_line(),
    })
}
