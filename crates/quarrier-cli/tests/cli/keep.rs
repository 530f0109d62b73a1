//! `quarrier load`, `reindex` and `--data`: loaded messages survive every failure.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::harness::{Lab, Ran, run, skip};

fn orders(numbers: std::ops::Range<u64>) -> String {
    let line = |number: u64| {
        let side = if number.is_multiple_of(2) { "B" } else { "S" };
        format!("{{\"n\":{number},\"side\":\"{side}\",\"note\":\"{}\"}}\n", "x".repeat(60))
    };
    numbers.map(line).collect()
}

fn quarrier(lab: &Lab, args: &[&str]) -> Ran {
    run(lab.command(args), b"")
}

fn load(lab: &Lab, args: &[&str]) -> Ran {
    let mut command = lab.command(["load", "--data", "d", "--table", "t"]);
    command.args(args);
    run(command, b"")
}

/// All messages of a table, verbatim.
fn messages(lab: &Lab, table: &str) -> String {
    let ran = quarrier(lab, &["filter", "n >= 0 OR n IS NULL", "--data", "d", table]);
    assert!(matches!(ran.code, Some(0 | 1)), "{ran:?}");
    ran.text().to_string()
}

#[test]
fn loaded_messages_are_filtered_by_table_name_and_as_a_file() {
    let lab = Lab::new();
    lab.put("f.ndjson", orders(0..1000) + "no message\n");
    let ran = load(&lab, &["f.ndjson", "--rejects", "rejects"]);
    ran.says(0, &["f.ndjson: 1 of 1001 messages was left out, the first at line 1001"]);
    assert!(ran.text().starts_with("t: 1,000 messages of f.ndjson, "), "{ran:?}");
    assert!(ran.text().contains("durable: ") && ran.text().contains(" messages/s"), "{ran:?}");
    assert!(fs::read_to_string(lab.path("rejects")).unwrap().contains("\"line\":1001"));
    assert_eq!(messages(&lab, "t"), orders(0..1000));
    let segment = "d/log/0000000000000001.qlog";
    for source in [segment, "d"] {
        let ran = quarrier(&lab, &["filter", "side = 'S'", "-c", source]);
        assert_eq!(ran.text(), "500\n", "{source}: {ran:?}");
    }
    let rows = quarrier(&lab, &["filter", "n = 7", "--data", "d", "t", "--format", "csv"]);
    assert!(rows.text().starts_with("n,side,note\n7,S,"), "{rows:?}");
    let ran = quarrier(&lab, &["reindex", "--data", "d"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.text().starts_with("t: 1,000 messages, "), "{ran:?}");
    let unknown = quarrier(&lab, &["filter", "n = 1", "--data", "d", "u"]);
    unknown.refuses(&["d: has no table 'u'; there are: t"]);
    quarrier(&lab, &["filter", "n = 1", "--data", "nowhere", "t"])
        .refuses(&["nowhere", "not a data folder"]);
}

#[test]
fn a_second_load_continues_after_the_first() {
    let lab = Lab::with(orders(0..500));
    load(&lab, &["f"]);
    let again = load(&lab, &["f", "--format", "json"]);
    assert!(again.text().contains("\"messages\":0,"), "{again:?}");
    lab.put("f", orders(0..800));
    let grown = load(&lab, &["f", "--format", "json"]);
    assert!(grown.text().contains("\"messages\":300,"), "{grown:?}");
    assert_eq!(messages(&lab, "t"), orders(0..800));
    load(&lab, &["f", "--again"]);
    assert_eq!(messages(&lab, "t"), orders(0..800).repeat(2));
}

#[test]
fn standard_input_compressed_files_and_conditions() {
    let lab = Lab::new();
    lab.put("alarms.sql", "side = 'S'\nn < 10\n");
    let mut command =
        lab.command(["load", "--data", "d", "--table", "t", "-", "--compress", "zstd"]);
    command.args(["--many", "alarms.sql"]).stdin(Stdio::piped());
    let ran = run(command, orders(0..3000).as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines = ran.lines();
    assert!(lines[0].starts_with("t: 3,000 messages of -"), "{ran:?}");
    let counts: Vec<&str> = lines[1..].iter().map(|line| line.trim()).collect();
    assert_eq!(counts, ["1500  side = 'S'", "10  n < 10"]);
    assert_eq!(messages(&lab, "t"), orders(0..3000));
    let log = fs::metadata(lab.path("d/log/0000000000000001.qlog")).unwrap().len();
    assert!(log * 3 < orders(0..3000).len() as u64, "{log} bytes in the log");
}

#[test]
fn the_error_of_a_second_writer_names_the_first() {
    let lab = Lab::with(orders(0..10));
    let mut command = lab.command(["load", "--data", "d", "--table", "t", "-"]);
    let mut first = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    while fs::read_to_string(lab.path("d/lock")).unwrap_or_default().is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    let pid = first.id().to_string();
    load(&lab, &["f"]).refuses(&["d/lock", &pid, "writes to this folder"]);
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    assert_eq!(load(&lab, &["f"]).code, Some(0));
}

#[test]
fn a_load_that_is_killed_again_and_again_loses_nothing_and_loads_nothing_twice() {
    let all = orders(0..60_000);
    let lab = Lab::with(&all);
    let rounds = std::env::var("KEEP_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let (mut held, mut interrupted) = (0, 0);
    for round in 0..rounds {
        let mut command = lab.command([
            "load",
            "--data",
            "d",
            "--table",
            "t",
            "--segment",
            "16M",
            "f",
            "--quiet",
        ]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(2 + (round * 37) % 150));
        child.kill().unwrap();
        interrupted += u64::from(!child.wait().unwrap().success());
        if !lab.path("d/catalog").exists() {
            continue;
        }
        let found = messages(&lab, "t");
        assert!(all.starts_with(&found), "round {round}: a beginning, each message once");
        assert!(found.len() >= held, "round {round}: {} bytes, {held} before", found.len());
        held = found.len();
        if held == all.len() {
            fs::remove_dir_all(lab.path("d")).unwrap();
            held = 0;
        }
    }
    assert!(interrupted > 0);
    assert_eq!(load(&lab, &["f"]).code, Some(0));
    assert_eq!(messages(&lab, "t"), all);
}

#[test]
fn a_bounded_table_has_the_last_messages_however_often_loads_are_killed() {
    let lab = Lab::new();
    let (per_file, mut all) = (3_000, String::new());
    let bounds = ["--retention", "600KB", "--segment", "1M", "--quiet"];
    for round in 0..12u64 {
        let (name, more) = (format!("f{round}"), orders(round * per_file..(round + 1) * per_file));
        lab.put(&name, &more);
        all += &more;
        for kill in 0..3 {
            let mut command = lab.command(["load", "--data", "d", "--table", "t", &name]);
            command.args(bounds).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            thread::sleep(Duration::from_millis(2 + (round * 37 + kill * 11) % 90));
            child.kill().unwrap();
            child.wait().unwrap();
            if lab.path("d/catalog").exists() {
                let found = messages(&lab, "t");
                assert!(all.contains(&found), "round {round}: each message once, in order");
            }
        }
        let ran = load(&lab, &[&[name.as_str()], &bounds[..]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let found = messages(&lab, "t");
        assert!(all.ends_with(&found), "round {round}: the last messages");
        assert!(found.len() <= 600_000, "round {round}: {} bytes", found.len());
        assert!(found.len() >= 300_000.min(all.len()), "round {round}: {} bytes", found.len());
    }
    let segments = fs::read_dir(lab.path("d/log")).unwrap().count();
    assert!(segments <= 3, "{segments} segments");
    // The first file is not loaded again, although its messages are gone.
    let ran = load(&lab, &["f0", "--format", "json"]);
    assert!(ran.text().contains("\"messages\":0,"), "{ran:?}");
    load(&lab, &["f0", "--retention", "7"]).refuses(&["--retention", "'7 days, 10 GB'"]);
}

#[test]
fn damage_is_reported_with_its_place_and_the_rest_is_intact() {
    let lab = Lab::with(orders(0..200));
    load(&lab, &["f"]);
    lab.put("g", orders(200..300));
    load(&lab, &["g"]);
    let path = lab.path("d/log/0000000000000001.qlog");
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    let at = whole.windows(7).position(|bytes| bytes == b"{\"n\":5,").unwrap();
    damaged[at + 30] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let words = ["0000000000000001.qlog: damaged at bytes ", "marks 1 to 200 are lost"];
    for args in [&["filter", "n >= 0", "--data", "d", "t"][..], &["filter", "n >= 0", "d"]] {
        let ran = quarrier(&lab, args);
        ran.says(3, &words);
        assert_eq!(ran.text(), orders(200..300), "{args:?}");
    }
    let ran = quarrier(&lab, &["reindex", "--data", "d"]);
    ran.says(3, &words);
    assert!(ran.text().starts_with("t: 100 messages"), "{ran:?}");
    lab.put("h", orders(300..310));
    let ran = load(&lab, &["h"]);
    ran.says(3, &words);
    assert_eq!(messages_of_damaged(&lab), orders(200..310));
}

fn messages_of_damaged(lab: &Lab) -> String {
    let ran = quarrier(lab, &["filter", "n >= 0", "--data", "d", "t"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    ran.text().to_string()
}

/// On a separate disk that is filled up, if the system lets tests mount one.
#[test]
fn a_full_disk_is_reported_and_the_load_continues_when_there_is_space() {
    let lab = Lab::with(orders(0..1000));
    lab.put("g", orders(1000..2000));
    let script = "mkdir m && mount -t tmpfs -o size=20m none m && cd m || exit 77
        q=$1; load() { \"$q\" load --data d --table t --segment 8M \"$@\"; }
        load ../f >/dev/null || exit 70
        dd if=/dev/zero of=filler bs=1M count=18 2>/dev/null
        load ../g 2>../said; echo \"full $?\"
        \"$q\" filter 'n >= 0' -c --data d t || exit 71
        rm filler
        load ../g >/dev/null || exit 72
        \"$q\" filter 'n >= 0' --data d t > ../found";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_quarrier")]);
    command.current_dir(lab.path("")).stdin(Stdio::null());
    let Ok(output) = command.output() else { return skip("no unshare") };
    match output.status.code() {
        Some(0) => {}
        Some(1 | 77) => return skip("no file system can be mounted here"),
        code => panic!("{code:?}: {output:?}"),
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "full 2\n1000\n");
    let said = fs::read_to_string(lab.path("said")).unwrap();
    assert!(said.contains("no space for the log to grow") && said.lines().count() == 1, "{said}");
    assert_eq!(fs::read_to_string(lab.path("found")).unwrap(), orders(0..2000));
}

#[test]
fn wrong_use_is_refused() {
    let lab = Lab::with("{}\n");
    quarrier(&lab, &["load", "--table", "t", "f"]).refuses(&["--data"]);
    quarrier(&lab, &["load", "--data", "d", "f"]).refuses(&["--table"]);
    quarrier(&lab, &["load", "--data", "d", "--table", "", "f"]).refuses(&["name of a table"]);
    quarrier(&lab, &["load", "--data", "f", "--table", "t", "f"]).refuses(&["f/log"]);
    quarrier(&lab, &["reindex", "--data", "nowhere"]).refuses(&["nowhere", "not a data folder"]);
    let ran = load(&lab, &["missing", "f"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("missing") && ran.text().contains("1 message of f"), "{ran:?}");
}

#[test]
fn a_notice_of_the_source_is_printed_once() {
    let lab = Lab::new();
    lab.put("packed.csv", "LZIP\u{1},a\n1,1\n2,2\n");
    let ran = load(&lab, &["packed.csv"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr.matches("quarrier: packed.csv: is compressed by lzip").count(),
        1,
        "{ran:?}"
    );
}
