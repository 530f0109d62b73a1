//! Credentials of the user: headers, netrc and profiles of AWS. Nothing shows them, and only their server gets
//! them.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::harness::{Lab, Ran, run};

const OBJECT: &[u8] = b"a needle in a short object";

/// Serves a short object, and records the heads of requests, in lower case. The path `/away` redirects to another
/// name of this host, `/denied` is denied, and `/broken` ends early.
struct Server {
    host: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let received = Arc::clone(&heads);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heads = Arc::clone(&received);
                // A client may disconnect.
                thread::spawn(move || drop(serve(stream, &heads)));
            }
        });
        Server { host, heads }
    }

    fn url(&self) -> String {
        self.url_of("disk.img")
    }

    fn url_of(&self, path: &str) -> String {
        format!("http://{}/{path}", self.host)
    }

    /// The only request.
    #[track_caller]
    fn head(&self) -> String {
        let heads = std::mem::take(&mut *self.heads.lock().unwrap());
        assert_eq!(heads.len(), 1, "{heads:?}");
        heads[0].clone()
    }
}

fn serve(mut stream: TcpStream, heads: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        heads.lock().unwrap().push(head.to_ascii_lowercase());
        let path = head.split(' ').nth(1).unwrap_or_default();
        let port = stream.local_addr()?.port();
        let status = match path {
            "/away" => format!("302 Found\r\nLocation: http://localhost:{port}/disk.img"),
            "/denied" => "403 Forbidden".to_string(),
            _ => String::new(),
        };
        if !status.is_empty() {
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")?;
            continue;
        }
        write!(
            stream,
            "HTTP/1.1 206 Part\r\nETag: \"one\"\r\nContent-Length: {0}\r\n\
             Content-Range: bytes 0-{1}/{0}\r\n\r\n",
            OBJECT.len(),
            OBJECT.len() - 1
        )?;
        if path == "/broken" {
            return Ok(());
        }
        stream.write_all(OBJECT)?;
    }
}

/// A search of a URL in a lab that is the home folder.
fn search(lab: &Lab, url: &str, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command: Command = lab.search_command([&["needle", url], args].concat());
    for name in ["NETRC", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"] {
        command.env_remove(name);
    }
    command.env("HOME", lab.path("")).envs(variables.iter().copied());
    run(command, b"")
}

/// Checks that neither the output of a run nor a file below the lab has the secret, except files of the user.
#[track_caller]
fn shows_no_secret(lab: &Lab, ran: &Ran) {
    let output = [ran.stdout.clone(), ran.stderr.clone().into_bytes()]
        .map(|text| ("output".to_string(), text));
    let mut files = Vec::new();
    read_below(&lab.path(""), &mut files);
    for (name, bytes) in output.into_iter().chain(files) {
        let text = String::from_utf8_lossy(&bytes);
        // Also in base64, with a user of three bytes with its colon before it.
        assert!(!text.contains("zq7hid") && !text.contains("enE3aGlk"), "{name}: {text}");
    }
}

fn read_below(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_below(&path, files);
        } else if !path.ends_with(".netrc") && !path.ends_with(".aws/credentials") {
            files.push((path.display().to_string(), std::fs::read(path).unwrap()));
        }
    }
}

/// Options of a search that writes all that it can.
const ALL: [&str; 9] = [
    "--log",
    "trace",
    "--report",
    "r.html",
    "--stats",
    "stats.json",
    "--explain",
    "--cache",
    "fetched",
];

const HEADERS: [&str; 3] = ["--header", "X-Key: zq7hid1", "--header=Authorization: Bearer zq7hid2"];

const NONE: &[&str] = &[];

#[test]
fn a_header_is_sent_and_shown_nowhere() {
    let (server, lab) = (Server::new(), Lab::new());
    let args = [&ALL[..], &HEADERS].concat();
    let ran = search(&lab, &server.url(), &args, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let heads = std::mem::take(&mut *server.heads.lock().unwrap());
    assert!(!heads.is_empty());
    for head in heads {
        assert!(head.contains("\r\nx-key: zq7hid1\r\n"), "{head}");
        assert!(head.contains("\r\nauthorization: bearer zq7hid2\r\n"), "{head}");
    }
    let report = std::fs::read_to_string(lab.path("r.html")).unwrap();
    assert!(report.contains("X-Key: …") && report.contains("Authorization: …"));
    assert!(lab.names().contains("fetched") && lab.names().contains("stats.json"));
    shows_no_secret(&lab, &ran);
    let wrong = ["--header", "zq7hid-name-without-colon"];
    let ran = run(lab.command([&["carve", &server.url(), "-o", "o"], &wrong[..]].concat()), b"");
    ran.refuses(&["--header: a header is written 'Name: value'"]);
    shows_no_secret(&lab, &ran);
    let carve = ["carve", &server.url(), "-o", "out", "--report", "c.html", "--stats", "c.json"];
    let ran = run(lab.command([&carve, &HEADERS[..]].concat()), b"");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let case = std::fs::read_to_string(lab.path("out/case.json")).unwrap();
    assert!(case.contains("X-Key: …"), "{case}");
    shows_no_secret(&lab, &ran);
    let filled = ["cache", "fill", "--cache", "filled", &server.url()];
    let ran = run(lab.command([&filled, &HEADERS[..]].concat()), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    shows_no_secret(&lab, &ran);
}

#[test]
fn commands_over_messages_and_verify_send_headers() {
    let (server, lab) = (Server::new(), Lab::new());
    let url = server.url();
    let carved = ["carve", &url, "-o", "out"];
    assert_eq!(run(lab.command([&carved, &HEADERS[..]].concat()), b"").code, Some(1));
    for args in [
        &["load", "--data", "d", "--table", "t", &url, "--stats", "l.json"][..],
        &["explain", "a = 1", &url],
        &["verify", "out"],
    ] {
        server.heads.lock().unwrap().clear();
        let ran = run(lab.command([args, &HEADERS].concat()), b"");
        let heads = std::mem::take(&mut *server.heads.lock().unwrap());
        assert!(!heads.is_empty(), "{ran:?}");
        for head in heads {
            assert!(head.contains("\r\nx-key: zq7hid1\r\n"), "{head}");
            assert!(head.contains("\r\nauthorization: bearer zq7hid2\r\n"), "{head}");
        }
        shows_no_secret(&lab, &ran);
        let wrong = run(lab.command([args, &["--header", "zq7hid"]].concat()), b"");
        wrong.refuses(&["--header: a header is written 'Name: value'"]);
        shows_no_secret(&lab, &wrong);
    }
}

#[test]
fn no_secret_is_in_an_error_or_the_log_of_a_failure() {
    let (server, lab) = (Server::new(), Lab::new());
    lab.put(".netrc", "machine 127.0.0.1 login me password zq7hid");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [server.url_of("denied"), server.url_of("broken"), format!("http://{gone}/x")] {
        let with_user = url.replace("http://", "http://me:zq7hid@");
        for (url, headers) in [(&url, &HEADERS[..]), (&url, NONE), (&with_user, NONE)] {
            let ran = search(&lab, url, &[&ALL[..], headers].concat(), &[]);
            assert_eq!(ran.code, Some(2), "{ran:?}");
            shows_no_secret(&lab, &ran);
        }
    }
    let heads = server.heads.lock().unwrap();
    let is_secret = |head: &String| head.contains("zq7hid") || head.contains("bwu6ene3aglk");
    assert!(heads.len() >= 6 && heads.iter().all(is_secret), "{heads:?}");
}

#[test]
fn another_name_of_the_same_host_gets_no_secret_by_a_redirect() {
    let (server, lab) = (Server::new(), Lab::new());
    lab.put(".netrc", "machine 127.0.0.1 login me password zq7hid");
    let url = server.url_of("away");
    let with_user = url.replace("http://", "http://me:zq7hid@");
    let cookie = ["--header", "Cookie: zq7hid", "--header", "X-Amz-Security-Token: zq7hid"];
    let headers = [&HEADERS[..], &cookie].concat();
    for (url, headers) in [(&url, &headers[..]), (&url, NONE), (&with_user, NONE)] {
        let ran = search(&lab, url, &[&["--log", "trace"], headers].concat(), &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        shows_no_secret(&lab, &ran);
        let heads = std::mem::take(&mut *server.heads.lock().unwrap());
        let [own, other] = &heads[..] else { panic!("{heads:?}") };
        assert!(own.contains("\r\nauthorization: "), "{own}");
        for field in ["authorization", "cookie", "x-key", "x-amz", "zq7hid"] {
            assert!(!other.contains(field), "{other}");
        }
        assert!(other.contains("\r\nhost: localhost:"), "{other}");
    }
}

#[test]
fn headers_that_would_break_requests_are_refused() {
    let (server, lab) = (Server::new(), Lab::new());
    for header in ["Range: bytes=0-zq7hid", "Host: zq7hid", "X: hid\nden", "X Y: zq7hid"] {
        let ran = search(&lab, &server.url(), &["--header", header], &[]);
        ran.refuses(&["--header: "]);
        assert!(!ran.stderr.contains("hid"), "{ran:?}");
    }
    assert!(server.heads.lock().unwrap().is_empty());
}

#[test]
fn a_login_comes_from_the_netrc_file() {
    let (server, lab) = (Server::new(), Lab::new());
    lab.put(".netrc", "machine 127.0.0.1 login me password zq7hid");
    search(&lab, &server.url(), &[], &[]).is_clean();
    assert!(server.head().contains("authorization: basic bwu6ene3aglk\r\n"));
    // Another file, and a user in the URL.
    search(&lab, &server.url(), &[], &[("NETRC", "/dev/null")]).is_clean();
    assert!(!server.head().contains("authorization"));
    let url = server.url().replace("http://", "http://you@");
    search(&lab, &url, &[], &[]).is_clean();
    assert!(server.head().contains("authorization: basic ew91og==\r\n"));

    lab.put(".netrc", "machine 127.0.0.1\nlogin me password hid den");
    let ran = search(&lab, &server.url(), &[], &[]);
    ran.refuses(&[".netrc: line 2: "]);
    assert!(!ran.stderr.contains("hid"), "{ran:?}");
    // Files are read without the netrc file.
    lab.put("f", "needle");
    search(&lab, "f", &[], &[]).is_clean();
}

#[test]
fn a_bucket_is_read_with_a_profile() {
    let (server, lab) = (Server::new(), Lab::new());
    std::fs::create_dir(lab.path(".aws")).unwrap();
    lab.put(
        ".aws/credentials",
        "[default]\naws_access_key_id = AKID\naws_secret_access_key = zq7hid\n",
    );
    let config = format!(
        "[default]\nregion = eu-west-1\nendpoint_url = http://{}\n[profile sso]\nsso_session = s\n",
        server.host
    );
    lab.put(".aws/config", config);
    let ran = search(&lab, "s3://bucket/a.img", &[], &[]);
    ran.is_clean();
    let head = server.head();
    assert!(head.starts_with("get /bucket/a.img?x-amz-") && head.contains("akid%2f"), "{head}");
    assert!(head.contains("eu-west-1") && !head.contains("zq7hid"), "{head}");

    let ran = search(&lab, "s3://bucket/a.img", &[], &[("AWS_PROFILE", "sso")]);
    ran.refuses(&["aws configure export-credentials --profile sso --format env"]);
    let sso = [("AWS_PROFILE", "sso")];
    search(&lab, "s3://bucket/a.img", &["--offline", "--cache", "c"], &sso)
        .refuses(&["s3://bucket/a.img: it is not in the cache"]);
    lab.put(".aws/config", "[default]\nzq7hid");
    let ran = search(&lab, "s3://bucket/a.img", &[], &[]);
    ran.refuses(&[".aws/config: line 2: "]);
    assert!(!ran.stderr.contains("zq7hid"), "{ran:?}");
    // No other source needs it.
    search(&lab, &server.url(), &[], &[]).is_clean();
}
