//! `quarrier files`: lists and extracts, and writes nowhere else.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use crate::carve_free::does;
use crate::harness::{Lab, Ran, run, skip};
use crate::remote::Server;

/// Runs `quarrier files ARGS…`.
fn files(lab: &Lab, args: &[&str]) -> Ran {
    let mut command = lab.command(["files"]);
    command.args(args);
    run(command, b"")
}

/// A FAT volume with a file, one in a folder, and a deleted one.
fn lab() -> Option<Lab> {
    let lab = Lab::new();
    lab.put_sparse("f", 16 << 20, &[]);
    std::fs::create_dir_all(lab.path("files/docs")).unwrap();
    for (name, text) in [("a.txt", "alpha"), ("gone.txt", "it was here"), ("docs/b.jpg", "beta")] {
        lab.put(format!("files/{name}"), text.repeat(1000));
    }
    let mut made = does(&lab, "mkfs.vfat", &["-F", "16", "f"]);
    for name in ["files/a.txt", "files/gone.txt", "files/docs"] {
        made = made && does(&lab, "mcopy", &["-s", "-m", "-i", "f", name, "::"]);
    }
    (made && does(&lab, "mdel", &["-i", "f", "::gone.txt"])).then_some(lab)
}

#[test]
fn files_are_listed_by_path_and_glob_deleted_ones_where_they_are_wanted() {
    let Some(lab) = lab() else { return skip("mkfs.vfat or mtools do not run") };
    let paths = |args: &[&str]| {
        let ran = files(&lab, &[&["f", "--format", "json"], args].concat());
        let path = |line: &str| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["path"].as_str().unwrap().to_string()
        };
        ran.is_clean().lines().into_iter().map(path).collect::<Vec<_>>()
    };
    assert_eq!(paths(&[]), ["/", "/a.txt", "/docs", "/docs/b.jpg"]);
    assert_eq!(paths(&["--deleted"]), ["/", "/a.txt", "/_one.txt", "/docs", "/docs/b.jpg"]);
    assert_eq!(paths(&["docs"]), ["/docs", "/docs/b.jpg"]);
    assert_eq!(paths(&["*.jpg"]), ["/docs/b.jpg"]);
    let nothing = files(&lab, &["f", "/no/such"]);
    assert_eq!(nothing.code, Some(1));
    assert_eq!(nothing.text(), "");
}

#[test]
fn lost_folders_are_searched_for_in_local_sources() {
    let Some(lab) = lab() else { return skip("mkfs.vfat or mtools do not run") };
    // An empty file takes the entry of the folder, and no cluster.
    lab.put("new", "");
    let made = does(&lab, "mdeltree", &["-i", "f", "::docs"])
        && does(&lab, "mcopy", &["-i", "f", "new", "::A"])
        && does(&lab, "mcopy", &["-i", "f", "new", "::B"]);
    if !made {
        return skip("mtools do not run");
    }
    let image = std::fs::read(lab.path("f")).unwrap();
    let length = image.len() as u64;
    let server = Server::with(vec![("f", image)]);
    let lost = |source: &str, when: &[&str]| {
        let ran = files(&lab, &[&[source, "--deleted", "--format", "csv"], when].concat());
        let text = ran.is_clean().text();
        text.lines().filter(|row| row.contains(",/$OrphanFiles/_.jpg,")).count()
    };
    assert_eq!(lost("f", &[]), 1);
    assert_eq!(lost("f", &["--lost-folders", "never"]), 0);
    assert_eq!(lost(&server.url, &[]), 0);
    assert_eq!(lost(&server.url, &["--lost-folders", "always"]), 1);
    // Over the network, a listing fetches a small part.
    let ran = files(&lab, &[&server.url, "--deleted", "-q", "--stats", "stats.json"]);
    ran.is_clean();
    let stats = std::fs::read(lab.path("stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    assert!(stats["bytes_fetched"].as_u64().unwrap() < length / 10, "{stats}");
    // Findings belong to the files of lost folders, too.
    let mut command = lab.command(["search", "betabeta", "f", "--where", "--max-count", "1"]);
    command.args(["--format", "json"]);
    let found = run(command, b"");
    assert!(found.is_clean().text().contains("/$OrphanFiles/_.jpg"), "{}", found.text());
}

#[test]
fn rows_have_the_columns_that_people_script_against() {
    let Some(lab) = lab() else { return skip("mkfs.vfat or mtools do not run") };
    let ran = files(&lab, &["f", "a.txt", "--format", "csv"]);
    let mut lines = ran.is_clean().text().lines();
    let header =
        "source,partition,path,inode,type,state,size,modified,accessed,changed,created,extents";
    assert_eq!(lines.next(), Some(header));
    let row = lines.next().unwrap();
    assert!(row.starts_with("f,0,/a.txt,3,file,allocated,5000,20"), "{row}");
    let ran = files(&lab, &["f", "a.txt", "--bodyfile"]);
    let body = ran.is_clean().text();
    assert!(body.starts_with("0|/a.txt|3|r/rrwxrwxrwx|0|0|5000|"), "{body}");
}

#[test]
fn a_bodyfile_is_as_fls_prints_it() {
    let lab = Lab::new();
    lab.put_sparse("e", 8 << 20, &[]);
    std::fs::create_dir(lab.path("files")).unwrap();
    lab.put("files/program", "x");
    lab.put("files/gone", "x");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o7644);
    std::fs::set_permissions(lab.path("files/program"), mode).unwrap();
    std::os::unix::fs::symlink("../a target", lab.path("files/link")).unwrap();
    std::os::unix::fs::symlink("forged\n0|/x", lab.path("files/forger")).unwrap();
    let mut made = does(&lab, "mkfifo", &["files/pipe"]);
    made = made && does(&lab, "mke2fs", &["-q", "-F", "-t", "ext4", "-d", "files", "e"]);
    made = made && does(&lab, "debugfs", &["-w", "-R", "sif program uid 70000", "e"]);
    made = made && does(&lab, "debugfs", &["-w", "-R", "rm gone", "e"]);
    if !made {
        return skip("mke2fs or debugfs do not run");
    }
    let ran = files(&lab, &["e", "--deleted", "--bodyfile"]);
    let body = ran.is_clean().text();
    assert!(body.contains("|r/rrwSr-Sr-T|70000|") && body.contains("|p/prw"), "{body}");
    assert!(body.contains("/link -> ../a target|"), "{body}");
    let fls = Command::new("fls").args(["-r", "-m", "/", "e"]).current_dir(lab.path("")).output();
    let Some(fls) = fls.ok().filter(|fls| fls.status.success()) else {
        return skip("fls does not run");
    };
    let sorted = |text: &str| {
        // Sleuthkit writes a line feed in a target as it is.
        let is_file = |line: &&str| !line.contains("$Orphan") && !line.contains("forge");
        let mut lines: Vec<_> = text.lines().filter(is_file).map(str::to_string).collect();
        lines.retain(|line| !line.starts_with("0|/x|"));
        lines.sort();
        lines
    };
    assert_eq!(sorted(body), sorted(str::from_utf8(&fls.stdout).unwrap()));
    lab.put("body", body);
    let mut mactime = Command::new("mactime");
    match mactime.args(["-b", "body", "-d"]).current_dir(lab.path("")).output() {
        Ok(ran) if ran.status.success() => {
            let text = String::from_utf8(ran.stdout).unwrap();
            assert!(text.contains("r/rrwSr-Sr-T,70000,"), "{text}");
        }
        _ => skip("mactime does not run"),
    }
}

#[test]
fn files_are_extracted_with_names_bytes_and_times() {
    let Some(lab) = lab() else { return skip("mkfs.vfat or mtools do not run") };
    files(&lab, &["f", "--deleted", "--extract", "-o", "out", "--quiet"]).is_clean();
    for (name, text) in [("a.txt", "alpha"), ("_one.txt", "it was here"), ("docs/b.jpg", "beta")] {
        let read = std::fs::read(lab.path(format!("out/{name}"))).unwrap();
        assert_eq!(read, text.repeat(1000).into_bytes(), "{name}");
    }
    let seconds = |name: &str| std::fs::metadata(lab.path(name)).unwrap().mtime();
    // FAT has a resolution of two seconds.
    assert!((seconds("files/a.txt") - seconds("out/a.txt")).abs() <= 2);
    let again = files(&lab, &["f", "--extract", "-o", "out"]);
    again.refuses(&["is not empty"]);
}

/// An ext volume `e` with more files than are formatted at once, and names that formats must escape.
fn crowd() -> Option<Lab> {
    let lab = Lab::new();
    lab.put_sparse("e", 32 << 20, &[]);
    let odd: [&[u8]; 8] = [
        b"a,b",
        b"quo\"te",
        b"bar|bar",
        b"new\nline",
        b"cr\r",
        "\u{fc}\u{1f600}".as_bytes(),
        b"\xff\xfe",
        b" ",
    ];
    for folder in 0..5 {
        std::fs::create_dir_all(lab.path(format!("files/{folder}"))).unwrap();
        for number in 0..700 {
            lab.put(format!("files/{folder}/{number}"), "x".repeat(number % 2 * number));
        }
        for name in odd {
            let path = lab.path(format!("files/{folder}")).join(OsStr::from_bytes(name));
            std::fs::write(path, "odd").unwrap();
        }
    }
    does(&lab, "mke2fs", &["-q", "-F", "-t", "ext4", "-N", "8000", "-d", "files", "e"])
        .then_some(lab)
}

/// A row of CSV, formatted as simply as possible.
fn naive_csv(row: &serde_json::Value) -> String {
    let columns =
        "source,partition,path,inode,type,state,size,modified,accessed,changed,created,extents";
    let field = |name: &str| {
        let text = match &row[name] {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match text.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text,
        }
    };
    columns.split(',').map(field).collect::<Vec<_>>().join(",")
}

#[test]
fn rows_are_the_same_whichever_threads_format_them() {
    let Some(lab) = crowd() else { return skip("mke2fs does not run") };
    let mut outputs = Vec::new();
    for format in
        [&["--format", "json"][..], &["--format", "csv"], &["--format", "text"], &["--bodyfile"]]
    {
        let ran = files(&lab, &[&["e", "-q"], format].concat());
        let many = ran.is_clean().stdout.clone();
        // On one CPU, the thread that reads the file system formats the rows, too.
        let mut alone = Command::new("taskset");
        alone.args(["-c", "0", env!("CARGO_BIN_EXE_quarrier"), "files", "e", "-q"]).args(format);
        alone.current_dir(lab.path("")).stdin(Stdio::null());
        match alone.output() {
            Ok(alone) if alone.status.success() => assert!(alone.stdout == many, "{format:?}"),
            _ => skip("taskset does not run"),
        }
        outputs.push(String::from_utf8(many).unwrap());
    }
    let rows = outputs[0].lines().map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<serde_json::Value> = rows.collect();
    assert_eq!(rows.len(), 1 + 1 + 5 * (1 + 700 + 8));
    let csv: Vec<String> = rows.iter().map(naive_csv).collect();
    let (_, body) = outputs[1].split_once('\n').unwrap();
    assert!(body == format!("{}\n", csv.join("\n")), "{}", &body[..200]);
    // A bodyfile has no line for the root.
    assert_eq!(outputs[3].lines().count(), rows.len() - 1);
    for (line, row) in outputs[3].lines().zip(&rows[1..]) {
        let written = |c: char| match c == '|' || c.is_ascii_control() {
            true => format!("\\x{:02x}", u32::from(c)),
            false => c.to_string(),
        };
        let path: String = row["path"].as_str().unwrap().chars().map(written).collect();
        let fields: Vec<&str> = line.strip_prefix("0|").unwrap().rsplitn(10, '|').collect();
        assert_eq!(fields[9], path);
        assert_eq!(fields[8], row["inode"].to_string());
        assert_eq!(fields[4], row["size"].to_string());
    }
}

#[test]
fn a_full_disk_ends_a_long_listing_with_an_error() {
    let Some(lab) = crowd() else { return skip("mke2fs does not run") };
    for format in [&["--format", "json"][..], &["--format", "csv"], &["--bodyfile"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = lab.command(["files", "e"]);
        let ran = command.args(format).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("No space left") && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn names_that_lead_elsewhere_stay_in_the_folder() {
    let lab = Lab::new();
    lab.put_sparse("e", 16 << 20, &[]);
    lab.put("victim", "untouched");
    std::fs::create_dir(lab.path("files")).unwrap();
    lab.put("files/x", "evil");
    if !does(&lab, "mke2fs", &["-q", "-F", "-t", "ext2", "-d", "files", "e"]) {
        return skip("mke2fs does not run");
    }
    // Names of equal length, written over those of mke2fs.
    let mut image = std::fs::read(lab.path("e")).unwrap();
    let is_entry = |bytes: &[u8]| bytes[1..4] == [0; 3] && bytes[6..] == [1, 1, b'x'];
    let at = image.windows(9).position(is_entry).unwrap();
    image[at + 8] = b'/';
    std::fs::write(lab.path("e"), image).unwrap();
    files(&lab, &["e", "--extract", "-o", "out", "--quiet"]).is_clean();
    assert_eq!(std::fs::read(lab.path("out/\\x2f")).unwrap(), b"evil");
    assert_eq!(std::fs::read(lab.path("victim")).unwrap(), b"untouched");
}

#[test]
fn a_source_without_a_file_system_is_an_error() {
    let lab = Lab::new();
    lab.put("f", vec![7; 100_000]);
    let refused = files(&lab, &["f"]);
    refused.refuses(&["no file system that quarrier can read"]);
}

#[test]
fn extracted_files_have_the_hashes_that_are_wanted() {
    let Some(lab) = lab() else { return skip("mkfs.vfat or mtools do not run") };
    use md5::Digest;
    let args = ["f", "/a.txt", "--extract", "-o", "out", "--hash", "md5,blake3", "--format", "csv"];
    let ran = files(&lab, &args);
    let lines = ran.is_clean().lines();
    assert!(lines[0].ends_with(",extents,md5,blake3"), "{}", lines[0]);
    let md5: String =
        md5::Md5::digest("alpha".repeat(1000)).iter().map(|b| format!("{b:02x}")).collect();
    let fields: Vec<&str> = lines[1].rsplitn(3, ',').collect();
    assert_eq!((fields[1], fields[0].len()), (&*md5, 64));
    let text = std::fs::read_to_string(lab.path("out/case.json")).unwrap();
    assert!(text.contains(&md5) && text.contains(fields[0]), "{text}");
    // A run over a part of the files does not hash the source.
    assert_eq!(run(lab.command(["verify", "out"]), b"").code, Some(3));
    files(&lab, &["f", "--hash", "md5"]).refuses(&["--extract"]);
}
