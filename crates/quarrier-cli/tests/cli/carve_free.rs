//! `quarrier carve --unallocated` finds deleted files, and leaves out allocated ones.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::carve::{carve, gif, tree};
use crate::harness::{Lab, skip};

/// Runs a system program, which may be in a folder that only root has on its path; returns whether it
/// succeeded.
pub(crate) fn does(lab: &Lab, program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("MTOOLS_SKIP_CHECK", "1");
    command.args(args.iter().map(OsStr::new)).current_dir(lab.path(""));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Pictures of several blocks, and an empty volume `f` of 16 MiB.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.put_sparse("f", 16 << 20, &[]);
    std::fs::create_dir(lab.path("files")).unwrap();
    for name in ["live", "gone", "away"] {
        lab.put(format!("files/{name}.gif"), gif(&name.repeat(3000)));
    }
    lab
}

/// Carving finds `gone` and `away`, and without `--unallocated` `live` too.
fn check(lab: &Lab) {
    let pictures = |folder: &str, args: &[&str]| {
        carve(lab, &[&["f", "-o", folder], args].concat()).is_clean();
        let mut found = tree(&lab.path(folder));
        found.retain(|name, _| name.starts_with("gif/"));
        found.into_values().collect::<Vec<_>>()
    };
    let sorted = |names: &[&str]| {
        let mut pictures: Vec<_> = names.iter().map(|name| gif(&name.repeat(3000))).collect();
        pictures.sort();
        pictures
    };
    let mut all = pictures("all", &[]);
    let mut free = pictures("free", &["--unallocated"]);
    all.sort();
    free.sort();
    assert!(all == sorted(&["live", "gone", "away"]), "{} of all", all.len());
    assert!(free == sorted(&["gone", "away"]), "{} of what is free", free.len());
}

fn ext4() -> Option<Lab> {
    let lab = lab();
    let made = does(&lab, "mke2fs", &["-q", "-F", "-t", "ext4", "-d", "files", "f"]);
    let rm = |name: &str| does(&lab, "debugfs", &["-w", "-R", &format!("rm {name}"), "f"]);
    (made && rm("/gone.gif") && rm("/away.gif")).then_some(lab)
}

#[test]
fn deleted_files_of_ext4_are_found_and_live_ones_are_not() {
    let Some(lab) = ext4() else { return skip("mke2fs or debugfs does not run") };
    check(&lab);
}

#[test]
fn deleted_files_of_fat_are_found_and_live_ones_are_not() {
    let lab = lab();
    let mut made = does(&lab, "mkfs.vfat", &["-F", "16", "f"]);
    for name in ["gone", "live", "away"] {
        made = made && does(&lab, "mcopy", &["-i", "f", &format!("files/{name}.gif"), "::"]);
    }
    if !made || !does(&lab, "mdel", &["-i", "f", "::gone.gif", "::away.gif"]) {
        return skip("mkfs.vfat or mtools do not run");
    }
    check(&lab);
}

#[test]
fn free_space_is_cut_to_the_range_and_reported() {
    let Some(lab) = ext4() else { return skip("mke2fs or debugfs does not run") };
    carve(&lab, &["f", "-o", "out", "--unallocated", "--report", "page.html"]).is_clean();
    let report = String::from_utf8(tree(&lab.path("out"))["report.jsonl"].clone()).unwrap();
    let row: serde_json::Value = serde_json::from_str(report.lines().next().unwrap()).unwrap();
    let offset = row["offset"].as_u64().unwrap();
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("according to ext at byte 0"));
    // The tables before the first file do not belong to a file, either.
    let before = format!("0..{offset}");
    let ran = carve(&lab, &["f", "--dry-run", "--unallocated", "--range", &before]);
    assert_eq!((ran.code, ran.text()), (Some(1), ""), "{}", ran.stderr);
    let from = format!("{offset}..16M");
    let ran = carve(&lab, &["f", "--dry-run", "--unallocated", "--range", &from]);
    assert_eq!(ran.is_clean().lines().len(), 2);
}

#[test]
fn without_a_file_system_carving_of_free_space_refuses() {
    let lab = Lab::with([gif("a"), vec![0; 5000]].concat());
    carve(&lab, &["f", "-o", "out", "--unallocated"]).refuses(&["no file system", "without"]);
    assert!(!lab.path("out").exists());
}

#[test]
fn space_outside_of_file_systems_is_listed_and_carved() {
    let lab = Lab::new();
    // Swap from sector 10, a partition of unknown type from sector 100, and a picture in each.
    let mut disk = vec![0; 400 * 512];
    for (index, kind, start, sectors) in [(0, 0x82, 10u32, 50u32), (1, 0x83, 100, 100)] {
        let entry = 446 + index * 16;
        disk[entry + 4] = kind;
        disk[entry + 8..entry + 12].copy_from_slice(&start.to_le_bytes());
        disk[entry + 12..entry + 16].copy_from_slice(&sectors.to_le_bytes());
    }
    disk[510..512].copy_from_slice(&[0x55, 0xAA]);
    for (sector, text) in [(20, "in swap"), (120, "in a volume"), (300, "outside")] {
        let picture = gif(text);
        disk[sector * 512..sector * 512 + picture.len()].copy_from_slice(&picture);
    }
    lab.put("f", &disk);
    let ran = carve(&lab, &["f", "-o", "out", "--unallocated", "--report", "page.html"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(
        lines,
        [
            "quarrier: f: bytes 5120..30720 count as unallocated: a partition with swap",
            "quarrier: f: bytes 51200..102400 count as unallocated: a partition with an unknown \
             file system",
        ]
    );
    let mut found = tree(&lab.path("out"));
    found.retain(|name, _| name.starts_with("gif/"));
    let all = ["in swap", "in a volume", "outside"].map(gif);
    assert_eq!(found.into_values().collect::<Vec<_>>(), all);
    let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains("a partition with swap") && page.contains("outside of partitions"));
}
