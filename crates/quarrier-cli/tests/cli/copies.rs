//! `quarrier reindex --restore`: a data folder made of the copy of its log.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier::kept::{DataFolder, KeptLoad};
use quarrier::{Environment, OpenOptions, Opener, Sources};

use crate::bucket::{Act, Buckets, SECRET};
use crate::harness::{Lab, run};

fn orders(count: u64) -> String {
    (0..count).map(|number| format!("{{\"n\":{number}}}\n")).collect()
}

/// Loads messages, and copies the log to a place.
fn copied(lab: &Lab, environment: &Environment, to: &str) {
    lab.put("f.ndjson", orders(500));
    let stop: Arc<AtomicBool> = Arc::default();
    let opener = Opener::new(OpenOptions::default(), environment, &stop);
    let kept = DataFolder::open_with(&lab.path("d"), 1 << 20).unwrap();
    kept.copy_to(opener.copy_place(to.as_ref()).unwrap(), |_| {}).unwrap();
    let sources = Sources::of([lab.path("f.ndjson")]);
    KeptLoad::new("t").run(&kept, &sources, &opener, &stop, &mut ()).unwrap();
    assert_eq!(kept.finish_copy(Duration::from_secs(60)), None);
    kept.close().unwrap();
}

#[test]
fn a_folder_is_restored_from_a_folder() {
    let lab = Lab::new();
    let copy = lab.path("copy").display().to_string();
    copied(&lab, &Environment::default(), &copy);
    fs::remove_dir_all(lab.path("d")).unwrap();
    let restore = ["reindex", "--data", "d", "--restore", "copy"];
    let ran = run(lab.command(restore), b"");
    ran.says(0, &["d: restored up to mark 500 from copy/: 1 table, ", " of 1 segment"]);
    assert!(ran.text().starts_with("t: 500 messages, "), "{ran:?}");
    let ran = run(lab.command(["filter", "n >= 0", "-c", "--data", "d", "t"]), b"");
    assert_eq!(ran.text(), "500\n", "{ran:?}");
    run(lab.command(restore), b"").refuses(&["d: is not empty", "restore into a new folder"]);
    // The same file is not loaded again.
    let ran = run(lab.command(["load", "--data", "d", "--table", "t", "f.ndjson"]), b"");
    assert!(ran.text().starts_with("t: 0 messages"), "{ran:?}");
}

#[test]
fn wrong_copies_are_refused_without_a_trace() {
    let lab = Lab::new();
    let copy = lab.path("copy").display().to_string();
    copied(&lab, &Environment::default(), &copy);
    let parts = fs::read_dir(lab.path("copy/tail")).unwrap();
    let part = parts.map(|it| it.unwrap().path()).max().unwrap();
    let mut bytes = fs::read(&part).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&part, bytes).unwrap();
    let restore =
        |from: &str| run(lab.command(["reindex", "--data", "new", "--restore", from]), b"");
    restore("copy").refuses(&["copy/: tail/", "do not match its checksum"]);
    restore("nowhere").refuses(&["nowhere/: has no copy of a log"]);
    restore("https://127.0.0.1/x").refuses(&["a folder or a bucket"]);
    assert!(!lab.path("new").exists());
}

#[test]
fn a_folder_is_restored_from_a_bucket_that_fails_now_and_then() {
    let (lab, buckets) = (Lab::new(), Buckets::new(2));
    buckets.plan(|asked| match asked.number % 5 {
        1 => Act::Status(503),
        3 => Act::ServeAndCut,
        _ => Act::Serve,
    });
    copied(&lab, &Environment::of_variables(buckets.settings()), "s3://lab/copy");
    let restore = || {
        let mut command = lab.command(["reindex", "--data", "new", "--restore", "s3://lab/copy"]);
        command.envs(buckets.settings());
        run(command, b"")
    };
    buckets.plan(|asked| match asked.is_listing() {
        true => Act::Serve,
        false => Act::Status(403),
    });
    let ran = restore();
    ran.refuses(&["s3://lab/copy/"]);
    assert!(!ran.stderr.contains(SECRET), "{ran:?}");
    assert!(!lab.path("new").exists());
    buckets.plan(|asked| match asked.number % 5 {
        1 => Act::Status(503),
        3 => Act::ServeAndCut,
        _ => Act::Serve,
    });
    restore().says(0, &["new: restored up to mark 500 from s3://lab/copy/: 1 table"]);
}
