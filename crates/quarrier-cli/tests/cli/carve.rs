//! `quarrier carve`: its output, and its refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Lab, Ran, noise, run};
use crate::remote::Server;

/// A picture of 2 × 2 pixels with `words` in it.
pub(crate) fn gif(words: &str) -> Vec<u8> {
    let mut gif = b"GIF89a\x02\x00\x02\x00\x80\x00\x00\x00\x00\x00\xFF\xFF\xFF".to_vec();
    gif.extend_from_slice(b"\x21\xFE");
    for piece in words.as_bytes().chunks(255) {
        gif.push(piece.len() as u8);
        gif.extend_from_slice(piece);
    }
    gif.extend_from_slice(b"\x00\x2C\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x02\x84\x51\x00\x3B");
    gif
}

/// Noise with `files` at their offsets.
pub(crate) fn image(length: usize, files: &[(usize, &[u8])]) -> Vec<u8> {
    let mut image = noise(length, 8);
    for (at, file) in files {
        image[*at..at + file.len()].copy_from_slice(file);
    }
    image
}

/// A lab with an image `f` of three pictures, one of them broken.
pub(crate) fn lab() -> Lab {
    let mut broken = gif("c");
    *broken.last_mut().unwrap() = 0x77;
    Lab::with(image(100_000, &[(0, &gif("a")), (5001, &gif("b")), (70_000, &broken)]))
}

/// Runs `quarrier carve ARGS…`.
pub(crate) fn carve(lab: &Lab, args: &[&str]) -> Ran {
    let mut command = lab.command(["carve"]);
    command.args(args);
    run(command, b"")
}

/// All files below a folder, with their bytes; except the case file, whose times differ between runs.
pub(crate) fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name() != Some(OsStr::new("case.json")) {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

fn rows(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn files_lie_by_type_and_offset_and_the_reports_tell_of_them() {
    let lab = lab();
    let ran = carve(&lab, &["f", "-o", "out"]);
    assert_eq!(ran.is_clean().text(), "gif      2 valid, 1 partial\n");
    let tree = tree(&lab.path("out"));
    let names: Vec<&str> = tree.keys().map(String::as_str).collect();
    let expected = [
        "gif/000000000000.gif",
        "gif/000000001389.gif",
        "gif/000000011170.gif",
        "report.dfxml",
        "report.jsonl",
    ];
    assert_eq!(names, expected);
    assert_eq!(tree["gif/000000001389.gif"], gif("b"));
    let rows = rows(&tree["report.jsonl"]);
    assert_eq!(rows.len(), 3);
    let keys: Vec<&String> = rows[1].as_object().unwrap().keys().collect();
    let expected =
        ["source", "type", "offset", "length", "extents", "status", "reason", "sha256", "path"];
    assert_eq!(keys, expected);
    assert_eq!(rows[1]["source"], "f");
    assert_eq!(rows[1]["extents"], serde_json::json!([[5001, gif("b").len()]]));
    assert_eq!((&rows[1]["status"], &rows[1]["reason"]), (&"valid".into(), &"".into()));
    assert_eq!(rows[2]["status"], "partial");
    assert!(rows[2]["reason"].as_str().unwrap().contains("at byte"));
    let dfxml = String::from_utf8(tree["report.dfxml"].clone()).unwrap();
    for row in &rows {
        assert!(dfxml.contains(row["path"].as_str().unwrap()));
        assert!(dfxml.contains(row["sha256"].as_str().unwrap()));
    }
}

#[test]
fn two_runs_and_any_number_of_workers_give_the_same_bytes() {
    let lab = lab();
    for (workers, folder) in [("1", "one"), ("2", "two"), ("7", "seven")] {
        carve(&lab, &["f", "-o", folder, "--workers", workers]).is_clean();
        assert_eq!(tree(&lab.path(folder)), tree(&lab.path("one")), "{workers} workers");
    }
}

#[test]
fn a_dry_run_writes_nothing_and_prints_the_rows_of_the_report() {
    let lab = lab();
    carve(&lab, &["f", "-o", "out"]).is_clean();
    let report = fs::read_to_string(lab.path("out").join("report.jsonl")).unwrap();
    let before = lab.names();
    for args in [&["f", "--dry-run"][..], &["f", "--dry-run", "-o", "other"]] {
        let ran = carve(&lab, &[args, &["--format", "json"]].concat());
        // Rows are in the order of discovery, with broken files at the end.
        let sorted = |text: &str| text.lines().map(str::to_string).collect::<BTreeSet<_>>();
        assert_eq!(sorted(ran.is_clean().text()), sorted(&report));
        assert_eq!(ran.lines().len(), 3);
    }
    let ran = carve(&lab, &["f", "--dry-run"]);
    assert!(ran.text().starts_with("000000000000  gif"), "{}", ran.text());
    for format in ["csv", "arrow"] {
        assert!(!carve(&lab, &["f", "--dry-run", "--format", format]).stdout.is_empty());
    }
    assert_eq!(lab.names(), before);
}

#[test]
fn the_types_to_write_can_be_chosen() {
    let lab = lab();
    let written = |args: &[&str]| {
        let folder = tempfile::tempdir_in(lab.path("")).unwrap();
        let out = folder.path().to_str().unwrap();
        let ran = carve(&lab, &[&["f", "-o", out], args].concat());
        let mut names: Vec<String> = tree(folder.path()).into_keys().collect();
        names.retain(|name| name.starts_with("gif/"));
        assert_eq!(ran.code, Some(i32::from(names.is_empty())));
        names.len()
    };
    assert_eq!(written(&["--keep", "valid"]), 2);
    assert_eq!(written(&["--types", "gif"]), 3);
    assert_eq!(written(&["--range", "1..50000"]), 1);
    assert_eq!(written(&["--range", "10..5000"]), 0);
    assert_eq!(written(&["--max-size", "20"]), 3);
    carve(&lab, &["f", "-o", "x", "--types", "no-such"]).refuses(&["no-such", "gif"]);
    assert!(!lab.names().contains("x"));
}

#[test]
fn a_url_is_carved_like_its_file() {
    let lab = lab();
    let server = Server::well(std::fs::read(lab.path("f")).unwrap());
    carve(&lab, &["f", "-o", "of_file"]).is_clean();
    carve(&lab, &[&server.url, "-o", "of_url"]).is_clean();
    let pictures = |folder: &str| {
        let mut files = tree(&lab.path(folder));
        files.retain(|name, _| name.starts_with("gif/"));
        files
    };
    assert_eq!(pictures("of_url").len(), 3);
    assert!(pictures("of_url") == pictures("of_file"));
}

#[test]
fn a_nonempty_folder_is_refused_and_left_unchanged() {
    let lab = lab();
    fs::create_dir(lab.path("mine")).unwrap();
    lab.put("mine/letter", "dear");
    carve(&lab, &["f", "-o", "mine"]).refuses(&["mine", "not empty", "letter"]);
    carve(&lab, &["f", "-o", "mine", "--resume"]).refuses(&["mine", "not empty"]);
    assert_eq!(tree(&lab.path("mine")).len(), 1);
    carve(&lab, &["f", "-o", "f"]).refuses(&["f: ", "irectory"]);
    carve(&lab, &["f", "-o", "no/such/place"]).refuses(&["no/such/place", "No such file"]);
    carve(&lab, &["f"]).refuses(&["--output"]);
    fs::create_dir(lab.path("empty")).unwrap();
    carve(&lab, &["f", "-o", "empty"]).is_clean();
}

#[test]
fn sources_that_cannot_be_carved_are_reported() {
    let lab = lab();
    carve(&lab, &["-", "-o", "out"]).refuses(&["-: ", "sequentially"]);
    carve(&lab, &["missing", "-o", "out"]).refuses(&["missing", "No such file"]);
    carve(&lab, &["f", "-o", "out", "--range", "200000.."]).refuses(&["100000 bytes"]);
    assert!(!lab.names().contains("out"));
    carve(&lab, &["f", "-o", "out", "--stats", "f"]).refuses(&["f", "overwritten"]);
}

#[test]
fn a_split_image_is_one_source() {
    let lab = Lab::new();
    let whole = image(60_000, &[(29_990, &gif("across"))]);
    lab.put("i.001", &whole[..30_000]);
    lab.put("i.002", &whole[30_000..]);
    carve(&lab, &["i.001", "-o", "out"]).is_clean();
    assert_eq!(tree(&lab.path("out"))["gif/000000007526.gif"], gif("across"));
}

#[test]
fn the_statistics_have_the_fields_of_every_command() {
    let lab = lab();
    carve(&lab, &["f", "-o", "out", "--stats", "stats"]).is_clean();
    let stats: Value = serde_json::from_slice(&fs::read(lab.path("stats")).unwrap()).unwrap();
    assert_eq!((&stats["command"], &stats["bytes"]), (&"carve".into(), &100_000.into()));
    assert_eq!(stats["findings"], 3);
    assert_eq!(stats["files"]["valid"], 2);
    for stage in ["read", "work", "sink"] {
        assert!(stats["stages"][stage]["busy_seconds"].is_number(), "{stage}");
    }
    assert!(["read", "work", "sink"].contains(&stats["limited_by"].as_str().unwrap()));
}

/// `content` as gzip, stored, with a name.
fn gz(content: &[u8]) -> Vec<u8> {
    let mut sum = !0u32;
    for byte in content {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(sum & 1));
        }
    }
    let length = content.len() as u16;
    let mut gz = b"\x1F\x8B\x08\x08\0\0\0\0\0\x03../a\0\x01".to_vec();
    gz.extend_from_slice(&length.to_le_bytes());
    gz.extend_from_slice(&(!length).to_le_bytes());
    gz.extend_from_slice(content);
    gz.extend_from_slice(&(!sum).to_le_bytes());
    gz.extend_from_slice(&u32::from(length).to_le_bytes());
    gz
}

#[test]
fn archive_members_are_written_on_request_and_names_never_become_paths() {
    let packed = gz(&gif("inside"));
    let lab = Lab::with(image(20_000, &[(0x1000, &packed), (9000, &gif("beside"))]));
    carve(&lab, &["f", "-o", "plain"]).is_clean();
    assert_eq!(tree(&lab.path("plain")).len(), 4);
    carve(&lab, &["f", "-o", "all", "--embedded"]).is_clean();
    let all = tree(&lab.path("all"));
    assert_eq!(all["gif/000000001000-1.gif"], gif("inside"));
    assert_eq!(all.len(), 5);
    let rows = rows(&all["report.jsonl"]);
    let inside = rows.iter().find(|row| row["container"].is_string()).unwrap();
    assert!(inside["container"].as_str().unwrap().starts_with("gz@0x1000!"), "{inside}");
    assert_eq!(inside["length"], gif("inside").len());
    assert_eq!(lab.names().len(), 3);
    carve(&lab, &["f", "-o", "again", "--embedded", "--workers", "5"]).is_clean();
    assert!(tree(&lab.path("again")) == all);
    // The files around them may be unwanted.
    carve(&lab, &["f", "-o", "gifs", "--embedded", "--types", "gif"]).is_clean();
    let gifs = tree(&lab.path("gifs"));
    assert_eq!(gifs.len(), 4);
    assert!(gifs.contains_key("gif/000000001000-1.gif"));
}

#[test]
fn signatures_of_the_user_s_own_are_looked_for() {
    let lab = Lab::with(image(20_000, &[(777, b"\xAC\xBE\x01\x02 the text\xED\xED\xFE")]));
    let toml = "[[signature]]\nname = \"acme\"\nheader = \"AC BE 01 02\"\n\
                footer = \"ED ED FE\"\nmax_size = 1000\n";
    lab.put("own.toml", toml);
    carve(&lab, &["f", "-o", "out", "--signatures", "own.toml", "--types", "acme"]).is_clean();
    assert_eq!(tree(&lab.path("out"))["acme/000000000309.acme"].len(), 16);
    lab.put("bad.toml", "[[signature]]\nname = 7\n");
    carve(&lab, &["f", "-o", "no", "--signatures", "bad.toml"]).refuses(&["bad.toml", "line 2"]);
    carve(&lab, &["f", "-o", "no", "--signatures", "none"]).refuses(&["none", "No such file"]);
}

#[test]
fn the_page_loads_nothing_and_names_in_it_are_text() {
    let lab = Lab::new();
    let name = "<img src=x onerror=alert(1)>";
    lab.put(name, image(50_000, &[(512, &gif("a")), (9000, &gif("b"))]));
    carve(&lab, &[name, "-o", "out", "--report", "page.html"]).is_clean();
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(!page.contains(name));
    assert!(page.contains("&lt;img src=x"));
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("src=\"data:image/gif;base64,R0lGODlh"));
    assert!(page.contains("href=\"out/gif/000000000200.gif\""));
    for outside in ["http:", "https:", "src=\"/", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    carve(&lab, &[name, "--dry-run", "--report", "dry.html"]);
    assert!(fs::read_to_string(lab.path("dry.html")).unwrap().contains("000000000200"));
    carve(&lab, &[name, "-o", "x", "--report", name]).refuses(&["overwritten"]);
}
