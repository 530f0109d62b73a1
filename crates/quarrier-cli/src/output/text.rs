//! Rows for people: coloured on a terminal, plain in a pipe.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use quarrier_report::{number, padded, visible};

use super::rows::{Excerpt, Layout, Rows, Value};

/// Shown of a finding's own bytes where it is longer.
const FOUND_BYTES_SHOWN: usize = 256;

pub(super) struct TextRows {
    out: Box<dyn Write + Send>,
    layout: Layout,
    colours: Colours,
    line: String,
}

/// Styles, all plain in a pipe or where `NO_COLOR` is set.
#[derive(Clone, Copy, Default)]
struct Colours {
    source: Style,
    offset: Style,
    label: Style,
    found: Style,
}

impl TextRows {
    pub(super) fn new(out: Box<dyn Write + Send>, layout: Layout, is_terminal: bool) -> Self {
        let coloured = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let colours = if coloured {
            Colours {
                source: AnsiColor::Magenta.on_default(),
                offset: AnsiColor::Green.on_default(),
                label: AnsiColor::Cyan.on_default(),
                found: AnsiColor::Red.on_default().bold(),
            }
        } else {
            Colours::default()
        };
        TextRows { out, layout, colours, line: String::new() }
    }

    fn styled(&mut self, style: Style, text: &str) {
        self.line.push_str(&style.render().to_string());
        self.line.push_str(text);
        self.line.push_str(&style.render_reset().to_string());
    }

    fn finding(&mut self, values: &[Value<'_>], excerpt: Excerpt<'_>) {
        let [source, offset, _, pattern, name] = values else { return };
        let colours = self.colours;
        self.styled(colours.source, &visible(text_of(source)));
        self.line.push(':');
        self.styled(colours.offset, &number_of(offset).to_string());
        self.line.push_str(": ");
        self.styled(colours.label, &visible(label(name, pattern)));
        self.line.push_str(": ");
        push_bytes(&mut self.line, excerpt.before);
        let shown = &excerpt.found[..excerpt.found.len().min(FOUND_BYTES_SHOWN)];
        let mut found = String::new();
        push_bytes(&mut found, shown);
        if shown.len() < excerpt.found.len() {
            found.push('…');
        }
        self.styled(colours.found, &found);
        push_bytes(&mut self.line, excerpt.after);
    }

    fn condition(&mut self, values: &[Value<'_>]) {
        let [condition, count] = values else { return };
        let colours = self.colours;
        self.styled(colours.offset, &format!("{:>12}", number_of(count)));
        self.line.push_str("  ");
        self.styled(colours.label, &visible(text_of(condition)));
    }

    fn carved(&mut self, values: &[Value<'_>]) {
        let [_, kind, offset, length, _, status, reason, ..] = values else { return };
        let colours = self.colours;
        self.styled(colours.offset, &format!("{:012x}", number_of(offset)));
        self.line.push_str("  ");
        self.styled(colours.label, &padded(&visible(text_of(kind)), 8));
        let length = number::bytes(number_of(length));
        self.line.push_str(&format!(" {length:>10}  {}", text_of(status)));
        if !text_of(reason).is_empty() {
            self.line.push_str(": ");
            self.line.push_str(&visible(text_of(reason)));
        }
    }

    fn count(&mut self, values: &[Value<'_>]) {
        let [pattern, name, count] = values else { return };
        let colours = self.colours;
        self.styled(colours.offset, &format!("{:>12}", number_of(count)));
        self.line.push_str("  ");
        self.styled(colours.label, &visible(label(name, pattern)));
    }
}

impl Rows for TextRows {
    fn row(&mut self, values: &[Value<'_>], excerpt: Excerpt<'_>) -> io::Result<()> {
        self.line.clear();
        match self.layout {
            Layout::Findings => self.finding(values, excerpt),
            Layout::Counts => self.count(values),
            Layout::Conditions => self.condition(values),
            Layout::Carved => self.carved(values),
            Layout::Number => {
                self.line.extend(values.iter().map(|value| number_of(value).to_string()));
            }
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn label<'v>(name: &Value<'v>, pattern: &Value<'v>) -> &'v str {
    if let Value::Text(name) = name { name } else { text_of(pattern) }
}

fn text_of<'v>(value: &Value<'v>) -> &'v str {
    if let Value::Text(text) = value { text } else { "" }
}

fn number_of(value: &Value<'_>) -> u64 {
    if let Value::Unsigned(number) = value { *number } else { 0 }
}

/// Printable ASCII as it is, everything else as a dot.
fn push_bytes(line: &mut String, bytes: &[u8]) {
    line.extend(bytes.iter().map(|&b| if matches!(b, b' '..=b'~') { b as char } else { '.' }));
}
