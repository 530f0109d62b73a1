//! Files that a cluster carves are those of one process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::killed::{disturbed, rounds, waited, workers};
use super::lab::{Cluster, Draw, Lab, finished, kill, text};

/// A picture, packed text, and an archive with the picture.
const FILES: [&str; 3] = [
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000b49444154789c6360000200000500\
     017a5eab3f0000000049454e44ae426082",
    "1f8b08000000000002034bcc53c8cc2bcbcf4c4e55c84f5330323032d35148cc4b51c8cd2f4a552849ad285128c9482c51c82c\
     5628484cce4e4d51c8482d4a0500e24256f035000000",
    "504b030414000000000000002100c4236d09440000004400000005000000612e706e6789504e470d0a1a0a0000000d49484452\
     000000010000000108060000001f15c4890000000b49444154789c6360000200000500017a5eab3f0000000049454e44ae4260\
     82504b0102140314000000000000002100c4236d094400000044000000050000000000000000000000800100000000612e706e\
     67504b0506000000000100010033000000670000000000",
];

pub(super) fn file(number: usize) -> Vec<u8> {
    let digits: Vec<u8> = FILES[number].bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A disk with some files, of which one in four is cut off.
pub(super) fn disk(draw: &mut Draw, files: u64) -> Vec<u8> {
    let mut disk = vec![0; 512 * draw.below(20) as usize];
    for _ in 0..files {
        let mut file = file(draw.below(3) as usize);
        if draw.below(4) == 0 {
            file.truncate(file.len() / 2);
        }
        disk.extend(file);
        disk.resize(disk.len().next_multiple_of(512) + 512 * draw.below(40) as usize, 0);
    }
    disk
}

/// What is equal in two output folders: everything but clock, host and command.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let bytes = std::fs::read(&path).unwrap();
            let shown = match name.ends_with("case.json") || name.ends_with(".dfxml") {
                // Their hashes are in other case files.
                true => String::new(),
                false => format!("{bytes:?}"),
            };
            all.insert(name, shown);
        }
    }
    all
}

const OPTIONS: &[&[&str]] = &[
    &[],
    &["--embedded"],
    &["--types", "png,zip"],
    &["--keep", "valid"],
    &["--hash", "md5,blake3"],
    &["--known", "known", "--skip-known"],
    &["--signatures", "own.conf"],
    &["--range", "512..20000"],
    &["--where"],
];

/// A signature of the user's.
const OWN: &str = "own y 1000 invoice\n";

/// The lines of the output, sorted: a plain run prints rows as it finds files.
fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = text(bytes).lines().map(str::to_string).collect();
    lines.sort();
    lines
}

#[test]
fn the_rows_and_files_of_random_runs_equal_those_of_one_process() {
    let lab = Lab::new();
    lab.file("own.conf", OWN.as_bytes());
    let known = lab.file("a.png", &file(0));
    let hash = std::process::Command::new("sha256sum").arg(known).output().unwrap();
    lab.file("known", &hash.stdout);
    let clusters: Vec<Cluster> = [1, 3].map(Cluster::start).into();
    for seed in 0..16 {
        let mut draw = Draw::new(seed);
        let sources: Vec<String> = (0..=draw.below(4)).map(|number| format!("s{number}")).collect();
        for source in &sources {
            let files = draw.below(9);
            lab.file(source, &disk(&mut draw, files));
        }
        let mut arguments = vec!["carve", "--quiet"];
        arguments.extend(*draw.one_of(OPTIONS));
        arguments.extend(*draw.one_of(&[&[][..], &["--format", "json"], &["--format", "csv"]]));
        arguments.extend(sources.iter().map(String::as_str));
        let (one, other) = (format!("one{seed}"), format!("other{seed}"));
        let writes = draw.below(3) > 0;
        let output = |folder: &str| match writes {
            true => vec!["-o".to_string(), folder.to_string()],
            false => vec!["--dry-run".to_string()],
        };
        let run = |folder: &str, more: &[&str]| {
            let output = output(folder);
            let output = output.iter().map(String::as_str);
            let all: Vec<&str> = arguments.iter().copied().chain(output).collect();
            lab.run(&[&all[..], more].concat())
        };
        let plain = run(&one, &[]);
        let cluster = draw.one_of(&clusters);
        let to = format!("found{seed}");
        let stored = ["--to", &to];
        let stored: &[&str] = if draw.below(3) == 0 { &stored } else { &[] };
        let spread = run(&other, &[&["--cluster", &cluster.at], stored].concat());
        let about = format!(
            "{seed}: {arguments:?} {writes} {stored:?}\n{}\n{}\n{}",
            text(&plain.stderr),
            text(&spread.stderr),
            cluster.logs()
        );
        assert_eq!(plain.status.code(), spread.status.code(), "{about}");
        assert_eq!(lines(&plain.stdout), lines(&spread.stdout), "{about}");
        if writes {
            let (one, other) = (lab.path().join(one), lab.path().join(other));
            assert_eq!(contents(&one), contents(&other), "{about}");
            let verified = lab.run(&["verify", &other.display().to_string()]);
            assert_ne!(verified.status.code(), Some(3), "{about}");
        }
    }
}

/// Disks that a run carves, and their names.
fn disks(lab: &Lab, count: u64) -> Vec<String> {
    let mut draw = Draw::new(41);
    let names: Vec<String> = (0..count).map(|number| format!("disk{number:02}")).collect();
    for name in &names {
        lab.file(name, &disk(&mut draw, 4));
    }
    names
}

#[test]
fn a_killed_worker_loses_no_file_and_doubles_none() {
    let lab = Lab::new();
    let names = disks(&lab, 24);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let carve = ["carve", "--quiet", "--format", "json"];
    let plain = lab.run(&[&carve[..], &["-o", "plain"], &names].concat());
    for round in 0..rounds(6) {
        let mut draw = Draw::new(round + 3);
        let folder = format!("out{round}");
        let arguments =
            [&["local", "--workers", "3", "--"], &carve[..], &["-o", &folder], &names].concat();
        let mut command = lab.command(&arguments);
        command.env("QUARRIER_CLUSTER_WAITS", "100");
        let after = Duration::from_millis(1_000 + draw.below(1_500));
        let (spread, _) = disturbed(command, after, &mut draw);
        let about = format!("round {round}\n{}", text(&spread.stderr));
        assert_eq!(plain.status.code(), spread.status.code(), "{about}");
        assert_eq!(lines(&plain.stdout), lines(&spread.stdout), "{about}");
        let contents_of = |folder: &str| contents(&lab.path().join(folder));
        assert_eq!(contents_of("plain"), contents_of(&folder), "{about}");
        std::fs::remove_dir_all(lab.path().join(folder)).unwrap();
    }
}

#[test]
fn a_source_that_ends_three_workers_is_refused_and_the_others_are_carved() {
    let lab = Lab::new();
    let names = disks(&lab, 4);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let others: Vec<&str> = names.iter().copied().filter(|name| *name != "disk02").collect();
    let carve = ["carve", "--quiet", "--format", "json", "-o"];
    let plain = lab.run(&[&carve[..], &["plain"], &others].concat());
    let mut command =
        lab.command(&[&["local", "--workers", "2", "--"], &carve[..], &["out"], &names].concat());
    command.env("QUARRIER_CLUSTER_ENDS_IN", "disk02");
    let output = finished(command, Duration::from_secs(120));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("disk02: was not carved: three workers"), "{said}");
    assert_eq!(lines(&plain.stdout), lines(&output.stdout), "{said}");
    let folders = std::fs::read_dir(lab.path().join("out")).unwrap();
    let names: Vec<String> =
        folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
}

/// An image of three strides, with files across their borders. No stride is a hole.
fn huge(draw: &mut Draw) -> Vec<u8> {
    let mut image = vec![0x55; (33 << 20) + 4_000];
    let places = (0..60).map(|_| 512 * draw.below(65_000) as usize);
    for at in places.chain([(16 << 20) - 30, (32 << 20) - 50]).collect::<Vec<_>>() {
        let mut file = file(draw.below(3) as usize);
        if draw.below(4) == 0 {
            file.truncate(file.len() / 2);
        }
        let end = (at + file.len()).min(image.len());
        image[at..end].copy_from_slice(&file[..end - at]);
    }
    image
}

#[test]
fn all_workers_search_a_huge_image() {
    let lab = Lab::new();
    let mut draw = Draw::new(7);
    lab.file("huge", &huge(&mut draw));
    lab.file("small", &disk(&mut draw, 9));
    lab.file("own.conf", OWN.as_bytes());
    let variants: [(&[&str], &[&str]); 4] = [
        (&["huge"], &[]),
        (&["huge", "small"], &["--embedded"]),
        (&["huge"], &["--signatures", "own.conf", "--range", "5000..33000000"]),
        (&["small", "huge"], &["--keep", "valid", "--hash", "md5"]),
    ];
    for (number, (sources, options)) in variants.into_iter().enumerate() {
        let (one, other) = (format!("one{number}"), format!("other{number}"));
        let carve = [&["carve", "--quiet", "--format", "json"], options, sources].concat();
        let plain = lab.run(&[&carve[..], &["-o", &one]].concat());
        let local = ["local", "--workers", "2", "--"];
        let mut command = lab.command(&[&local[..], &carve, &["-o", &other]].concat());
        command.env("QUARRIER_CLUSTER_UNIT", "1").env("QUARRIER_CLUSTER_WAITS", "150");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = command.spawn().unwrap();
        let pid = running.id();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(900));
            if let (3, Some(first)) = (number, workers(pid).first()) {
                kill(*first, "KILL");
            }
        });
        let spread = waited(running);
        killer.join().unwrap();
        let about = format!("{carve:?}\n{}", text(&spread.stderr));
        assert_eq!(plain.status.code(), spread.status.code(), "{about}");
        assert_eq!(lines(&plain.stdout), lines(&spread.stdout), "{about}");
        let [one, other] = [one, other].map(|folder| contents(&lab.path().join(folder)));
        assert_eq!(one, other, "{about}");
    }
}

#[test]
fn a_huge_image_is_judged_in_units_of_whole_strides() {
    let (lab, cluster) = (Lab::new(), Cluster::start(1));
    lab.file("huge", &huge(&mut Draw::new(8)));
    let carve = ["carve", "--quiet", "--format", "json", "--dry-run", "huge"];
    let mut command = lab.command(&[&carve[..], &["--cluster", &cluster.at]].concat());
    command.env("QUARRIER_CLUSTER_UNIT", "1");
    let spread = finished(command, Duration::from_secs(120));
    assert_eq!(lines(&lab.run(&carve).stdout), lines(&spread.stdout), "{}", cluster.logs());
    assert!(cluster.status().contains("\"units_ended\":3"), "{}", cluster.status());
}

#[test]
fn folders_and_options_that_do_not_fit_are_refused() {
    let lab = Lab::new();
    lab.file("source", &file(0));
    std::fs::create_dir(lab.path().join("full")).unwrap();
    lab.file("full/file", b"");
    let cluster = Cluster::start(1);
    let carve = ["carve", "source", "--cluster", &cluster.at];
    for (more, part) in [
        (&["-o", "full"][..], "is not empty: it has 'file'"),
        (&["-o", "new", "--resume"], "--resume"),
        (&["-o", "new", "--verify"], "--verify"),
        (&["-o", "new", "--header", "a: b"], "--header"),
        (&["-o", "new", "--signatures", "gone.toml"], "gone.toml"),
        (&["-o", "no/where"], "no/where"),
    ] {
        let output = lab.run(&[&carve[..], more].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {said}");
        assert!(said.contains(part), "{more:?}: {said}");
    }
    let mut command = lab.command(&["carve", "source", "-o", "resumed", "--resume"]);
    command.env("QUARRIER_CLUSTER", &cluster.at);
    let said = text(&finished(command, Duration::from_secs(60)).stderr);
    assert!(said.contains("this process carves") && said.contains("--resume"), "{said}");
}

#[test]
fn ctrl_c_ends_carving_and_leaves_no_attempts() {
    let (lab, mut cluster) = (Lab::new(), Cluster::start(0));
    cluster.add_worker(0, &[("QUARRIER_CLUSTER_WAITS", "300")]);
    cluster.wait_for(1);
    let names = disks(&lab, 30);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let arguments = [&["carve", "-o", "out", "--cluster", &cluster.at], &names[..]].concat();
    let mut command = lab.command(&arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    kill(running.id(), "INT");
    let since = Instant::now();
    let output = waited(running);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
}
