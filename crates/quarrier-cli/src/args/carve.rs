//! `quarrier carve`.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::cache::{CacheArgs, cache_args};
use super::units::{Units, carve_args};
use super::{
    auto_count, color_arg, files_from_arg, flag, format_arg, format_of, hash_arg, json_arg,
    quiet_arg, stats_arg, workers_arg,
};
use crate::log::log_arg;
use crate::output::Format;
use crate::quantity::{parse_range, size_in};

/// `quarrier carve`.
#[derive(Debug)]
pub(crate) struct Carve {
    pub(crate) sources: Vec<OsString>,
    /// Files that list further sources.
    pub(crate) files_from: Vec<PathBuf>,
    /// The output folder; `None` in a dry run.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) types: Option<Vec<String>>,
    pub(crate) signatures: Option<PathBuf>,
    pub(crate) embedded: bool,
    pub(crate) dry_run: bool,
    pub(crate) resume: bool,
    pub(crate) file_bytes_max: Option<u64>,
    pub(crate) keeps_broken: bool,
    pub(crate) thorough: bool,
    pub(crate) memory_bytes_max: u64,
    pub(crate) range: Range<u64>,
    pub(crate) unallocated: bool,
    pub(crate) locates: bool,
    pub(crate) known: Vec<PathBuf>,
    pub(crate) skips_known: bool,
    pub(crate) hashes: Vec<String>,
    pub(crate) verify: bool,
    pub(crate) workers: usize,
    pub(crate) format: Format,
    pub(crate) cache: CacheArgs,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
    pub(crate) report: Option<PathBuf>,
    /// How to run source by source.
    pub(crate) units: Option<Units>,
    /// The command line as typed, for the report's title.
    pub(crate) line: String,
}

const EXAMPLES: &str = "\
Examples:
  quarrier carve disk.img -o recovered
  quarrier carve disk.img -o pictures --types jpg,png --keep valid
  quarrier carve /dev/sdb -o recovered --resume
  quarrier carve disk.img -o deleted --unallocated
  quarrier carve image.E01 -o recovered --verify
  quarrier carve disk.img -o recovered --where --known nsrl.txt --skip-known
  quarrier carve disk.img -o recovered --known RDS.db --hash md5,sha1,blake3
  quarrier carve image.001 --dry-run --format json | jq -r .path
  quarrier carve disk.img -o recovered --embedded --report recovered.html
  quarrier carve https://example.org/disk.img -o recovered --range 0..1G
  quarrier carve evidence/ -o recovered
  find evidence -name '*.bin' -print0 | quarrier carve --files-from - -o recovered
  quarrier carve 's3://bucket/case/*.dd' --to s3://bucket/rows --shard 0/8
  quarrier carve images/ -o recovered --cluster 10.0.0.1:50050

A SOURCE is a file, a block device, the first part of a split image (image.001)
or of an EWF image (image.E01), a quoted glob of the parts ('image.*'), or a
URL: https://…, http://…, s3://BUCKET/KEY, gs://…, az://CONTAINER/KEY. AFF4
images, virtual disks (qcow2, VMDK, VHD, VHDX, VDI, DMG) and compressed images
(gz, xz, bz2, zst) are recognised by content. SOURCE#2 is the second partition.
A folder is all regular files below it, hidden ones too; links are not followed.
's3://BUCKET/PREFIX/*' is all objects that match, s3://BUCKET/PREFIX/ all below.

Each file is written to FOLDER/<type>/<offset>.<extension>, with the offset as
12 hexadecimal digits; FOLDER/report.jsonl and FOLDER/report.dfxml have a row
for each. Status 'valid': complete, as its format prescribes, with every
checksum right. 'partial': correct up to the byte where it breaks. 'header':
only its beginning could be read.

Several sources, or a folder: each source has its own subfolder,
FOLDER/<name>-<hash of its name>/<type>/<offset>.<extension>, with reports and
case.json, unless no file is found in it; FOLDER/report.jsonl has the rows of
all, FOLDER/sources.jsonl a line for each finished source.

Exit status: 0 files were found, 1 none, 2 wrong use or failure, 3 part of the
source could not be read or was examined less closely (each range is listed;
--thorough examines them), 130 interrupted (--resume continues).";

pub(super) fn command() -> Command {
    Command::new("carve")
        .about("Recovers files from disk images and devices, deleted and broken ones too")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .value_parser(value_parser!(OsString))
                .num_args(0..)
                .action(ArgAction::Append)
                .required_unless_present("files-from")
                .help("The images, devices or folders to carve"),
        )
        .arg(files_from_arg())
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .required_unless_present_any(["dry-run", "to", "plan"])
                .help("Output folder; must be new or empty"),
        )
        .args(what_args())
        .args(how_args())
        .args(carve_args())
        .args(cache_args())
        .args([format_arg(), json_arg(), color_arg(), quiet_arg()])
        .args([stats_arg(), log_arg()])
        .arg(
            Arg::new("report")
                .long("report")
                .value_name("FILE.html")
                .value_parser(value_parser!(PathBuf))
                .help("Write a page with a map of the source, the pictures, and all files")
                .help_heading("Output"),
        )
}

fn what_args() -> Vec<Arg> {
    vec![
        Arg::new("types")
            .long("types")
            .value_name("TYPE,…")
            .value_delimiter(',')
            .help("Write only files of these types: jpg,png,pdf"),
        Arg::new("signatures")
            .long("signatures")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Also look for the signatures in FILE: TOML, foremost.conf or scalpel.conf"),
        flag("embedded", "Also write files inside other files, and unpack archives"),
        Arg::new("keep")
            .long("keep")
            .value_name("all|valid")
            .default_value("all")
            .value_parser(["all", "valid"])
            .help("Which files to write"),
        Arg::new("max-size")
            .long("max-size")
            .value_name("SIZE")
            .value_parser(size_in(1..=u64::MAX))
            .help("Maximum file size; longer files are cut and reported as partial"),
        Arg::new("range")
            .long("range")
            .value_name("START..END")
            .value_parser(parse_range)
            .help("Carve only these offsets, as if they were the whole source"),
        flag(
            "unallocated",
            "Leave out the bytes of allocated files (ext2 to ext4, XFS, Btrfs, FAT, exFAT, NTFS, \
             HFS+, APFS, ISO 9660): carve deleted files, free space, slack, and everything \
             outside of file systems",
        ),
        flag("where", "Name the file that each carved file begins in, from the file systems, \
                       deleted files too"),
        Arg::new("known")
            .long("known")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .action(ArgAction::Append)
            .help(
                "Mark files whose hash is in FILE: hashdeep, lists of MD5, SHA-1 or SHA-256, the SQLite \
                 of NSRL; repeatable",
            ),
        flag("skip-known", "Do not write files whose hash is in --known").requires("known"),
        hash_arg("Hashes of each file and of the source, in rows and case.json; SHA-256 always"),
        flag("verify", "First verify an EWF or AFF4 image against its stored hashes"),
        flag("dry-run", "Write nothing; print a row for each file"),
        flag("resume", "Continue an interrupted run into the same folder"),
    ]
}

fn how_args() -> Vec<Arg> {
    vec![
        flag(
            "thorough",
            "Examine every candidate even if there are very many, without a time limit, and \
             spend seconds instead of a tenth on each broken file",
        ),
        workers_arg("Threads that search, read candidates, and write"),
        Arg::new("max-memory")
            .long("max-memory")
            .value_name("SIZE")
            .default_value("1G")
            .value_parser(size_in(64 << 20..=u64::MAX))
            .help("Memory for candidates, broken files and buffers")
            .help_heading("Machine"),
    ]
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Carve, String> {
    let dry_run = matches.get_flag("dry-run");
    let folder: Option<PathBuf> = matches.get_one("output").cloned();
    if dry_run && matches.get_flag("resume") {
        return Err("--dry-run writes nothing that --resume could continue".to_string());
    }
    let mut types: Option<Vec<String>> =
        matches.get_many("types").map(|types| types.cloned().collect());
    types.iter_mut().for_each(|types| {
        types.sort();
        types.dedup();
    });
    let carve = Carve {
        sources: matches.get_many("source").unwrap_or_default().cloned().collect(),
        files_from: matches.get_many("files-from").unwrap_or_default().cloned().collect(),
        folder: folder.filter(|_| !dry_run),
        types,
        signatures: matches.get_one("signatures").cloned(),
        embedded: matches.get_flag("embedded"),
        dry_run,
        resume: matches.get_flag("resume"),
        file_bytes_max: matches.get_one("max-size").copied(),
        keeps_broken: matches.get_one::<String>("keep").is_none_or(|keep| keep == "all"),
        thorough: matches.get_flag("thorough"),
        memory_bytes_max: matches.get_one("max-memory").copied().unwrap_or(1 << 30),
        range: matches.get_one("range").cloned().unwrap_or(0..u64::MAX),
        unallocated: matches.get_flag("unallocated"),
        locates: matches.get_flag("where"),
        known: matches.get_many("known").unwrap_or_default().cloned().collect(),
        skips_known: matches.get_flag("skip-known"),
        hashes: matches.get_many("hash").unwrap_or_default().cloned().collect(),
        verify: matches.get_flag("verify"),
        workers: auto_count(matches, "workers"),
        format: format_of(matches)?,
        cache: CacheArgs::of(matches)?,
        quiet: matches.get_flag("quiet"),
        stats: matches.get_one("stats").cloned(),
        report: matches.get_one("report").cloned(),
        units: None,
        line: super::search::typed_line(),
    };
    carve.in_units(matches)
}
