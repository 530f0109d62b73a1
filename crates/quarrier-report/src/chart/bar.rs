//! Horizontal bars: one per row, beside names and numbers of any length.

use maud::{Markup, html};

use super::Percent;
use crate::Colour;

/// A bar with its spread, for [`bars`].
#[derive(Debug, Clone)]
pub struct Bar {
    /// The name of the bar.
    pub name: String,
    /// The text below the name.
    pub under: String,
    /// The length of the bar.
    pub value: f64,
    /// Standard deviation of the value.
    pub spread: f64,
    /// The value as formatted text.
    pub value_text: Markup,
    /// The colour of the bar.
    pub colour: Colour,
}

/// Renders bars of one unit, with lengths relative to the greatest value; nothing if no value is above
/// 0.
pub fn bars(bars: &[Bar]) -> Markup {
    let tops = bars.iter().map(|bar| bar.value + bar.spread);
    let most = tops.filter(|top| top.is_finite()).fold(0.0, f64::max);
    if most <= 0.0 {
        return html! {};
    }
    let share = |value: f64| share(value / most);
    html! {
        div.bars {
            @for bar in bars {
                @let (low, high) = (share(bar.value - bar.spread), share(bar.value + bar.spread));
                div.what { (bar.name) @if !bar.under.is_empty() { small { (bar.under) } } }
                svg.track height="17" aria-hidden="true" {
                    rect.(bar.colour.class()) width=(Percent(share(bar.value))) height="17" {}
                    @if high - low > 0.5 {
                        g.spread {
                            line x1=(Percent(low)) x2=(Percent(high)) y1="8.5" y2="8.5" {}
                            @for end in [Percent(low), Percent(high)] {
                                line x1=(end) x2=(end) y1="4.5" y2="12.5" {}
                            }
                        }
                    }
                }
                div.value { (bar.value_text) }
            }
        }
    }
}

/// Renders a bar in a table row: consecutive parts of the row's width, each with its classes and its
/// share of the width (0 to 1).
pub fn bar(parts: &[(&str, f64)]) -> Markup {
    let mut end = 0.0;
    let mut placed = Vec::new();
    for (class, part) in parts.iter().filter(|(_, part)| *part > 0.0) {
        let from = end;
        end = (from + share(*part)).min(100.0);
        placed.push((*class, Percent(from), Percent(end - from)));
    }
    html! {
        svg.bar width="100%" height="12" aria-hidden="true" {
            @for (class, x, width) in placed {
                rect class=(class) x=(x) width=(width) height="12" {}
            }
        }
    }
}

/// Renders a value within its interval, beside the range that counts as equal; all are shares of the
/// width (0 to 1).
pub fn interval(class: &str, (low, high): (f64, f64), at: f64, equal: (f64, f64)) -> Markup {
    let stretch = |from: f64, to: f64| {
        let (from, to) = (share(from), share(to));
        (Percent(from), Percent((to - from).max(0.5)))
    };
    let ((equal_x, equal_width), (x, width)) = (stretch(equal.0, equal.1), stretch(low, high));
    html! {
        svg.track.interval height="17" aria-hidden="true" {
            rect.equal x=(equal_x) width=(equal_width) height="17" {}
            line.middle x1="50%" x2="50%" y1="0" y2="17" {}
            rect class=(class) x=(x) width=(width) y="6.5" height="4" {}
            circle.at.(class) cx=(Percent(share(at))) cy="8.5" r="4.5" {}
        }
    }
}

/// As percent, from 0 to 100; NaN counts as 0.
fn share(share: f64) -> f64 {
    if share.is_nan() { 0.0 } else { 100.0 * share.clamp(0.0, 1.0) }
}
