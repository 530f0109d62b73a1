//! Whether text for people has colours.

use std::ffi::OsStr;
use std::sync::OnceLock;

/// The value of `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// On a terminal that supports colours, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

impl Colours {
    /// The names of the values on the command line.
    pub(crate) const NAMES: [&str; 3] = ["auto", "always", "never"];

    /// The value of a name in [`Self::NAMES`].
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "always" => Colours::Always,
            "never" => Colours::Never,
            _ => Colours::Auto,
        }
    }
}

/// Set once for the whole process.
static CHOSEN: OnceLock<Colours> = OnceLock::new();

/// Applies `--color` from here on.
pub(crate) fn choose(colours: Colours) {
    let _ = CHOSEN.set(colours);
}

/// Whether to colour output, to a terminal or elsewhere.
pub(crate) fn is_wanted(is_terminal: bool) -> bool {
    match CHOSEN.get() {
        Some(Colours::Always) => true,
        Some(Colours::Never) => false,
        Some(Colours::Auto) | None => is_terminal && has_colours(&|name| std::env::var_os(name)),
    }
}

/// Whether the environment says that the terminal supports colours and the user wants them.
fn has_colours<T: AsRef<OsStr>>(variable: &dyn Fn(&str) -> Option<T>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.as_ref().is_empty());
    let is_dumb = variable("TERM").is_some_and(|value| value.as_ref() == "dumb");
    !refused && !is_dumb
}

#[cfg(test)]
mod tests {
    use super::has_colours;

    #[test]
    fn a_dumb_terminal_and_no_color_turn_colours_off() {
        let with = |name: &'static str, value: &'static str| {
            has_colours(&move |asked: &str| (asked == name).then_some(value))
        };
        assert!(with("TERM", "xterm-256color"));
        assert!(with("NO_COLOR", ""));
        assert!(!with("NO_COLOR", "1"));
        assert!(!with("TERM", "dumb"));
    }
}
