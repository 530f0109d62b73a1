//! The progress bar: on a terminal, for runs longer than a second.

use std::io::IsTerminal;
use std::ops::Range;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use quarrier_core::pipeline::Chunk;
use quarrier_report::visible;

/// Runs shorter than this show no bar.
const DELAY: Duration = Duration::from_secs(1);

/// Maximum length of a source's name beside the bar.
const NAME_CHARACTERS_MAX: usize = 24;

pub(in crate::commands) struct Progress {
    started: Instant,
    range: Range<u64>,
    name: String,
    bar: Option<ProgressBar>,
    enabled: bool,
}

impl Progress {
    pub(in crate::commands) fn new(name: &str, range: Range<u64>, quiet: bool) -> Self {
        Progress {
            started: Instant::now(),
            range,
            name: shortened(&visible(name)),
            bar: None,
            enabled: !quiet && std::io::stderr().is_terminal(),
        }
    }

    /// Marks everything up to the end of the chunk as done.
    pub(in crate::commands) fn advance(&mut self, chunk: &Chunk<'_>) {
        self.advance_to(chunk.offset + chunk.own.end as u64);
    }

    /// Marks everything before `offset` of the source as done.
    pub(in crate::commands) fn advance_to(&mut self, offset: u64) {
        if !self.enabled || self.started.elapsed() < DELAY {
            return;
        }
        let (start, end) = (self.range.start, self.range.end);
        let name = &self.name;
        let elapsed = self.started.elapsed();
        let bar = self.bar.get_or_insert_with(|| {
            let (bar, template) = if end == u64::MAX {
                (ProgressBar::new_spinner(), "{spinner} {msg} {bytes} {decimal_bytes_per_sec}")
            } else {
                let bar = ProgressBar::new(end - start);
                (bar, "{msg} [{wide_bar}] {percent} % of {total_bytes} {decimal_bytes_per_sec}, {eta} left")
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.set_message(name.clone());
            bar.with_elapsed(elapsed)
        });
        bar.set_position(offset.saturating_sub(start));
    }

    /// Removes the bar from the terminal.
    pub(in crate::commands) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The end of a name, which is more telling than its folders.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    match count > NAME_CHARACTERS_MAX {
        true => {
            format!("…{}", name.chars().skip(count - NAME_CHARACTERS_MAX + 1).collect::<String>())
        }
        false => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(shortened("disk.img"), "disk.img");
        let long = shortened("/evidence/case/part/then/a/disk.img");
        assert_eq!((long.chars().count(), long.ends_with("/then/a/disk.img")), (24, true));
    }
}
