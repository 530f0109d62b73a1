//! Segments of a log and of its copy as messages: files, objects of a bucket, and behind a web server.

use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use quarrier::filter::{Conditions, Form, Rows, Watch};
use quarrier::kept::{DataFolder, IntakeOptions};
use quarrier::{Environment, Error, Filter, KeptLoad, OpenOptions, Opener, Sources, Tables};
use quarrier_messages::Format;

use super::bucket::{Act, Buckets};
use crate::keyed::durable;

const SEGMENT_BYTES: u64 = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(60);

fn opener(server: &Buckets) -> Opener {
    let environment = Environment::of_variables(server.settings());
    Opener::new(OpenOptions::default(), &environment, &Arc::default())
}

fn lines(from: u64, count: u64) -> String {
    let mut lines = String::new();
    for n in from..from + count {
        let late = if n > 900 { ",\"late\":true" } else { "" };
        let text = "word ".repeat((n % 40) as usize);
        writeln!(lines, "{{\"n\":{n},\"price\":{}.{n:03},\"text\":\"{text}\"{late}}}", n % 7)
            .unwrap();
    }
    lines
}

/// What was said about sources, and their messages.
#[derive(Default, Debug)]
struct Said {
    messages: Vec<u8>,
    notices: Vec<String>,
    damages: Vec<String>,
    errors: Vec<String>,
}

impl Watch for Said {
    fn rows(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        for message in rows.messages() {
            self.messages.extend_from_slice(message.bytes);
            self.messages.push(b'\n');
        }
        Ok(())
    }

    fn notice(&mut self, notice: &str) {
        self.notices.push(notice.to_string());
    }

    fn damaged(&mut self, _name: &str, damage: &str) {
        self.damages.push(damage.to_string());
    }

    fn failed(&mut self, error: Error) -> quarrier::Result<()> {
        self.errors.push(error.to_string());
        Ok(())
    }
}

impl Said {
    /// The messages, about which nothing is to be said.
    fn clean(self) -> Vec<u8> {
        let said = [&self.notices[..], &self.damages, &self.errors].concat();
        assert!(said.is_empty(), "{said:?}");
        self.messages
    }
}

fn filtered(opener: &Opener, name: &str) -> Said {
    let filter = Filter::new(Conditions::one("n >= 0")).form(Form::Messages);
    let mut said = Said::default();
    filter.run(&Sources::of([name]), opener, &Arc::default(), &mut said).unwrap();
    said
}

fn count_of(messages: &[u8]) -> usize {
    messages.iter().filter(|byte| **byte == b'\n').count()
}

/// A data folder `d`, and its copy in `copy` and in the bucket. The messages of one append span several segments.
struct Kept {
    folder: tempfile::TempDir,
    server: Buckets,
    opener: Opener,
}

impl Kept {
    fn new() -> Kept {
        let (folder, server) = (tempfile::tempdir().unwrap(), Buckets::new(3));
        let opener = opener(&server);
        let data = folder.path().join("d");
        let kept = DataFolder::open_with(&data, SEGMENT_BYTES).unwrap();
        // The end of the copy ends the requests of its opener.
        let copying = self::opener(&server);
        let place = copying.copy_place("s3://lab/copy".as_ref()).unwrap();
        kept.copy_to(place, |line| panic!("{line}")).unwrap();
        let load = |name: &str, lines: String, level: Option<i32>| {
            let path = folder.path().join(name);
            std::fs::write(&path, lines).unwrap();
            let load = KeptLoad::new("t").compression(level);
            load.run(&kept, &Sources::of([&path]), &opener, &Arc::default(), &mut ()).unwrap();
        };
        load("a.json", lines(0, 400), None);
        let mut options = IntakeOptions::default();
        options.format = Some(Format::Json);
        let mut intake = kept.intake("t", options).unwrap();
        intake.push(lines(400, 6_000).as_bytes()).unwrap();
        durable(kept.take_in(intake, &AtomicBool::new(false)).unwrap());
        load("b.json", lines(6_400, 600), Some(3));
        load("c.json", lines(7_000, 4_000), None);
        assert_eq!(kept.finish_copy(PATIENCE), None);
        kept.close().unwrap();
        let copied = Kept { folder, server, opener };
        std::fs::create_dir_all(copied.path("copy/log")).unwrap();
        for key in copied.segments() {
            std::fs::write(copied.path(&key), copied.server.get("lab", &key).unwrap()).unwrap();
        }
        copied
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The keys of the copied segments.
    fn segments(&self) -> Vec<String> {
        let keys = self.server.keys("lab");
        keys.into_iter().filter(|key| key.starts_with("copy/log/")).collect()
    }

    /// The messages of the log, as far as copied segments have them.
    fn expected(&self) -> Vec<u8> {
        let all = filtered(&self.opener, &self.path("d")).clean();
        assert_eq!(count_of(&all), 11_000);
        let last = self.segments().pop().unwrap();
        let next = last.rsplit('/').next().and_then(|name| name.split('-').nth(1)).unwrap();
        let count = usize::from_str_radix(next, 16).unwrap() - 1;
        assert!(count > 7_000, "{count}");
        let lines = all.split_inclusive(|byte| *byte == b'\n');
        lines.take(count).flatten().copied().collect()
    }

    fn far(&self, key: &str) -> String {
        format!("s3://lab/{key}")
    }
}

#[test]
fn copied_segments_have_the_messages_of_the_log_wherever_they_lie() {
    let kept = Kept::new();
    let expected = kept.expected();
    let segments = kept.segments();
    assert!(segments.len() > 3, "{segments:?}");
    for name in [
        kept.path("copy/log/*.qlog"),
        kept.path("copy/log"),
        kept.far("copy/log/*.qlog"),
        kept.far("copy/log/"),
    ] {
        assert_eq!(filtered(&kept.opener, &name).clean(), expected, "{name}");
    }
    let far = |keys: &[String]| -> Vec<u8> {
        let said = keys.iter().map(|key| filtered(&kept.opener, &kept.far(key)).clean());
        said.flatten().collect()
    };
    assert_eq!(far(&segments), expected);
    // As tables, they have the columns of the log's messages.
    let load = |name: &str| {
        let sources = Sources::of([name]);
        Tables::new().load_all(&sources, &kept.opener, &Arc::default()).unwrap()
    };
    let [near, far] =
        [kept.path("copy/log/*.qlog"), kept.far("copy/log/*.qlog")].map(|it| load(&it));
    assert_eq!((near.table.rows(), near.rejected), (count_of(&expected) as u64, 0));
    assert_eq!((far.table.rows(), far.rejected), (near.table.rows(), 0));
    assert_eq!(far.table.schema(), near.table.schema());
    assert_eq!(near.table.schema().fields.len(), 4);
    assert!(
        far.versions.iter().all(|version| version.as_ref().is_some_and(|it| it.mark.len() > 5))
    );
    // The segments of the log itself, one by one.
    let own = filtered(&kept.opener, &kept.path("d/log/*.qlog")).clean();
    assert_eq!(own, filtered(&kept.opener, &kept.path("d")).clean());
}

#[test]
fn the_copy_is_no_data_folder() {
    let kept = Kept::new();
    let said = filtered(&kept.opener, &kept.path("copy"));
    assert!(said.messages.is_empty());
    assert!(said.errors[0].contains("copy: is the copy of a log"), "{said:?}");
    assert!(DataFolder::open(&kept.folder.path().join("copy")).is_err());
}

#[test]
fn messages_that_need_a_segment_that_is_not_there_are_left_out_with_a_notice() {
    let kept = Kept::new();
    let (mut found, mut count) = (0, 0);
    for key in kept.segments() {
        // A web server lists no folders.
        let url = format!("{}/lab/{key}", kept.server.url());
        let said = filtered(&kept.opener, &url);
        assert!(said.damages.is_empty() && said.errors.is_empty(), "{said:?}");
        count += count_of(&said.messages);
        if let [notice] = &said.notices[..] {
            assert!(
                notice.starts_with(&url) && notice.contains("take effect together"),
                "{notice}"
            );
            found += 1;
        }
    }
    assert!(found > 0 && count < count_of(&kept.expected()), "{found} {count}");
}

#[test]
fn damage_to_an_object_is_listed_as_that_of_a_file_is() {
    let kept = Kept::new();
    let keys = kept.segments();
    let whole = kept.server.get("lab", &keys[0]).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for (bytes, what) in
        [(changed, "are lost"), (whole[..whole.len() - 20_000].to_vec(), "are lost")]
    {
        kept.server.put("lab", &keys[0], bytes.clone());
        std::fs::write(kept.path(&keys[0]), bytes).unwrap();
        let near = filtered(&kept.opener, &kept.path(&keys[0]));
        let far = filtered(&kept.opener, &kept.far(&keys[0]));
        assert_eq!(far.messages, near.messages);
        assert!(count_of(&far.messages) > 0 && far.damages.len() == 1, "{far:?}");
        let near: Vec<String> = near
            .damages
            .iter()
            .map(|line| line.replace(&kept.path(&keys[0]), &kept.far(&keys[0])))
            .collect();
        assert_eq!(far.damages, near);
        assert!(far.damages[0].contains(what), "{:?}", far.damages);
    }
}

#[test]
fn a_segment_is_fetched_once_by_few_requests_and_an_error_is_no_damage() {
    let kept = Kept::new();
    let key = &kept.segments().pop().unwrap();
    let length = kept.server.get("lab", key).unwrap().len() as u64;
    let opener = opener(&kept.server);
    let messages = filtered(&opener, &kept.far(key)).clean();
    let cost = opener.remote_cost().unwrap();
    assert!(cost.requests <= 4 && cost.bytes_fetched <= length, "{cost:?} of {length}");
    // A segment by its content, whatever it is called.
    kept.server.put("lab", "other/name", kept.server.get("lab", key).unwrap());
    assert_eq!(filtered(&opener, "s3://lab/other/name").messages, messages);
    // The object can be opened, and not read.
    let (begun, key_) = (kept.server.log().len() as u64, key.clone());
    kept.server.plan(move |asked| match asked.key == key_ && asked.number > begun {
        true => Act::Status(403),
        false => Act::Serve,
    });
    let sources = Sources::of([kept.far(key)]);
    let loaded = Tables::new().load_all(&sources, &opener, &Arc::default());
    let error = loaded.unwrap_err().to_string();
    assert!(error.contains("denies access") && error.starts_with("s3://lab/copy/log/"), "{error}");
}
