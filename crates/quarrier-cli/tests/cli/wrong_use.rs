//! Wrong use: exit code 2, one helpful line, nothing on standard output, no files left.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use crate::harness::{Lab, run, skip};

/// Runs `quarrier search ARGS…` among some files and expects a refusal with these words.
#[track_caller]
fn check<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, words: &[&str]) {
    let lab = Lab::with("xxabcxx");
    lab.put("empty", "");
    lab.put("comments", "# nothing here\n\n");
    lab.put("wrong.txt", "good\n\n# third is a comment\nhex:F\n");
    lab.put("wrong-regex.txt", "num = re:[0-9\n");
    let before = lab.names();
    lab.search(args).refuses(words);
    assert_eq!(lab.names(), before);
}

#[test]
fn a_missing_or_unusable_source_is_refused() {
    check(["a", "missing"], &["missing", "No such file"]);
    check(["a", "/dev/null/x"], &["/dev/null/x", "Not a directory"]);
    check(["a", "/dev/zero"], &["/dev/zero", "character device", "standard input"]);
    check(["a", "*.nothing"], &["*.nothing", "no such file"]);
    check(["a", "[x"], &["[x", "glob"]);
    check(["a", ""], &["No such file"]);
}

#[test]
fn sources_that_this_build_cannot_read_are_refused_by_name() {
    check(["a", "image.Ex01"], &["image.Ex01", "cannot open"]);
    check(["a", "image.E01"], &["image.E01", "cannot open"]);
}

#[test]
fn several_bad_sources_get_a_line_each() {
    let ran = Lab::new().search(["a", "one", "two", "three"]);
    assert_eq!((ran.code, ran.text()), (Some(2), ""));
    let names: Vec<_> =
        ran.stderr.lines().map(|line| &line[..line.rfind(": cannot").unwrap()]).collect();
    assert_eq!(names, ["quarrier: one", "quarrier: two", "quarrier: three"]);
}

#[test]
fn a_file_without_permission_is_refused() {
    let lab = Lab::with("abc");
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&lab.path("f"), 0o000);
    if std::fs::read(lab.path("f")).is_err() {
        return lab.search(["a", "f"]).refuses(&["f: cannot open", "Permission denied"]);
    }
    // Root may read everything, so the binary runs as nobody, in a folder that this user can reach.
    chmod(&lab.path(""), 0o755);
    let as_nobody = |args: &[&str]| {
        let mut command = lab.command(args);
        command.uid(65534).gid(65534);
        command
    };
    if !as_nobody(&["--version"]).output().is_ok_and(|out| out.status.success()) {
        return skip("root may read everything, and nobody may not run the binary");
    }
    run(as_nobody(&["search", "a", "f"]), b"").refuses(&["f: cannot open", "Permission denied"]);
}

#[test]
fn a_missing_pattern_or_source_is_named() {
    let none: [&str; 0] = [];
    check(none, &["no pattern", "quarrier search PATTERN SOURCE"]);
    check(["abc"], &["no source", "standard input"]);
    check(["-e", "abc"], &["no source"]);
    run(Lab::new().command(["serach"]), b"").refuses(&["serach"]);
}

#[test]
fn wrong_hex_is_refused_with_the_place() {
    check(["-x", "F", "f"], &["'F'", "odd number of digits"]);
    check(["-x", "FF D", "f"], &["'FF D'", "odd"]);
    check(["-x", "FF GG", "f"], &["'G'", "character 4"]);
    check(["-x", "F F", "f"], &["split at character"]);
    check(["-x", "", "f"], &["is empty"]);
    check(["-x", "?? ??", "f"], &["wildcards only"]);
}

#[test]
fn an_empty_pattern_is_refused_since_it_is_everywhere() {
    check(["-e", "", "f"], &["is empty", "everywhere"]);
    check(["", "f"], &["is empty"]);
    check(["-E", "", "f"], &["is empty"]);
    check(["-E", "a*", "f"], &["'a*'", "the empty string"]);
    check(["-E", "(?:abc)?", "f"], &["the empty string"]);
    check(["-E", "^", "f"], &["the empty string"]);
}

#[test]
fn a_pattern_file_is_refused_with_its_name_and_line() {
    check(["-f", "missing.txt", "f"], &["missing.txt", "cannot read the patterns"]);
    check(["-f", ".", "f"], &[".: cannot read the patterns"]);
    check(["-f", "empty", "f"], &["empty: has no pattern"]);
    check(["-f", "comments", "f"], &["comments: has no pattern"]);
    check(["-f", "wrong.txt", "f"], &["wrong.txt: line 4", "odd number"]);
    check(["-f", "wrong-regex.txt", "f"], &["'[0-9'", "unclosed"]);
}

#[test]
fn a_pattern_that_is_too_long_is_refused() {
    let most = "a".repeat(1 << 16);
    assert_eq!(Lab::with(&most).offsets(["-e", &most, "f"]), [0]);
    check(["-e", &format!("{most}a"), "f"], &["65537 bytes", "65536 at most"]);
}

#[test]
fn a_regex_that_is_wrong_or_only_matches_too_much_is_refused() {
    check(["-E", "a(b", "f"], &["'a(b'", "unclosed group"]);
    check(["-E", "[z-a]", "f"], &["'[z-a]'"]);
    check(["-E", "a*", "f"], &["'a*'", "the empty string"]);
    check(["-E", "a{70000}", "f"], &["70000", "--regex-max-length"]);
    check(["-E", "a{101}", "--regex-max-length", "100", "f"], &["101", "--regex-max-length"]);
}

#[test]
fn a_regex_match_that_grows_too_long_is_an_error_with_its_offset() {
    let lab = Lab::with([vec![b'-'; 1234], vec![b'a'; 70_000]].concat());
    lab.search(["-E", "a+", "f"]).refuses(&["f: ", "'a+'", "65536 bytes", "1234"]);
    for access in ["window", "read", "queue", "uring"] {
        let sized = ["-E", "a+", "--buffer-size", "4096", "--access", access, "f"];
        lab.search(sized).refuses(&["65536 bytes", "1234"]);
    }
    lab.search_input(&std::fs::read(lab.path("f")).unwrap(), ["-E", "a+", "-"]).refuses(&[
        "-: ",
        "65536 bytes",
        "1234",
    ]);
    let raised = lab.find(["-E", "a+", "--regex-max-length", "70000", "f"]);
    assert_eq!((raised[0].offset, raised[0].length), (1234, 70_000));
}

#[test]
fn a_regex_that_repeats_any_byte_finds_what_is_short_and_ends_where_a_match_is_long() {
    let text = "see http://a.example/x, \"quoted\" \"\"\nb@c aXb\n";
    let lab = Lab::with(text);
    for (regex, found) in [
        ("a.*", &["a.example/x, \"quoted\" \"\"", "aXb"] as &[_]),
        ("http://[^ ]+", &["http://a.example/x,"]),
        ("\"[^\"]*\"", &["\"quoted\"", "\"\""]),
        (r"\S+x", &["http://a.example/x"]),
        (".+@", &["b@"]),
        ("a.*?b", &["aXb"]),
    ] {
        let rows = lab.find(["-E", regex, "f"]);
        let texts: Vec<_> =
            rows.iter().map(|row| &text[row.offset as usize..][..row.length as usize]).collect();
        assert_eq!(texts, found, "{regex}");
    }
    let lab = Lab::with([b"a1\n".to_vec(), vec![b'a'; 70_000]].concat());
    let ran = lab.search(["-E", "a.*", "f"]);
    assert_eq!(ran.says(2, &["'a.*'", "65536 bytes", "offset 3"]).lines(), ["f:0: a.*: a1"]);
}

#[test]
fn a_regex_match_far_over_the_length_limit_is_an_error_with_its_offset() {
    let lab = Lab::with([b"ab-a", &vec![b'x'; 70_000][..], b"b"].concat());
    let ran = lab.search(["-E", "ax*b", "f"]);
    let words = ["f: ", "'ax*b'", "65536 bytes", "offset 3;"];
    assert_eq!(ran.says(2, &words).lines(), ["f:0: ax*b: ab"]);
    // The shorter match is not the preferred one.
    let lab = Lab::with([b"--ab", &vec![b'x'; 300_000][..], b"b"].concat());
    for access in ["window", "read", "queue", "uring"] {
        let sized = ["-E", "(?s)a.*b", "--buffer-size", "4096", "--access", access, "f"];
        let ran = lab.search(sized);
        assert_eq!(ran.says(2, &["65536 bytes", "offset 2;"]).lines(), ["f:2: (?s)a.*b: ab"]);
    }
}

#[test]
fn a_wrong_regex_in_a_pattern_file_is_named_by_file_and_line() {
    let lab = Lab::with("text");
    std::fs::write(lab.path("p"), "fine\nre:(\n").unwrap();
    lab.search(["-f", "p", "f"]).refuses(&["p: line 2", "'('", "unclosed group"]);
}

#[test]
fn the_program_alone_prints_its_help() {
    let ran = run(Lab::with("").command([""; 0]), b"");
    assert_eq!((ran.code, ran.text()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("Usage: quarrier <COMMAND>"), "{ran:?}");
    assert!(ran.stderr.contains("search") && !ran.stderr.starts_with("quarrier:"), "{ran:?}");
}

#[test]
fn as_many_workers_as_may_be_asked_for_find_what_one_does() {
    let lab = Lab::with("ab ".repeat(1000));
    let plain = lab.offsets(["ab", "f"]);
    for access in ["window", "read", "queue", "uring"] {
        let many = ["ab", "f", "--workers", "4096", "--access", access, "--explain"];
        let ran = lab.search(many);
        assert_eq!(ran.code, Some(0), "{access}: {ran:?}");
    }
    assert_eq!(plain.len(), 1000);
}

#[test]
fn findings_before_a_match_that_is_too_long_are_given() {
    let lab = Lab::with(["aa".as_bytes(), &[b'-'; 500], &[b'a'; 900], b"--aa"].concat());
    let ran = lab.search(["-E", "a+", "--regex-max-length", "100", "f"]);
    assert_eq!(ran.says(2, &["100 bytes", "502"]).lines(), ["f:0: a+: aa"]);
}

#[test]
fn values_that_no_option_takes_are_refused() {
    for (option, value, words) in [
        ("--engine", "turbo", &["turbo", "gram"] as &[_]),
        ("--engine", "memmem", &["memmem", "one literal"]),
        ("--format", "xml", &["xml", "json, csv, arrow"]),
        ("--device", "gpu:99", &["gpu"]),
        ("--device", "tpu", &["tpu", "auto, cpu, gpu"]),
        ("--access", "mmap", &["mmap", "window, read, queue, uring"]),
        ("--buffer-size", "4X", &["4X", "4096"]),
        ("--buffer-size", "2G", &["too large"]),
        ("--buffer-size", "-1", &["-1"]),
        ("--workers", "5000", &["auto", "4096"]),
        ("--buffers", "-1", &["-1"]),
        ("--readers", "x", &["'x'"]),
        ("--aligned", "0", &["at least 1"]),
        ("--max-count", "0", &["0"]),
        ("--context", "2M", &["too large"]),
        ("--regex-max-length", "0", &["at least 1"]),
        ("--regex-max-length", "1G", &["too large"]),
        ("--range", "5", &["5", "START..END"]),
        ("--range", "9..5", &["9..5", "ends before it begins"]),
        ("--range", "1X..", &["1X"]),
        ("--range", "8..", &["f: ", "byte 8", "7 bytes"]),
        ("--range", "0xFFFFFFFFFFFFFFFF..", &["7 bytes"]),
        ("--stats", "", &["--stats"]),
    ] {
        check(["-e", "a", "-x", "62", option, value, "f"], words);
    }
    check(["--bogus", "a", "f"], &["--bogus", "--help"]);
    check(["a", "f", "--format"], &["--format"]);
}

#[test]
fn a_range_of_standard_input_is_refused() {
    Lab::new().search_input(b"abc", ["--range", "1..", "b", "-"]).refuses(&["--range"]);
}

#[test]
fn names_that_are_not_utf8_never_panic() {
    let lab = Lab::with("abc");
    let odd = OsStr::from_bytes(b"odd\xFF");
    lab.search([OsStr::new("-f"), odd, OsStr::new("f")]).refuses(&["cannot read the patterns"]);
    let ran = lab.search([OsStr::new("a"), OsStr::new("f"), OsStr::new("--stats"), odd]);
    assert_eq!(ran.is_clean().lines(), ["f:0: a: a"]);
    assert!(lab.path(odd).exists());
}

#[test]
fn a_source_whose_name_is_not_utf8_is_searched() {
    let lab = Lab::new();
    let odd = OsStr::from_bytes(b"odd\xFF");
    lab.put(odd, "abc");
    let ran = lab.search([OsStr::new("b"), odd]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_hostile_name_in_an_error_does_not_reach_the_terminal() {
    check(["a", "no\x1b[31msuch\nfile"], &["no", "such file"]);
    check(["-x", "\x1b[31m", "f"], &["is not a hexadecimal digit"]);
    check(["-E", "\x1b(", "f"], &["unclosed group"]);
}
