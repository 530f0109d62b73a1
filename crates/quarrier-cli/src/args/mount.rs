//! `quarrier mount`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::cache::{CacheArgs, cache_args};
use super::{flag, quiet_arg, stats_arg};
use crate::log::log_arg;

/// `quarrier mount`.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) source: OsString,
    pub(crate) point: PathBuf,
    pub(crate) files: bool,
    pub(crate) allow_other: bool,
    pub(crate) cache: CacheArgs,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  quarrier mount image.E01 /mnt/image
  quarrier mount https://example.org/disk.img /mnt/image
  quarrier mount disk.img /mnt/image --files
  quarrier mount 's3://bucket/disk.qcow2#2' /mnt/image --cache fetched

MOUNTPOINT is an empty folder. It then has one read-only file with the decoded
bytes of SOURCE, which any program can read: image.E01 is shown as image.img,
disk.img.gz as disk.img, disk.E01#2 as disk-2.img. Only the bytes that programs
read are fetched from a remote source.

With --files, the folder 'files' has the files that 'quarrier files' lists; if
there are several partitions with files, in folders '#1', '#2' …. Links are
files with their target.

The command runs until Ctrl-C or SIGTERM, or until 'fusermount3 -u MOUNTPOINT'
or 'umount'; a signal unmounts even if files are open. Bytes that cannot be read
are an input/output error for the program that reads them; they are listed at
the end, unless a later read succeeded.

It needs Linux with /dev/fuse, and the right to mount: that of root, or
fusermount3 (package fuse3).

Exit status: 0 the mount has ended, 2 wrong use or failure, 3 part of the source
could not be read or a file system is damaged (each place is reported), 130
interrupted before the mount.";

pub(super) fn command() -> Command {
    Command::new("mount")
        .about("Mounts a source as a read-only file, for any program (FUSE)")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .value_parser(value_parser!(OsString))
                .required(true)
                .help("The file, device, image or URL"),
        )
        .arg(
            Arg::new("point")
                .value_name("MOUNTPOINT")
                .value_parser(value_parser!(PathBuf))
                .required(true)
                .help("An empty folder"),
        )
        .arg(flag("files", "Show the files of its file systems, too, in the folder 'files'"))
        .arg(flag(
            "allow-other",
            "Let other users read, too; unless root mounts, /etc/fuse.conf must have \
             user_allow_other",
        ))
        .args(cache_args())
        .args([quiet_arg(), stats_arg()])
        .arg(log_arg())
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Mount, String> {
    let source: &OsString = matches.get_one("source").ok_or("no source was given")?;
    let point: &PathBuf = matches.get_one("point").ok_or("no mount point was given")?;
    Ok(Mount {
        source: source.clone(),
        point: point.clone(),
        files: matches.get_flag("files"),
        allow_other: matches.get_flag("allow-other"),
        cache: CacheArgs::of(matches)?,
        quiet: matches.get_flag("quiet"),
        stats: matches.get_one("stats").cloned(),
    })
}
