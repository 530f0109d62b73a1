//! The prompt, on a pseudo-terminal.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::harness::{Folder, PATIENCE, ended, terminal};

/// The program on a pseudo-terminal.
struct Prompt {
    child: Child,
    keys: File,
    shown: Receiver<u8>,
    screen: String,
}

impl Prompt {
    fn new(folder: &Folder) -> Self {
        Prompt::with(folder, "csv")
    }

    fn with(folder: &Folder, format: &str) -> Self {
        let (keys, its) = terminal();
        let child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
            .args(["--table", "m=orders.ndjson", "--format", format])
            .current_dir(folder.path(""))
            .env("XDG_STATE_HOME", folder.path("state"))
            .env("TERM", "xterm")
            .env("PAGER", "sed s/^/paged:/")
            .stdin(Stdio::from(its.try_clone().unwrap()))
            .stdout(Stdio::from(its.try_clone().unwrap()))
            .stderr(Stdio::from(its))
            .spawn()
            .unwrap();
        let (sender, shown) = channel();
        let screen = keys.try_clone().unwrap();
        // Ends when the program's end is closed.
        thread::spawn(move || {
            for byte in BufReader::new(screen).bytes() {
                let Ok(byte) = byte else { break };
                if sender.send(byte).is_err() {
                    break;
                }
            }
        });
        Prompt { child, keys, shown, screen: String::new() }
    }

    fn typed(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for `text` in the output, and discards the output up to it.
    fn until(&mut self, text: &str) {
        while !self.screen.contains(text) {
            match self.shown.recv_timeout(PATIENCE) {
                Ok(byte) => self.screen.push(char::from(byte)),
                Err(error) => panic!("{text:?} does not come: {error}: {:?}", self.screen),
            }
        }
        self.screen.clear();
    }

    fn ended(mut self) -> i32 {
        drop(self.shown);
        ended(&mut self.child).unwrap()
    }
}

const PROMPT: &str = "quarrier> ";
const CONTINUED: &str = "       -> ";

#[test]
fn statements_are_typed_completed_and_remembered() {
    let folder = Folder::new();
    folder.file("orders.ndjson", "{\"qty\":40}\n{\"qty\":2}\n");
    let mut prompt = Prompt::new(&folder);
    prompt.until(PROMPT);
    // A statement continues until its ';'.
    prompt.typed("SELECT sum(qty)\r");
    prompt.typed("FROM m;\r");
    prompt.until("\n42\r\n");
    prompt.until(PROMPT);
    // Words and files are completed.
    prompt.typed("SEL\t max(qty) + 5 AS most FROM 'ord\t';\r");
    prompt.until("\n45\r\n");
    prompt.until(PROMPT);
    // An error is reported, and the next statement is answered.
    prompt.typed("SELECT nothing FROM m;\r");
    prompt.until("quarrier: ");
    prompt.until(PROMPT);
    // Up twice recalls the statement before.
    prompt.typed("\x1b[A\x1b[A\r");
    prompt.until("\n45\r\n");
    prompt.until(PROMPT);
    prompt.typed("exit\r");
    assert_eq!(prompt.ended(), 0);
    // The next session has the history.
    let mut prompt = Prompt::new(&folder);
    prompt.until(PROMPT);
    prompt.typed("\x1b[A\r");
    prompt.until("\n45\r\n");
    prompt.until(PROMPT);
    prompt.typed("\x04");
    assert_eq!(prompt.ended(), 0);
}

#[test]
fn a_statement_continues_under_another_prompt_and_rows_are_counted() {
    let folder = Folder::new();
    folder.file("orders.ndjson", "{\"qty\":40}\n{\"qty\":2}\n");
    let mut prompt = Prompt::with(&folder, "text");
    prompt.until("\\? lists the commands.");
    prompt.until(PROMPT);
    prompt.typed("SELECT qty\r");
    prompt.until(CONTINUED);
    prompt.typed("FROM m;\r");
    prompt.until(" 40\r\n");
    prompt.until("(2 rows)");
    prompt.until(PROMPT);
    // Ctrl-C discards the statement.
    prompt.typed("SELECT\r");
    prompt.until(CONTINUED);
    prompt.typed("\x03");
    prompt.until(PROMPT);
    prompt.typed("SELECT 5 + 2;\r");
    prompt.until(" 7\r\n");
    prompt.until("(1 row)");
    prompt.until(PROMPT);
    // Columns are completed.
    prompt.typed("SELECT max(qt\t) + 1 FROM m;\r");
    prompt.until(" 41\r\n");
    prompt.until(PROMPT);
    prompt.typed("\\q\r");
    assert_eq!(prompt.ended(), 0);
}

#[test]
fn lines_with_a_backslash_are_commands_to_the_prompt() {
    let folder = Folder::new();
    folder.file("orders.ndjson", "{\"qty\":40}\n");
    let mut prompt = Prompt::with(&folder, "text");
    prompt.until(PROMPT);
    for (typed, shown) in [
        ("\\?", "quit, like"),
        ("\\d", "table_name\r\n"),
        ("\\d m", "qty "),
        ("\\x", "One line per value is on."),
        ("SELECT 5 AS a, 'b' AS long;", "a    | 5\r\nlong | b\r\n"),
        ("\\x off", "One line per value is off."),
        ("\\timing", "Timing is on."),
        ("SELECT 1;", "1 row in "),
        ("\\timing maybe", "'on' or 'off'"),
        ("\\copy", "unknown command '\\copy'"),
        // Wider than the terminal.
        ("SELECT repeat('x', 100) AS a;", "paged:xxxxxx"),
        ("\\pager off", "The pager is off."),
        ("SELECT repeat('y', 100) AS a;", "\nyyyyyy"),
    ] {
        prompt.typed(&format!("{typed}\r"));
        prompt.until(shown);
        prompt.until(PROMPT);
    }
    prompt.typed("quit\r");
    assert_eq!(prompt.ended(), 0);
}
