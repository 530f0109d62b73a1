//! `quarrier filter` over standard input: matches are printed while the pipe is still open, and
//! compressed input is decompressed.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::filter::filter_input;
use crate::harness::{Lab, Ran, drain, run, send, skip, wait};

/// Longer than any delay: output still missing then never arrives.
const NEVER_AFTER: Duration = Duration::from_secs(60);

/// A run with its standard input open.
struct Live {
    child: Child,
    stdin: ChildStdin,
    output: Receiver<Vec<u8>>,
    came: Vec<u8>,
}

impl Live {
    fn filter<'a>(lab: &Lab, args: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = lab.command(["filter"]);
        command.args(args).stdin(Stdio::piped());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Live { child, stdin, output, came: Vec::new() }
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stdin.write_all(bytes.as_ref()).unwrap();
        self
    }

    /// Waits until the output equals this, while the input stays open.
    #[track_caller]
    fn shows(&mut self, expected: impl AsRef<[u8]>) -> &mut Self {
        let expected = expected.as_ref();
        while self.came.len() < expected.len() {
            let more = self.output.recv_timeout(NEVER_AFTER);
            self.came.extend(more.expect("matches come while the input is open"));
        }
        assert_eq!(self.came.escape_ascii().to_string(), expected.escape_ascii().to_string());
        self
    }

    /// Ends the input; returns all output.
    fn end(mut self) -> Ran {
        drop(self.stdin);
        let stderr = drain(self.child.stderr.take().unwrap());
        let status = wait(&mut self.child);
        self.came.extend(self.output.iter().flatten());
        Ran::new(status, self.came, &stderr)
    }
}

fn fix(quantity: u32) -> Vec<u8> {
    let body = format!("35=D\u{1}38={quantity}\u{1}");
    let message = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
    let sum = message.bytes().map(u32::from).sum::<u32>() % 256;
    format!("{message}10={sum:03}\u{1}").into_bytes()
}

#[test]
fn a_match_comes_while_the_pipe_stays_open() {
    let lab = Lab::new();
    for workers in ["1", "3"] {
        let mut live = Live::filter(&lab, ["a > 1", "-", "--workers", workers]);
        live.send("{\"a\":1}\n{\"a\":2}\n").shows("{\"a\":2}\n");
        live.send("{\"a\":3}\n").shows("{\"a\":2}\n{\"a\":3}\n");
        // A message in three parts is printed when it is complete.
        live.send("{\"a\"").send(":4}").send("\n{\"a\":5}\n{\"a\":");
        live.shows("{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}\n");
        live.send("6}");
        let ran = live.end();
        assert!(ran.is_clean().text().ends_with("{\"a\":5}\n{\"a\":6}\n"));
    }
}

#[test]
fn rows_of_every_kind_come_while_the_pipe_stays_open() {
    let lab = Lab::new();
    for (format, first, second) in [
        ("json", "{\"a\":2}\n", "{\"a\":2}\n{\"a\":3}\n"),
        ("csv", "a\n2\n", "a\n2\n3\n"),
        ("text", "2\n", "2\n3\n"),
    ] {
        let mut live = Live::filter(&lab, ["a > 1", "-", "--columns", "a", "--format", format]);
        live.send("{\"a\":2}\n").shows(first).send("{\"a\":3}\n").shows(second);
        live.end().is_clean();
    }
}

#[test]
fn messages_of_every_format_come_while_the_pipe_stays_open() {
    let lab = Lab::new();
    let mut csv = Live::filter(&lab, ["a > 1", "-"]);
    csv.send("a,b\n1,x\n2,y\n").shows("2,y\n").send("3,\"p\nq\"\n4,\"r").shows("2,y\n3,\"p\nq\"\n");
    csv.send("\ns\"\n").shows("2,y\n3,\"p\nq\"\n4,\"r\ns\"\n");
    csv.end().is_clean();

    let with_line = |message: Vec<u8>| [message, b"\n".to_vec()].concat();
    for ending in [&b""[..], b"\n"] {
        let mut live = Live::filter(&lab, ["OrderQty > 1", "-"]);
        let expected = with_line(fix(2));
        live.send(fix(1)).send(ending).send(fix(2)).send(ending).shows(&expected);
        let expected = [expected, with_line(fix(3))].concat();
        live.send(fix(3)).send(ending).shows(expected);
        live.end().is_clean();
    }

    let mut xml = Live::filter(&lab, ["a > 1", "-"]);
    xml.send("<o a='1'/>\n<o a='2'/>\n<o a='3'>").shows("<o a='2'/>\n");
    xml.send("<b/></o>\n").shows("<o a='2'/>\n<o a='3'><b/></o>\n");
    xml.end().is_clean();
}

#[test]
fn fix_without_line_feeds_is_not_collected_before_the_first_message() {
    let lab = Lab::new();
    let messages: Vec<u8> = (0..50_000).flat_map(fix).collect();
    let mut live = Live::filter(&lab, ["OrderQty = 7", "-"]);
    let expected = [fix(7), b"\n".to_vec()].concat();
    // More than a sample, less than the maximum message.
    live.send(&messages).shows(expected);
    live.end().is_clean();
}

#[test]
fn compressed_standard_input_is_read_through() {
    let lab = Lab::new();
    let messages: String = (0..200_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    lab.put("f", messages);
    for program in ["gzip", "zstd"] {
        let zipped = Command::new(program).arg("-c").arg(lab.path("f")).output();
        let Ok(zipped) = zipped else { return skip("there is no gzip, or no zstd") };
        let zipped = zipped.stdout;
        let ran = filter_input(&lab, &zipped, ["n % 50000 = 0", "-"]);
        let expected = "{\"n\":0}\n{\"n\":50000}\n{\"n\":100000}\n{\"n\":150000}\n";
        assert_eq!(ran.is_clean().text(), expected);
        // Truncated: the earlier rows are printed, and the failure is reported.
        let ran = filter_input(&lab, &zipped[..zipped.len() / 2], ["n = 0", "-"]);
        ran.says(2, &["-: cannot read at byte"]);
        assert_eq!(ran.text(), "{\"n\":0}\n");
    }
    // A stream that only begins like a compressed one is not compressed.
    filter_input(&lab, b"\x1f\x8b", ["a = 1", "-"]).says(1, &["1 of 1 messages was left out"]);
}

fn append(lab: &Lab, name: &str, text: &str) {
    let mut file = std::fs::File::options().append(true).open(lab.path(name)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_file_is_followed_and_each_match_of_each_condition_is_a_row() {
    let lab = Lab::new();
    lab.put("log", b"{\"a\":1}\n{\"a\":5}\n");
    lab.put("many.sql", b"a > 3\na BETWEEN 5 AND 6\na = 0\n");
    let mut live = Live::filter(&lab, ["--many", "many.sql", "--follow", "log"]);
    let first = "a > 3\t{\"a\":5}\na BETWEEN 5 AND 6\t{\"a\":5}\n";
    live.shows(first);
    append(&lab, "log", "{\"a\":9}\n{\"a\"");
    append(&lab, "log", ":0}\n");
    let second = format!("{first}a > 3\t{{\"a\":9}}\na = 0\t{{\"a\":0}}\n");
    live.shows(&second);
    // A file that replaces it is read from its start.
    std::fs::rename(lab.path("log"), lab.path("log.1")).unwrap();
    lab.put("log", b"{\"a\":7}\n");
    live.shows(format!("{second}a > 3\t{{\"a\":7}}\n"));
    send("INT", &live.child);
    let ran = live.end();
    ran.says(130, &["log: interrupted at byte"]);
}

#[test]
fn matches_have_rows_in_every_format() {
    let lab = Lab::new();
    lab.put("many.sql", b"a > 3\na = 5\n");
    let row = |condition: &str| {
        format!(
            "{{\"source\":\"-\",\"offset\":8,\"condition\":\"{condition}\",\"message\":\"{{\\\"a\\\":5}}\"}}\n"
        )
    };
    let csv = "source,offset,condition,message\n-,8,a > 3,\"{\"\"a\"\":5}\"\n-,8,a = 5,\"{\"\"a\"\":5}\"\n";
    for (format, expected) in [("json", row("a > 3") + &row("a = 5")), ("csv", csv.to_string())] {
        let args = ["--many", "many.sql", "--follow", "--format", format, "-"];
        let mut live = Live::filter(&lab, args);
        live.send("{\"a\":1}\n{\"a\":5}\n").shows(&expected);
        live.end().is_clean();
    }
}

#[test]
fn sources_that_cannot_grow_are_not_followed() {
    let lab = Lab::new();
    lab.put("log", b"{\"a\":1}\n");
    let follow = |args: &[&str]| run(lab.command([&["filter"][..], args].concat()), b"");
    follow(&["a = 1", "--follow", "log", "log"]).says(2, &["--follow takes one file"]);
    follow(&["a = 1", "--follow", "--data", "d", "t"]).says(2, &["SUBSCRIBE"]);
    follow(&["a = 1", "--follow", "http://127.0.0.1:1/log"]).says(2, &["can be followed"]);
}
