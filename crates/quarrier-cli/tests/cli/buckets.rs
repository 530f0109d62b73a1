//! Buckets as sources, and as the place for the rows of units.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::bucket::{Act, Buckets, SECRET};
use crate::harness::{Lab, Ran, noise, run};

fn ran(server: &Buckets, mut command: Command) -> Ran {
    command.envs(server.settings());
    run(command, b"")
}

fn search(server: &Buckets, lab: &Lab, args: &[&str]) -> Ran {
    ran(server, lab.search_command(args))
}

/// Noise with a word in it.
fn image(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = noise(length, seed);
    for at in (0..length - 6).step_by(1_009) {
        bytes[at..at + 6].copy_from_slice(b"needle");
    }
    bytes
}

/// A server with three images, and a lab with copies of them.
fn server_and_lab() -> (Buckets, Lab) {
    let (server, lab) = (Buckets::new(2), Lab::new());
    std::fs::create_dir_all(lab.path("case/more")).unwrap();
    for (seed, name) in ["case/a.dd", "case/b.dd", "case/more/c.dd"].iter().enumerate() {
        let bytes = image(30_000 + seed * 7, seed as u64);
        lab.put(name, &bytes);
        server.put("lab", name, bytes);
    }
    server.put("lab", "case/", "");
    (server, lab)
}

#[test]
fn a_listing_is_searched_like_a_folder() {
    let (server, lab) = server_and_lab();
    for name in ["case/", "case/*.dd", "case/**/*.dd"] {
        let local = lab.search(["needle", name]);
        let far = search(&server, &lab, &["needle", &format!("s3://lab/{name}")]);
        assert_eq!(
            far.is_clean().text(),
            local.is_clean().text().replace("case/", "s3://lab/case/")
        );
    }
    let bytes = std::fs::read(lab.path("case/a.dd")).unwrap();
    server.put("lab", "split/a.001", bytes[..10_003].to_vec());
    server.put("lab", "split/a.002", bytes[10_003..].to_vec());
    let whole =
        lab.search(["needle", "case/a.dd"]).text().replace("case/a.dd", "s3://lab/split/a.001");
    for name in ["s3://lab/split/", "s3://lab/split/a.*", "s3://lab/split/a.001"] {
        assert_eq!(search(&server, &lab, &["needle", name]).is_clean().text(), whole, "{name}");
    }
    let one = search(&server, &lab, &["needle", "s3://lab/case/[b].dd", "-c"]);
    assert_eq!(one.is_clean().text(), lab.search(["needle", "case/b.dd", "-c"]).text());
    search(&server, &lab, &["needle", "s3://lab/*.E01"]).refuses(&["s3://lab/*.E01", "no object"]);
    server.plan(|_| Act::Status(403));
    let denied = search(&server, &lab, &["needle", "s3://lab/"]);
    denied.refuses(&["s3://lab/: ", "permission to list"]);
    assert!(!denied.stderr.contains(SECRET), "{denied:?}");
}

#[test]
fn the_account_of_a_run_counts_all_requests_those_of_listings_too() {
    let (server, lab) = server_and_lab();
    server.put("lab", "log/a.jsonl", "{\"a\":1}\n");
    server.put("lab", "log/b.jsonl", "{\"a\":2}\n");
    server.put("lab", "log/c.jsonl", "{\"a\":3}\n");
    lab.put("rule.yar", "rule r { strings: $a = \"needle\" condition: $a }");
    // One of three requests is repeated.
    server.plan(|asked| if asked.number % 3 == 1 { Act::Status(503) } else { Act::Serve });
    for args in [
        &["search", "needle", "s3://lab/case/"][..],
        &["search", "--rules", "rule.yar", "s3://lab/case/*.dd"],
        &["search", "needle", "s3://lab/case/", "--to", "s3://lab/rows"],
        &["carve", "s3://lab/case/", "--dry-run"],
        &["carve", "s3://lab/case/[a].dd", "--dry-run", "--report", "c.html"],
        &["filter", "a > 1", "s3://lab/log/*.jsonl"],
        &["load", "--data", "kept", "--table", "t", "s3://lab/log/"],
    ] {
        let before = server.log().len();
        let ran = ran(&server, lab.command([args, &["--stats", "stats.json", "--quiet"]].concat()));
        let requests = (server.log().len() - before) as u64;
        let listings = server.log()[before..].iter().filter(|asked| asked.is_listing()).count();
        assert!(listings > 0, "{args:?} {ran:?}");
        let stats = std::fs::read(lab.path("stats.json")).unwrap_or_else(|_| panic!("{ran:?}"));
        let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
        assert_eq!(stats["requests"], requests, "{args:?} {stats}");
        // Those of writes are not counted.
        let read_retries = if args.contains(&"--to") { 1 } else { requests / 3 };
        assert!(stats["retries"].as_u64() >= Some(read_retries), "{args:?} {stats}");
        assert!(stats["bytes_fetched"].as_u64() > Some(0), "{args:?} {stats}");
        std::fs::remove_file(lab.path("stats.json")).unwrap();
    }
    let report = std::fs::read_to_string(lab.path("c.html")).unwrap();
    assert!(report.contains("fetched") && report.contains(" requests"));
}

#[test]
fn an_object_that_cannot_be_requested_is_reported_and_the_others_are_searched() {
    let (server, lab) = server_and_lab();
    let args = ["needle", "s3://lab/case/"];
    let plain = search(&server, &lab, &args);
    for key in ["case/..", "case//x", "case/\u{1b}[31m\r\nquarrier: y"] {
        server.put("lab", key, "needle");
    }
    let ran = search(&server, &lab, &args);
    assert_eq!((ran.code, &ran.stdout), (Some(2), &plain.is_clean().stdout), "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("quarrier: s3://lab/case/")), "{lines:?}");
    assert!(lines.len() == 3 && !ran.stderr.contains(['\r', '\x1b']), "{lines:?}");
}

#[test]
fn shards_write_to_a_bucket_and_the_join_prints_what_a_plain_search_prints() {
    let (server, lab) = server_and_lab();
    let args = ["-e", "needle", "-E", "[a-z]{2,}", "s3://lab/case/", "--format", "json"];
    let plain = search(&server, &lab, &args);
    let to = ["--to", "s3://lab/found", "--unit-size", "4K"];
    for shard in ["1/2", "0/2", "1/2"] {
        let ran = search(&server, &lab, &[&args[..], &to, &["--shard", shard]].concat());
        assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(0), "", ""));
    }
    let plan = search(&server, &lab, &[&args[..], &to, &["--plan", "--rate", "1G"]].concat());
    let plan: serde_json::Value = serde_json::from_str(plan.is_clean().text()).unwrap();
    assert_eq!((&plan["units"], &plan["units_done"]), (&24.into(), &24.into()));
    let joined = search(&server, &lab, &[&args[..], &to].concat());
    assert_eq!(joined.is_clean().stdout, plain.is_clean().stdout);
    let objects = |server: &Buckets| {
        server.keys("lab").into_iter().filter(|key| key.starts_with("found/")).count()
    };
    assert_eq!(objects(&server), 24);
    let inside = ["needle", "s3://lab/", "--to", "s3://lab/found"];
    search(&server, &lab, &inside).refuses(&["--to", "s3://lab/"]);
}

#[test]
fn a_killed_run_continues_with_the_objects_in_the_bucket() {
    let (server, lab) = server_and_lab();
    let args = ["needle", "s3://lab/case/", "--to", "s3://lab/found", "--unit-size", "1K"];
    let plain = search(&server, &lab, &args[..2]);
    let mut command = lab.search_command([&args[..], &["--shard", "0/1"]].concat());
    command.envs(server.settings()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    while server.keys("lab").len() < 8 {
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let puts = || server.log().iter().filter(|asked| asked.method == "PUT").count();
    let before = puts();
    let joined = search(&server, &lab, &args);
    assert_eq!(joined.is_clean().stdout, plain.is_clean().stdout);
    // The killed process may have sent one object whose response it did not see.
    assert!(puts() <= 90 + 1 && before >= 4, "{before} then {}", puts());
}
