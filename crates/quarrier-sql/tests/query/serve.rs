//! `quarrier serve` as a program, with clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use crate::harness::{Folder, PATIENCE, ended, orders, text};

pub(crate) struct Served {
    child: Child,
    postgres: String,
    http: String,
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_quarrier-sql");

pub(crate) fn serve(folder: &Folder, arguments: &[&str]) -> Served {
    started(Command::new(PROGRAM).arg("serve"), folder, arguments)
}

/// Starts `serve` with further options.
pub(crate) fn started(command: &mut Command, folder: &Folder, arguments: &[&str]) -> Served {
    let mut child = command
        .current_dir(folder.path(""))
        .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut addresses = line.split_whitespace().filter_map(|word| word.split_once("://"));
    let mut next = || addresses.next().map(|(_, address)| address.to_string());
    let (Some(postgres), Some(http)) = (next(), next()) else {
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        panic!("not ready: {line} {said}");
    };
    Served { child, postgres, http }
}

impl Served {
    pub(crate) fn psql(&self, arguments: &[&str]) -> Output {
        let (host, port) = self.postgres.split_once(':').unwrap();
        // `timeout` exits with 124 and no output, which no test expects.
        Command::new("timeout")
            .args([&PATIENCE.as_secs().to_string(), "psql"])
            .args(["-X", "-At", "-h", host, "-p", port, "-U", "ann", "-d", "quarrier"])
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("psql is there: scripts/setup.sh installs it")
    }

    /// The answer to a statement, without messages on standard error.
    #[track_caller]
    pub(crate) fn ask(&self, sql: &str) -> String {
        let output = self.psql(&["-c", sql]);
        assert_eq!(text(&output.stderr), "", "{sql}");
        assert_ne!(output.status.code(), Some(124), "no answer to {sql}");
        text(&output.stdout)
    }

    /// The error of a statement.
    pub(crate) fn refused(&self, sql: &str) -> String {
        let output = self.psql(&["-v", "VERBOSITY=verbose", "-c", sql]);
        assert!(!output.status.success(), "{sql}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    pub(crate) fn get(&self, path: &str) -> String {
        request(&self.http, &format!("GET {path}"), "", b"").unwrap()
    }

    /// Posts a body with headers, each of which ends with a line feed.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &[u8]) -> String {
        request(&self.http, &format!("POST {path}"), headers, body).unwrap()
    }

    /// The addresses for PostgreSQL's protocol and for HTTP.
    pub(crate) fn addresses(&self) -> (String, String) {
        (self.postgres.clone(), self.http.clone())
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the server with SIGTERM. Returns its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.stopped()
    }

    /// Like [`Served::end`]; also returns what the server wrote to standard error.
    pub(crate) fn end_with_errors(mut self) -> (Option<i32>, String) {
        let mut errors = self.child.stderr.take().unwrap();
        let reads = std::thread::spawn(move || {
            let mut said = String::new();
            errors.read_to_string(&mut said).map(|_| said)
        });
        (self.stopped(), reads.join().unwrap().unwrap())
    }

    fn stopped(&mut self) -> Option<i32> {
        let process = i32::try_from(self.child.id()).unwrap();
        // SAFETY: kill takes no pointers. The child has not been waited for, so that its id still
        // belongs to it.
        unsafe { libc::kill(process, libc::SIGTERM) };
        ended(&mut self.child)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server's response to a request.
pub(crate) fn request(
    host: &str,
    what: &str,
    headers: &str,
    body: &[u8],
) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let headers = headers.replace('\n', "\r\n");
    let length = body.len();
    let head = format!(
        "{what} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(text(&answer))
}

fn served() -> (Folder, Served) {
    let folder = Folder::new();
    folder.file("orders.ndjson", &orders());
    let served = serve(&folder, &["--table", "orders=orders.ndjson"]);
    (folder, served)
}

#[test]
fn clients_can_use_all_of_sql() {
    let (_folder, served) = served();
    assert_eq!(served.ask("SELECT count(*) FROM orders WHERE symbol LIKE 'AB_'"), "2000\n");
    assert_eq!(
        served.ask("SELECT id, symbol, qty, price, open FROM orders WHERE id < 2 ORDER BY id"),
        "0|ABC|0|0.00|t\n1|ABD|7|13.01|f\n"
    );
    assert_eq!(
        served.ask("SELECT a.symbol, count(*) FROM orders a JOIN orders b USING (id) GROUP BY 1 ORDER BY 1 LIMIT 1"),
        "ABC|1000\n"
    );
    assert!(
        served
            .get("/query?sql=SELECT+count(*)+AS+n+FROM+orders")
            .ends_with("{\"n\":5000}\n\r\n0\r\n\r\n")
    );
    assert!(served.get("/metrics").contains("quarrier_table_rows{table=\"orders\"} 5000\n"));
    assert_eq!(served.end(), Some(0));
}

#[test]
fn errors_have_sqlstates() {
    let (_folder, served) = served();
    for (sql, code) in [
        ("SELECT nothing FROM orders", "42703"),
        ("SELECT * FROM nowhere", "42P01"),
        ("SELEC 1", "42601"),
        ("SELECT nofunction(1)", "42883"),
        ("CREATE TABLE t (a int)", "25006"),
        ("SELECT id INTO t FROM orders", "42601"),
        ("INSERT INTO orders SELECT * FROM orders", "25006"),
        ("UPDATE orders SET qty = 1", "25006"),
        ("DROP TABLE orders", "0A000"),
        ("COPY (SELECT 1) TO 'out.csv'", "42601"),
        ("COPY orders FROM STDIN", "25006"),
        ("COPY nowhere FROM STDIN", "42P01"),
    ] {
        let said = served.refused(sql);
        assert!(said.contains(&format!("ERROR:  {code}:")), "{sql}: {said}");
    }
}

#[test]
fn statements_cannot_access_files() {
    let folder = Folder::new();
    folder.file("orders.ndjson", &orders());
    folder.file("secret.csv", "a\n1\n");
    std::fs::create_dir(folder.path("open")).unwrap();
    let inside = folder.file("open/b.csv", "b\n2\n");
    let secret = folder.path("secret.csv").display().to_string();
    let questions = [
        format!("SELECT * FROM '{secret}'"),
        format!("SELECT * FROM \"{secret}\""),
        "SELECT * FROM 'secret.csv'".to_string(),
        "SELECT * FROM secret.csv".to_string(),
        format!("SELECT * FROM messages('{secret}', 'csv')"),
        "SELECT * FROM 'http://127.0.0.1:1/a.csv'".to_string(),
        "SELECT * FROM 's3://a/b.csv'".to_string(),
        "SELECT * FROM '-'".to_string(),
        format!("SELECT * FROM search('{secret}', '1')"),
        format!("SELECT * FROM carve('{secret}')"),
        "SELECT * FROM gauge('memory')".to_string(),
        format!("CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{secret}'"),
        format!("COPY orders TO '{}'", folder.path("out.csv").display()),
    ];
    let closed = serve(&folder, &["--table", "orders=orders.ndjson"]);
    let open = serve(&folder, &["--allow-files", "open"]);
    for question in &questions {
        closed.refused(question);
        open.refused(question);
    }
    assert!(!folder.path("out.csv").exists());
    closed.refused(&format!("SELECT * FROM '{inside}'"));
    assert_eq!(open.ask(&format!("SELECT * FROM '{inside}'")), "2\n");
    assert_eq!(open.ask("SELECT * FROM 'open/b.csv'"), "2\n");
    assert_eq!(open.ask(&format!("SELECT \"offset\" FROM search('{inside}', '2')")), "2\n");
}

/// Fills up a separate disk, if the system lets tests mount one.
#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("disk")).unwrap();
    let script = "mount -t tmpfs -o size=12m none disk || exit 77; exec \"$0\" serve \"$@\"";
    let mut mounts = Command::new("unshare");
    mounts.args(["-rm", "sh", "-c", "mount -t tmpfs none /mnt"]);
    if !mounts.output().is_ok_and(|output| output.status.success()) {
        return skip("no file system can be mounted here");
    }
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, PROGRAM]);
    let options = ["--data", "disk/d", "--segment", "1M", "--quiet"];
    let served = started(&mut command, &folder, &options);
    // The disk as mounted for the server.
    let disk = format!("/proc/{}/root{}", served.child.id(), folder.path("disk").display());
    let filler = std::path::Path::new(&disk).join("filler");
    served.ask("CREATE TABLE t (id bigint, word text)");
    let word = "w".repeat(100_000);
    let mut next = 0;
    let mut insert = || {
        next += 1;
        served.psql(&["-c", &format!("INSERT INTO t VALUES ({next}, '{word}')")])
    };
    assert_eq!(text(&insert().stderr), "");
    // More data than fits.
    std::fs::write(&filler, vec![1; 8 << 20]).unwrap();
    let refused = (0..200).map(|_| insert()).position(|output| !output.status.success());
    let there = refused.expect("the disk was never full") + 1;
    let said = served.refused(&format!("INSERT INTO t VALUES (0, '{word}')"));
    assert!(said.contains("ERROR:  53100:"), "{said}");
    let posted = served.post("/tables/t", "", format!("{{\"word\":\"{word}\"}}").as_bytes());
    assert!(posted.starts_with("HTTP/1.1 507"), "{posted}");
    let count = || served.ask("SELECT count(*) FROM t");
    assert_eq!(count(), format!("{there}\n"), "reads continue, and no refused row is there");
    std::fs::remove_file(&filler).unwrap();
    let more = (0..100).map(|_| insert()).position(|output| output.status.success());
    assert!(more.is_some(), "writes do not resume: {}", text(&insert().stderr));
    assert_eq!(count(), format!("{}\n", there + 1));
    assert_eq!(served.end(), Some(0));
}

#[expect(clippy::print_stderr, reason = "a skipped test must not look like a passed one")]
fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
}

#[test]
fn psql_describes_tables() {
    let (_folder, served) = served();
    let tables = served.psql(&["-c", "\\dt"]);
    assert_eq!(text(&tables.stderr), "");
    assert_eq!(text(&tables.stdout), "public|orders|table|quarrier\n");
    let described = served.psql(&["-c", "\\d orders"]);
    assert_eq!(text(&described.stderr), "");
    let said = text(&described.stdout);
    assert!(said.starts_with("id|bigint|||\nsymbol|text|||\n"), "{said}");
    for command in ["\\l", "\\dn", "\\d", "\\df", "\\di", "\\dv", "\\conninfo"] {
        let output = served.psql(&["-c", command]);
        let said = text(&output.stderr);
        // psql prints the same for a PostgreSQL server.
        let is_of_nothing = matches!(command, "\\di" | "\\dv");
        let expected = if is_of_nothing { "Did not find any relations.\n" } else { "" };
        assert_eq!(said, expected, "{command}");
    }
    assert_eq!(
        served.ask("SELECT current_user, current_database(), 'orders'::regclass::oid > 0"),
        "ann|quarrier|t\n"
    );
    assert!(served.ask("SELECT version()").starts_with("PostgreSQL 15"));
    assert_eq!(
        served
            .ask("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"),
        "orders\n"
    );
    assert_eq!(served.ask("SELECT \"user\" FROM quarrier.queries"), "ann\n");
    let rates =
        "SELECT total > 5 AND per_second >= 0 FROM quarrier.rates WHERE name = 'statements'";
    assert_eq!(served.ask(rates), "t\n");
    assert_eq!(served.ask("SELECT count(*) FROM quarrier.log"), "0\n");
}

#[test]
fn quote_ident_gives_names_that_sql_reads_back() {
    let (_folder, served) = served();
    for (name, quoted) in [
        ("side", "side"),
        ("_a1", "_a1"),
        ("1a", r#""1a""#),
        ("", r#""""#),
        ("Side", r#""Side""#),
        ("two words", r#""two words""#),
        (r#"a"b"#, r#""a""b""#),
        ("ü", r#""ü""#),
        ("select", r#""select""#),
    ] {
        let statement = format!("SELECT quote_ident('{name}')");
        assert_eq!(served.ask(&statement).trim_end(), quoted, "{name}");
    }
}

#[test]
fn statements_time_out_and_the_server_continues() {
    let folder = Folder::new();
    folder.file("orders.ndjson", &orders());
    let served = serve(&folder, &["--table", "orders=orders.ndjson", "--timeout", "0.5"]);
    let endless =
        "SELECT count(*) FROM orders a, orders b, orders c WHERE a.qty + b.qty + c.qty = -1";
    assert!(served.refused(endless).contains("57014"));
    // Its threads become free after their current step.
    let answers = || text(&served.psql(&["-c", "SELECT 1"]).stdout) == "1\n";
    assert!((0..100).any(|_| answers()), "nothing is answered any more");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn users_log_in_with_passwords() {
    let folder = Folder::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_quarrier-sql"))
        .args(["serve", "--make-user", "ann"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"pencil\n").unwrap();
    let made = child.wait_with_output().unwrap();
    folder.file("users", &text(&made.stdout));
    let served = serve(&folder, &["--users", "users"]);
    assert!(text(&served.psql(&["-w", "-c", "SELECT 1"]).stderr).contains("no password supplied"));
    let (host, port) = served.postgres.split_once(':').unwrap();
    let address = format!("host={host} port={port} user=ann password=pencil dbname=quarrier");
    let output =
        Command::new("psql").args(["-X", "-At", "-c", "SELECT 1", &address]).output().unwrap();
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("1\n", ""));
}

#[test]
fn other_machines_need_users() {
    let folder = Folder::new();
    let output = folder.run(&["serve", "--listen", "0.0.0.0:0", "--http", "off"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--users"), "{}", text(&output.stderr));
}
