//! `quarrier mount`, as other programs see a real mount. Where mounting is not permitted, each test checks
//! that the command says so.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::carve_free::does;
use crate::harness::{Lab, Ran, drain, noise, run, send, skip, wait, works};
use crate::remote::{Act, Server};

/// Maximum time that a signal may take to end a mount, on a busy machine.
const END: Duration = Duration::from_secs(1);

/// A running mount at `m` in a lab.
struct Mount {
    child: Child,
    point: PathBuf,
    line: String,
}

/// Whether this process may mount.
fn may_mount() -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let capabilities = u64::from_str_radix(capabilities.trim(), 16).unwrap();
    let is_admin = capabilities & SYS_ADMIN != 0;
    device.is_ok() && (is_admin || works("fusermount3", &["-V".as_ref()]))
}

impl Mount {
    /// Mounts `source`. `None`, after checking the error, if this process may not mount.
    fn start(lab: &Lab, source: &str, options: &[&str]) -> Option<Mount> {
        let point = lab.path("m");
        fs::create_dir_all(&point).unwrap();
        let mut command = lab.command(["mount", source, "m"]);
        command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        if !options.contains(&"--quiet") {
            BufReader::new(out).read_line(&mut line).unwrap();
        }
        let mut mount = Mount { child, point, line };
        // --quiet prints no line.
        while options.contains(&"--quiet")
            && !is_mounted(&mount.point)
            && mount.child.try_wait().unwrap().is_none()
        {
            thread::sleep(Duration::from_millis(1));
        }
        if !is_mounted(&mount.point) {
            let ran = mount.ended();
            assert!(!may_mount(), "{ran:?}");
            ran.refuses(&["cannot", "/dev/fuse"]);
            skip("mounting is not permitted");
            return None;
        }
        Some(mount)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    /// Waits for the end.
    fn ended(&mut self) -> Ran {
        let status = wait(&mut self.child);
        let stderr = drain(self.child.stderr.take().unwrap());
        Ran::new(status, Vec::new(), &stderr)
    }

    /// Sends a signal, and checks that the mount is gone soon.
    #[track_caller]
    fn end(&mut self, signal: &str) -> Ran {
        let started = Instant::now();
        send(signal, &self.child);
        let ran = self.ended();
        assert!(started.elapsed() < END, "{:?}", started.elapsed());
        assert!(!is_mounted(&self.point));
        ran
    }

    /// As [`end`](Self::end), without a message.
    #[track_caller]
    fn end_cleanly(&mut self, signal: &str) {
        let ran = self.end(signal);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // After a failed check only: a mount must not outlive its test.
        if is_mounted(&self.point) {
            let _ = Command::new("umount").arg("-l").arg(&self.point).status();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_mounted(point: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == point.to_str())
}

/// The bytes of a file, by `cp`.
fn copied(lab: &Lab, file: &Path) -> Vec<u8> {
    let copy = lab.path("copy");
    let copied = Command::new("cp").arg(file).arg(&copy).status().unwrap();
    assert!(copied.success());
    fs::read(copy).unwrap()
}

/// The bytes of a file, by a mapping.
fn mapped(file: &Path) -> Vec<u8> {
    let file = File::open(file).unwrap();
    let length = file.metadata().unwrap().len() as usize;
    // SAFETY: a new mapping of an open file, of its length, at a place that the kernel chooses.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(start, libc::MAP_FAILED);
    // SAFETY: the mapping is readable, has this length, is unmapped only below, and its file does not
    // change.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }.to_vec();
    // SAFETY: this mapping, which nothing refers to any more.
    assert_eq!(unsafe { libc::munmap(start, length) }, 0);
    bytes
}

/// Reads pseudorandom ranges of a file in eight threads, and compares each with `bytes`.
fn check_concurrently(file: &Path, bytes: &[u8]) {
    thread::scope(|scope| {
        for reader in 0..8u64 {
            scope.spawn(move || {
                let file = File::open(file).unwrap();
                let numbers = noise(600, reader + 1);
                for three in numbers.chunks(6) {
                    let number = |at: usize| {
                        u32::from_le_bytes([three[at], three[at + 1], three[at + 2], 0])
                    };
                    let offset = number(0) as usize % bytes.len();
                    let count = (number(3) as usize % 300_000).min(bytes.len() - offset);
                    let mut buffer = vec![0; count];
                    file.read_exact_at(&mut buffer, offset as u64).unwrap();
                    assert!(buffer == bytes[offset..offset + count], "{offset} {count}");
                }
            });
        }
    });
}

fn errno(result: io::Result<impl Sized>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn a_file_has_the_same_bytes_for_every_way_of_reading() {
    let lab = Lab::new();
    let bytes = noise((9 << 20) + 12_345, 1);
    lab.put("disk.raw", &bytes);
    let Some(mut mount) = Mount::start(&lab, "disk.raw", &[]) else { return };
    assert!(mount.line.starts_with("m/disk.raw has 9,449,529 bytes"), "{}", mount.line);
    let file = mount.file("disk.raw");
    let names: Vec<_> =
        fs::read_dir(&mount.point).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(names, ["disk.raw"]);
    let meta = fs::metadata(&file).unwrap();
    assert_eq!((meta.len(), meta.mode()), (bytes.len() as u64, 0o100_444));
    assert_eq!(
        meta.modified().unwrap(),
        fs::metadata(lab.path("disk.raw")).unwrap().modified().unwrap()
    );
    assert!(copied(&lab, &file) == bytes);
    assert!(mapped(&file) == bytes);
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", file.display())).args(["bs=4093", "skip=7", "status=none"]);
    assert!(run(dd, b"").stdout == bytes[7 * 4093..]);
    let mut direct = Command::new("dd");
    direct.arg(format!("if={}", file.display())).args(["bs=1M", "iflag=direct", "status=none"]);
    assert!(run(direct, b"").stdout == bytes);
    check_concurrently(&file, &bytes);
    assert_eq!(errno(fs::write(&file, b"x")), Some(libc::EROFS));
    assert_eq!(errno(File::create(mount.file("new"))), Some(libc::EROFS));
    assert_eq!(errno(File::open(mount.file("missing"))), Some(libc::ENOENT));
    assert_eq!(errno(fs::read_dir(&file)), Some(libc::ENOTDIR));
    let status = fs::read_to_string(format!("/proc/{}/status", mount.child.id())).unwrap();
    let figure = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!(figure("Threads:") <= 24 && figure("VmHWM:") < 128 << 10, "{status}");
    mount.end_cleanly("TERM");
}

#[test]
fn holes_and_zeros_are_those_of_the_source() {
    let lab = Lab::new();
    lab.put_sparse("f", 3 << 30, &[(1 << 30, b"island"), ((3 << 30) - 3, b"end")]);
    let Some(mut mount) = Mount::start(&lab, "f", &[]) else { return };
    let (shown, own) = (File::open(mount.file("f")).unwrap(), File::open(lab.path("f")).unwrap());
    for offset in [0, 4096, 1 << 30, (1 << 30) + 4096, (3 << 30) - 1] {
        for whence in [libc::SEEK_DATA, libc::SEEK_HOLE] {
            let seek = |file: &File| {
                // SAFETY: the descriptor is open, and the call touches no memory.
                unsafe { libc::lseek(file.as_raw_fd(), offset, whence) }
            };
            assert_eq!(seek(&shown), seek(&own), "{offset} {whence}");
        }
    }
    let mut bytes = [1; 8];
    shown.read_exact_at(&mut bytes, (1 << 30) - 1).unwrap();
    assert_eq!(&bytes, b"\0island\0");
    mount.end_cleanly("INT");
}

#[test]
fn an_image_is_shown_decoded() {
    let lab = Lab::new();
    let bytes = noise(3 << 20, 2);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&bytes).unwrap();
    lab.put("disk.img.gz", packed.finish().unwrap());
    let Some(mut mount) = Mount::start(&lab, "disk.img.gz", &["--quiet"]) else { return };
    assert!(copied(&lab, &mount.file("disk.img")) == bytes);
    check_concurrently(&mount.file("disk.img"), &bytes);
    assert_eq!(mount.end("TERM").code, Some(0));
}

#[test]
fn a_url_has_the_same_bytes_and_a_small_read_fetches_little() {
    let lab = Lab::new();
    let bytes = noise(40 << 20, 3);
    let server = Server::well(bytes.clone());
    let options = ["--stats", "stats.json"];
    let Some(mut mount) = Mount::start(&lab, &server.url, &options) else { return };
    let file = mount.file("disk.img");
    let mut part = vec![0; 5000];
    File::open(&file).unwrap().read_exact_at(&mut part, 20 << 20).unwrap();
    assert!(part == bytes[20 << 20..(20 << 20) + 5000]);
    assert_eq!(mount.end("TERM").code, Some(0));
    let stats: serde_json::Value =
        serde_json::from_slice(&fs::read(lab.path("stats.json")).unwrap()).unwrap();
    let fetched = stats["bytes_fetched"].as_u64().unwrap();
    assert!((5000..1 << 20).contains(&fetched), "{stats}");

    let Some(mut mount) = Mount::start(&lab, &server.url, &options) else { return };
    check_concurrently(&file, &bytes);
    assert!(copied(&lab, &file) == bytes);
    assert!(mapped(&file) == bytes);
    assert_eq!(mount.end("INT").code, Some(0));
}

#[test]
fn a_sequential_copy_of_a_url_is_fetched_once_by_large_requests() {
    let lab = Lab::new();
    let bytes = noise(40 << 20, 4);
    let server = Server::well(bytes.clone());
    let options = ["--stats", "stats.json"];
    let Some(mut mount) = Mount::start(&lab, &server.url, &options) else { return };
    assert!(copied(&lab, &mount.file("disk.img")) == bytes);
    assert_eq!(mount.end("TERM").code, Some(0));
    let stats: serde_json::Value =
        serde_json::from_slice(&fs::read(lab.path("stats.json")).unwrap()).unwrap();
    let fetched = stats["bytes_fetched"].as_u64().unwrap();
    assert!(fetched < (41 << 20) && server.requests() < 100, "{} {stats}", server.requests());
}

#[test]
fn a_server_that_fails_gives_an_error_there_and_right_bytes_elsewhere() {
    let lab = Lab::new();
    let bytes = noise(16 << 20, 5);
    let server = Server::new(bytes.clone(), |_, first, _| match first {
        0x80_0000..0x81_0000 => Act::Status(500),
        _ => Act::Serve,
    });
    let Some(mut mount) = Mount::start(&lab, &server.url, &[]) else { return };
    let file = File::open(mount.file("disk.img")).unwrap();
    let mut part = vec![0; 4096];
    assert_eq!(errno(file.read_exact_at(&mut part, 0x80_0000)), Some(libc::EIO));
    for offset in [0, 0x10_0000, 0x90_0000, bytes.len() - 4096] {
        file.read_exact_at(&mut part, offset as u64).unwrap();
        assert!(part == bytes[offset..offset + 4096], "{offset}");
    }
    drop(file);
    let ran = mount.end("TERM");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert!(lines[0].contains("cannot read at byte 8388608: "), "{ran:?}");
    assert!(lines[0].contains("500"), "{ran:?}");
    let listed = format!("quarrier: {}: bytes 8388608..", server.url);
    assert!(lines[1].starts_with(&listed) && lines[1].ends_with("could not be read"), "{ran:?}");
}

#[test]
fn a_copy_from_a_server_that_fails_in_the_middle_ends_with_an_error() {
    let lab = Lab::new();
    let bytes = noise(40 << 20, 6);
    // A request that begins earlier may get some bytes beyond.
    let server = Server::new(bytes.clone(), |_, first, _| match first {
        0x80_0000.. => Act::Status(500),
        _ => Act::Serve,
    });
    let Some(mut mount) = Mount::start(&lab, &server.url, &[]) else { return };
    let copy = lab.path("copy");
    let copied = Command::new("cp").arg(mount.file("disk.img")).arg(&copy).output().unwrap();
    assert!(!copied.status.success());
    let copy = fs::read(copy).unwrap();
    assert!(bytes.starts_with(&copy) && copy.len() >= 0x40_0000, "{} bytes", copy.len());
    let ran = mount.end("TERM");
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn a_server_that_recovers_serves_later_reads() {
    static IS_DOWN: AtomicBool = AtomicBool::new(false);
    let lab = Lab::new();
    let bytes = noise(4 << 20, 6);
    let server = Server::new(bytes.clone(), |_, _, _| match IS_DOWN.load(Ordering::SeqCst) {
        true => Act::Status(503),
        false => Act::Serve,
    });
    let Some(mut mount) = Mount::start(&lab, &server.url, &[]) else { return };
    IS_DOWN.store(true, Ordering::SeqCst);
    let file = File::open(mount.file("disk.img")).unwrap();
    assert_eq!(errno(file.read_exact_at(&mut [0; 4096], 3 << 20)), Some(libc::EIO));
    IS_DOWN.store(false, Ordering::SeqCst);
    assert!(copied(&lab, &mount.file("disk.img")) == bytes);
    drop(file);
    // It reports the failed read, but no byte is left unread.
    mount.end("TERM").says(0, &["cannot read at byte", "503"]);
}

#[test]
fn a_signal_unmounts_while_a_file_is_open_and_a_read_hangs() {
    let lab = Lab::new();
    let server = Server::new(noise(4 << 20, 7), |_, first, _| match first {
        0x10_0000.. => Act::Silence,
        _ => Act::Serve,
    });
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignores_hangup = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 != 0;
    for signal in ["TERM", "INT", "HUP"] {
        if signal == "HUP" && ignores_hangup {
            // As under nohup, which the mount inherits.
            return;
        }
        let Some(mut mount) = Mount::start(&lab, &server.url, &[]) else { return };
        let file = File::open(mount.file("disk.img")).unwrap();
        let asked = server.requests();
        let reader = thread::spawn(move || {
            let read = file.read_exact_at(&mut [0; 4096], 0x20_0000);
            (errno(read), file)
        });
        while server.requests() == asked {
            thread::sleep(Duration::from_millis(1));
        }
        // Names are answered meanwhile.
        assert_eq!(fs::metadata(mount.file("disk.img")).unwrap().len(), 4 << 20);
        assert_eq!(errno(File::open(mount.file("missing"))), Some(libc::ENOENT));
        mount.end_cleanly(signal);
        let (error, file) = reader.join().unwrap();
        assert!(matches!(error, Some(libc::EIO | libc::ENOTCONN)), "{error:?}");
        assert_eq!(errno(file.read_exact_at(&mut [0; 4096], 0x30_0000)), Some(libc::ENOTCONN));
        assert_eq!(fs::read_dir(&mount.point).unwrap().count(), 0);
    }
}

#[test]
fn an_unmount_by_somebody_else_ends_it() {
    let lab = Lab::with("bytes");
    let Some(mut mount) = Mount::start(&lab, "f", &[]) else { return };
    let unmount = |program: &str, args: &[&str], point: &Path| {
        Command::new(program).args(args).arg(point).status().is_ok_and(|status| status.success())
    };
    let is_done =
        unmount("umount", &[], &mount.point) || unmount("fusermount3", &["-u"], &mount.point);
    assert!(is_done);
    assert_eq!(mount.ended().code, Some(0));

    let Some(mut mount) = Mount::start(&lab, "f", &[]) else { return };
    if unmount("fusermount3", &["-u"], &mount.point) {
        assert_eq!(mount.ended().code, Some(0));
    } else {
        skip("there is no fusermount3");
    }
}

#[test]
fn a_mount_below_survives() {
    let lab = Lab::with("bytes");
    let Some(mut mount) = Mount::start(&lab, "f", &[]) else { return };
    assert_eq!(mount.end("TERM").code, Some(0));
    let tmpfs = |point: &Path| {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(point).status();
        mounted.is_ok_and(|status| status.success())
    };
    if !tmpfs(&mount.point) {
        return skip("only root mounts another file system");
    }
    let Some(mut above) = Mount::start(&lab, "f", &[]) else { return };
    let umount = |point: &Path| Command::new("umount").arg(point).status().unwrap().success();
    assert!(umount(&above.point));
    let ran = above.ended();
    let is_still_mounted = is_mounted(&mount.point);
    assert!(umount(&mount.point));
    assert!(ran.code == Some(0) && is_still_mounted, "{ran:?}");
}

#[test]
fn a_file_that_shrinks_gives_an_error_and_no_zeros() {
    let lab = Lab::new();
    let bytes = noise(1 << 20, 8);
    lab.put("f", &bytes);
    let Some(mut mount) = Mount::start(&lab, "f", &[]) else { return };
    let file = fs::OpenOptions::new().write(true).open(lab.path("f")).unwrap();
    file.set_len(0x8_0000).unwrap();
    let shown = File::open(mount.file("f")).unwrap();
    let mut part = vec![0; 4096];
    shown.read_exact_at(&mut part, 0x7_0000).unwrap();
    assert!(part == bytes[0x7_0000..0x7_1000]);
    assert_eq!(errno(shown.read_exact_at(&mut part, 0x9_0000)), Some(libc::EIO));
    drop(shown);
    let ran = mount.end("TERM");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("shrank"), "{ran:?}");
}

#[test]
fn unsuitable_sources_and_mount_points_are_refused_in_one_line() {
    let lab = Lab::with("bytes");
    fs::create_dir_all(lab.path("m")).unwrap();
    fs::create_dir_all(lab.path("full")).unwrap();
    lab.put("full/thing", "x");
    let refuses = |args: &[&str], words: &[&str]| {
        run(lab.command([&["mount"], args].concat()), b"").refuses(words);
    };
    refuses(&["f", "missing"], &["missing: no such folder"]);
    refuses(&["f", "f"], &["f: is not a folder"]);
    refuses(&["f", "full"], &["full: is not empty", "'thing'"]);
    refuses(&["gone", "m"], &["gone"]);
    refuses(&["-", "m"], &["-: can only be read sequentially"]);
    refuses(&["m", "m"], &["m: "]);
    refuses(&["f"], &["MOUNTPOINT"]);
    refuses(&["f", "m", "--stats", "f"], &["f: is searched and would be overwritten"]);
    // Nothing is left mounted.
    assert!(!is_mounted(&lab.path("m")));
}

#[test]
fn a_missing_device_and_a_missing_right_are_refused_in_one_line() {
    let lab = Lab::with("bytes");
    fs::create_dir_all(lab.path("m")).unwrap();
    let quarrier = env!("CARGO_BIN_EXE_quarrier");
    let script = r#"mount -t tmpfs none /dev && exec "$0" mount f m"#;
    let mut hidden = Command::new("unshare");
    hidden.args(["-m", "sh", "-c", script, quarrier]);
    if works("unshare", &["-m".as_ref(), "true".as_ref()]) {
        hidden.current_dir(lab.path("")).stdin(Stdio::null());
        run(hidden, b"").refuses(&["/dev/fuse: cannot open", "modprobe fuse"]);
    } else {
        skip("only root hides the device");
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    let mut other = Command::new("setpriv");
    other.args(nobody).args([quarrier, "mount", "f", "m"]);
    other.current_dir(lab.path("")).stdin(Stdio::null());
    let probe = [&nobody[..], &[quarrier, "--version"]].concat();
    let probe: Vec<&OsStr> = probe.into_iter().map(OsStr::new).collect();
    // By default, only its owner can enter the lab's folder.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(lab.path(""), open).unwrap();
    if works("setpriv", &probe) {
        run(other, b"").refuses(&["cannot"]);
    } else {
        skip("the program cannot be run as another user");
    }
}

#[test]
fn a_dead_mount_is_named() {
    let lab = Lab::with("bytes");
    let Some(mut mount) = Mount::start(&lab, "f", &[]) else { return };
    mount.child.kill().unwrap();
    mount.child.wait().unwrap();
    run(lab.command(["mount", "f", "m"]), b"").refuses(&["m: is a mount whose program has ended"]);
    let mut rest = String::new();
    mount.child.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

/// The files below a folder with their bytes and times, by path.
fn tree(folder: &Path, prefix: &str, found: &mut Vec<(String, i64, Vec<u8>)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        let meta = fs::symlink_metadata(entry.path()).unwrap();
        if meta.is_dir() {
            found.push((name.clone(), meta.mtime(), Vec::new()));
            tree(&entry.path(), &name, found);
        } else if name != "/case.json" {
            assert!(meta.is_file(), "{name}");
            found.push((name, meta.mtime(), fs::read(entry.path()).unwrap()));
        }
    }
}

/// Makes a file system in `disk` with files of many sizes.
fn make_system(lab: &Lab, format: &str) -> bool {
    lab.put_sparse("disk", 32 << 20, &[]);
    fs::create_dir_all(lab.path("given/deep/deeper")).unwrap();
    for (at, size) in [0, 1, 59, 60, 4096, 4097, 100_000, 3_000_001].into_iter().enumerate() {
        lab.put(format!("given/f{at}"), noise(size, at as u64));
        lab.put(format!("given/deep/deeper/ä {at}"), noise(size / 2, at as u64));
    }
    lab.put_sparse("given/holes", 1 << 20, &[(500_000, b"island")]);
    std::os::unix::fs::symlink("../elsewhere", lab.path("given/link")).unwrap();
    does(lab, "mke2fs", &["-q", "-F", "-t", format, "-d", "given", "disk"])
}

#[test]
fn files_of_a_file_system_are_those_that_are_extracted() {
    for format in ["ext2", "ext4"] {
        let lab = Lab::new();
        if !make_system(&lab, format) {
            return skip("mke2fs does not run");
        }
        run(
            lab.command(["files", "disk", "--extract", "-o", "out", "--quiet", "--stats", "-"]),
            b"",
        );
        let Some(mut mount) = Mount::start(&lab, "disk", &["--files"]) else { return };
        let (mut shown, mut extracted) = (Vec::new(), Vec::new());
        tree(&mount.file("files"), "", &mut shown);
        tree(&lab.path("out"), "", &mut extracted);
        assert!(extracted.len() > 20);
        let names = |all: &[(String, i64, Vec<u8>)]| {
            all.iter()
                .map(|(name, time, bytes)| (name.clone(), *time, bytes.len()))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&shown), names(&extracted));
        assert!(shown == extracted);
        assert!(copied(&lab, &mount.file("disk")) == fs::read(lab.path("disk")).unwrap());
        let file = mount.file("files/deep/deeper/ä 7");
        check_concurrently(&file, &noise(1_500_000, 7));
        assert!(mapped(&file) == noise(1_500_000, 7));
        assert_eq!(errno(File::open(mount.file("files/missing"))), Some(libc::ENOENT));
        mount.end_cleanly("TERM");
    }
}

#[test]
fn a_file_whose_sectors_are_gone_is_an_error_that_is_listed() {
    let lab = Lab::new();
    if !make_system(&lab, "ext2") {
        return skip("mke2fs does not run");
    }
    let listed = run(lab.command(["files", "disk", "/f7", "--format", "json"]), b"");
    let row: serde_json::Value = serde_json::from_str(listed.lines()[0]).unwrap();
    let extents = row["extents"].as_array().unwrap();
    let end = extents.last().unwrap()[0].as_u64().unwrap();
    let Some(mut mount) = Mount::start(&lab, "disk", &["--files"]) else { return };
    let disk = fs::OpenOptions::new().write(true).open(lab.path("disk")).unwrap();
    disk.set_len(end).unwrap();
    assert_eq!(errno(fs::read(mount.file("files/f7"))), Some(libc::EIO));
    assert!(fs::read(mount.file("files/f1")).unwrap() == noise(1, 1));
    let ran = mount.end("TERM");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("disk: files/f7: "), "{ran:?}");
}

#[test]
fn files_of_several_partitions_are_in_numbered_folders() {
    let lab = Lab::new();
    if !make_system(&lab, "ext2") {
        return skip("mke2fs does not run");
    }
    // An MBR with two partitions of 32 MiB, both the same.
    let system = fs::read(lab.path("disk")).unwrap();
    let mut table = vec![0; 512];
    for (at, start) in [(446, 2048u32), (462, 2048 + 65_536)] {
        table[at + 4] = 0x83;
        table[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
        table[at + 12..at + 16].copy_from_slice(&65_536u32.to_le_bytes());
    }
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    let islands = [(0, &table[..]), (2048 * 512, &system), ((2048 + 65_536) * 512, &system)];
    lab.put_sparse("files", (2048 + 2 * 65_536) * 512, &islands);
    let Some(mut mount) = Mount::start(&lab, "files", &["--files"]) else { return };
    // The image is called 'files' itself.
    for number in [1, 2] {
        let file = mount.file(&format!("files~folder/#{number}/f7"));
        assert!(fs::read(file).unwrap() == noise(3_000_001, 7));
    }
    mount.end_cleanly("TERM");
    let Some(mut mount) = Mount::start(&lab, "files#2", &[]) else { return };
    assert!(copied(&lab, &mount.file("files-2")) == system);
    mount.end_cleanly("TERM");
    run(lab.command(["mount", "given/f7", "m", "--files"]), b"").refuses(&["no file system"]);
}
