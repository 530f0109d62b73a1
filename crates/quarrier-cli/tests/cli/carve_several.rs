//! `quarrier carve` over folders and several sources.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::carve::{carve, gif, image, tree};
use crate::harness::{Lab, Ran, noise, run};

/// A folder `d` with pictures in two of its four files, one of them hidden and compressed.
fn lab() -> Lab {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("d/b/c")).unwrap();
    lab.put("d/a.img", image(20_000, &[(0, &gif("one")), (5001, &gif("two"))]));
    lab.put("d/b/a.img", noise(9000, 3));
    lab.put("d/b/c/.hidden", image(9000, &[(512, &gif("three"))]));
    let packed = Command::new("gzip").arg("-n").arg(lab.path("d/b/c/.hidden")).status();
    assert!(packed.unwrap().success());
    lab.put("d/empty", "");
    lab
}

fn report(lab: &Lab, folder: &str) -> Vec<Value> {
    let text = fs::read_to_string(lab.path(folder).join("report.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn verify(lab: &Lab, folder: &str) -> Ran {
    run(lab.command(["verify", folder]), b"")
}

/// The subfolders, by the names of their sources.
fn parts(lab: &Lab, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut parts: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    parts.sort();
    parts
}

#[test]
fn each_file_of_a_folder_has_what_it_has_alone() {
    let lab = lab();
    let ran = carve(&lab, &["d", "-o", "out"]);
    assert_eq!(ran.is_clean().text(), "gif      3 valid\n");
    let rows = report(&lab, "out");
    let sources: Vec<_> = rows.iter().map(|row| row["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["d/a.img", "d/a.img", "d/b/c/.hidden.gz"]);
    for row in &rows {
        let bytes = fs::read(lab.path("out").join(row["path"].as_str().unwrap())).unwrap();
        assert_eq!(bytes.len() as u64, row["length"].as_u64().unwrap());
    }
    // The other sources hold no files, so they have no subfolder.
    let parts = parts(&lab, "out");
    assert_eq!(parts.len(), 2);
    for (part, source) in parts.iter().zip(["d/a.img", "d/b/c/.hidden.gz"]) {
        let name = part.file_name().unwrap().to_str().unwrap();
        carve(&lab, &[source, "-o", name]).is_clean();
        assert_eq!(tree(part), tree(&lab.path(name)), "{source}");
    }
    assert_eq!(verify(&lab, "out").is_clean().lines(), ["11 files: unchanged"]);
}

#[test]
fn two_runs_and_lists_of_names_give_the_same_bytes() {
    let lab = lab();
    carve(&lab, &["d", "-o", "one"]).is_clean();
    carve(&lab, &["d", "-o", "two", "--workers", "3"]).is_clean();
    assert_eq!(tree(&lab.path("one")), tree(&lab.path("two")));
    lab.put("list", "d/b/a.img\nd/b/c/.hidden.gz\nd/empty\n");
    carve(&lab, &["d/a.img", "--files-from", "list", "-o", "three"]).is_clean();
    assert_eq!(tree(&lab.path("one")), tree(&lab.path("three")));
    carve(&lab, &["d/*.img", "d/a.img", "-o", "four"]).is_clean();
    assert_eq!(report(&lab, "four").len(), 2);
}

#[test]
fn a_dry_run_has_the_rows_of_the_report() {
    let lab = lab();
    carve(&lab, &["d", "-o", "out"]).is_clean();
    let ran = carve(&lab, &["d", "--dry-run", "--format", "json"]);
    let rows: Vec<Value> =
        ran.is_clean().lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows, report(&lab, "out"));
    let ran = carve(&lab, &["d", "--dry-run", "--format", "csv", "--stats", "s"]);
    assert_eq!(ran.is_clean().lines().len(), 4, "one header");
    let stats: Value = serde_json::from_slice(&fs::read(lab.path("s")).unwrap()).unwrap();
    assert_eq!((&stats["findings"], &stats["files"]["valid"]), (&3.into(), &3.into()));
}

#[test]
fn a_failed_source_is_reported_and_retried_by_resume() {
    let lab = lab();
    lab.put("d/b/disk.qcow2", b"QFI\xfb\0\0\0\x09");
    let ran = carve(&lab, &["d", "-o", "out"]);
    ran.says(2, &["disk.qcow2"]);
    assert_eq!(report(&lab, "out").len(), 3);
    assert!(!lab.path("out/case.json").exists());
    carve(&lab, &["d", "-o", "out"]).refuses(&["out", "--resume"]);
    carve(&lab, &["d", "-o", "out", "--resume", "--keep", "valid"]).refuses(&["other options"]);
    lab.put("d/b/disk.qcow2", image(9000, &[(7, &gif("four"))]));
    let ran = carve(&lab, &["d", "-o", "out", "--resume"]);
    assert_eq!(ran.is_clean().text(), "gif      1 valid\n");
    assert_eq!(report(&lab, "out").len(), 4);
    carve(&lab, &["d", "-o", "again"]).is_clean();
    assert_eq!(tree(&lab.path("out")), tree(&lab.path("again")));
    verify(&lab, "out").is_clean();
    carve(&lab, &["d", "-o", "out", "--resume"]).says(0, &["finished already"]);
    // A line that a kill truncated does not count.
    let list = lab.path("out/sources.jsonl");
    let text = fs::read_to_string(&list).unwrap();
    fs::write(&list, &text[..text.len() - 9]).unwrap();
    carve(&lab, &["d", "-o", "out", "--resume"]);
    assert_eq!(tree(&lab.path("out")), tree(&lab.path("again")));
}

#[test]
fn changes_of_any_source_and_output_are_found() {
    let lab = lab();
    carve(&lab, &["d", "-o", "out"]).is_clean();
    lab.put("d/b/a.img", noise(9000, 4));
    let path = report(&lab, "out")[0]["path"].as_str().unwrap().to_string();
    fs::write(lab.path("out").join(&path), "changed").unwrap();
    let ran = verify(&lab, "out");
    assert_eq!(ran.code, Some(1));
    assert!(ran.text().contains(&path) && ran.text().contains("d/b/a.img"), "{}", ran.text());
}

#[test]
fn folders_that_cannot_serve_are_refused() {
    let lab = lab();
    carve(&lab, &["d", "-o", "d/out"]).refuses(&["d/out", "elsewhere"]);
    assert!(!lab.path("d/out").exists());
    fs::create_dir(lab.path("full")).unwrap();
    lab.put("full/x", "x");
    carve(&lab, &["d", "-o", "full"]).refuses(&["full", "not empty"]);
    carve(&lab, &["d", "-o", "full", "--resume"]).refuses(&["full", "not empty"]);
    carve(&lab, &["d", "-o", "out", "--verify"]).refuses(&["--verify"]);
    lab.put("none", "");
    carve(&lab, &["--files-from", "none", "-o", "out"]).refuses(&["no source"]);
    fs::create_dir(lab.path("nothing")).unwrap();
    assert_eq!(carve(&lab, &["nothing", "-o", "out"]).code, Some(1));
}
