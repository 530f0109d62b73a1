//! `quarrier carve --resume`: after a kill, a full disk, Ctrl-C; and when it refuses.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::carve::{carve, gif, lab, tree};
use crate::carve_free::does;
use crate::harness::{Lab, Ran, drain, noise, run, skip, wait, works};

/// An image of several strides, mostly holes, with many pictures, some of them broken.
fn large() -> Lab {
    let lab = Lab::new();
    lab.put_sparse("f", 5 << 28, &[]);
    let file = fs::OpenOptions::new().write(true).open(lab.path("f")).unwrap();
    for number in 0u64..900 {
        let mut picture = gif(&format!("{number} ").repeat(200 + number as usize % 60));
        if number % 50 == 7 {
            *picture.last_mut().unwrap() = 0x77;
        }
        file.write_all_at(&picture, number * 1_400_000 + number % 3).unwrap();
    }
    lab
}

/// The result of an undisturbed run.
fn undisturbed(lab: &Lab) -> std::collections::BTreeMap<String, Vec<u8>> {
    assert_eq!(carve(lab, &["f", "-o", "whole"]).code, Some(0));
    tree(&lab.path("whole"))
}

#[test]
fn whenever_it_is_killed_the_next_run_ends_as_an_undisturbed_one() {
    let lab = large();
    let expected = undisturbed(&lab);
    assert_eq!(expected.len(), 902);
    let delays = noise(64, 5);
    let mut kills = 0;
    for round in 0..4 {
        let folder = format!("killed-{round}");
        for delay in &delays[round * 12..][..12] {
            let args = ["carve", "f", "-o", &folder, "--resume"];
            let mut child =
                lab.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            thread::sleep(Duration::from_micros(u64::from(*delay) * 1500));
            if child.try_wait().unwrap().is_none() {
                kills += 1;
            }
            let _ = child.kill();
            child.wait().unwrap();
        }
        let ran = carve(&lab, &["f", "-o", &folder, "--resume"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(tree(&lab.path(&folder)) == expected, "{folder} differs");
    }
    assert!(kills > 0, "no run was slow enough to be killed");
}

/// A folder after a kill: files are written, the reports are not.
fn begun(lab: &Lab, folder: &str) -> PathBuf {
    begun_with(lab, folder, &[])
}

fn begun_with(lab: &Lab, folder: &str, options: &[&str]) -> PathBuf {
    let path = lab.path(folder);
    for delay in 1.. {
        let _ = fs::remove_dir_all(&path);
        let args = [&["carve", "f", "-o", folder], options].concat();
        let mut child =
            lab.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        let journal = fs::read_to_string(path.join(".carving/journal")).unwrap_or_default();
        let files = journal.lines().filter(|line| line.get(17..18) == Some("F")).count();
        if files > 20 && !path.join("report.jsonl").exists() {
            return path;
        }
        assert!(delay < 2000, "it cannot be caught at work");
    }
    path
}

#[test]
fn files_in_the_folder_count_only_if_their_hash_is_right() {
    let lab = large();
    let expected = undisturbed(&lab);
    let folder = begun(&lab, "out");
    let mut files: Vec<_> = fs::read_dir(folder.join("gif")).unwrap().map(Result::unwrap).collect();
    files.sort_by_key(fs::DirEntry::file_name);
    let paths: Vec<_> = files.iter().map(fs::DirEntry::path).collect();
    fs::write(&paths[0], "not a picture").unwrap();
    fs::remove_file(&paths[1]).unwrap();
    let mut bytes = fs::read(&paths[2]).unwrap();
    bytes[30] ^= 1;
    fs::write(&paths[2], bytes).unwrap();
    let elsewhere = lab.path("elsewhere");
    fs::rename(&paths[3], &elsewhere).unwrap();
    symlink(&elsewhere, &paths[3]).unwrap();
    let kept = fs::read(&elsewhere).unwrap();
    assert_eq!(carve(&lab, &["f", "-o", "out", "--resume"]).code, Some(0));
    assert!(tree(&folder) == expected);
    assert!(!fs::symlink_metadata(&paths[3]).unwrap().is_symlink());
    assert_eq!(fs::read(&elsewhere).unwrap(), kept);
}

#[test]
fn a_torn_or_changed_journal_is_valid_up_to_the_damage() {
    let lab = large();
    let expected = undisturbed(&lab);
    for (round, damage) in ["torn", "flipped", "appended", "empty"].into_iter().enumerate() {
        let name = format!("out-{round}");
        let folder = begun(&lab, &name);
        let journal = folder.join(".carving/journal");
        let mut bytes = fs::read(&journal).unwrap();
        match damage {
            "torn" => bytes.truncate(bytes.len() - 7),
            "flipped" => *bytes.iter_mut().rev().nth(900).unwrap() ^= 1,
            "appended" => bytes.extend_from_slice(b"0123456789abcdef F {}\n\xff\xfe"),
            _ => bytes.clear(),
        }
        fs::write(&journal, bytes).unwrap();
        let ran = carve(&lab, &["f", "-o", &name, "--resume"]);
        if damage == "empty" {
            // The bytes there are no longer readable.
            ran.refuses(&["out-3", "journal of the interrupted run cannot be read"]);
        } else {
            assert_eq!(ran.code, Some(0), "{damage}: {ran:?}");
            assert!(tree(&folder) == expected, "{damage}");
        }
    }
}

/// Writes a file of one cluster into an empty FAT32 volume: its entry in the root folder, and the end of
/// its chain.
fn file_of_a_cluster(volume: &fs::File, cluster: u16) -> [(u64, Vec<u8>); 2] {
    let mut boot = [0; 64];
    volume.read_exact_at(&mut boot, 0).unwrap();
    let short = |at: usize| u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let table_sectors = u64::from(u32::from_le_bytes(*boot[36..].first_chunk().unwrap()));
    let (sector_bytes, reserved) = (short(11), short(14));
    let root = (reserved + u64::from(boot[16]) * table_sectors) * sector_bytes;
    let mut entry = b"A       BIN \0".to_vec();
    entry.resize(32, 0);
    entry[26..28].copy_from_slice(&cluster.to_le_bytes());
    entry[28] = 1;
    let chain = reserved * sector_bytes + 4 * u64::from(cluster);
    [(root, entry), (chain, vec![0xFF, 0xFF, 0xFF, 0x0F])]
}

#[test]
fn a_run_resumes_only_with_the_same_free_ranges() {
    let lab = large();
    if !does(&lab, "mkfs.vfat", &["-F", "32", "f"]) {
        return skip("mkfs.vfat does not run");
    }
    let folder = begun_with(&lab, "out", &["--unallocated"]);
    carve(&lab, &["f", "-o", "out", "--resume"]).refuses(&["other options"]);
    let file = fs::OpenOptions::new().read(true).write(true).open(lab.path("f")).unwrap();
    // For a moment the volume has a file of one cluster.
    let places = file_of_a_cluster(&file, 9000);
    let before = places.clone().map(|(at, bytes)| {
        let mut old = vec![0; bytes.len()];
        file.read_exact_at(&mut old, at).unwrap();
        (at, old)
    });
    places.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    carve(&lab, &["f", "-o", "out", "--resume", "--unallocated"]).refuses(&["other options"]);
    before.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    let ran = carve(&lab, &["f", "-o", "out", "--resume", "--unallocated"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    carve(&lab, &["f", "-o", "whole", "--unallocated"]).is_clean();
    assert!(tree(&folder) == tree(&lab.path("whole")));
}

#[test]
fn a_run_resumes_only_over_the_same_source_with_the_same_options() {
    let lab = large();
    let folder = begun(&lab, "out");
    carve(&lab, &["f", "-o", "out"]).refuses(&["out", "--resume"]);
    carve(&lab, &["f", "-o", "out", "--resume", "--keep", "valid"]).refuses(&["other options"]);
    fs::hard_link(lab.path("f"), lab.path("g")).unwrap();
    carve(&lab, &["g", "-o", "out", "--resume"]).refuses(&["another source", "\"f\"", "\"g\""]);
    let file = fs::OpenOptions::new().write(true).open(lab.path("f")).unwrap();
    file.write_all_at(b"x", 100).unwrap();
    carve(&lab, &["f", "-o", "out", "--resume"]).refuses(&["other bytes"]);
    file.set_len(5 << 30).unwrap();
    carve(&lab, &["f", "-o", "out", "--resume"]).refuses(&["another length"]);
    assert!(!folder.join("report.jsonl").exists());
}

#[test]
fn a_finished_folder_is_left_unchanged() {
    let lab = lab();
    carve(&lab, &["f", "-o", "out", "--resume"]).is_clean();
    let before = tree(&lab.path("out"));
    assert_eq!(
        carve(&lab, &["f", "-o", "out", "--resume"]).says(0, &["out", "finished"]).text(),
        ""
    );
    assert!(tree(&lab.path("out")) == before);
}

#[test]
fn links_in_the_folder_lead_nowhere() {
    let lab = large();
    let outside = lab.path("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["gif", ".carving"] {
        let folder = begun(&lab, "out");
        fs::rename(folder.join(name), folder.join("moved")).unwrap();
        symlink(&outside, folder.join(name)).unwrap();
        carve(&lab, &["f", "-o", "out", "--resume"]).says(2, &["out", "irectory"]);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{name}");
    }
    // A report is replaced, not overwritten in place.
    let folder = begun(&lab, "out");
    lab.put("mine", "dear");
    symlink(lab.path("mine"), folder.join("report.jsonl")).unwrap();
    assert_eq!(carve(&lab, &["f", "-o", "out", "--resume"]).code, Some(0));
    assert_eq!(fs::read(lab.path("mine")).unwrap(), b"dear");
    assert!(!fs::symlink_metadata(folder.join("report.jsonl")).unwrap().is_symlink());
}

/// A small file system, unmounted on drop.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: &Path, size: &str) -> Option<Self> {
        fs::create_dir(path).ok()?;
        let size = format!("size={size}");
        let options = ["-t", "tmpfs", "-o", &size, "none"].map(OsStr::new);
        works("mount", &[&options[..], &[path.as_os_str()]].concat())
            .then(|| Disk(path.to_path_buf()))
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(works(
            "mount",
            &["-o", &options]
                .map(OsStr::new)
                .into_iter()
                .chain([self.0.as_os_str()])
                .collect::<Vec<_>>()
        ));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        works("umount", &[self.0.as_os_str()]);
    }
}

#[test]
fn on_a_full_disk_the_report_is_true_and_with_more_space_the_run_resumes() {
    let lab = large();
    let expected = undisturbed(&lab);
    let Some(disk) = Disk::mount(&lab.path("disk"), "900k") else {
        return skip("a tmpfs cannot be mounted here");
    };
    for size in ["900k", "2m", "3m"] {
        disk.resize(size);
        let ran = carve(&lab, &["f", "-o", "disk/out", "--resume"]);
        ran.says(2, &["disk/out", "No space left", "report.jsonl", "--resume"]);
        check_report(&disk.0.join("out"));
    }
    disk.resize("64m");
    assert_eq!(carve(&lab, &["f", "-o", "disk/out", "--resume"]).code, Some(0));
    assert!(tree(&disk.0.join("out")) == expected);
}

/// Checks that every row's file exists, and every file has its row.
fn check_report(folder: &Path) {
    let report = fs::read_to_string(folder.join("report.jsonl")).unwrap();
    let mut named: Vec<String> = Vec::new();
    for line in report.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let path = row["path"].as_str().unwrap();
        assert_eq!(fs::metadata(folder.join(path)).unwrap().len(), row["length"]);
        named.push(path.to_string());
    }
    assert!(!named.is_empty());
    let found: Vec<String> =
        tree(folder).into_keys().filter(|name| name.starts_with("gif/")).collect();
    named.sort();
    assert_eq!(named, found);
}

#[test]
fn ctrl_c_leaves_whole_files_and_a_report_of_them() {
    let lab = large();
    let expected = undisturbed(&lab);
    for delay in [5, 15, 30, 60, 120] {
        let folder = format!("stopped-{delay}");
        let mut command = lab.command(["carve", "f", "-o", &folder]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_millis(delay));
        works("kill", &[OsStr::new("-INT"), OsStr::new(&child.id().to_string())]);
        let (out, err) = (drain(child.stdout.take().unwrap()), drain(child.stderr.take().unwrap()));
        let ran = Ran::new(wait(&mut child), out, &err);
        // Until its handlers are installed, a signal kills the process; nothing has begun then.
        if ran.code == Some(130) && lab.path(&folder).join("report.jsonl").exists() {
            ran.says(130, &["f: interrupted", "--resume"]);
            if fs::metadata(lab.path(&folder).join("report.jsonl")).unwrap().len() > 0 {
                check_report(&lab.path(&folder));
            }
        }
        let ran = carve(&lab, &["f", "-o", &folder, "--resume"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(tree(&lab.path(&folder)) == expected, "stopped after {delay} ms");
    }
}

#[test]
fn only_one_process_carves_into_a_folder() {
    let lab = large();
    let folder = begun(&lab, "out");
    let journal = fs::File::open(folder.join(".carving/journal")).unwrap();
    journal.lock().unwrap();
    carve(&lab, &["f", "-o", "out", "--resume"]).refuses(&["another process"]);
    journal.unlock().unwrap();
    assert_eq!(carve(&lab, &["f", "-o", "out", "--resume"]).code, Some(0));
}

#[test]
fn a_closed_pipe_leaves_the_files_written() {
    let lab = lab();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = lab.command(["carve", "f", "-o", "out", "--format", "json"]);
    let mut child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = drain(child.stderr.take().unwrap());
    let ran = Ran::new(wait(&mut child), Vec::new(), &stderr);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(tree(&lab.path("out")).len(), 5);
    let dry = run(lab.command(["carve", "f", "--dry-run", "--format", "json"]), b"");
    assert_eq!(dry.code, Some(0));
}
