//! psql, connected to the toy engine.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use quarrier_core::sync::lock;
use quarrier_wire::{Limits, Users, made_line};

use crate::toy::{Served, served, served_to};

fn psql(served: &Served, arguments: &[&str], password: &str, input: &str) -> Output {
    let port = served.postgres.port().to_string();
    let mut child = Command::new("psql")
        .args(["-X", "-h", "127.0.0.1", "-p", &port, "-U", "ann", "-d", "quarrier", "-At"])
        .args(arguments)
        .env("PGPASSWORD", password)
        .env("PGCONNECT_TIMEOUT", "30")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql is there: scripts/setup.sh installs it");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn psql_queries_and_copies() {
    let served = served();
    let (out, wrong) = said(&psql(&served, &["-c", "SELECT rows 2"], "", ""));
    assert_eq!(wrong, "");
    assert_eq!(
        out.lines().next().unwrap(),
        "0|t\t0|0|t|1970-01-01|1970-01-01 00:00:00|0.00|\\x0000|ay|{}"
    );
    let input =
        "\\copy t (a, b) FROM stdin WITH (FORMAT csv)\n1,x\n2,\"y\nz\"\n\\.\nSELECT taken;\n";
    let (out, wrong) = said(&psql(&served, &[], "", input));
    assert_eq!(wrong, "");
    assert_eq!(out, "COPY 2\n{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":\"y\\nz\"}\n");
    let (out, wrong) = said(&psql(&served, &[], "", "\\set FETCH_COUNT 2\nSELECT rows 5;\n"));
    assert_eq!((wrong.as_str(), out.lines().count()), ("", 5));
    let failed = psql(&served, &["-c", "nonsense"], "", "");
    assert!(said(&failed).1.contains("the toy knows no such sentence") && !failed.status.success());
}

#[test]
fn psql_connects_only_with_its_password() {
    let line = made_line("ann", "pencil").unwrap();
    let served = served_to(Some(Users::of(&line, "users").unwrap()), Limits::default());
    let (out, wrong) = said(&psql(&served, &["-c", "SELECT 1"], "pencil", ""));
    assert_eq!((out.as_str(), wrong.as_str()), ("1\n", ""));
    let (_, wrong) = said(&psql(&served, &["-c", "SELECT 1"], "crayon", ""));
    assert!(wrong.contains("password authentication failed for user \"ann\""), "{wrong}");
    assert_eq!(lock(&served.said).len(), 1);
}
