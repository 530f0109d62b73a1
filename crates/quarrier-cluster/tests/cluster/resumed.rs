//! Searches that store their rows, and go on.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::lab::{Cluster, Draw, Lab, assert_same, bytes, finished, kill, text};

#[test]
fn a_second_run_after_a_dead_scheduler_runs_no_finished_unit() {
    let lab = Lab::new();
    lab.file("source", &bytes(&mut Draw::new(11), 1_200_000));
    let arguments =
        ["search", "-E", r"[a-z]+@[a-z.]+", "-E", r"(?s:a.{0,40}b)", "--format", "json", "source"];
    let plain = lab.run(&arguments);
    let stored = ["--to", "found", "--unit-size", "20000"];
    let cluster = Cluster::start(2);
    let spread = [&arguments[..], &stored, &["--cluster", &cluster.at]].concat();
    let mut command = lab.command(&spread);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    while objects(&lab).len() < 10 {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(cluster.scheduler.0.id(), "KILL");
    let since = Instant::now();
    let output = running.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(since.elapsed() < Duration::from_secs(12), "{:?}", since.elapsed());
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("does not answer"), "{said}");
    drop(cluster);
    let before = objects(&lab);
    assert!(before.len() < 60);
    let cluster = Cluster::start(2);
    let spread = [&arguments[..], &stored, &["--cluster", &cluster.at]].concat();
    let again = lab.run(&spread);
    assert_same(&plain, &again, &cluster.logs());
    let ran = 60 - before.len();
    assert!(
        cluster.status().contains(&format!("\"units_ended\":{ran}")),
        "{ran} {}",
        cluster.status()
    );
    // Neither the cluster nor this machine alone runs anything again.
    assert_same(&plain, &lab.run(&spread), "");
    assert_eq!(cluster.status().matches("units_ended").count(), 1, "{}", cluster.status());
    let after = objects(&lab);
    assert_same(&plain, &lab.run(&[&arguments[..], &stored].concat()), "");
    assert_eq!(objects(&lab), after);
    assert!(before.iter().all(|object| after.contains(object)));
}

/// The objects with their times.
fn objects(lab: &Lab) -> Vec<(String, std::time::SystemTime)> {
    let mut all = Vec::new();
    for job in std::fs::read_dir(lab.path().join("found")).into_iter().flatten() {
        for file in std::fs::read_dir(job.unwrap().path()).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            if name.ends_with(".arrow") {
                all.push((name, file.metadata().unwrap().modified().unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn a_source_that_changes_is_an_error() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    let all = bytes(&mut Draw::new(13), 3_000_000);
    lab.file("source", &all);
    let mut command = lab.command(&[
        "search",
        "-E",
        r"(?s:a.{0,40}b)",
        "source",
        "--unit-size",
        "5000",
        "--cluster",
        &cluster.at,
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(900));
    lab.file("source", &all[..all.len() - 1]);
    let since = Instant::now();
    let output = running.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("source: changed"), "{said}");
    // The other units do not run first.
    assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
}

#[test]
fn ctrl_c_ends_a_search() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    lab.file("source", &bytes(&mut Draw::new(13), 4_000_000));
    let mut command = lab.command(&[
        "search",
        "-E",
        r"(?s:a.{0,40}b)",
        "source",
        "--unit-size",
        "2000",
        "--cluster",
        &cluster.at,
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(900));
    kill(running.id(), "INT");
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    // The worker is free for others.
    let after = lab.command(&["search", "-e", "2026", "-c", "source", "--cluster", &cluster.at]);
    let output = finished(after, Duration::from_secs(60));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}
