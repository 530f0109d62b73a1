//! `quarrier mount`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quarrier::account::{Stats, rate};
use quarrier::mount::{Listed, Tree};
use quarrier::{Error, Opener, Sources};
use quarrier_mount::{MountOptions, Mounted};
use quarrier_report::{number, visible};

use super::search::summary::write_stats;
use super::{complain_of, failed, print, warn_of_cache};
use crate::args::Mount;
use crate::{Outcome, complain, host, interrupt};

/// How often to check for signals and failures.
const LOOK: Duration = Duration::from_millis(50);

/// Runs the command.
pub(crate) fn run(mount: &Mount) -> Outcome {
    let stop = interrupt::watch();
    interrupt::watch_hangup(&stop);
    run_until(mount, &stop).unwrap_or_else(|message| failed(&message, &stop))
}

fn error_message(error: Error) -> String {
    error.to_string()
}

fn run_until(asked: &Mount, stop: &Arc<AtomicBool>) -> Result<Outcome, String> {
    let written = asked.stats.iter().map(|path| path.as_path());
    Sources::of([&asked.source]).refuse_overwriting(written).map_err(error_message)?;
    // Checked first, because opening a source can take long.
    quarrier_mount::check_mount_point(&asked.point).map_err(|error| error.to_string())?;
    let opener = Opener::new(asked.cache.options(), host::environment(), stop);
    let named = opener.only(&asked.source).map_err(error_message)?;
    let opened = opener.open(&named).map_err(error_message)?;
    let name = opened.name().to_string();
    let notice = opened.notice().map(str::to_string);
    let tree = Tree::new(&named, opened, stop).map_err(error_message)?;
    let (tree, listed) = match asked.files {
        true => tree.with_files().map_err(error_message)?,
        false => (tree, Listed::default()),
    };
    let tree = Arc::new(tree);
    let options = MountOptions::default().allow_other(asked.allow_other);
    let mounted = quarrier_mount::mount(&tree, &asked.point, options);
    let mounted = mounted.map_err(|error| error.to_string())?;
    let lines = notice.iter().chain(&listed.notices).chain(&listed.damages);
    lines.for_each(|line| complain_of(&name, line));
    warn_of_cache(&opener);
    let started = Instant::now();
    if !asked.quiet {
        // The mount is useful even if standard output is closed.
        let _ = print(&ready_line(&asked.point, &tree));
    }
    wait(&tree, &mounted, stop);
    let unmounted = mounted.unmount();
    let damaged = if listed.damages.is_empty() { Outcome::Found } else { Outcome::Incomplete };
    let outcome = report(&tree).worse(damaged);
    if let Some(path) = &asked.stats {
        write_stats(&stats(&tree, &opener, started.elapsed()), path)?;
    }
    unmounted.map_err(|error| format!("{}: cannot unmount: {error}", asked.point.display()))?;
    Ok(outcome)
}

/// The line that reports to people and scripts that the mount is usable.
fn ready_line(point: &Path, tree: &Tree) -> String {
    let file = point.join(tree.file_name()).display().to_string();
    let bytes = number::counted(tree.length(), "byte");
    format!("{} has {bytes}; mounted until Ctrl-C or 'umount'\n", visible(&file))
}

/// Waits until the mount ends or `stop` becomes true. Reports the first failed read at once, since the
/// program that reads gets only an error number.
fn wait(tree: &Tree, mounted: &Mounted, stop: &AtomicBool) {
    let mut is_reported = false;
    while !stop.load(Ordering::Relaxed) && !mounted.has_ended() {
        std::thread::sleep(LOOK);
        if !is_reported {
            is_reported = report_first_failure(tree);
        }
    }
    if !is_reported {
        report_first_failure(tree);
    }
}

fn report_first_failure(tree: &Tree) -> bool {
    let Some(first) = tree.unread().first else { return false };
    complain(&format!("{}: {first}; its reader got an error", tree.source_name()));
    true
}

/// Reports the ranges that could not be read.
fn report(tree: &Tree) -> Outcome {
    let (unread, name) = (tree.unread(), tree.source_name());
    for range in &unread.ranges {
        complain(&format!("{name}: bytes {}..{} could not be read", range.start, range.end));
    }
    for line in &unread.files {
        complain(&format!("{name}: {line}"));
    }
    if unread.more > 0 {
        complain(&format!("{name}: {} more reads failed", unread.more));
    }
    if unread.is_empty() { Outcome::Found } else { Outcome::Incomplete }
}

fn stats(tree: &Tree, opener: &Opener, elapsed: Duration) -> Stats {
    let (bytes, seconds) = (tree.read_bytes(), elapsed.as_secs_f64());
    Stats {
        command: "mount",
        bytes,
        seconds,
        bytes_per_second: rate(bytes, seconds),
        device: "cpu".to_string(),
        limited_by: "read",
        remote: opener.remote_cost(),
        ..Stats::default()
    }
}
