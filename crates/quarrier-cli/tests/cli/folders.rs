//! Folders and lists of names as sources.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::filter::filter;
use crate::harness::{Lab, noise};

/// Puts a file in a folder of the lab.
fn put(lab: &Lab, name: &str, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(lab.path(name).parent().unwrap()).unwrap();
    lab.put(name, bytes);
}

fn sources(lab: &Lab, arguments: &[&str]) -> Vec<(String, u64)> {
    lab.find(arguments).into_iter().map(|row| (row.source, row.offset)).collect()
}

#[test]
fn a_folder_is_all_regular_files_below_it_in_the_order_of_their_paths() {
    let lab = Lab::new();
    for name in ["d/b/needle", "d/a/x/.hidden", "d/a.txt", "d/a-", "d/.h/f", "d/z"] {
        put(&lab, name, "a needle");
    }
    put(&lab, "d/empty", "");
    put(&lab, "outside", "a needle");
    std::os::unix::fs::symlink(lab.path("outside"), lab.path("d/link")).unwrap();
    std::os::unix::fs::symlink(lab.path("d"), lab.path("d/loop")).unwrap();
    let below = ["d/.h/f", "d/a-", "d/a.txt", "d/a/x/.hidden", "d/b/needle", "d/z"];
    let expected = below.map(|name| (name.to_string(), 2));
    assert_eq!(sources(&lab, &["needle", "d"]), expected);
    assert_eq!(sources(&lab, &["needle", "d", "--workers", "1"]), expected);
    // A separate pipeline for each file finds the same.
    assert_eq!(sources(&lab, &["needle", "d", "--buffer-size", "1M"]), expected);
    assert_eq!(sources(&lab, &["needle", "outside", "d/b"]).len(), 2);
    let ran = lab.search(["needle", "d", "-l"]);
    assert_eq!(ran.is_clean().lines(), below);
    fs::create_dir(lab.path("nothing")).unwrap();
    assert_eq!(lab.search(["needle", "nothing"]).code, Some(1));
}

/// The content decides, even for a small file with an unrelated name.
#[test]
fn a_file_that_wraps_a_disk_is_searched_as_the_disk_inside() {
    let lab = Lab::new();
    put(&lab, "d/plain", "a needle");
    put(&lab, "d/packed", "a needle".repeat(100));
    let gzip = std::process::Command::new("gzip").arg("-n").arg(lab.path("d/packed")).status();
    assert!(gzip.unwrap().success());
    fs::rename(lab.path("d/packed.gz"), lab.path("d/packed")).unwrap();
    let found = sources(&lab, &["needle", "d"]);
    assert_eq!(found.len(), 101);
    assert_eq!(found[99], ("d/packed".to_string(), 99 * 8 + 2));
}

#[test]
fn many_files_large_and_small_give_what_each_gives_alone() {
    let lab = Lab::new();
    let mut expected = Vec::new();
    for index in 0..300u64 {
        let length = if index % 50 == 7 { 700_000 } else { 10 * index as usize };
        let mut bytes = noise(length, index);
        if index % 3 == 0 {
            bytes.extend(b"needle\nneedle");
        }
        let name = format!("d/{:02}/{index:03}", index % 7);
        put(&lab, &name, &bytes);
        if index % 3 == 0 {
            expected.extend([(name.clone(), length as u64), (name, length as u64 + 7)]);
        }
    }
    expected.sort();
    for workers in ["1", "2", "5"] {
        assert_eq!(sources(&lab, &["needle", "d", "--workers", workers]), expected);
    }
    assert_eq!(sources(&lab, &["needle", "d", "--max-count", "5"]), expected[..5]);
    let ran = lab.search(["needle", "d", "-c", "--format", "csv", "--stats", "s"]);
    assert_eq!(ran.is_clean().lines()[1], "needle,,200");
    let stats: serde_json::Value =
        serde_json::from_slice(&fs::read(lab.path("s")).unwrap()).unwrap();
    let files = || (0..300u64).map(|i| lab.path(format!("d/{:02}/{i:03}", i % 7)));
    let bytes: u64 = files().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!((stats["bytes"].as_u64(), stats["findings"].as_u64()), (Some(bytes), Some(200)));
    // Lines and regexes see each file as a whole.
    let numbered = lab.search(["-n", "-E", "^needle$", "d", "--format", "json"]);
    assert!(numbered.is_clean().lines().is_empty(), "no file is that word alone");
}

#[test]
fn an_unreadable_file_is_reported_and_the_others_are_searched() {
    let lab = Lab::new();
    put(&lab, "d/a", "needle");
    put(&lab, "d/b", "needle");
    lab.put("list", "d/a\nmissing\nd/b\n");
    let ran = lab.search(["needle", "--files-from", "list", "--format", "json"]);
    ran.says(2, &["missing", "No such file"]);
    assert_eq!(ran.lines().len(), 2);
}

#[test]
fn names_come_from_a_list_as_bytes() {
    let lab = Lab::new();
    let odd = OsStr::from_bytes(b"d/\xFF \n");
    put(&lab, "d/b", "needle");
    lab.put(Path::new(odd), "needle");
    lab.put("p", "needle");
    let found = lab.search_input(b"d/b\0d/\xFF \n\0", ["needle", "--files-from", "-", "-c"]);
    assert_eq!(found.is_clean().text().trim(), "2  needle");
    lab.put("list", "d/b\n\nd/b\n");
    assert_eq!(sources(&lab, &["-f", "p", "--files-from", "list"]).len(), 2);
    assert_eq!(sources(&lab, &["-f", "p", "d", "--files-from", "list"]).len(), 4);
    lab.search(["needle", "--files-from", "none"]).refuses(&["none", "No such file"]);
}

#[test]
fn parts_of_an_image_in_a_folder_are_one_source() {
    let lab = Lab::new();
    put(&lab, "d/i.001", "the nee");
    put(&lab, "d/i.002", "dle is split");
    put(&lab, "d/j", "needle");
    let expected = [("d/i.001".to_string(), 4), ("d/j".to_string(), 0)];
    assert_eq!(sources(&lab, &["needle", "d"]), expected);
}

#[test]
fn messages_are_filtered_in_folders_globs_and_lists_of_names() {
    let lab = Lab::new();
    for (name, n) in [("d/a.ndjson", 1), ("d/x/b.ndjson", 2), ("d/x/.c.ndjson", 3)] {
        put(&lab, name, format!("{{\"n\":{n}}}\n"));
    }
    let matching = |args: &[&str]| {
        let ran = filter(&lab, [&["n > 0"][..], args].concat());
        ran.is_clean().lines().into_iter().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(matching(&["d"]), ["{\"n\":1}", "{\"n\":3}", "{\"n\":2}"]);
    assert_eq!(matching(&["d", "-c"]), ["3"]);
    assert_eq!(matching(&["d/x/b*.ndjson"]).len(), 1);
    lab.put("list", "d/a.ndjson\nd/x/b.ndjson\n");
    assert_eq!(matching(&["--files-from", "list"]).len(), 2);
    assert_eq!(matching(&["d/x/.c.ndjson", "--files-from", "list"]).len(), 3);
}
