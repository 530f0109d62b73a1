//! `quarrier search`.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use quarrier::rules::{SCOPE_BYTES_MAX, SCOPE_TIME_MAX, Scopes};
use quarrier::search::{Feature, HISTOGRAM_BYTES_MAX};
use quarrier_core::name;
use quarrier_core::pipeline::Access;
use quarrier_gpu::DeviceChoice;
use quarrier_remote::{is_remote, redacted};
use quarrier_search::{Encodings, EngineName, REGEX_MEMORY_BYTES};

use super::cache::{CacheArgs, cache_args};
use super::matches::{line_args, match_args};
use super::rules::{refuse_with_rules, rule_args};
use super::{
    auto, color_arg, files_from_arg, flag, format_arg, format_of, json_arg, quiet_arg, stats_arg,
    units, workers_arg,
};
use crate::log::log_arg;
use crate::output::Format;
use crate::quantity::{parse_auto_count, parse_auto_size, parse_range, size_in};

/// One pattern option, in the order of the command line.
#[derive(Debug, Clone)]
pub(crate) enum PatternArg {
    Text(String),
    Hex(String),
    Regex(String),
    File(PathBuf),
}

/// The optional parts of findings to show.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown {
    /// Lines before the line of a finding.
    pub(crate) lines_before: u64,
    /// Lines after the line of a finding.
    pub(crate) lines_after: u64,
    /// Whether to show lines; the line of a finding is then shown whole.
    pub(crate) lines: bool,
    /// Whether to show line numbers.
    pub(crate) numbered: bool,
    /// Whether to print only the bytes found.
    pub(crate) only_matches: bool,
    /// Whether to print only the names of sources with findings.
    pub(crate) only_sources: bool,
}

/// `quarrier search`.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) patterns: Vec<PatternArg>,
    /// Built-in scanners.
    pub(crate) features: Vec<&'static Feature>,
    /// Files of YARA rules, in place of patterns.
    pub(crate) rules: Vec<PathBuf>,
    /// The scopes over which rules are evaluated.
    pub(crate) scopes: Scopes,
    /// Maximum size of a scope, in bytes.
    pub(crate) rules_bytes_max: u64,
    /// Maximum time for the rules of one scope.
    pub(crate) rules_time_max: Duration,
    pub(crate) sources: Vec<OsString>,
    /// Files that list further sources, which come after the others.
    pub(crate) files_from: Vec<PathBuf>,
    pub(crate) ignore_case: bool,
    pub(crate) utf16: bool,
    pub(crate) utf16be: bool,
    pub(crate) encodings: Encodings,
    pub(crate) xor: bool,
    pub(crate) base64: bool,
    pub(crate) count: bool,
    pub(crate) histogram: bool,
    pub(crate) histogram_bytes_max: u64,
    /// Files of matches to leave out.
    pub(crate) stop_lists: Vec<PathBuf>,
    /// Files of the only matches to report.
    pub(crate) alert_lists: Vec<PathBuf>,
    pub(crate) max_count: Option<u64>,
    pub(crate) range: Range<u64>,
    pub(crate) aligned_bytes: u64,
    pub(crate) context_bytes: usize,
    /// Whether rows name the file of each finding.
    pub(crate) locates: bool,
    /// Whether to skip the bytes of allocated files.
    pub(crate) unallocated: bool,
    pub(crate) shown: Shown,
    pub(crate) words: bool,
    pub(crate) regex_length_bytes_max: usize,
    pub(crate) regex_memory_bytes_max: usize,
    pub(crate) workers: usize,
    pub(crate) readers: usize,
    pub(crate) buffers: usize,
    pub(crate) buffer_bytes: usize,
    pub(crate) access: Option<Access>,
    pub(crate) direct: bool,
    pub(crate) device: DeviceChoice,
    pub(crate) engine: EngineName,
    pub(crate) explain: bool,
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    pub(crate) stats: Option<PathBuf>,
    pub(crate) report: Option<PathBuf>,
    pub(crate) cache: CacheArgs,
    pub(crate) requests: usize,
    /// How to search unit by unit; `None` to search at once.
    pub(crate) units: Option<units::Units>,
    /// The command line as typed, for the report's title.
    pub(crate) line: String,
}

pub(super) fn parse(matches: &ArgMatches) -> Result<Search, String> {
    let mut patterns = ordered_patterns(matches);
    let mut positional: Vec<OsString> =
        matches.get_many::<OsString>("source").unwrap_or_default().cloned().collect();
    let files_from: Vec<PathBuf> =
        matches.get_many::<PathBuf>("files-from").unwrap_or_default().cloned().collect();
    let has_rules = matches.contains_id("rules");
    if has_rules {
        refuse_with_rules(matches)?;
    }
    let has_others = has_rules || matches.contains_id("features");
    if patterns.is_empty() && !has_others && !positional.is_empty() {
        let text = positional.remove(0).into_string();
        let text = text.map_err(|_| "the pattern is not UTF-8; write other bytes with -x")?;
        patterns.push(PatternArg::Text(text));
    }
    if patterns.is_empty() && !has_others {
        return Err("no pattern was given; try 'quarrier search PATTERN SOURCE'".to_string());
    }
    if positional.is_empty() && files_from.is_empty() {
        return Err("no source was given; name files, or '-' for standard input".to_string());
    }
    if matches.get_flag("only-matching") && format_of(matches)? != Format::Text {
        return Err("-o prints the bytes found as text; leave it out, or --format".to_string());
    }
    read(matches, patterns, positional)?.in_units(matches)
}

/// Parses the options of a search that has no command line; `words` are written as on one.
pub(crate) fn of_words(words: &[String]) -> Result<Search, String> {
    let matches = command()
        .no_binary_name(true)
        .disable_help_flag(true)
        .try_get_matches_from(words)
        .map_err(|error| super::wrong::gist(&error, false))?;
    let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let out_of_place = [
        "pattern",
        "hex",
        "regex",
        "patterns",
        "features",
        "rules",
        "source",
        "files-from",
        "count",
        "histogram",
        "histogram-memory",
        "stop-list",
        "alert-list",
        "context",
        "after-context",
        "before-context",
        "line-context",
        "line-number",
        "only-matching",
        "files-with-matches",
        "fixed-strings",
        "explain",
        "list-engines",
        "format",
        "json",
        "color",
        "quiet",
        "stats",
        "report",
        "max-count",
        "where",
        "to",
        "shard",
        "plan",
        "cluster",
        "unit-size",
        "rate",
    ];
    if let Some(id) = out_of_place.iter().find(|id| is_given(id)) {
        return Err(format!(
            "--{id} is no option of search(…); there are -i, -w, --utf16, --utf16be, --encodings, --xor, \
             --base64, --regex-max-length, --regex-memory, --range, --aligned, --unallocated and those of the machine and of remote sources (a LIMIT ends the search)"
        ));
    }
    read(&matches, Vec::new(), Vec::new())
}

/// Reads every option except patterns, sources and those of units.
fn read(
    matches: &ArgMatches,
    patterns: Vec<PatternArg>,
    sources: Vec<OsString>,
) -> Result<Search, String> {
    let auto_count = |id| super::auto_count(matches, id);
    let paths = |id: &str| matches.get_many::<PathBuf>(id).unwrap_or_default().cloned().collect();
    Ok(Search {
        patterns,
        features: matches
            .get_many::<Vec<&'static Feature>>("features")
            .unwrap_or_default()
            .flatten()
            .copied()
            .collect(),
        rules: paths("rules"),
        scopes: matches.get_one("scopes").copied().unwrap_or_default(),
        rules_bytes_max: matches.get_one("rules-max-size").copied().unwrap_or(SCOPE_BYTES_MAX),
        rules_time_max: matches
            .get_one::<u64>("rules-timeout")
            .map_or(SCOPE_TIME_MAX, |&seconds| Duration::from_secs(seconds)),
        sources,
        files_from: paths("files-from"),
        ignore_case: matches.get_flag("ignore-case"),
        utf16: matches.get_flag("utf16"),
        utf16be: matches.get_flag("utf16be"),
        encodings: matches.get_one("encodings").copied().unwrap_or_default(),
        xor: matches.get_flag("xor"),
        base64: matches.get_flag("base64"),
        count: matches.get_flag("count"),
        histogram: matches.get_flag("histogram"),
        histogram_bytes_max: matches
            .get_one("histogram-memory")
            .copied()
            .unwrap_or(HISTOGRAM_BYTES_MAX),
        stop_lists: paths("stop-list"),
        alert_lists: paths("alert-list"),
        max_count: matches.get_one("max-count").copied(),
        range: matches.get_one("range").cloned().unwrap_or(0..u64::MAX),
        aligned_bytes: matches.get_one("aligned").copied().unwrap_or(1),
        context_bytes: matches.get_one::<u64>("context").copied().unwrap_or(0) as usize,
        locates: matches.get_flag("where"),
        unallocated: matches.get_flag("unallocated"),
        shown: shown(matches),
        words: matches.get_flag("word-regexp"),
        regex_length_bytes_max: matches
            .get_one::<u64>("regex-max-length")
            .copied()
            .unwrap_or(65_536) as usize,
        regex_memory_bytes_max: matches
            .get_one::<u64>("regex-memory")
            .and_then(|&bytes| usize::try_from(bytes).ok())
            .unwrap_or(REGEX_MEMORY_BYTES),
        workers: auto_count("workers"),
        readers: auto_count("readers"),
        buffers: auto_count("buffers"),
        buffer_bytes: auto_count("buffer-size"),
        access: matches.get_one::<Option<Access>>("access").copied().flatten(),
        direct: matches.get_flag("direct"),
        device: matches.get_one("device").copied().unwrap_or_default(),
        engine: *matches.get_one("engine").unwrap_or(&EngineName::Auto),
        explain: matches.get_flag("explain"),
        format: format_of(matches)?,
        quiet: matches.get_flag("quiet"),
        stats: matches.get_one("stats").cloned(),
        report: matches.get_one("report").cloned(),
        cache: CacheArgs::of(matches)?,
        requests: auto_count("requests"),
        units: None,
        line: typed_line(),
    })
}

fn shown(matches: &ArgMatches) -> Shown {
    let lines = |id: &str| matches.get_one::<u64>(id).copied();
    let around = lines("line-context");
    let (before, after) = (lines("before-context"), lines("after-context"));
    Shown {
        lines_before: before.or(around).unwrap_or(0),
        lines_after: after.or(around).unwrap_or(0),
        lines: before.or(after).or(around).is_some(),
        numbered: matches.get_flag("line-number"),
        only_matches: matches.get_flag("only-matching"),
        only_sources: matches.get_flag("files-with-matches"),
    }
}

/// The command line as typed, to show to people: paths in it need not be UTF-8, and URLs are stripped
/// of passwords and signatures, and headers of their values.
pub(super) fn typed_line() -> String {
    shown_line(std::env::args_os())
}

fn shown_line(words: impl Iterator<Item = OsString>) -> String {
    let mut is_header = false;
    let shown = words.map(|word| {
        let word = name::of_path(word);
        let was_header = std::mem::replace(&mut is_header, word == "--header");
        if was_header {
            return header_name(&word);
        }
        match word.strip_prefix("--header=") {
            Some(header) => format!("--header={}", header_name(header)),
            None if is_remote(&word) => redacted(&word),
            None => word,
        }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// A header without its value.
fn header_name(header: &str) -> String {
    header.split_once(':').map_or("…".to_string(), |(name, _)| format!("'{name}: …'"))
}

/// The pattern options in the order of the command line.
fn ordered_patterns(matches: &ArgMatches) -> Vec<PatternArg> {
    let mut all: Vec<(usize, PatternArg)> = Vec::new();
    let mut collect = |id: &str, make: fn(String) -> PatternArg| {
        let values = matches.get_many::<String>(id).unwrap_or_default().cloned();
        let places = matches.indices_of(id).unwrap_or_default();
        all.extend(places.zip(values.map(make)));
    };
    collect("pattern", PatternArg::Text);
    collect("hex", PatternArg::Hex);
    collect("regex", PatternArg::Regex);
    let files = matches.get_many::<PathBuf>("patterns").unwrap_or_default().cloned();
    let places = matches.indices_of("patterns").unwrap_or_default();
    all.extend(places.zip(files.map(PatternArg::File)));
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, pattern)| pattern).collect()
}

fn parse_access(text: &str) -> Result<Option<Access>, String> {
    match text {
        "auto" => Ok(None),
        "window" => Ok(Some(Access::Window)),
        "read" => Ok(Some(Access::Read)),
        "queue" => Ok(Some(Access::Queue)),
        "uring" => Ok(Some(Access::Uring)),
        _ => Err(format!("no access '{text}'; there are: auto, window, read, queue, uring")),
    }
}

const SEARCH_EXAMPLES: &str = "\
Examples:
  quarrier search 'invoice 2026' disk.img
  quarrier search -x 'FF D8 FF ??' --aligned 512 /dev/sdb
  quarrier search -x '50 4B 03 04 [22-] 2E 64 6F 63 ~78' disk.img
  quarrier search -i --utf16 --encodings cp1251,koi8-r 'Счёт' disk.img
  quarrier search -f patterns.txt -c --report run.html image.001
  quarrier search -E '[0-9]{4}-[0-9]{4}' --format json dump.bin | jq .offset
  quarrier search -E '[a-z0-9.]+@[a-z0-9.]+' --histogram disk.img
  quarrier search --features email,card,iban --histogram disk.img
  quarrier search --rules malware.yar --format json disk.img
  quarrier search --rules malware.yar --scopes all disk.img
  zcat image.gz | quarrier search -i --utf16 -e password -
  quarrier search -f patterns.txt --where --format json disk.img
  quarrier search -E '[0-9]{16}' --unallocated --where disk.img
  quarrier search -f patterns.txt --cache fetched https://example.org/disk.img
  quarrier search -f patterns.txt images/ --to found --shard 17/1000
  quarrier search -f patterns.txt images/ --to found --format json

A SOURCE is a file, a folder (all regular files below it, hidden ones too, in
the order of their paths), a block device, '-' for standard input, the first
part of a split image (image.001) or of an EWF image (image.E01), a quoted glob
of its parts ('image.*'), or a URL: https://…, http://…, s3://BUCKET/KEY,
gs://…, az://CONTAINER/KEY (with the usual AWS_…, GOOGLE_… and AZURE_… variables
of the environment); 's3://BUCKET/PREFIX/*' is all objects that match, and
s3://BUCKET/PREFIX/ all below. AFF4 images, virtual disks (qcow2, VMDK, VHD,
VHDX, VDI, DMG) and compressed images (gz, xz, bz2, zst) are recognised by
content, and offsets are those of the disk inside. SOURCE#2 is the second
partition. A pattern file holds one pattern a line: a literal, or hex:…, re:…,
re16:… and re16be:… (regexes over UTF-16), utf16:…, utf16be:…, xor:…,
base64:…; word:… matches text or a regex as a whole word. A name may precede
each, as in 'jpeg = hex:FF D8 FF'; lines that begin with # are comments.

Exit status: 0 found, 1 nothing found, 2 wrong use or failure, 3 part of the
input could not be read (each range is listed), 130 interrupted.";

pub(super) fn command() -> Command {
    Command::new("search")
        .about("Finds every occurrence of patterns in files, disk images and devices")
        .after_help(SEARCH_EXAMPLES)
        .args(pattern_args())
        .args(scope_args())
        .args(rule_args())
        .args(match_args())
        .args(line_args())
        .args(machine_args())
        .args(remote_args())
        .args(units::args())
        .args(output_args())
        .arg(
            Arg::new("source")
                .value_name("[PATTERN] SOURCE")
                .value_parser(value_parser!(OsString))
                .num_args(0..)
                .action(ArgAction::Append)
                .help(
                    "A pattern, unless -e, -x, -E, -f, --features or --rules is given, then the sources",
                ),
        )
}

fn pattern_args() -> Vec<Arg> {
    let repeated = |id: &'static str, short: char, name: &'static str| {
        Arg::new(id)
            .short(short)
            .long(id)
            .value_name(name)
            .action(ArgAction::Append)
            .allow_hyphen_values(true)
            .help_heading("Patterns")
    };
    vec![
        repeated("pattern", 'e', "TEXT").help("A literal: the bytes of this text; repeatable"),
        repeated("hex", 'x', "HEX")
            .help(
                "Hexadecimal; ?? is any byte, ?A and A? are half a byte, ~00 any other byte, \
                 [4], [4-6] and [4-] that many bytes, (A | B) alternatives; repeatable",
            ),
        repeated("regex", 'E', "RE")
            .help("A byte regex; leftmost-first matches that do not overlap; repeatable"),
        repeated("patterns", 'f', "FILE")
            .value_parser(value_parser!(PathBuf))
            .allow_hyphen_values(false)
            .help("A file of patterns, one a line; '-' is standard input; repeatable"),
        flag(
            "ignore-case",
            "Ignore case; in literals, also of letters beyond ASCII (Unicode simple folding)",
        )
            .short('i')
            .help_heading("Patterns"),
        flag("word-regexp", "Match whole words only; not for hex patterns")
            .short('w')
            .help_heading("Patterns"),
        flag("fixed-strings", "Take PATTERN as a literal (the default)")
            .short('F')
            .help_heading("Patterns"),
        flag("utf16", "Search for each literal in UTF-16LE as well").help_heading("Patterns"),
        Arg::new("features")
            .long("features")
            .value_name("LIST|all")
            .action(ArgAction::Append)
            .value_parser(Feature::parse)
            .help(
                "Search with built-in scanners that validate their findings: email, url, domain, ipv4, \
                 ipv6, mac, card, iban, phone, bitcoin, ethereum, jwt, private-key, gps",
            )
            .help_heading("Patterns"),
        flag("utf16be", "Search for each literal in UTF-16BE as well").help_heading("Patterns"),
        Arg::new("encodings")
            .long("encodings")
            .value_name("LIST")
            .value_parser(Encodings::parse)
            .help(
                "Search for each literal in these encodings as well, as far as they have its \
                 characters: cp1251,koi8-r,shift_jis …",
            )
            .help_heading("Patterns"),
        flag("xor", "Search for each literal under XOR with any one byte as well")
            .help_heading("Patterns"),
        flag("base64", "Search for each literal of 3 bytes or more within base64 as well")
            .help_heading("Patterns"),
        Arg::new("regex-max-length")
            .long("regex-max-length")
            .value_name("SIZE")
            .default_value("64K")
            .value_parser(size_in(1..=64 << 20))
            .help(
                "Maximum length of a regex match; a longer match is an error. In the worst case the \
                 cost per byte grows with this length",
            )
            .help_heading("Patterns"),
        Arg::new("regex-memory")
            .long("regex-memory")
            .value_name("SIZE")
            .default_value("512M")
            .value_parser(size_in(1 << 20..=1 << 40))
            .help(
                "Memory for the automata of all regexes. A set that needs more than half of it \
                 before the search is refused; states computed during the search share the rest",
            )
            .help_heading("Patterns"),
    ]
}

fn scope_args() -> Vec<Arg> {
    vec![
        files_from_arg(),
        flag("count", "Print one row a pattern with its number of findings").short('c'),
        flag("files-with-matches", "Print only the names of sources with findings")
            .short('l')
            .conflicts_with("count"),
        Arg::new("max-count")
            .short('m')
            .long("max-count")
            .value_name("N")
            .value_parser(value_parser!(u64).range(1..))
            .help("Stop after N findings"),
        Arg::new("range")
            .long("range")
            .value_name("START..END")
            .value_parser(parse_range)
            .help("Search only these offsets, as if they were the whole source"),
        Arg::new("aligned")
            .long("aligned")
            .value_name("N")
            .value_parser(size_in(1..=u64::MAX))
            .help("Only findings at offsets divisible by N"),
        Arg::new("context")
            .long("context")
            .value_name("N")
            .value_parser(size_in(0..=1 << 20))
            .help("Show N bytes before and after each finding (text and json)"),
        flag(
            "where",
            "Name the file that holds each finding, from the file systems, deleted files too",
        )
        .conflicts_with_all(["count", "files-with-matches", "only-matching"]),
        flag(
            "unallocated",
            "Leave out the bytes of allocated files (ext2 to ext4, XFS, Btrfs, FAT, exFAT, NTFS, \
             HFS+, APFS, ISO 9660): search deleted files, free space, slack, and everything \
             outside of file systems",
        )
        .conflicts_with("line-number"),
    ]
}

fn machine_args() -> Vec<Arg> {
    vec![
        workers_arg("Threads that search"),
        auto("readers", "N|auto", "Threads that only read").value_parser(parse_auto_count),
        auto("buffers", "N|auto", "Maximum number of buffers or windows")
            .value_parser(parse_auto_count),
        auto("buffer-size", "SIZE|auto", "Bytes of a buffer").value_parser(parse_auto_size),
        auto(
            "access",
            "HOW",
            "How bytes reach memory: auto, window (page cache), read, queue, uring",
        )
        .value_parser(parse_access),
        flag("direct", "Bypass the page cache (O_DIRECT)").help_heading("Machine"),
        auto("device", "DEVICE", "Where to search: auto, cpu, gpu, gpu:0 …, all (with the CPU)")
            .value_parser(|text: &str| {
                text.parse::<DeviceChoice>().map_err(|error| error.to_string())
            }),
        auto("engine", "NAME|auto", "Engine for literals and hex patterns").value_parser(
            |text: &str| text.parse::<EngineName>().map_err(|error| error.to_string()),
        ),
        flag("explain", "Print the engine of each pattern, and the reason").help_heading("Machine"),
        flag("list-engines", "List the engines, and whether this machine supports them")
            .help_heading("Machine"),
    ]
}

fn remote_args() -> Vec<Arg> {
    let requests = Arg::new("requests")
        .long("requests")
        .value_name("N|auto")
        .default_value("auto")
        .value_parser(parse_auto_count)
        .help("Maximum number of concurrent requests")
        .help_heading("Remote");
    cache_args().into_iter().chain([requests]).collect()
}

fn output_args() -> Vec<Arg> {
    vec![
        format_arg(),
        json_arg(),
        color_arg(),
        quiet_arg(),
        stats_arg(),
        log_arg(),
        Arg::new("report")
            .long("report")
            .value_name("FILE.html")
            .value_parser(value_parser!(PathBuf))
            .help(
                "Write a page with the load of every stage, the rate, and the positions of \
                   findings",
            )
            .help_heading("Output"),
    ]
}
