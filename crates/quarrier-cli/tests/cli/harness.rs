//! The one way to run the binary and to check its answer.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any test may take; a run that is still going then hangs.
const HANGS_AFTER: Duration = Duration::from_secs(60);

/// The offsets when nothing is found.
pub(crate) const NOWHERE: [u64; 0] = [];

/// An empty folder that the binary runs in.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Lab { folder: tempfile::tempdir().unwrap() }
    }

    /// A lab with one file `f`.
    pub(crate) fn with(bytes: impl AsRef<[u8]>) -> Self {
        let lab = Lab::new();
        lab.put("f", bytes);
        lab
    }

    pub(crate) fn put(&self, name: impl AsRef<OsStr>, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// Creates a file of `length` zeros that takes no space, with some bytes written into it.
    pub(crate) fn put_sparse(&self, name: &str, length: u64, islands: &[(u64, &[u8])]) {
        use std::os::unix::fs::FileExt;
        let file = fs::File::create(self.path(name)).unwrap();
        file.set_len(length).unwrap();
        for (offset, bytes) in islands {
            file.write_all_at(bytes, *offset).unwrap();
        }
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.folder.path().join(name.as_ref())
    }

    /// The names in the folder.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// The binary with `args`, in this folder, with nothing on its standard input.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quarrier"));
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// `quarrier search ARGS…`, ready to run.
    pub(crate) fn search_command<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = self.command(["search"]);
        command.args(args);
        command
    }

    /// Runs `quarrier search ARGS…`.
    pub(crate) fn search<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        run(self.search_command(args), b"")
    }

    /// Runs `quarrier search ARGS…` with `input` on its standard input.
    pub(crate) fn search_input<A: AsRef<OsStr>>(
        &self,
        input: &[u8],
        args: impl IntoIterator<Item = A>,
    ) -> Ran {
        let mut command = self.search_command(args);
        command.stdin(Stdio::piped());
        run(command, input)
    }

    /// The findings of `quarrier search --format json ARGS…`, which must be a clean run.
    pub(crate) fn find<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Vec<Row> {
        let mut command = self.search_command(["--format", "json"]);
        command.args(args);
        run(command, b"").rows()
    }

    /// The offsets of [`find`](Self::find).
    pub(crate) fn offsets<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Vec<u64> {
        self.find(args).into_iter().map(|row| row.offset).collect()
    }
}

/// The answer of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// A finding in JSON.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) source: String,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) pattern: String,
    pub(crate) name: Option<String>,
    #[serde(rename = "match")]
    pub(crate) found: String,
    pub(crate) before_hex: Option<String>,
    pub(crate) after_hex: Option<String>,
}

impl Ran {
    pub(crate) fn new(status: ExitStatus, stdout: Vec<u8>, stderr: &[u8]) -> Self {
        let stderr = String::from_utf8_lossy(stderr).into_owned();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { code: status.code(), signal: status.signal(), stdout, stderr }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text().lines().collect()
    }

    /// Checks that it found (0) or did not find (1), without a message.
    #[track_caller]
    pub(crate) fn is_clean(&self) -> &Self {
        let expected = if self.stdout.is_empty() { 1 } else { 0 };
        assert_eq!((self.code, self.stderr.as_str()), (Some(expected), ""));
        self
    }

    /// Checks for exit code `code` and exactly one line on standard error that contains all `words`.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, words: &[&str]) -> &Self {
        let line = self.stderr.strip_suffix('\n').unwrap_or("(no line)");
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(line.starts_with("quarrier: "), "{self:?}");
        assert!(!line.contains(['\n', '\r', '\x1b']), "{self:?}");
        for word in words {
            assert!(line.contains(word), "no '{word}' in: {line}");
        }
        self
    }

    /// Checks for a failure without output.
    #[track_caller]
    pub(crate) fn refuses(&self, words: &[&str]) {
        self.says(2, words);
        assert_eq!(self.text(), "");
    }

    /// All rows of a clean run in JSON.
    #[track_caller]
    pub(crate) fn rows(&self) -> Vec<Row> {
        self.is_clean();
        parse_rows(self.text())
    }
}

pub(crate) fn parse_rows(lines: &str) -> Vec<Row> {
    assert!(lines.is_empty() || lines.ends_with('\n'), "the last line is cut");
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a command to its end; `input` goes to its standard input if that is a pipe.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(move || {
            // The command may end before it has read everything.
            stdin.map(|mut stdin| stdin.write_all(input))
        });
        let stdout = scope.spawn(move || drain(out.unwrap()));
        let stderr = scope.spawn(move || drain(err.unwrap()));
        let status = wait(&mut child);
        Ran::new(status, stdout.join().unwrap(), &stderr.join().unwrap())
    })
}

/// Reads everything until the end.
pub(crate) fn drain(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Waits for the end of a run, and kills one that hangs.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > HANGS_AFTER {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends a signal by its name.
pub(crate) fn send(signal: &str, child: &Child) {
    let line = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
}

/// Returns once a run handles Ctrl-C itself, however long it takes to start.
pub(crate) fn until_it_handles_interrupts(child: &Child) {
    const SIGINT_BIT: u64 = 1 << (2 - 1);
    let started = Instant::now();
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & SIGINT_BIT != 0 {
            return;
        }
        assert!(started.elapsed() < HANGS_AFTER, "it never handles interrupts");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Reports that a test is skipped, and why.
#[expect(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]
pub(crate) fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

/// Whether a system program succeeds.
pub(crate) fn works(program: &str, args: &[&OsStr]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Every position of `needle` in `text`, overlapping ones too: the oracle.
pub(crate) fn places(text: &[u8], needle: &[u8]) -> Vec<u64> {
    let all = text.windows(needle.len()).enumerate();
    all.filter(|(_, window)| *window == needle).map(|(at, _)| at as u64).collect()
}

/// Bytes without a pattern, the same every time (xorshift).
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(|_| next()).collect()
}
