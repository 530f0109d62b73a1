//! Segments of a log in a bucket, read by workers.

use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use quarrier::{DataFolder, Environment, KeptLoad, OpenOptions, Opener, Sources};

use super::bucket::Buckets;
use super::killed::{disturbed, rounds};
use super::lab::{Cluster, Draw, Lab, assert_same, finished, text};
use super::messages;

const PATIENCE: Duration = Duration::from_secs(60);

/// A data folder `d`, and a bucket with the copy of its log.
struct Kept {
    lab: Lab,
    server: Buckets,
    /// Number of messages in complete segments.
    copied: usize,
}

impl Kept {
    fn new() -> Kept {
        let (lab, server) = (Lab::new(), Buckets::new(100));
        let environment = Environment::of_variables(server.settings());
        let opener = || Opener::new(OpenOptions::default(), &environment, &Arc::default());
        let (copying, opener, stop) = (opener(), opener(), Arc::default());
        let kept = DataFolder::open_with(&lab.path().join("d"), 64 << 10).unwrap();
        let place = copying.copy_place("s3://lab/copy".as_ref()).unwrap();
        kept.copy_to(place, |line| panic!("{line}")).unwrap();
        let drawn = messages::messages(&mut Draw::new(12), 3_000);
        for (number, drawn) in drawn.chunks(1_000).enumerate() {
            let name = format!("{number}.ndjson");
            messages::write(&lab, &name, &mut Draw::new(number as u64), drawn);
            let sources = Sources::of([lab.path().join(name)]);
            let load = KeptLoad::new("t").compression((number == 1).then_some(3));
            load.run(&kept, &sources, &opener, &stop, &mut ()).unwrap();
        }
        assert_eq!(kept.finish_copy(PATIENCE), None);
        kept.close().unwrap();
        let mut kept = Kept { lab, server, copied: 0 };
        let last = kept.segments().pop().unwrap();
        let next = last.rsplit('/').next().and_then(|name| name.split('-').nth(1)).unwrap();
        kept.copied = usize::from_str_radix(next, 16).unwrap() - 1;
        kept
    }

    /// The keys of the copied segments.
    fn segments(&self) -> Vec<String> {
        let keys = self.server.keys("lab");
        keys.into_iter().filter(|key| key.starts_with("copy/log/")).collect()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.lab.command(arguments);
        command.envs(self.server.settings());
        finished(command, Duration::from_secs(120))
    }

    fn cluster(&self, count: usize) -> Cluster {
        let settings = self.server.settings();
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut cluster = Cluster::start(0);
        (0..count).for_each(|number| cluster.add_worker(number, &settings));
        cluster.wait_for(count);
        cluster
    }
}

const STATEMENTS: &[&str] = &[
    "SELECT count(*), count(odd), sum(qty) FROM LOG",
    "SELECT id, symbol, price, rate, day, open, note, odd FROM LOG ORDER BY id, note",
    "SELECT symbol, count(*) AS n, min(day) AS d FROM LOG WHERE id % 3 = 1 GROUP BY symbol ORDER BY symbol",
    "SELECT _message FROM LOG WHERE id BETWEEN 990 AND 1010 ORDER BY id",
];

#[test]
fn workers_read_the_segments_of_a_log_in_a_bucket() {
    let kept = Kept::new();
    let segments = kept.segments();
    assert!(segments.len() > 3 && kept.copied > 1_000, "{segments:?}");
    let clusters = [kept.cluster(1), kept.cluster(2)];
    for (number, sql) in STATEMENTS.iter().enumerate() {
        let sql = sql.replace("LOG", "'s3://lab/copy/log/*.qlog'");
        let arguments = ["query", sql.as_str(), "--format", "csv"];
        let plain = kept.run(&arguments);
        assert_eq!((plain.status.code(), text(&plain.stderr).as_str()), (Some(0), ""), "{sql}");
        let cluster = &clusters[number % 2];
        let spread = kept.run(&[&arguments[..], &["--cluster", &cluster.at]].concat());
        assert_same(&plain, &spread, &cluster.logs());
        assert_eq!(text(&spread.stderr), "", "{sql}");
    }
    // The messages are those at the beginning of the log.
    let copied = "SELECT _message FROM 's3://lab/copy/log/*.qlog' ORDER BY id, _message";
    let far = kept.run(&["query", copied, "--format", "csv", "--cluster", &clusters[1].at]);
    let own = format!("SELECT _message FROM 'd' ORDER BY id, _message LIMIT {}", kept.copied);
    assert_same(&kept.run(&["query", &own, "--format", "csv"]), &far, "the log itself");
    // A segment is described by few requests: those of the client open it, those of a worker read it.
    let before = kept.server.log().len();
    let plan = format!("EXPLAIN {copied}");
    kept.run(&["query", &plan, "--cluster", &clusters[1].at]);
    let log = kept.server.log();
    let gets = log[before..].iter().filter(|asked| asked.key == segments[1]).count();
    assert!((1..=12).contains(&gets), "{gets} requests for a segment");
    // Damage is listed as by one process.
    let mut bytes = kept.server.get("lab", &segments[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    kept.server.put("lab", &segments[1], bytes);
    let sql = "SELECT count(*), max(id) FROM 's3://lab/copy/log/*.qlog'";
    let plain = kept.run(&["query", sql]);
    let spread = kept.run(&["query", sql, "--cluster", &clusters[0].at]);
    assert_same(&plain, &spread, &clusters[0].logs());
    assert_eq!((plain.status.code(), text(&spread.stderr)), (Some(3), text(&plain.stderr)));
    assert!(text(&plain.stderr).contains("are lost"), "{}", text(&plain.stderr));
}

#[test]
fn a_killed_worker_loses_no_message_of_a_segment_and_doubles_none() {
    let kept = Kept::new();
    let sql = "SELECT id, note, price FROM 's3://lab/copy/log/*.qlog' ORDER BY id, note";
    let plain = kept.run(&["query", sql, "--format", "csv"]);
    assert!(plain.stdout.len() > 20_000, "{}", text(&plain.stderr));
    let arguments = ["local", "--workers", "2", "--", "query", sql, "--format", "csv"];
    for round in 0..rounds(1) {
        let mut draw = Draw::new(round);
        let mut command = kept.lab.command(&arguments);
        command.envs(kept.server.settings()).env("QUARRIER_CLUSTER_WAITS", "400");
        let after = if round == 0 { 1_800 } else { 800 + draw.below(3_000) };
        let (output, found) = disturbed(command, Duration::from_millis(after), &mut draw);
        assert_same(&plain, &output, &format!("round {round}"));
        let is_told = text(&output.stderr).contains("another one replaces it");
        assert!(round > 0 || found > 0 && is_told, "{output:?}");
    }
}
