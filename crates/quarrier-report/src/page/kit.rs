//! The elements of pages.

use maud::{Markup, Render, html};

use super::{TITLE_CHARS_MAX, cut};
use crate::Colour;

/// Maximum length of a fact in characters: enough for a long command line.
const FACT_CHARS_MAX: usize = 400;

/// Renders the top of a page: the tool, the subject (a command line, or words), and the rest.
pub fn header(kicker: &str, title: &str, is_command: bool, rest: &Markup) -> Markup {
    html! {
        header {
            p.kicker { (kicker) }
            h1.command[is_command] { (cut(title, TITLE_CHARS_MAX)) }
            (rest)
        }
    }
}

/// Renders a section with its heading; `id` is the target of links.
pub fn section(id: &str, title: &str, content: &Markup) -> Markup {
    html! { section.card id=(id) { h2 { (title) } (content) } }
}

/// Whether a section can be folded, and its initial state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// It cannot be folded.
    Never,
    /// It is foldable, and initially open.
    Open,
    /// It is foldable, and initially closed.
    Closed,
}

/// Like [`section`], with the folding that `fold` selects. A link to `id` unfolds it.
pub fn folded(id: &str, title: &str, fold: Fold, content: &Markup) -> Markup {
    match fold {
        Fold::Never => section(id, title, content),
        _ => html! {
            details.card open[fold == Fold::Open] {
                summary { h2 { (title) } }
                // Browsers unfold the element that contains the target of a link.
                div id=(id) { (content) }
            }
        },
    }
}

/// Renders content folded below its summary.
pub fn details(summary: &str, is_open: bool, content: &Markup) -> Markup {
    html! { details open[is_open] { summary { (summary) } (content) } }
}

/// Renders labels and values as a grid; nothing if there are none. Empty values are left out.
pub fn facts<L: AsRef<str>, V: AsRef<str>>(facts: &[(L, V)]) -> Markup {
    if facts.is_empty() {
        return html! {};
    }
    html! {
        dl.facts {
            @for (label, value) in facts {
                @if !value.as_ref().is_empty() {
                    div { dt { (label.as_ref()) } dd { (cut(value.as_ref(), FACT_CHARS_MAX)) } }
                }
            }
        }
    }
}

/// Renders a note.
pub fn note(content: impl Render) -> Markup {
    html! { p.note { (content) } }
}

/// Renders a table that scrolls if it is too wide. A column whose name begins with `#` holds numbers,
/// and `=` is a column of bars without a name.
pub fn table(class: &str, columns: &[&str], rows: &Markup) -> Markup {
    html! {
        div.wide {
            table class=(class) {
                thead {
                    tr {
                        @for column in columns {
                            @if let Some(name) = column.strip_prefix('#') {
                                th.n { (name) }
                            } @else if *column == "=" {
                                th.fill {}
                            } @else {
                                th { (column) }
                            }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// Renders cells of numbers.
pub fn cells<T: Render>(cells: impl IntoIterator<Item = T>) -> Markup {
    html! { @for cell in cells { td.n { (cell) } } }
}

/// Renders a drawing with its caption, over the whole width or half of it.
pub fn figure(is_wide: bool, caption: &Markup, drawing: impl Render) -> Markup {
    html! { figure.whole[is_wide] { figcaption { (caption) } (drawing) } }
}

/// The symbol of a legend entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A series of this colour.
    Series(Colour),
    /// Time without work.
    Idle,
    /// Errors, such as unreadable bytes.
    Bad,
    /// An unreliable point.
    Hollow,
    /// A dashed line.
    Dashes,
    /// Paler than others.
    Pale,
}

impl Render for Key {
    fn render(&self) -> Markup {
        let class = match self {
            Key::Series(colour) => colour.class(),
            Key::Idle => "idle",
            Key::Bad => "bad",
            Key::Hollow => "hollow",
            Key::Dashes => "dashes",
            Key::Pale => "pale",
        };
        html! { i.key.(class) {} }
    }
}

/// Renders the legend of a chart's colours and lines; entries without a key apply to the whole chart.
pub fn legend(entries: &[(Option<Key>, Markup)]) -> Markup {
    html! {
        div.legend {
            @for (key, words) in entries {
                span { @if let Some(key) = key { (key) } (words) }
            }
        }
    }
}
