//! `quarrier gauge` from the outside: measures a small area, and stores, shows and compares reports.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Lab, Ran, drain, run, until_it_handles_interrupts, wait};

/// Runs `quarrier gauge ARGS…` with the profile in the lab.
fn gauge(lab: &Lab, args: &[&str]) -> Ran {
    let mut command = lab.command(["gauge"]);
    command.args(args).env("XDG_CACHE_HOME", lab.path("cache"));
    without_progress(run(command, b""))
}

/// On a busy machine a measurement takes long enough to report its progress.
fn without_progress(mut ran: Ran) -> Ran {
    let lines = ran.stderr.split_inclusive('\n').filter(|line| !line.contains(" s  visit "));
    ran.stderr = lines.collect();
    ran
}

#[track_caller]
fn refuses(args: &[&str], words: &[&str]) {
    let lab = Lab::new();
    lab.put("text", "no report");
    lab.put("other", "{\"format\": 99}");
    let before = lab.names();
    gauge(&lab, args).refuses(words);
    assert_eq!(lab.names(), before);
}

/// A report of two readings, as one version of quarrier wrote it.
pub(crate) fn report(triad: f64, name: &str) -> String {
    let reading = |measurement: &str, value: f64| {
        let samples: Vec<f64> = (0..5).map(|n| value * (1.0 + 0.001 * f64::from(n))).collect();
        serde_json::json!({
            "area": "memory", "measurement": measurement, "parameters": {"threads": 1, "block_bytes": 1024},
            "value": value * 1.002, "unit": "B/s", "mean": value * 1.002, "stddev": value * 0.001,
            "best": value * 1.004, "interval": [value, value * 1.004], "runs": 5, "dropped": 0,
            "disturbed": false, "samples": samples, "percentiles": null, "notes": [],
            "conditions": {"load": 0.1, "steal": 0.0, "others": 0.0, "cpu_share": 1.0, "disturbed": false},
        })
    };
    serde_json::json!({
        "format": 1, "quarrier": "0.1.0", "when": 1_795_333_150, "seconds": 1.5,
        "machine": {
            "name": name, "cpu_model": "Example", "cpu_signature": "", "architecture": "x86_64",
            "instruction_sets": [], "cpus": 2, "caches": [], "memory_bytes": 1 << 30,
            "page_bytes": 4096, "huge_pages": "never", "kernel": "Linux 6",
        },
        "conditions": {"load_before": 0.0, "load_after": 0.0, "steal": 0.0, "others": 0.0, "disturbed": 0},
        "readings": [reading("copy", 40e9), reading("triad", triad)],
    })
    .to_string()
}

/// Two reports, the second with a slower triad.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.put("before.json", report(50e9, "host"));
    lab.put("after.json", report(40e9, "host"));
    lab
}

#[test]
fn an_area_is_measured_kept_and_shown_again() {
    let lab = Lab::new();
    let files = ["--json", "now.json", "--html", "now.html", "--stats", "stats.json"];
    let ran = gauge(&lab, &[&["cpu", "--quick", "--runs", "1"][..], &files].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.text().contains("multiply-add") && ran.text().contains("FLOP/s"), "{ran:?}");
    let names: Vec<String> = lab.names().into_iter().collect();
    assert_eq!(names, ["cache", "now.html", "now.json", "stats.json"]);
    let page = fs::read_to_string(lab.path("now.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("class=\"bars\""));
    let stats: Value = serde_json::from_slice(&fs::read(lab.path("stats.json")).unwrap()).unwrap();
    let kept: Value = serde_json::from_slice(&fs::read(lab.path("now.json")).unwrap()).unwrap();
    let readings = kept["readings"].as_array().unwrap();
    assert_eq!(
        (&stats["command"], stats["readings"].as_u64()),
        (&"gauge".into(), Some(readings.len() as u64))
    );
    assert!(crate::account::has_every_key(&stats), "{stats}");
    assert!(readings.iter().all(|reading| reading["runs"] == 1 && reading["stddev"] == 0.0));
    let shown = gauge(&lab, &["--from", "now.json"]);
    assert_eq!(shown.text(), ran.text());
    let again = gauge(&lab, &["--from", "now.json", "--json", "again.json"]);
    assert_eq!(again.code, Some(0));
    assert_eq!(fs::read(lab.path("again.json")).unwrap(), fs::read(lab.path("now.json")).unwrap());
}

#[test]
fn the_rates_that_a_disk_sustains_are_measured_alone() {
    let lab = Lab::new();
    fs::create_dir(lab.path("disk")).unwrap();
    let files = ["--json", "now.json", "--html", "now.html", "--prometheus", "now.prom"];
    let args = ["disk", "--sustained", "1", "--quick", "--path", "disk"];
    let ran = gauge(&lab, &[&args[..], &files].concat());
    assert_eq!(fs::read_dir(lab.path("disk")).unwrap().count(), 0);
    if ran.stderr.contains("has no O_DIRECT") {
        ran.says(2, &["disk: ", "name a folder on another"]);
        return;
    }
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let kept: Value = serde_json::from_slice(&fs::read(lab.path("now.json")).unwrap()).unwrap();
    let readings = kept["readings"].as_array().unwrap();
    let names: Vec<&str> =
        readings.iter().map(|reading| reading["measurement"].as_str().unwrap()).collect();
    assert_eq!(names, ["sustained write", "sustained read"]);
    for reading in readings {
        assert_eq!(reading["parameters"]["seconds"], 1);
        let timeline = &reading["timeline"];
        assert_eq!(
            (&timeline["window_seconds"], &timeline["initial"].is_f64()),
            (&0.05.into(), &true)
        );
        assert_eq!(timeline["rates"].as_array().unwrap().len(), 20);
    }
    for name in names {
        assert!(ran.text().contains(name), "{ran:?}");
        let metrics = fs::read_to_string(lab.path("now.prom")).unwrap();
        let initial = metrics.lines().filter(|line| line.contains("_initial_bytes_per_second{"));
        assert_eq!(initial.filter(|line| line.contains(name)).count(), 1, "{metrics}");
    }
    let page = fs::read_to_string(lab.path("now.html")).unwrap();
    assert!(page.contains("Sustained write: bytes a second over time"));
    let again = gauge(&lab, &["--from", "now.json", "--compare", "now.json", "--gate", "5"]);
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[test]
fn the_profile_is_stored_and_a_damaged_one_is_replaced_with_a_notice() {
    let lab = Lab::new();
    let args = ["cpu", "--quick", "--format", "csv", "--stats", "stats.json"];
    assert_eq!(gauge(&lab, &args).stderr, "");
    let stats: Value = serde_json::from_slice(&fs::read(lab.path("stats.json")).unwrap()).unwrap();
    let path = stats["profile"].as_str().unwrap();
    assert!(path.starts_with(lab.path("cache").to_str().unwrap()), "{path}");
    let kept = fs::read_to_string(path).unwrap();
    let profile: Value = serde_json::from_str(&kept).unwrap();
    assert!(profile["cpu"]["flops"][0]["per_second"].as_f64().unwrap() > 0.0);
    fs::write(path, &kept[..kept.len() / 2]).unwrap();
    gauge(&lab, &args).says(0, &["profile is replaced", path]);
    serde_json::from_str::<Value>(&fs::read_to_string(path).unwrap()).unwrap();
}

#[test]
fn readings_that_differ_from_an_earlier_run_are_marked() {
    let lab = Lab::new();
    let args = ["cpu", "--quick", "--json", "now.json", "--stats", "stats.json"];
    let measured = || -> Value {
        assert_eq!(gauge(&lab, &args).stderr, "");
        serde_json::from_slice(&fs::read(lab.path("now.json")).unwrap()).unwrap()
    };
    let first = measured();
    let stats: Value = serde_json::from_slice(&fs::read(lab.path("stats.json")).unwrap()).unwrap();
    let profile = stats["profile"].as_str().unwrap();
    let repeats = profile.replace(".json", ".repeats.json");
    let mut kept: Value = serde_json::from_slice(&fs::read(&repeats).unwrap()).unwrap();
    let of_half = |reading: &Value| {
        let mut earlier = serde_json::json!({"when": first["when"], "place": ""});
        for name in ["area", "measurement", "parameters", "unit"] {
            earlier[name] = reading[name].clone();
        }
        earlier["value"] = (reading["value"].as_f64().unwrap() / 2.0).into();
        earlier
    };
    kept["readings"] = first["readings"].as_array().unwrap().iter().map(of_half).collect();
    fs::write(&repeats, kept.to_string()).unwrap();
    let second = measured();
    for reading in second["readings"].as_array().unwrap() {
        assert_eq!(reading["disturbed"], true, "{reading}");
        let has_note = reading["notes"].to_string().contains(" s before: ");
        assert_eq!(has_note, reading.get("earlier_value").is_some(), "{reading}");
    }
    fs::write(&repeats, "{").unwrap();
    gauge(&lab, &args[..2])
        .says(0, &["readings are not compared with earlier runs", "repeats.json"]);
}

#[test]
fn without_a_cache_folder_the_report_is_still_made() {
    let lab = Lab::new();
    let mut command = lab.command(["gauge", "cpu", "--quick"]);
    command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
    let ran = without_progress(run(command, b""));
    ran.says(0, &["profile was not stored", "XDG_CACHE_HOME"]);
    assert!(ran.text().contains("multiply-add"));
    lab.put("file", "");
    let mut command = lab.command(["gauge", "cpu", "--quick"]);
    command.env("XDG_CACHE_HOME", lab.path("file"));
    without_progress(run(command, b"")).says(0, &["profile was not stored", "file"]);
}

#[test]
fn rows_have_the_same_columns_in_every_format() {
    let lab = lab();
    let json = gauge(&lab, &["--from", "after.json", "--format", "json"]);
    let rows: Vec<Value> =
        json.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[1]["measurement"], "triad");
    assert_eq!(rows[1]["parameters"], serde_json::json!({"threads": 1, "block_bytes": 1024}));
    assert_eq!((&rows[1]["unit"], rows[1]["runs"].as_u64()), (&"B/s".into(), Some(5)));
    assert_eq!(rows[1]["conditions"]["disturbed"], false);
    let csv = gauge(&lab, &["--from", "after.json", "--format", "csv"]);
    let columns =
        "area,measurement,parameters,value,unit,stddev,runs,conditions,mean,best,dropped,notes";
    assert_eq!(csv.lines()[0], columns);
    assert!(csv.lines()[1].starts_with("memory,copy,\"{\"\"threads\"\":1,"), "{csv:?}");
    let arrow = gauge(&lab, &["--from", "after.json", "--format", "arrow"]);
    let batches = arrow_ipc::reader::StreamReader::try_new(&arrow.stdout[..], None).unwrap();
    let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 2);
}

#[test]
fn slower_readings_are_found_and_others_are_equal() {
    let lab = lab();
    let ran =
        gauge(&lab, &["--from", "after.json", "--compare", "before.json", "--html", "c.html"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let slower: Vec<&str> =
        ran.lines().into_iter().filter(|line| line.trim_start().starts_with("slower")).collect();
    assert!(
        slower.len() == 1 && slower[0].contains("triad") && slower[0].contains("× 0.80"),
        "{ran:?}"
    );
    assert!(ran.text().contains("1 slower, 0 faster, 0 too noisy, 1 equal"), "{ran:?}");
    assert!(fs::read_to_string(lab.path("c.html")).unwrap().contains("Compared with before.json"));
    lab.put("other.json", report(40e9, "another"));
    let both = ["--from", "after.json", "--compare", "before.json", "--compare", "other.json"];
    let ran = gauge(&lab, &both);
    assert!(ran.text().contains("compared with other.json"));
    assert!(ran.text().contains("different machines"));
}

#[test]
fn a_gate_fails_for_readings_slower_than_it_allows() {
    let lab = lab();
    let compared = ["--from", "after.json", "--compare", "before.json"];
    let gated = |percent: &str| gauge(&lab, &[&compared[..], &["--gate", percent]].concat());
    let ran = gated("10");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("before.json: 1 of 2 readings slower by more than 10 %"),
        "{ran:?}"
    );
    assert_eq!((gated("25%").code, gated("19").code), (Some(0), Some(1)));
    let other = report(50e9, "host").replace("\"area\":\"memory\"", "\"area\":\"cpu\"");
    lab.put("other.json", other);
    let ran = gauge(&lab, &["--from", "after.json", "--compare", "other.json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("other.json: no reading in common"), "{ran:?}");
    for percent in ["0", "-1", "100", "x"] {
        refuses(
            &["--from", "text", "--compare", "text", &format!("--gate={percent}")],
            &["percentage"],
        );
    }
    refuses(&["--from", "text", "--gate", "5"], &["--compare"]);

    let disturbed = report(10e9, "host").replace("\"disturbed\":false", "\"disturbed\":true");
    lab.put("disturbed.json", disturbed);
    let disturbed = ["--from", "disturbed.json", "--compare", "before.json", "--gate", "5"];
    let ran = gauge(&lab, &disturbed);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("0 of 0 readings slower by more than 5 %"), "{ran:?}");
    assert!(ran.stderr.contains("2 disturbed, which cannot fail the gate"), "{ran:?}");
    assert_eq!(gauge(&lab, &[&disturbed[..], &["--quiet"]].concat()).stderr, "");
}

#[test]
fn limits_are_named_in_the_text_and_kept_in_json() {
    let lab = Lab::new();
    let of = |cpus: u64, limits: &str| {
        let machine = format!("\"cpus\":{cpus},\"limits\":{limits}");
        let kept = report(50e9, "host");
        let (first, rest) = kept.split_once("\"cpus\":2").unwrap();
        format!("{first}{machine}{rest}")
    };
    let quota = "{\"quota_cpus\":1.5,\"memory_bytes\":536870912}";
    lab.put("quota.json", of(1, quota));
    lab.put("bound.json", of(1, "{\"affinity_cpus\":1,\"affinity_of_cpus\":2}"));
    let args = ["--from", "quota.json", "--compare", "bound.json", "--json", "again.json"];
    let ran = gauge(&lab, &args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let lines = ran.lines();
    assert!(lines.contains(&"limited by: quota 1.5 CPUs, memory 512 MiB"), "{ran:?}");
    assert!(!ran.text().contains("different machines"), "{ran:?}");
    let other = "other limits: affinity 1 of 2 CPUs before, quota 1.5 CPUs, memory 512 MiB now";
    assert!(lines.contains(&other), "{ran:?}");
    let again: Value = serde_json::from_slice(&fs::read(lab.path("again.json")).unwrap()).unwrap();
    assert_eq!(again["machine"]["limits"]["quota_cpus"], 1.5);
}

#[test]
fn prometheus_gets_names_that_begin_alike_and_no_timestamps() {
    let lab = lab();
    let ran = gauge(&lab, &["--from", "after.json", "--prometheus", "q.prom"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(lab.path("q.prom")).unwrap();
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let copy = "quarrier_gauge_bytes_per_second{area=\"memory\",block_bytes=\"1024\",\
                measurement=\"copy\",threads=\"1\"} 40080000000";
    assert!(samples.contains(&copy), "{text}");
    for sample in samples {
        assert!(sample.starts_with("quarrier_"), "{sample}");
        let value = sample.rsplit_once(['}', ' ']).unwrap().1.trim();
        assert!(value.parse::<f64>().is_ok(), "{sample}");
    }
}

#[test]
fn hostile_text_of_a_report_does_not_reach_the_terminal() {
    let lab = Lab::new();
    let evil = report(40e9, "host")
        .replace("Example", "\\u001b[31mred\\u0007")
        .replace("triad", "\\u001b]0;x");
    lab.put("evil.json", evil);
    let ran = gauge(&lab, &["--from", "evil.json", "--compare", "evil.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.text().contains(['\x1b', '\x07']));
}

#[test]
fn wrong_use_is_refused_before_anything_is_measured() {
    refuses(&["tpu"], &["'tpu'", "cpu, memory, disk, network, gpu"]);
    refuses(&["ram"], &["'ram'", "cpu, memory, disk, network", "quarrier gauge --help"]);
    refuses(&["cpu", "--runs", "0"], &["0", "1"]);
    refuses(&["--sustained", "60"], &["--sustained", "disk only", "quarrier gauge disk"]);
    refuses(&["disk", "cpu", "--sustained", "60"], &["disk only"]);
    refuses(&["disk", "--sustained", "0"], &["0", "1..=86400"]);
    refuses(&["disk", "--sustained", "11", "--quick"], &["10 s at most"]);
    refuses(&["disk", "--sustained", "60", "--runs", "3"], &["--runs"]);
    refuses(&["--from", "text", "--sustained", "60"], &["--from"]);
    refuses(&["disk", "--path", "missing"], &["missing", "not a folder"]);
    refuses(&["disk", "--path", "text"], &["text", "not a folder"]);
    refuses(&["--compare", "missing.json"], &["missing.json", "No such file"]);
    refuses(&["--compare", "text"], &["text", "not a report"]);
    refuses(&["--compare", "other"], &["other", "format 99"]);
    refuses(&["--from", "text"], &["text", "not a report"]);
    refuses(&["--from", "text", "cpu"], &["--from"]);
    refuses(&["--json", "no/such/r.json"], &["no/such", "no folder"]);
    refuses(&["cpu", "--listen", "127.0.0.1:0"], &["--listen", "network only"]);
    refuses(&["--connect", "127.0.0.1:1"], &["--connect", "network only"]);
    refuses(&["network", "--listen", "nowhere"], &["'nowhere'", "0.0.0.0:"]);
    refuses(&["network", "--connect", "127.0.0.1:1", "--quick"], &["127.0.0.1:1"]);
}

#[test]
fn ctrl_c_says_where_it_stopped_and_leaves_nothing() {
    let lab = Lab::new();
    fs::create_dir(lab.path("disk")).unwrap();
    let mut command = lab.command(["gauge", "disk", "cpu", "--path", "disk", "--json", "r.json"]);
    command.env("XDG_CACHE_HOME", lab.path("cache"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    until_it_handles_interrupts(&child);
    thread::sleep(Duration::from_millis(1500));
    let line = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success());
    let stdout = drain(child.stdout.take().unwrap());
    let stderr = drain(child.stderr.take().unwrap());
    let ran = Ran::new(wait(&mut child), stdout, &stderr);
    ran.says(130, &["interrupted at", "no report was written"]);
    assert_eq!(ran.text(), "");
    assert_eq!(lab.names().into_iter().collect::<Vec<_>>(), ["disk"]);
    assert_eq!(fs::read_dir(lab.path("disk")).unwrap().count(), 0);
}

#[test]
fn two_gauges_measure_the_network_between_them() {
    use std::io::{BufRead, BufReader};
    let lab = Lab::new();
    let mut command = lab.command(["gauge", "network", "--listen", "127.0.0.1:0", "--quiet"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut listener = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(listener.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening at ").unwrap().to_string();
    let ran = gauge(&lab, &["network", "--quick", "--connect", &address, "--format", "json"]);
    let kill = format!("kill -INT {}", listener.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let stderr = drain(listener.stderr.take().unwrap());
    let ended = Ran::new(wait(&mut listener), Vec::new(), &stderr);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.text().contains("\"measurement\":\"throughput\""), "{ran:?}");
    assert!(ran.lines().iter().all(|line| line.contains("\"area\":\"network\"")));
}
