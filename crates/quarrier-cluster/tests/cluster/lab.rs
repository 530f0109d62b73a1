//! Sources, processes, and their output.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_quarrier-cluster");

/// Numbers that look random, and are the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Draw(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// A folder for a test.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Lab { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A command in the folder, without a cluster.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.path()).env_remove("QUARRIER_CLUSTER");
        // Killed processes leave their folders there.
        command.stdin(Stdio::null()).env("TMPDIR", self.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        finished(self.command(arguments), Duration::from_secs(240))
    }
}

/// The output of a command, which must end in time.
pub(crate) fn finished(mut command: Command, most: Duration) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let (pid, shown) = (child.id(), format!("{command:?}"));
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match receiver.recv_timeout(most) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            kill(pid, "KILL");
            panic!("{shown} did not end within {most:?}");
        }
    }
}

/// Sends a signal.
pub(crate) fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status();
    assert!(status.is_ok());
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asserts that two runs have the same rows and the same exit code.
pub(crate) fn assert_same(one: &Output, other: &Output, about: &str) {
    let show = |output: &Output| {
        let rows = text(&output.stdout);
        let rows: String = rows.chars().take(2_000).collect();
        format!("{:?}\n{rows}\n{}", output.status.code(), text(&output.stderr))
    };
    assert!(
        one.status.code() == other.status.code() && one.stdout == other.stdout,
        "{about}\n--- one\n{}\n--- other\n{}",
        show(one),
        show(other)
    );
}

/// A process that is ended when dropped.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A scheduler and its workers.
pub(crate) struct Cluster {
    pub(crate) scheduler: Process,
    pub(crate) workers: Vec<Process>,
    pub(crate) at: String,
    logs: tempfile::TempDir,
    host: String,
    tls: Option<PathBuf>,
}

fn with_tls(command: &mut Command, tls: Option<&Path>) {
    if let Some(tls) = tls {
        command.arg("--tls").arg(tls);
    }
}

impl Cluster {
    pub(crate) fn start(workers: usize) -> Self {
        Self::start_with(workers, "127.0.0.1", None)
    }

    /// Starts a cluster at this address of the machine, with certificates of a folder.
    pub(crate) fn start_with(workers: usize, host: &str, tls: Option<&Path>) -> Self {
        let logs = tempfile::tempdir().unwrap();
        let tls = tls.map(Path::to_path_buf);
        let mut command = Command::new(PROGRAM);
        command.args(["scheduler", "--listen", &format!("{host}:0")]).stdout(Stdio::piped());
        with_tls(&mut command, tls.as_deref());
        command.stderr(std::fs::File::create(logs.path().join("scheduler")).unwrap());
        let mut scheduler = Process(command.spawn().unwrap());
        let mut line = String::new();
        let out = scheduler.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let at = line.trim_end().strip_prefix("ready: scheduler at ").expect(&line).to_string();
        let (workers_, host) = (Vec::new(), host.to_string());
        let mut cluster = Cluster { scheduler, workers: workers_, at, logs, host, tls };
        for number in 0..workers {
            cluster.add_worker(number, &[]);
        }
        cluster.wait_for(workers);
        cluster
    }

    pub(crate) fn add_worker(&mut self, number: usize, environment: &[(&str, &str)]) {
        let log = std::fs::File::create(self.logs.path().join(format!("worker-{number}"))).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["worker", &self.at, "--cores", "1", "--name", &format!("w{number}")]);
        command.args(["--listen", &self.host]);
        with_tls(&mut command, self.tls.as_deref());
        command.envs(environment.iter().copied());
        let folder = self.logs.path().join(format!("rows-{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log).env("TMPDIR", folder);
        self.workers.push(Process(command.spawn().unwrap()));
    }

    pub(crate) fn wait_for(&self, workers: usize) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(60) {
            let status = self.status();
            if status.matches("\"name\":\"w").count() >= workers {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the workers did not start: {}\n{}", self.status(), self.logs());
    }

    pub(crate) fn status(&self) -> String {
        let mut command = Command::new(PROGRAM);
        command.args(["status", &self.at, "--json"]);
        with_tls(&mut command, self.tls.as_deref());
        text(&command.output().unwrap().stdout)
    }

    /// Everything that scheduler and workers printed.
    pub(crate) fn logs(&self) -> String {
        let files = std::fs::read_dir(self.logs.path()).unwrap();
        let paths = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
        paths.map(|path| text(&std::fs::read(path).unwrap())).collect::<Vec<_>>().join("\n")
    }
}

/// Text of a few letters, where patterns are found often, with runs that cross borders.
pub(crate) fn bytes(draw: &mut Draw, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 100);
    while bytes.len() < length {
        match draw.below(12) {
            0 => bytes
                .extend(std::iter::repeat_n(*draw.one_of(b"a0\n\x00"), draw.below(90) as usize)),
            1 => bytes.extend_from_slice(b"invoice 2026-11-27"),
            2 => bytes.extend("Rechnung".encode_utf16().flat_map(u16::to_le_bytes)),
            3 => bytes.extend_from_slice(b"\xFF\xD8\xFF\xE0\x00\x10JFIF"),
            4 => bytes.extend_from_slice(b"ann@example.org, "),
            _ => bytes.extend((0..draw.below(40)).map(|_| *draw.one_of(b"abcdxyz 01\n"))),
        }
    }
    bytes.truncate(length);
    bytes
}
