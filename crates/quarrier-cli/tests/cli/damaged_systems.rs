//! Every command that reads a partly unreadable file system reports it, by the same line and by the exit
//! code.

use crate::carve_free::does;
use crate::harness::{Lab, run, skip};

/// Makes a FAT volume `f` with a folder whose clusters are lost, and `sound`, the same volume without
/// damage; `None` if the programs for that are missing.
fn lab() -> Option<Lab> {
    let lab = Lab::new();
    lab.put_sparse("f", 16 << 20, &[]);
    std::fs::create_dir_all(lab.path("files/docs")).unwrap();
    lab.put("files/a.txt", "alpha".repeat(1000));
    lab.put("files/docs/b.txt", "beta".repeat(1000));
    let mut made = does(&lab, "mkfs.vfat", &["-F", "16", "f"]);
    for name in ["files/a.txt", "files/docs"] {
        made = made && does(&lab, "mcopy", &["-s", "-i", "f", name, "::"]);
    }
    if !made {
        return None;
    }
    let mut image = std::fs::read(lab.path("f")).unwrap();
    lab.put("sound", &image);
    let slot = image.windows(12).position(|bytes| bytes == b"DOCS       \x10").unwrap();
    image[slot + 26..slot + 28].copy_from_slice(&[0xF0, 0xFF]);
    lab.put("f", &image);
    lab.put("r.yar", "rule r { strings: $a = \"alpha\" condition: $a }");
    Some(lab)
}

#[test]
fn every_command_reports_a_partly_unreadable_file_system() {
    let Some(lab) = lab() else { return skip("mkfs.vfat or mtools do not run") };
    let listed = run(lab.command(["files", "f"]), b"");
    listed.says(3, &["quarrier: f: /docs: "]);
    let line = listed.stderr.trim_end();
    let commands: [&[&str]; 7] = [
        &["search", "alpha", "--where"],
        &["search", "no such string", "--where"],
        &["search", "alpha", "--unallocated"],
        &["search", "alpha", "--unallocated", "--where"],
        &["search", "--rules", "r.yar"],
        &["carve", "--dry-run", "--where"],
        &["carve", "--dry-run", "--unallocated"],
    ];
    for command in commands {
        let ran = run(lab.command(command.iter().chain(&["f"])), b"");
        ran.says(3, &[line]);
        let ran = run(lab.command(command.iter().chain(&["sound"])), b"");
        assert!(matches!(ran.code, Some(0 | 1)) && ran.stderr.is_empty(), "{command:?}: {ran:?}");
    }
    let several = run(lab.command(["carve", "sound", "f", "--dry-run", "--where"]), b"");
    several.says(3, &[line]);
}

#[test]
fn a_source_without_a_file_system_is_not_damaged() {
    let lab = Lab::with("alpha");
    let ran = run(lab.command(["search", "alpha", "f", "--where"]), b"");
    ran.says(0, &["f: ", "no file system that quarrier can read"]);
}
