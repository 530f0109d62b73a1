//! Every state that a crash of `quarrier load` may leave, rebuilt from its system calls, with the
//! binary started on it: after ALICE (Pillai et al., OSDI 2014).

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use quarrier_messages::log::disk::{Access, Disk, FaultyDisk};

use crate::harness::{Lab, run, skip};

const CALLS: &str =
    "openat,pwrite64,write,fdatasync,fsync,fallocate,ftruncate,rename,renameat,renameat2,unlinkat";

/// Number of crashes drawn for each call that changes something.
const CRASHES: u64 = 3;

fn orders(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| format!("{{\"n\":{number},\"text\":\"{}\"}}\n", "y".repeat(40))).collect()
}

/// The effect of a call on the data folder.
#[derive(Debug)]
enum Change {
    Create(String),
    Write { path: String, offset: u64, bytes: Vec<u8> },
    Length { path: String, bytes: u64 },
    Sync(String),
    Rename(String, String),
    Remove(String),
}

/// Decodes `\x61` to `a`; all strings of the trace are escaped so.
fn plain(text: &str) -> Vec<u8> {
    let digits: Vec<&str> = text.split("\\x").skip(1).collect();
    digits.iter().map(|digits| u8::from_str_radix(&digits[..2], 16).unwrap()).collect()
}

fn name(text: &str) -> String {
    String::from_utf8(plain(text)).unwrap()
}

/// The lines of a trace; calls that another thread's call interrupted are joined.
fn calls(trace: &str) -> Vec<String> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut calls = Vec::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, begin);
        } else if let Some((_, rest)) =
            call.split_once(" resumed>").filter(|_| call.starts_with('<'))
        {
            calls.push(format!("{}{rest}", begun.remove(thread).unwrap()));
        } else {
            calls.push(call.to_string());
        }
    }
    calls
}

/// The effect of a call; `None` if it changed nothing in the folder.
fn change(call: &str, folder: &str) -> Option<Change> {
    let (verb, rest) = call.split_once('(')?;
    // Several spaces may precede the result.
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    if result.starts_with('-') {
        return None;
    }
    // Paths of descriptors are in angle brackets, strings in quotes; other arguments are numbers.
    let angles: Vec<String> =
        arguments.split('<').skip(1).map(|rest| name(rest.split('>').next().unwrap())).collect();
    let quoted: Vec<&str> = arguments.split('"').skip(1).step_by(2).collect();
    let numbers = |nth: usize| -> u64 { arguments.rsplit(", ").nth(nth).unwrap().parse().unwrap() };
    let inside = |path: &str| Some(path.strip_prefix(folder)?.trim_start_matches('/').to_string());
    let at = |folder: &str, file: &str| inside(&format!("{folder}/{}", name(file)));
    Some(match verb {
        "openat" if arguments.contains("O_CREAT") || arguments.contains("O_TRUNC") => {
            let made = name(result.split('<').nth(1)?.split('>').next()?);
            Change::Create(inside(&made)?)
        }
        "pwrite64" => {
            let bytes = plain(quoted.first()?);
            assert_eq!(bytes.len() as u64, numbers(1), "the trace has all bytes");
            let count: usize = result.split(' ').next()?.parse().ok()?;
            let (path, offset) = (inside(angles.first()?)?, numbers(0));
            Change::Write { path, offset, bytes: bytes[..count].to_vec() }
        }
        "fallocate" => {
            Change::Length { path: inside(angles.first()?)?, bytes: numbers(0) + numbers(1) }
        }
        "ftruncate" => Change::Length { path: inside(angles.first()?)?, bytes: numbers(0) },
        "fdatasync" | "fsync" => Change::Sync(inside(angles.first()?)?),
        "rename" => {
            let (from, to) = (name(quoted.first()?), name(quoted.get(1)?));
            Change::Rename(inside(&from)?, inside(&to)?)
        }
        "renameat" | "renameat2" => Change::Rename(
            at(angles.first()?, quoted.first()?)?,
            at(angles.get(1)?, quoted.get(1)?)?,
        ),
        "unlinkat" => Change::Remove(at(angles.first()?, quoted.first()?)?),
        _ => return None,
    })
}

/// A data folder: the folder and its log folder.
struct Twin {
    data: FaultyDisk,
    log: FaultyDisk,
}

impl Twin {
    /// The contents of the folder, all of them durable.
    fn of(folder: &Path) -> Self {
        let twin = Twin { data: FaultyDisk::new(1), log: FaultyDisk::new(2) };
        for (disk, folder) in [(&twin.data, folder.to_path_buf()), (&twin.log, folder.join("log"))]
        {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    let bytes = fs::read(entry.path()).unwrap();
                    disk.put(&entry.file_name().into_string().unwrap(), bytes);
                }
            }
        }
        twin
    }

    fn place<'p>(&self, path: &'p str) -> (&FaultyDisk, &'p str) {
        path.strip_prefix("log/").map_or((&self.data, path), |name| (&self.log, name))
    }

    fn apply(&self, change: &Change) {
        let open = |path: &str| {
            let (disk, name) = self.place(path);
            disk.open(name, Access::Write).unwrap()
        };
        match change {
            Change::Create(path) => {
                let (disk, name) = self.place(path);
                drop(disk.create(name, 0).unwrap());
            }
            Change::Write { path, offset, bytes } => {
                assert_eq!(open(path).write_at(*offset, bytes).unwrap(), bytes.len());
            }
            Change::Length { path, bytes } => {
                let file = open(path);
                match file.length().unwrap() > *bytes {
                    true => file.truncate(*bytes).unwrap(),
                    false => file.allocate(*bytes).unwrap(),
                }
            }
            Change::Sync(path) if path.is_empty() => self.data.sync_folder().unwrap(),
            Change::Sync(path) if path == "log" => self.log.sync_folder().unwrap(),
            Change::Sync(path) => open(path).sync().unwrap(),
            Change::Rename(from, to) => {
                let ((disk, from), (_, to)) = (self.place(from), self.place(to));
                disk.rename(from, to).unwrap();
            }
            Change::Remove(path) => {
                let (disk, name) = self.place(path);
                disk.remove(name).unwrap();
            }
        }
    }

    /// Writes the remains of a crash into a folder.
    fn crash_into(&self, folder: &Path, seed: u64) {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder.join("log")).unwrap();
        for (disk, folder) in [(&self.data, folder.to_path_buf()), (&self.log, folder.join("log"))]
        {
            let crashed = disk.after_crash(seed);
            for name in crashed.names().unwrap() {
                fs::write(folder.join(&name), crashed.contents(&name).unwrap()).unwrap();
            }
        }
    }
}

#[test]
fn every_crash_after_a_system_call_of_a_load_is_recovered() {
    let lab = Lab::new();
    for (file, numbers) in [("e", 0..50), ("f", 50..90), ("g", 90..200), ("h", 200..230)] {
        lab.put(file, orders(numbers));
    }
    let load = |data: &str, files: &[&str]| {
        let args = ["load", "--data", data, "--table", "t", "--segment", "1M", "--workers", "2"];
        let mut command = lab.command(args);
        command.args(files);
        command
    };
    assert_eq!(run(load("d", &["e"]), b"").code, Some(0));
    let twin = Twin::of(&lab.path("d"));
    let traced = load("d", &["f", "g", "h"]);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-xx", "-s", "16777216", "-o", "trace", "-e"]);
    strace.arg(format!("trace={CALLS}")).arg(traced.get_program()).args(traced.get_args());
    let strace = strace.current_dir(lab.path("")).stdin(Stdio::null()).output();
    match strace {
        Ok(output) if output.status.success() => {}
        Ok(output) if output.stderr.starts_with(b"quarrier") => panic!("{output:?}"),
        _ => return skip("no strace, or it may not trace"),
    }
    let folder = fs::canonicalize(lab.path("d")).unwrap().display().to_string();
    let trace = fs::read_to_string(lab.path("trace")).unwrap();
    let changes: Vec<Change> =
        calls(&trace).iter().filter_map(|call| change(call, &folder)).collect();
    let is_sync = |change: &&Change| matches!(change, Change::Sync(_));
    assert!(changes.iter().filter(is_sync).count() >= 5, "{changes:?}");
    let all = orders(0..230);
    for (number, change) in changes.iter().enumerate() {
        if change.is_of_lock() {
            continue;
        }
        twin.apply(change);
        for crash in 0..CRASHES {
            let what = format!("crash {crash} after call {number}");
            twin.crash_into(&lab.path("s"), number as u64 * CRASHES + crash);
            let filter = ["filter", "n >= 0", "--data", "s", "t"];
            let found = run(lab.command(filter), b"");
            assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""), "{what}");
            assert!(all.starts_with(found.text()), "{what}: {found:?}");
            assert!(found.text().starts_with(&orders(0..50)), "{what}: {found:?}");
            let again = run(load("s", &["f", "g", "h"]), b"");
            assert_eq!(again.code, Some(0), "{what}: {again:?}");
            assert_eq!(run(lab.command(filter), b"").text().len(), all.len(), "{what}");
        }
    }
}

impl Change {
    /// The lock names the writer; a crash may leave any contents there.
    fn is_of_lock(&self) -> bool {
        match self {
            Change::Create(path)
            | Change::Write { path, .. }
            | Change::Length { path, .. }
            | Change::Sync(path) => path == "lock",
            _ => false,
        }
    }
}
