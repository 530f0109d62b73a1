//! The prompt, at a terminal of its own.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::harness::{Folder, PATIENCE, ended, terminal};

/// The program at a terminal.
struct Prompt {
    child: Child,
    keys: File,
    shown: Receiver<u8>,
    screen: String,
}

impl Prompt {
    fn new(folder: &Folder) -> Self {
        let (keys, its) = terminal();
        let child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
            .args(["--table", "m=orders.ndjson", "--format", "csv"])
            .current_dir(folder.path(""))
            .env("XDG_STATE_HOME", folder.path("state"))
            .env("TERM", "xterm")
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

    /// Waits until `text` is shown, and drops the output until then.
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

#[test]
fn statements_are_typed_completed_and_remembered() {
    let folder = Folder::new();
    folder.file("orders.ndjson", "{\"qty\":40}\n{\"qty\":2}\n");
    let mut prompt = Prompt::new(&folder);
    prompt.until(PROMPT);
    // A statement goes on until its ';'.
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
    // Two lines up is the one before.
    prompt.typed("\x1b[A\x1b[A\r");
    prompt.until("\n45\r\n");
    prompt.until(PROMPT);
    prompt.typed("exit\r");
    assert_eq!(prompt.ended(), 0);
    // The next session knows them.
    let mut prompt = Prompt::new(&folder);
    prompt.until(PROMPT);
    prompt.typed("\x1b[A\r");
    prompt.until("\n45\r\n");
    prompt.until(PROMPT);
    prompt.typed("\x04");
    assert_eq!(prompt.ended(), 0);
}
