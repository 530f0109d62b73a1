//! Workers that are killed.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::lab::{Cluster, Draw, Lab, assert_same, bytes, finished, kill, text};

/// The rounds of a test: more with `QUARRIER_ROUNDS`.
pub(super) fn rounds(usual: u64) -> u64 {
    std::env::var("QUARRIER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(usual)
}

/// The processes below one, as PID and command line.
fn children(pid: u32) -> Vec<(u32, String)> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let list = std::fs::read_to_string(path).unwrap_or_default();
    let command = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        (pid, text(&line).replace('\0', " "))
    };
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(command).collect()
}

/// The workers of a local cluster.
pub(super) fn workers(pid: u32) -> Vec<u32> {
    let all = children(pid).into_iter();
    all.filter(|(_, line)| line.contains(" worker ")).map(|(pid, _)| pid).collect()
}

/// Runs a command of a local cluster, and kills one or two workers after some time. Also returns how many it found.
pub(super) fn disturbed(mut command: Command, after: Duration, draw: &mut Draw) -> (Output, usize) {
    let running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = running.id();
    let mut picks = [draw.below(1 << 20), draw.below(1 << 20)].to_vec();
    picks.truncate(1 + draw.below(2) as usize);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(after);
        let found = workers(pid);
        for pick in picks {
            if !found.is_empty() {
                kill(found[pick as usize % found.len()], "KILL");
            }
        }
        found.len()
    });
    let output = waited(running);
    (output, killer.join().unwrap())
}

/// A search of 40 units of a source that takes a while.
const SEARCH: &[&str] = &[
    "search",
    "-E",
    r"[a-z]+@[a-z.]+",
    "-E",
    r"(?s:a.{0,40}b)",
    "-e",
    "2026",
    "--format",
    "json",
    "source",
];

#[test]
fn a_killed_worker_loses_no_row_and_doubles_none() {
    let lab = Lab::new();
    lab.file("source", &bytes(&mut Draw::new(1), 800_000));
    let plain = lab.run(SEARCH);
    assert!(plain.stdout.len() > 40_000);
    let mut arguments = vec!["cluster", "local", "--workers", "3", "--"];
    arguments.remove(0);
    arguments.extend(SEARCH);
    arguments.extend(["--unit-size", "20000"]);
    let undisturbed = Instant::now();
    let spread = lab.run(&arguments);
    let undisturbed = undisturbed.elapsed();
    assert_same(&plain, &spread, "undisturbed");
    let mut slowest = Duration::ZERO;
    for round in 0..rounds(20) {
        let mut draw = Draw::new(round + 7);
        let since = Instant::now();
        let after = undisturbed.mul_f64(draw.below(100) as f64 / 100.0);
        let (spread, count) = disturbed(lab.command(&arguments), after, &mut draw);
        assert_same(&plain, &spread, &format!("round {round}, {count} workers"));
        slowest = slowest.max(since.elapsed());
    }
    println!("undisturbed {undisturbed:?}, slowest of the disturbed {slowest:?}");
}

/// The output of a process, which must end in time.
pub(super) fn waited(child: std::process::Child) -> std::process::Output {
    let pid = child.id();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    receiver
        .recv_timeout(Duration::from_secs(240))
        .unwrap_or_else(|_| {
            kill(pid, "KILL");
            panic!("the search hangs")
        })
        .unwrap()
}

#[test]
fn a_worker_that_stands_still_is_replaced_by_the_others() {
    let lab = Lab::new();
    lab.file("source", &bytes(&mut Draw::new(3), 400_000));
    let plain = lab.run(SEARCH);
    let cluster = Cluster::start(2);
    let arguments = [SEARCH, &["--cluster", &cluster.at, "--unit-size", "10000"]].concat();
    let mut command = lab.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let still = cluster.workers[0].0.id();
    kill(still, "STOP");
    let spread = waited(running);
    kill(still, "CONT");
    assert_same(&plain, &spread, &cluster.logs());
    // The scheduler has stopped it, and it comes back.
    cluster.wait_for(2);
}

#[test]
fn the_processes_of_a_local_cluster_end_with_it() {
    let lab = Lab::new();
    lab.file("source", &bytes(&mut Draw::new(2), 3_000_000));
    for signal in ["TERM", "KILL"] {
        let mut command = lab.command(
            &[&["local", "--workers", "2", "--"], SEARCH, &["--unit-size", "1000"]].concat(),
        );
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = command.spawn().unwrap();
        let pid = running.id();
        let since = Instant::now();
        while children(pid).len() < 4 && since.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let below = children(pid);
        assert_eq!(below.len(), 4, "{below:?}");
        kill(pid, signal);
        running.wait().unwrap();
        let is_alive = |pid: u32, line: &str| {
            let now = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            !now.is_empty() && text(&now).replace('\0', " ") == line
        };
        let since = Instant::now();
        while below.iter().any(|(pid, line)| is_alive(*pid, line)) {
            assert!(since.elapsed() < Duration::from_secs(10), "{signal}: {below:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn the_exit_code_of_a_local_cluster_is_that_of_its_command() {
    let lab = Lab::new();
    lab.file("source", b"abc");
    for (pattern, code) in [("b", 0), ("x", 1)] {
        let arguments = ["local", "--workers", "1", "--", "search", pattern, "source"];
        let output = finished(lab.command(&arguments), Duration::from_secs(60));
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    }
    let output = lab.run(&["local", "--", "gauge"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn a_local_cluster_without_a_command_serves_several_and_replaces_workers() {
    let lab = Lab::new();
    lab.file("source", &bytes(&mut Draw::new(2), 300_000));
    let plain = lab.run(SEARCH);
    let mut command = lab.command(&["local", "--workers", "2"]);
    let mut local = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let out = local.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let at = line.trim_end().strip_prefix("ready: scheduler at ").expect(&line).to_string();
    for round in 0..3 {
        let spread = [SEARCH, &["--cluster", &at, "--unit-size", "30000"]].concat();
        assert_same(&plain, &lab.run(&spread), &format!("round {round}"));
        kill(workers(local.id())[0], "KILL");
    }
    let below = children(local.id());
    kill(local.id(), "INT");
    let since = Instant::now();
    assert_eq!(local.wait().unwrap().code(), Some(0));
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    // A process that has just ended has no command line.
    for (pid, line) in below.into_iter().filter(|(_, line)| !line.is_empty()) {
        let now = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        assert_ne!(text(&now).replace('\0', " "), line);
    }
}

#[test]
fn new_workers_go_on_where_all_others_died() {
    let lab = Lab::new();
    lab.file("source", &bytes(&mut Draw::new(23), 300_000));
    let plain = lab.run(SEARCH);
    let mut cluster = Cluster::start(0);
    for number in 0..2 {
        cluster.add_worker(number, &[("QUARRIER_CLUSTER_WAITS", "100")]);
    }
    cluster.wait_for(2);
    let arguments = [SEARCH, &["--cluster", &cluster.at, "--unit-size", "10000"]].concat();
    let mut command = lab.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    cluster.workers.clear();
    cluster.add_worker(2, &[]);
    assert_same(&plain, &waited(running), &cluster.logs());
}

#[test]
fn the_units_of_a_killed_client_end() {
    let (lab, mut cluster) = (Lab::new(), Cluster::start(0));
    lab.file("source", &bytes(&mut Draw::new(29), 400_000));
    cluster.add_worker(0, &[("QUARRIER_CLUSTER_WAITS", "200")]);
    cluster.wait_for(1);
    let stored = ["--to", "found", "--unit-size", "1000", "--cluster", &cluster.at];
    let spread = [SEARCH, &stored].concat();
    let mut command = lab.command(&spread);
    let mut client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    while !cluster.status().contains("\"units_running\":1") {
        assert!(since.elapsed() < Duration::from_secs(60), "{}", cluster.status());
        std::thread::sleep(Duration::from_millis(50));
    }
    client.kill().unwrap();
    client.wait().unwrap();
    let since = Instant::now();
    while cluster.status().contains("\"state\":\"running\"") {
        assert!(since.elapsed() < Duration::from_secs(40), "{}", cluster.status());
        std::thread::sleep(Duration::from_millis(200));
    }
    // The worker is free for the same command, which continues.
    let plain = lab.run(SEARCH);
    let small = ["--to", "found", "--unit-size", "100000", "--cluster", &cluster.at];
    assert_same(&plain, &lab.run(&[SEARCH, &small].concat()), &cluster.logs());
}
