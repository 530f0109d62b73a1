//! Text for the page.

pub(crate) use quarrier_report::escape;

/// `count` and the noun in its number: `1 reading`, `2 readings`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {noun}{s}", super::quantity::count(number as f64))
}
