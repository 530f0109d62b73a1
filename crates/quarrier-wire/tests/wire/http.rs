//! HTTP.

use quarrier_core::sync::lock;
use quarrier_wire::{Limits, Users, made_line};
use serde_json::{Value, json};

use crate::client::{get, http, post};
use crate::toy::{served, served_to, served_with};

const ASK: &str = "/query?sql=SELECT+rows+7";

#[test]
fn rows_are_sent_in_the_requested_format() {
    let served = served();
    let (status, lines) = get(served.http, ASK, "");
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((status, rows.len()), (200, 7));
    assert_eq!(
        rows[5],
        json!({"i": 5, "t": "t\t5", "f": 1.25, "b": false, "d": "1970-01-06",
               "s": "1970-01-01T00:00:05.000005", "n": 6.25, "y": "\\x0500", "c": "see", "l": [0, null]})
    );
    assert_eq!(rows[6]["t"], Value::Null);
    let (_, array) = get(served.http, ASK, "Accept: application/json\r\n");
    assert_eq!(serde_json::from_str::<Vec<Value>>(&array).unwrap(), rows);
    let (_, csv) = get(served.http, ASK, "Accept: text/csv\r\n");
    assert!(csv.starts_with("i,t,f,b,d,s,n,y,c,l\n0,t\t0,0,t,"), "{csv}");
    let (_, none) = get(served.http, "/query?sql=SELECT+rows+0&format=json", "");
    assert_eq!(none, "[]\n");
    let (status, form) = post(served.http, "/query", "", "SELECT 1");
    assert_eq!((status, form.as_str()), (200, "{\"one\":1}\n"));
}

#[test]
fn errors_have_their_http_status() {
    let served = served();
    let (status, said) = get(served.http, "/query?sql=nonsense", "");
    assert_eq!(status, 400);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["code"], &said["hint"]), (&json!("42601"), &json!("SELECT 1")));
    for (path, wanted) in [
        ("/nowhere", 404),
        ("/tables/t", 405),
        ("/query", 400),
        ("/query?sql=SELECT+1;SELECT+1", 400),
        ("/query?sql=SELECT+1&format=pdf", 400),
        ("/query?sql=SELECT+echo+$1", 400),
        ("/query?sql=%ff", 400),
    ] {
        assert_eq!(get(served.http, path, "").0, wanted, "{path}");
    }
    assert_eq!(post(served.http, "/health", "", "").0, 405);
}

#[test]
fn interrupted_rows_cut_the_connection() {
    let served = served();
    for format in ["json", "ndjson", "csv", "arrow"] {
        let path = format!("/query?sql=SELECT+broken&format={format}");
        let address = served.http;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let mut stream = crate::client::connect(address);
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        let mut all = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut all);
        assert!(!all.ends_with(b"0\r\n\r\n"), "{format}: it looks whole");
    }
}

#[test]
fn get_changes_nothing() {
    let served = served();
    assert_eq!(get(served.http, "/query?sql=DELETE+all", "").0, 405);
    let (status, done) = post(served.http, "/query", "", "DELETE all");
    assert_eq!((status, done.as_str()), (200, "{\"done\":\"DELETE\",\"rows\":3}\n"));
}

#[test]
fn messages_are_posted() {
    let served = served();
    let (status, said) = post(served.http, "/tables/t", "", "{\"a\":1}\n{\"a\":2}\n");
    let said: Value = serde_json::from_str(&said).unwrap();
    let marks = json!({"first": 1, "last": 2, "messages": 2, "rejected": 0, "durable": true});
    assert_eq!((status, said), (200, marks));
    assert_eq!(*lock(&served.toy.taken), b"{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(post(served.http, "/tables/other", "", "x").0, 404);
    assert_eq!(post(served.http, "/tables/t", "Sequence: 1\r\n", "x").0, 400);
    assert_eq!(post(served.http, "/tables/t", "Content-Encoding: gzip\r\n", "x").0, 400);
}

#[test]
fn only_pages_of_a_folder_are_served() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("pages");
    std::fs::create_dir_all(folder.join("below.html")).unwrap();
    std::fs::write(outer.path().join("secret.html"), "secret").unwrap();
    std::fs::write(folder.join("a.html"), "<p>ünï").unwrap();
    std::fs::write(folder.join(".hidden.html"), "secret").unwrap();
    std::fs::write(folder.join("key.pem"), "secret").unwrap();
    std::fs::write(folder.join("long.csv"), vec![b'x'; (16 << 20) + 1]).unwrap();
    std::os::unix::fs::symlink("../secret.html", folder.join("link.html")).unwrap();
    let served = served_with(None, Limits::default(), Some(folder));
    assert_eq!(get(served.http, "/pages/a.html", ""), (200, "<p>ünï".to_string()));
    for (path, wanted) in [
        ("/pages/", 404),
        ("/pages/b.html", 404),
        ("/pages/key.pem", 404),
        ("/pages/.hidden.html", 404),
        ("/pages/../secret.html", 404),
        ("/pages/..%2fsecret.html", 404),
        ("/pages/%00.html", 404),
        ("/pages/%ff.html", 404),
        ("/pages/below.html", 500),
        ("/pages/link.html", 500),
        ("/pages/long.csv", 500),
    ] {
        let (status, said) = get(served.http, path, "");
        assert_eq!(status, wanted, "{path}: {said}");
        assert!(!said.contains("secret\n") && said.starts_with('{'), "{path}: {said}");
    }
    assert_eq!(post(served.http, "/pages/a.html", "", "").0, 404);
    let (status, said) = get(crate::toy::served().http, "/pages/a.html", "");
    assert!(status == 404 && said.contains("--pages"), "{said}");
}

#[test]
fn pages_of_other_sites_are_refused() {
    let served = served();
    let address = served.http;
    for headers in [
        "Host: evil.example\r\n".to_string(),
        format!("Host: evil.example:{}\r\n", address.port()),
        format!("Host: {address}\r\nOrigin: http://evil.example\r\n"),
        format!("Host: {address}\r\nOrigin: null\r\n"),
        format!("Host: {address}\r\nSec-Fetch-Site: cross-site\r\n"),
        format!("Host: {address}\r\nHost: {address}\r\n"),
    ] {
        for path in ["/", "/status", "/query?sql=SELECT+1", "/metrics"] {
            let (status, _) = get(address, path, &headers);
            assert!(matches!(status, 400 | 403), "{path}, {headers}: {status}");
        }
    }
    let same =
        format!("Host: {address}\r\nOrigin: http://{address}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(get(address, "/query?sql=SELECT+1", &same).0, 200);
    assert_eq!(http(address, "GET /health HTTP/1.0\r\n\r\n").0, 403);
}

#[test]
fn metrics_and_the_page_are_served() {
    let served = served();
    get(served.http, ASK, "");
    let (_, metrics) = get(served.http, "/metrics", "");
    assert!(metrics.contains("\nquarrier_rows_sent_total 7\n"), "{metrics}");
    assert!(metrics.contains("\nquarrier_table_rows{table=\"t\"} 7\n"), "{metrics}");
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    assert!(lines.clone().count() > 10);
    lines.for_each(|line| assert!(line.starts_with("quarrier_"), "{line}"));
    let (_, status) = get(served.http, "/status", "");
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["tables"][0]["columns"], "a int8, b text, c numeric");
    let (status, page) = get(served.http, "/", "");
    assert!(status == 200 && page.contains("connect-src 'self'"));
    assert_eq!(get(served.http, "/health", ""), (200, "ok\n".to_string()));
}

#[test]
fn users_require_a_password() {
    let line = made_line("ann", "pencil").unwrap();
    let served = served_to(Some(Users::of(&line, "users").unwrap()), Limits::default());
    let ask = |headers: &str| get(served.http, "/query?sql=SELECT+1", headers).0;
    assert_eq!(ask(""), 401);
    assert_eq!(ask("Authorization: Basic YW5uOnBlbmNpbA==\r\n"), 200);
    assert_eq!(ask("Authorization: Basic YW5uOlBlbmNpbA==\r\n"), 401);
    assert_eq!(ask("Authorization: Bearer YW5uOnBlbmNpbA==\r\n"), 401);
    assert_eq!(get(served.http, "/health", "").0, 200);
    assert_eq!(get(served.http, "/metrics", "").0, 401);
}
