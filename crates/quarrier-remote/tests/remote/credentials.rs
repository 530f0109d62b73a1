//! Header fields, logins and settings of the caller go to their own server and to no other.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quarrier_core::source::Source;
use quarrier_remote::{Credentials, Header, ListedObject, Login, Options, Remote};

use crate::bucket::{Buckets, SECRET};
use crate::server::{Act, Ask, Server};
use crate::{exact, hasty, noise, remote};

/// A login for one host, and an endpoint of S3.
#[derive(Debug, Default)]
struct Held {
    host: &'static str,
    endpoint: Option<String>,
    asked: AtomicUsize,
}

impl Credentials for Held {
    fn s3_settings(&self, given: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let endpoint = self.endpoint.clone().ok_or("the profile is malformed")?;
        let mut settings = given.to_vec();
        settings.push(("AWS_ENDPOINT_URL".to_string(), endpoint));
        Ok(settings)
    }

    fn login(&self, host: &str) -> Result<Option<Login>, String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if host == "localhost" {
            return Err("the file is malformed".to_string());
        }
        let login = || Login { user: "me".to_string(), password: "hidden".to_string() };
        Ok((host == self.host).then(login))
    }
}

fn with_headers(headers: &[&str]) -> Options {
    let mut options = exact();
    options.headers = headers.iter().map(|header| Header::parse(header).unwrap()).collect();
    options
}

fn with(held: Held) -> (Options, Arc<Held>) {
    let (mut options, held) = (exact(), Arc::new(held));
    options.credentials = Some(Arc::<Held>::clone(&held));
    (options, held)
}

/// The values of a header field in a request.
fn values(ask: &Ask, name: &str) -> Vec<String> {
    let fields = ask.fields.iter().filter_map(|field| field.split_once(": "));
    fields.filter(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_string()).collect()
}

/// Redirects `/object.img` to this URL.
fn redirecting(to: String) -> Server {
    Server::new(noise(100_000, 1), move |ask| match ask.path.as_str() {
        "/object.img" => Act::Status(302, format!("Location: {to}\r\n")),
        _ => Act::Serve,
    })
}

#[test]
fn headers_are_sent_with_every_request_and_twice_if_given_twice() {
    let server = Server::new(noise(100_000, 1), |_| Act::Serve);
    let remote = remote(with_headers(&["X-Key: one", "x-key:two", "User-Agent: mine"]));
    let source = remote.open(&server.url()).unwrap();
    source.read_at(50_000, &mut [0; 10]).unwrap();
    assert_eq!(server.log().len(), 2);
    for ask in server.log() {
        assert_eq!(values(&ask, "x-key"), ["one", "two"]);
        assert_eq!(values(&ask, "user-agent"), ["mine"]);
        assert_eq!(values(&ask, "accept-encoding"), ["identity"]);
    }
    assert!(!format!("{remote:?}").contains("two"), "{remote:?}");
}

#[test]
fn headers_follow_a_redirect_of_the_same_server_and_of_no_other() {
    let other = Server::new(noise(100_000, 1), |_| Act::Serve);
    let server = redirecting("/there".to_string());
    let source_of = remote(with_headers(&["X-Key: hidden", "Authorization: Bearer hidden"]));
    let source = source_of.open(&server.url()).unwrap();
    source.read_at(50_000, &mut [0; 10]).unwrap();
    let asks = server.log();
    assert_eq!(
        asks.iter().map(|ask| ask.path.as_str()).collect::<Vec<_>>(),
        ["/object.img", "/there", "/there"]
    );
    assert!(asks.iter().all(|ask| values(ask, "x-key") == ["hidden"]), "{asks:?}");

    let server = redirecting(other.url_of("/there"));
    let source = source_of.open(&server.url()).unwrap();
    // The target is remembered, without the secrets.
    source.read_at(50_000, &mut [0; 10]).unwrap();
    assert_eq!((server.log().len(), other.log().len()), (1, 2));
    assert_eq!(values(&server.log()[0], "authorization"), ["Bearer hidden"]);
    for ask in other.log() {
        assert!(!ask.fields.iter().any(|field| field.contains("hidden")), "{ask:?}");
    }
}

#[test]
fn a_server_gets_no_secrets_when_another_one_redirects_back_to_it() {
    let back = Server::new(noise(100_000, 1), |_| Act::Serve);
    let away = redirecting(back.url_of("/again"));
    let to = away.url();
    let first = Server::new(noise(100_000, 1), move |ask| match ask.path.as_str() {
        "/object.img" => Act::Status(307, format!("Location: {to}\r\n")),
        _ => Act::Serve,
    });
    let remote = remote(with_headers(&["X-Key: hidden"]));
    remote.open(&first.url()).unwrap();
    assert_eq!(values(&first.log()[0], "x-key"), ["hidden"]);
    assert!(
        values(&away.log()[0], "x-key").is_empty() && values(&back.log()[0], "x-key").is_empty()
    );
}

#[test]
fn the_user_of_a_url_is_not_sent_to_another_server_either() {
    let other = Server::new(noise(100_000, 1), |_| Act::Serve);
    let source_of = remote(exact());
    let server = redirecting(other.url_of("/there"));
    let url = server.url().replace("http://", "http://me:hidden@");
    source_of.open(&url).unwrap().read_at(50_000, &mut [0; 10]).unwrap();
    assert_eq!(values(&server.log()[0], "authorization").len(), 1);
    assert!(other.log().iter().all(|ask| values(ask, "authorization").is_empty()));
    let server = redirecting("/there".to_string());
    let url = server.url().replace("http://", "http://me:hid%40den@");
    source_of.open(&url).unwrap().read_at(50_000, &mut [0; 10]).unwrap();
    let sent: Vec<_> = server.log().iter().map(|ask| values(ask, "authorization")).collect();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|values| values == &["Basic bWU6aGlkQGRlbg=="]), "{sent:?}");
}

#[test]
fn redirects_end_after_ten() {
    let server = Server::new(noise(1000, 1), |ask| {
        Act::Status(302, format!("Location: /{}\r\n", ask.number))
    });
    let error = remote(exact()).open(&server.url()).unwrap_err();
    assert!(error.to_string().contains("redirected too often"), "{error}");
    assert_eq!(server.log().len(), 11);
    let server =
        Server::new(noise(1000, 1), |_| Act::Status(302, "Location: ftp://h/x\r\n".to_string()));
    let error = remote(exact()).open(&server.url()).unwrap_err();
    assert!(error.to_string().contains("another scheme"), "{error}");
}

#[test]
fn a_login_is_sent_to_its_host_unless_the_url_or_a_header_has_another() {
    let server = Server::new(noise(100_000, 1), |_| Act::Serve);
    let (mut options, held) = with(Held { host: "127.0.0.1", ..Held::default() });
    let source_of = remote(options.clone());
    source_of.open(&server.url()).unwrap();
    source_of.open(&server.url().replace("http://", "http://you:own@")).unwrap();
    options.headers.push(Header::parse("Authorization: Bearer own").unwrap());
    remote(options).open(&server.url()).unwrap();
    let sent: Vec<_> = server.log().iter().flat_map(|ask| values(ask, "authorization")).collect();
    assert_eq!(sent, ["Basic bWU6aGlkZGVu", "Basic eW91Om93bg==", "Bearer own"]);
    assert_eq!(held.asked.load(Ordering::SeqCst), 1);

    let (options, _) = with(Held { host: "example.org", ..Held::default() });
    remote(options).open(&server.url()).unwrap();
    assert!(values(&server.log()[3], "authorization").is_empty());
}

#[test]
fn a_login_is_not_sent_to_another_server_after_a_redirect() {
    let other = Server::new(noise(100_000, 1), |_| Act::Serve);
    let server = redirecting(other.url_of("/there"));
    let (options, _) = with(Held { host: "127.0.0.1", ..Held::default() });
    remote(options).open(&server.url()).unwrap().read_at(50_000, &mut [0; 10]).unwrap();
    assert_eq!(values(&server.log()[0], "authorization"), ["Basic bWU6aGlkZGVu"]);
    assert!(other.log().iter().all(|ask| values(ask, "authorization").is_empty()));
}

#[test]
fn a_failed_look_up_is_the_reason_and_no_request_is_made() {
    let server = Server::new(noise(100_000, 1), |_| Act::Serve);
    let (mut options, held) = with(Held::default());
    let source_of = remote(options.clone());
    let url = server.url().replace("127.0.0.1", "localhost");
    let error = source_of.open(&url).unwrap_err();
    assert_eq!(error.to_string(), "the file is malformed");
    let error = source_of.open("s3://bucket/key").unwrap_err();
    assert_eq!(error.to_string(), "the profile is malformed");
    assert!(server.log().is_empty());
    // Offline, no login is needed.
    let asked = held.asked.load(Ordering::SeqCst);
    options.offline = true;
    assert!(remote(options).open(&url).unwrap_err().to_string().contains("offline"));
    assert_eq!(held.asked.load(Ordering::SeqCst), asked);
}

#[test]
fn settings_of_s3_are_found_when_an_object_is_opened_and_get_no_headers() {
    let server = Server::new(noise(100_000, 1), |_| Act::Serve);
    let held = Held { endpoint: Some(server.url_of("")), ..Held::default() };
    let (mut options, held) = with(held);
    options.s3 = vec![("AWS_SKIP_SIGNATURE".to_string(), "true".to_string())];
    options.headers.push(Header::parse("X-Key: hidden").unwrap());
    let remote = remote(options);
    assert_eq!(held.asked.load(Ordering::SeqCst), 0);
    remote.open("s3://bucket/key").unwrap();
    assert_eq!(server.log()[0].path, "/bucket/key");
    assert!(values(&server.log()[0], "x-key").is_empty());
}

#[test]
fn settings_of_s3_are_found_when_a_folder_is_listed_or_written() {
    let server = Buckets::new(10);
    let (mut options, held) = with(Held { endpoint: Some(server.url()), ..Held::default() });
    options.s3 = server.settings();
    options.s3.retain(|(name, _)| !name.contains("ENDPOINT"));
    options.headers.push(Header::parse("X-Key: hidden").unwrap());
    let remote = remote(options);
    let folder = remote.folder("s3://bucket/found/").unwrap();
    assert!(folder.put_new("x", b"x".to_vec()).unwrap());
    let mut keys = Vec::new();
    let mut take = |object: ListedObject<'_>| {
        keys.push(object.key.to_string());
        ControlFlow::Continue(())
    };
    folder.list(true, &AtomicBool::new(false), &mut take).unwrap();
    assert_eq!(keys, ["found/x"]);
    folder.remove("x").unwrap();
    assert!(server.keys("bucket").is_empty());
    assert!(held.asked.load(Ordering::SeqCst) > 0);
    let log = server.log();
    assert!(log.len() == 3 && log.iter().all(|asked| !asked.fields.contains_key("x-key")));
}

#[test]
fn a_failed_look_up_is_the_reason_why_a_folder_is_not_opened() {
    let (options, held) = with(Held::default());
    let remote = remote(options);
    let error = remote.folder("s3://bucket/found/").unwrap_err();
    assert_eq!(error.to_string(), "the profile is malformed");
    // Buckets of other stores have no profiles.
    let asked = held.asked.load(Ordering::SeqCst);
    let error = remote.folder("az://bucket/found/").unwrap_err().to_string();
    assert!(!error.contains("profile"), "{error}");
    assert_eq!(held.asked.load(Ordering::SeqCst), asked);
}

#[test]
fn an_invalid_proxy_is_refused_without_its_password() {
    for proxy in [
        "me:hidden@proxy:port",
        "me:hidden@pro xy:80",
        "me:hid#den@proxy:80",
        "http://me:hidden@proxy:port",
        "http://me:hid?den@proxy:80",
    ] {
        for is_https in [false, true] {
            let mut options = exact();
            let chosen = if is_https { &mut options.proxy.https } else { &mut options.proxy.http };
            *chosen = Some(proxy.to_string());
            let error = Remote::new(options).unwrap_err().to_string();
            assert!(error.contains("is not the URL of a proxy"), "{error}");
            assert!(!error.contains("hid") && !error.contains("den"), "{error}");
        }
    }
}

/// Header fields that no other server may receive.
const FIELDS: [&str; 4] = [
    "Authorization: Bearer hidden",
    "Cookie: session=hidden",
    "X-Amz-Security-Token: hidden",
    "X-Key: hidden",
];

/// The number of header fields with a secret: as it is, or as a login in base64.
fn secrets(ask: &Ask) -> usize {
    let has = |field: &&String| field.contains("hidden") || field.contains("aGlkZGVu");
    ask.fields.iter().filter(has).count()
}

#[test]
fn another_name_of_the_same_host_is_another_server() {
    let server = Server::new(noise(100_000, 1), |ask| {
        let to = values(ask, "host")[0].replace("127.0.0.1", "localhost");
        match ask.path.as_str() {
            "/object.img" => Act::Status(302, format!("Location: http://{to}/there\r\n")),
            _ => Act::Serve,
        }
    });
    let (with_login, _) = with(Held { host: "127.0.0.1", ..Held::default() });
    let with_user = server.url().replace("http://", "http://me:hidden@");
    for (options, url, sent) in [
        (with_headers(&FIELDS), server.url(), FIELDS.len()),
        (with_login, server.url(), 1),
        (exact(), with_user, 1),
    ] {
        let before = server.log().len();
        let source_of = remote(options);
        let source = source_of.open(&url).unwrap();
        source.read_at(50_000, &mut [0; 10]).unwrap();
        let asks = &server.log()[before..];
        assert_eq!(asks.iter().map(secrets).collect::<Vec<_>>(), [sent, 0, 0], "{asks:?}");
        assert!(values(&asks[2], "host")[0].starts_with("localhost:"));
    }
}

/// Settings of all three clouds, with a token that is sent beside a signature.
fn bucket_options(server: &Buckets) -> Options {
    let mut options = hasty();
    options.s3 = server.settings();
    options.s3.push(("AWS_SESSION_TOKEN".to_string(), SECRET.to_string()));
    options
}

#[test]
fn a_request_with_its_signature_in_the_header_follows_no_redirect() {
    let (server, other) = (Buckets::new(10), Buckets::new(10));
    other.put("there", "x", "x");
    let by_name = server.url().replace("127.0.0.1", "localhost");
    let source_of = remote(bucket_options(&server));
    let mut count = 0;
    for to in [other.url(), by_name] {
        let target = format!("{to}/there/x?{SECRET}={SECRET}");
        server.plan(move |_| super::bucket::Act::Redirect(target.clone()));
        for scheme in ["s3", "gs", "az"] {
            let folder = source_of.folder(&format!("{scheme}://bucket/a/")).unwrap();
            let stop = AtomicBool::new(false);
            for error in [
                folder.list(false, &stop, &mut |_| ControlFlow::Continue(())).unwrap_err(),
                folder.put_new("x", b"x".to_vec()).unwrap_err(),
                folder.remove("x").unwrap_err(),
            ] {
                let text = error.to_string();
                assert!(text.contains(&format!("redirects requests to {to}/; check ")), "{text}");
                assert!(!text.contains(SECRET), "{text}");
            }
            count += 3;
            assert_eq!(server.log().len(), count, "{scheme}");
        }
    }
    assert!(other.log().is_empty(), "{:?}", other.log());
    let signed =
        server.log().into_iter().filter(|asked| asked.fields.contains_key("authorization"));
    assert!(signed.filter(|asked| asked.fields.contains_key("x-amz-security-token")).count() > 0);
}

#[test]
fn a_redirect_of_an_object_in_a_bucket_gets_neither_signature_nor_token() {
    let (server, other) = (Buckets::new(10), Buckets::new(10));
    other.put("there", "x", vec![7; 100_000]);
    let target = format!("{}/there/x", other.url());
    server.plan(move |_| super::bucket::Act::Redirect(target.clone()));
    let mut options = bucket_options(&server);
    options.read_ahead = false;
    let source_of = remote(options);
    for scheme in ["s3", "az"] {
        let source = source_of.open(&format!("{scheme}://bucket/x")).unwrap();
        source.read_at(50_000, &mut [0; 10]).unwrap();
        let signed = server.log().pop().unwrap().query;
        assert!(signed.contains_key("X-Amz-Signature") || signed.contains_key("sig"), "{signed:?}");
        assert_eq!(signed.contains_key("X-Amz-Security-Token"), scheme == "s3");
    }
    assert!(other.log().len() >= 4);
    for asked in other.log() {
        assert!(asked.query.is_empty() && !asked.fields.contains_key("authorization"), "{asked:?}");
        assert!(!asked.fields.keys().any(|name| name.starts_with("x-")), "{asked:?}");
        assert!(!asked.fields.values().any(|value| value.contains(SECRET)), "{asked:?}");
    }
}

#[test]
fn a_request_for_keys_follows_no_redirect() {
    let (server, other) = (Buckets::new(10), Buckets::new(10));
    let mut options = bucket_options(&server);
    options.s3.retain(|(name, _)| !name.contains("ACCESS_KEY"));
    // The token of a container, which the service of its cloud expects in a header.
    for (name, value) in [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/keys/x", server.url())),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", String::new()),
    ] {
        options.s3.push((name.to_string(), value));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), SECRET).unwrap();
    options.s3.last_mut().unwrap().1 = file.path().display().to_string();
    let target = format!("{}/there/x", other.url());
    server.plan(move |_| super::bucket::Act::Redirect(target.clone()));
    let error = remote(options).open("s3://bucket/x").unwrap_err().to_string();
    assert!(error.contains("no credentials") && !error.contains(SECRET), "{error}");
    assert_eq!(server.log()[0].fields.get("authorization").map(String::as_str), Some(SECRET));
    assert!(other.log().is_empty(), "{:?}", other.log());
}
