//! `quarrier serve --copy-to`: the log is copied while it grows, and restored after the disk is deleted.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use quarrier::kept::DataFolder;
use quarrier::{Environment, OpenOptions, Opener};

use crate::bucket::{Act, Buckets, SECRET};
use crate::harness::{Folder, PATIENCE, text};
use crate::killed::Client;
use crate::serve::{PROGRAM, Served, serve, started};

fn never() -> Arc<AtomicBool> {
    Arc::default()
}

/// Restores a folder from a bucket or a folder.
fn restore(variables: Vec<(String, String)>, from: &str, folder: &Folder, name: &str) -> u64 {
    let environment = Environment::of_variables(variables);
    let opener = Opener::new(OpenOptions::default(), &environment, &never());
    let place = opener.copy_place(from.as_ref()).unwrap();
    let restored = DataFolder::restore(&place, &folder.path(name), &AtomicBool::new(false));
    let restored = restored.unwrap_or_else(|error| panic!("{error}"));
    assert!(restored.damages.is_empty(), "{restored:?}");
    restored.last_mark
}

fn copying(folder: &Folder, buckets: &Buckets) -> Served {
    let mut command = Command::new(PROGRAM);
    command.arg("serve").envs(buckets.settings());
    let options = ["--data", "d", "--copy-to", "s3://lab/copy", "--segment", "1M", "--quiet"];
    started(&mut command, folder, &options)
}

/// Rows by key, after each acknowledged statement.
type Model = Vec<BTreeMap<u64, String>>;

fn rows(client: &mut Client) -> BTreeMap<u64, String> {
    let all = client.ask("SELECT id || ' ' || word FROM t").unwrap();
    let row = |row: &String| {
        let (id, word) = row.split_once(' ').unwrap();
        (id.parse().unwrap(), word.to_string())
    };
    all.iter().map(row).collect()
}

#[test]
fn a_deleted_disk_is_restored_up_to_the_copied_mark() {
    let (folder, buckets) = (Folder::new(), Buckets::new(3));
    let mut random = 0x9E37_79B9_u64 ^ u64::from(std::process::id());
    let mut below = |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (random >> 33) % end
    };
    let (mut model, mut copied): (Model, usize) = (vec![BTreeMap::new()], 0);
    for round in 0..3 {
        let mut served = copying(&folder, &buckets);
        // A store that is busy, and connections that break after the request was served.
        buckets.plan(|asked| match asked.number % 11 {
            0 => Act::Status(503),
            5 => Act::ServeAndCut,
            _ => Act::Serve,
        });
        let mut client = Client::connect(&served.addresses().0).unwrap();
        if round == 0 {
            let table = "CREATE TABLE t (id bigint PRIMARY KEY, word text) \
                         WITH (on_conflict = 'replace')";
            client.ask(table).unwrap();
        }
        let start = Instant::now();
        let mut number = 0;
        // Until the copy has something of this round.
        let begun = copied;
        while start.elapsed() < PATIENCE && (number < 60 || copied == begun) {
            number += 1;
            let (id, mut state) = (below(12), model.last().unwrap().clone());
            if below(4) == 0 {
                client.ask(&format!("DELETE FROM t WHERE id = {id}")).unwrap();
                state.remove(&id);
            } else {
                let word = format!("{round}.{number}").repeat(1 + below(900) as usize);
                client.ask(&format!("INSERT INTO t VALUES ({id}, '{word}')")).unwrap();
                state.insert(id, word);
            }
            model.push(state);
            let shown = "SELECT copied_mark = last_mark FROM quarrier.copies";
            if client.ask(shown).unwrap() == ["t"] {
                copied = model.len() - 1;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(copied > begun, "nothing is copied: {}", served.get("/metrics"));
        let shown = served.get("/metrics");
        assert!(shown.contains("quarrier_copy_behind_bytes "), "{shown}");
        assert!(shown.contains("quarrier_copy_behind_seconds "), "{shown}");
        served.kill();
        buckets.plan(|_| Act::Serve);
        let name = format!("restored{round}");
        restore(buckets.settings(), "s3://lab/copy", &folder, &name);
        served = serve(&folder, &["--data", &name, "--quiet"]);
        let found = rows(&mut Client::connect(&served.addresses().0).unwrap());
        let place = model.iter().rposition(|state| *state == found);
        assert!(place >= Some(copied), "{place:?}, {copied} of {} copied", model.len());
        assert_eq!(served.end(), Some(0));
    }
    // Before it ends, the server copies the rest.
    let served = copying(&folder, &buckets);
    served.ask("INSERT INTO t VALUES (99, 'last')");
    assert_eq!(served.end(), Some(0));
    std::fs::remove_dir_all(folder.path("d")).unwrap();
    restore(buckets.settings(), "s3://lab/copy", &folder, "all");
    let served = serve(&folder, &["--data", "all", "--quiet"]);
    let mut expected = model.last().unwrap().clone();
    expected.insert(99, "last".to_string());
    assert_eq!(rows(&mut Client::connect(&served.addresses().0).unwrap()), expected);
}

/// Ends a server, and returns what it says.
fn refused(folder: &Folder, options: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    command.arg("serve").args(["--listen", "127.0.0.1:0", "--http", "off"]).args(options);
    let output = command.current_dir(folder.path("")).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    text(&output.stderr)
}

#[test]
fn a_place_with_another_log_is_refused() {
    let folder = Folder::new();
    assert_eq!(serve(&folder, &["--data", "d", "--copy-to", "copy"]).end(), Some(0));
    let said = refused(&folder, &["--data", "e", "--copy-to", "copy"]);
    assert!(said.contains("copy/: has the copy of another log"), "{said}");
    let said = refused(&folder, &["--data", "d", "--copy-to", "d/copy"]);
    assert!(said.contains("d/copy/: is in the data folder"), "{said}");
    let said = refused(&folder, &["--data", "d", "--copy-to", "https://127.0.0.1/x"]);
    assert!(said.contains("a folder or a bucket"), "{said}");
    assert!(refused(&folder, &["--copy-to", "copy"]).contains("--data"));
    // The same log goes on.
    assert_eq!(serve(&folder, &["--data", "d", "--copy-to", "copy"]).end(), Some(0));
}

#[test]
fn a_store_that_fails_is_shown_and_stops_nothing() {
    let (folder, buckets) = (Folder::new(), Buckets::new(9));
    let served = copying(&folder, &buckets);
    served.ask("CREATE TABLE t (id bigint)");
    buckets.plan(|_| Act::Status(403));
    let start = Instant::now();
    let error = loop {
        served.ask("INSERT INTO t VALUES (1)");
        let error = served.ask("SELECT error FROM quarrier.copies WHERE behind_bytes > 0");
        if !error.trim().is_empty() || start.elapsed() > PATIENCE {
            break error;
        }
    };
    assert!(error.contains("s3://lab/copy/") && error.contains("cannot write it"), "{error}");
    assert!(!error.contains(SECRET), "{error}");
    assert!(!served.get("/metrics").contains("copy_failures_total 0\n"));
    // The disk has everything, and the next server copies it.
    let (code, said) = served.end_with_errors();
    assert_eq!(code, Some(0));
    assert!(said.contains("of the log") && said.contains("is not copied"), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    buckets.plan(|_| Act::Serve);
    let served = copying(&folder, &buckets);
    let count = served.ask("SELECT count(*) FROM t");
    assert_eq!(served.end(), Some(0));
    restore(buckets.settings(), "s3://lab/copy", &folder, "r");
    let restored = serve(&folder, &["--data", "r", "--quiet"]);
    assert_eq!(restored.ask("SELECT count(*) FROM t"), count);
}
