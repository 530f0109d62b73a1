//! `--report FILE.html`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

use quarrier::account::Stats;
use quarrier::carve::describe_skimmed;
use quarrier_carve::Summary;
use quarrier_carve::folder::{REPORT, Row};
use quarrier_report::number;

use super::Run;
use super::watch::Seen;
use crate::output::file::write_whole;
use crate::output::report::{CarvedReport, carved_html};

/// Writes the page.
///
/// # Errors
/// A message for the user.
pub(super) fn write(
    path: &Path,
    run: &Run<'_>,
    summary: &Summary,
    stats: &Stats,
    seen: &Seen,
) -> Result<(), String> {
    let folder = run.carve.folder.as_deref();
    let link = folder.and_then(|folder| link_to(path, folder));
    let facts = facts(run, summary, stats);
    let report = CarvedReport {
        title: &run.carve.line,
        facts: &facts,
        range: run.range.clone(),
        unreadable: &summary.unreadable,
        folder,
        link: link.as_deref(),
    };
    let cannot = |error| format!("{}: cannot write the report: {error}", path.display());
    let page = match folder {
        None => carved_html(&report, seen.rows.iter().cloned()),
        Some(folder) => {
            let file = File::open(folder.join(REPORT)).map_err(cannot)?;
            let lines = BufReader::new(file).lines().map_while(Result::ok);
            carved_html(&report, lines.filter_map(|line| Row::from_json(&line)))
        }
    };
    write_whole(path, page.as_bytes()).map_err(cannot)
}

fn facts(run: &Run<'_>, summary: &Summary, stats: &Stats) -> Vec<(String, String)> {
    let files = stats.files.clone().unwrap_or_default();
    let mut facts = vec![
        ("source", run.name.clone()),
        ("bytes", format!("{} ({})", number::bytes(stats.bytes), number::count(stats.bytes))),
        ("files", format!("{} of {}", number::count(stats.findings), number::bytes(files.bytes))),
        ("valid", number::count(files.valid)),
        ("partial", number::count(files.partial)),
        ("header", number::count(files.header)),
        ("put together from fragments", number::count(files.mended)),
        ("blocks", format!("{} bytes", summary.block_bytes)),
        ("time", format!("{:.3} s", stats.seconds)),
        ("rate", number::rate(stats.bytes_per_second)),
        ("looked at", number::counted(summary.candidates, "candidate")),
    ];
    if let Some(share) = stats.describe_share() {
        facts.push(("share of the ceiling", share));
    }
    if let Some(remote) = &stats.remote {
        facts.push(("fetched", remote.describe()));
    }
    if let Some(verified) = &run.verified {
        facts.push(("verified", verified.describe().to_string()));
    }
    if let Some(free) = &run.free {
        facts.push(("unallocated", free.clone()));
    }
    let notes = run.notices.iter().chain(&run.damages);
    facts.extend(notes.map(|note| ("note", note.clone())));
    facts.extend(describe_skimmed(&summary.skimmed).into_iter().map(|(_, line)| ("note", line)));
    if summary.stopped {
        facts.push(("interrupted", format!("at byte {}", summary.position)));
    }
    facts.into_iter().map(|(label, value)| (label.to_string(), value)).collect()
}

/// The relative path from the page's folder to the output folder; `None` if it is not UTF-8.
fn link_to(page: &Path, folder: &Path) -> Option<String> {
    let beside = page.parent().filter(|parent| !parent.as_os_str().is_empty());
    let from = beside.unwrap_or(Path::new(".")).canonicalize().ok()?;
    let to = folder.canonicalize().ok()?;
    let (from, to): (Vec<Component<'_>>, Vec<Component<'_>>) =
        (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to[common..].iter().copied()).collect();
    match way.to_str()? {
        "" => Some(".".to_string()),
        way => Some(way.to_string()),
    }
}
