//! Carving source by source, with the rows in a folder or a bucket.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::bucket::{Act, Buckets};
use crate::carve::{carve, gif, image, tree};
use crate::harness::{Lab, Ran, noise, run};

/// A folder `d` with pictures in two of its four files.
fn lab() -> Lab {
    let lab = Lab::new();
    fs::create_dir_all(lab.path("d/more")).unwrap();
    lab.put("d/a.img", image(20_000, &[(0, &gif("one")), (5001, &gif("two"))]));
    lab.put("d/b.img", noise(9000, 3));
    lab.put("d/more/c.img", image(9000, &[(512, &gif("three"))]));
    lab.put("d/empty", "");
    lab
}

fn objects(lab: &Lab, folder: &str) -> Vec<PathBuf> {
    let Ok(jobs) = fs::read_dir(lab.path(folder)) else { return Vec::new() };
    let files = jobs.flat_map(|job| fs::read_dir(job.unwrap().path()).unwrap());
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn shards_in_any_order_then_the_join_print_what_a_plain_run_prints() {
    let lab = lab();
    for options in [&[][..], &["--hash", "md5,blake3", "--keep", "valid"]] {
        let to = [&["d", "--to", "rows"][..], options].concat();
        for shard in ["2/3", "0/3", "2/3", "1/3"] {
            let ran = carve(&lab, &[&to[..], &["--shard", shard]].concat());
            assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(0), "", ""));
        }
        for format in ["text", "json", "csv", "arrow"] {
            let plain = ["d", "--dry-run", "--format", format];
            let plain = carve(&lab, &[&plain[..], options].concat());
            let joined = carve(&lab, &[&to[..], &["--format", format]].concat());
            assert_eq!(joined.is_clean().stdout, plain.is_clean().stdout, "{format}");
        }
    }
    let all = objects(&lab, "rows");
    assert_eq!(all.len(), 2 * 4, "two requests with four sources each");
}

#[test]
fn nothing_found_has_the_header_of_a_plain_run() {
    let lab = lab();
    for format in ["json", "csv", "arrow"] {
        let args = ["d/b.img", "--dry-run", "--format", format];
        let plain = carve(&lab, &args);
        assert_eq!(plain.code, Some(1));
        for _ in 0..2 {
            let stored = carve(&lab, &[&args[..], &["--to", "rows"]].concat());
            assert_eq!((stored.code, &stored.stdout), (Some(1), &plain.stdout), "{format}");
        }
    }
}

#[test]
fn a_missing_or_damaged_object_is_carved_again() {
    let lab = lab();
    let args = ["d", "--to", "rows", "--format", "json"];
    let whole = carve(&lab, &args);
    let all = objects(&lab, "rows");
    assert_eq!((whole.is_clean().lines().len(), all.len()), (3, 4));
    fs::remove_file(&all[0]).unwrap();
    fs::write(&all[1], "damaged").unwrap();
    let again = carve(&lab, &args);
    again.says(0, &["is damaged", "carved again"]);
    assert_eq!((&again.stdout, objects(&lab, "rows")), (&whole.stdout, all));
}

#[test]
fn the_files_go_to_the_output_folder_of_the_shard() {
    let lab = lab();
    carve(&lab, &["d", "-o", "plain"]).is_clean();
    for shard in ["0/2", "1/2"] {
        let out = format!("out{}", &shard[..1]);
        let ran = carve(&lab, &["d", "-o", &out, "--to", "rows", "--shard", shard]);
        assert_eq!((ran.code, ran.text()), (Some(0), ""));
    }
    let joined = carve(&lab, &["d", "--to", "rows", "--format", "json"]);
    let rows: Vec<Value> =
        joined.is_clean().lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let path = row["path"].as_str().unwrap();
        let whole = fs::read(lab.path("plain").join(path)).unwrap();
        let of_shard = ["out0", "out1"].map(|out| fs::read(lab.path(out).join(path)).ok());
        assert!(of_shard.into_iter().flatten().eq([whole]), "{path}");
    }
    let halves = ["0/2", "1/2"].map(|shard| {
        let out = format!("half{}", &shard[..1]);
        carve(&lab, &["d", "-o", &out, "--shard", shard, "--format", "json"]).stdout
    });
    let plain = carve(&lab, &["d", "--dry-run", "--format", "json"]).stdout;
    let lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let mut lines: Vec<_> = bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort();
        lines
    };
    assert_eq!(lines(&halves.concat()), lines(&plain));
}

#[test]
fn a_single_source_has_the_rows_and_files_of_a_plain_run() {
    let lab = lab();
    carve(&lab, &["d/a.img", "-o", "plain"]).is_clean();
    // A shard prints no rows.
    let own = carve(&lab, &["d/a.img", "-o", "out", "--to", "rows", "--shard", "0/2"]);
    let other = carve(&lab, &["d/a.img", "--to", "rows", "--shard", "1/2"]);
    for ran in [own, other] {
        assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(0), "", ""));
    }
    assert_eq!(tree(&lab.path("out")), tree(&lab.path("plain")));
    let plain = carve(&lab, &["d/a.img", "--dry-run"]);
    assert_eq!(carve(&lab, &["d/a.img", "--to", "rows"]).is_clean().stdout, plain.stdout);
    let plan = carve(&lab, &["d", "--to", "rows", "--plan", "--rate", "1K", "--format", "json"]);
    let plan: Value = serde_json::from_str(plan.is_clean().text()).unwrap();
    assert_eq!((&plan["units"], &plan["bytes"]), (&4.into(), &38_000.into()));
    assert_eq!(carve(&lab, &["d/b.img", "--to", "rows"]).is_clean().code, Some(1));
    carve(&lab, &["d", "--to", "d/rows"]).refuses(&["d/rows", "is inside d"]);
    carve(&lab, &["d", "--shard", "0/2"]).refuses(&["--output"]);
    carve(&lab, &["d", "--to", "rows", "--report", "r.html"]).refuses(&["--report"]);
}

#[test]
fn sources_and_rows_in_a_bucket_survive_killed_processes_and_lost_responses() {
    let (lab, server) = (lab(), Buckets::new(2));
    for number in 0..6 {
        let bytes = image(300_000, &[(number * 7, &gif("one")), (5001, &gif("two"))]);
        server.put("lab", &format!("case/{number}.dd"), bytes);
    }
    let command = |args: &[&str]| {
        let mut command = lab.command([&["carve"][..], args].concat());
        command.envs(server.settings());
        command
    };
    let far = |args: &[&str]| -> Ran { run(command(args), b"") };
    let plain = far(&["s3://lab/case/*.dd", "--dry-run", "--format", "json"]);
    assert_eq!(plain.is_clean().lines().len(), 12);
    server.plan(|asked| match asked.number % 5 {
        2 => Act::ServeAndCut,
        _ => Act::Serve,
    });
    let args = ["s3://lab/case/*.dd", "--to", "s3://lab/rows"];
    let rows = || server.keys("lab").iter().filter(|key| key.starts_with("rows/")).count();
    let mut shard = command(&[&args[..], &["--shard", "0/1"]].concat());
    let mut child = shard.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while rows() < 2 {
        thread::sleep(Duration::from_millis(1));
    }
    // It may have ended already.
    let _ = child.kill();
    child.wait().unwrap();
    let joined = far(&[&args[..], &["--format", "json"]].concat());
    assert_eq!((joined.code, &joined.stdout), (Some(0), &plain.stdout), "{}", joined.stderr);
    assert_eq!(rows(), 6);
    far(&["s3://lab/", "--to", "s3://lab/rows"]).refuses(&["--to", "s3://lab/"]);
}
