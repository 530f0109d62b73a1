//! `--log LEVEL`: logs decisions and retries with their reasons, a line for each event on standard
//! error.
//!
//! Only events of this project's crates are written. Events of libraries may contain URLs with signatures
//! or headers with credentials; ours name sources without secrets.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgMatches};
use quarrier_core::civil;
use quarrier_report::visible;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// `--log`.
pub(crate) fn log_arg() -> Arg {
    Arg::new("log")
        .long("log")
        .value_name("LEVEL")
        .default_value("off")
        .hide_default_value(true)
        .value_parser(LEVELS)
        .hide_possible_values(true)
        .help(
            "Log to standard error: off (default), error, warn (retries), info (decisions), debug, \
             trace",
        )
        .help_heading("Output")
}

/// Writes events from now on, if `--log` asks for it.
pub(crate) fn begin(matches: &ArgMatches) {
    let level = matches.try_get_one::<String>("log").ok().flatten();
    let Some(most) = level.and_then(|level| level.parse::<LevelFilter>().ok()) else { return };
    if most != LevelFilter::OFF {
        // If a subscriber is set already, it gets the events.
        let _ = tracing::subscriber::set_global_default(Lines { most });
    }
}

/// Writes events up to a level.
struct Lines {
    most: LevelFilter,
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.most && is_ours(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn event(&self, event: &Event<'_>) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = i64::try_from(time.as_nanos()).unwrap_or_default();
        let line = line(time, event);
        // If standard error is closed, nobody is left to read this.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // Spans are not enabled.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn is_ours(target: &str) -> bool {
    let name = target.split("::").next().unwrap_or_default();
    name == "quarrier" || name.starts_with("quarrier_")
}

/// `2026-11-26T11:36:54.123Z WARN quarrier_remote::object: message name=value …`, and a line end.
fn line(time: i64, event: &Event<'_>) -> String {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let mut line = String::new();
    let (day, of_day) = civil::split(time);
    let milliseconds = of_day / 1_000_000;
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    // Writing to a string does not fail.
    let _ = civil::write_date(day.into(), &mut line);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let _ = write!(line, "T{hour:02}:{minute:02}:{second:02}.{rest:03}Z ");
    let (level, target) = (event.metadata().level(), event.metadata().target());
    let _ = write!(line, "{level} {target}: {}{}", fields.message, fields.others);
    let line = line.replace(['\n', '\r'], " ");
    format!("{}\n", visible(&line))
}

#[derive(Default)]
struct Fields {
    message: String,
    /// Each field with a space before it.
    others: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.others, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Collects the lines that [`Lines`] would write.
    struct CollectedLines {
        lines: Lines,
        kept: Arc<Mutex<Vec<String>>>,
    }

    impl Subscriber for CollectedLines {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            self.lines.enabled(metadata)
        }

        fn event(&self, event: &Event<'_>) {
            let time = 1_700_000_000_123_456_789;
            self.kept.lock().unwrap().push(line(time, event));
        }

        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            self.lines.new_span(attributes)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn events_of_this_project_are_a_line_each_up_to_the_level() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let lines = Lines { most: LevelFilter::INFO };
        tracing::subscriber::with_default(
            CollectedLines { lines, kept: Arc::clone(&kept) },
            || {
                tracing::warn!(offset = 7_u64, reason = "two\nlines\x1b", "trying again");
                tracing::debug!("too much");
                tracing::error!(target: "reqwest::connect", "authorization: secret");
                tracing::info!(target: "quarrierx", "another's");
            },
        );
        let kept = kept.lock().unwrap();
        let expected = "2023-11-14T22:13:20.123Z WARN quarrier_cli::log::tests: trying again \
                        offset=7 reason=two lines\\x1b\n";
        assert_eq!(*kept, [expected]);
    }

    #[test]
    fn every_level_is_one_that_tracing_knows() {
        for level in LEVELS {
            level.parse::<LevelFilter>().unwrap();
        }
    }
}
