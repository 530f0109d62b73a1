//! Rows for people: coloured on a terminal, plain in a pipe.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use quarrier_report::{number, padded, visible};

use super::colour;
use super::rows::{Excerpt, Layout, Rows, Value};

/// The scope of rules that is the whole source.
const SOURCE_SCOPE: &str = "source";
/// Maximum number of a finding's own bytes that are shown.
const FOUND_BYTES_SHOWN: usize = 256;

pub(super) struct TextRows {
    out: Box<dyn Write + Send>,
    layout: Layout,
    colours: Colours,
    /// Whether a finding was written: `--` separates groups of lines.
    has_rows: bool,
    line: String,
}

/// Styles; all plain if colours are off.
#[derive(Clone, Copy, Default)]
struct Colours {
    source: Style,
    offset: Style,
    label: Style,
    found: Style,
}

impl TextRows {
    pub(super) fn new(out: Box<dyn Write + Send>, layout: Layout, is_terminal: bool) -> Self {
        let colours = if colour::is_wanted(is_terminal) {
            Colours {
                source: AnsiColor::Magenta.on_default(),
                offset: AnsiColor::Green.on_default(),
                label: AnsiColor::Cyan.on_default(),
                found: AnsiColor::Red.on_default().bold(),
            }
        } else {
            Colours::default()
        };
        TextRows { out, layout, colours, has_rows: false, line: String::new() }
    }

    fn styled(&mut self, style: Style, text: &str) {
        self.line.push_str(&style.render().to_string());
        self.line.push_str(text);
        self.line.push_str(&style.render_reset().to_string());
    }

    fn finding(&mut self, values: &[Value<'_>], excerpt: Excerpt<'_>) {
        let [source, offset, _, pattern, name, _, more @ ..] = values else { return };
        let colours = self.colours;
        let (earlier, before) = last_line(excerpt.before, excerpt.is_lines);
        let (after, later) = first_line(excerpt.after, excerpt.is_lines);
        if excerpt.is_lines && self.has_rows {
            self.line.push_str("--\n");
        }
        self.has_rows = true;
        let start = number_of(offset) - excerpt.before.len() as u64;
        self.neighbours(source, start, earlier);
        self.styled(colours.source, &visible(text_of(source)));
        self.line.push(':');
        if let [line] = more {
            self.styled(colours.offset, &number_of(line).to_string());
            self.line.push(':');
        }
        self.styled(colours.offset, &number_of(offset).to_string());
        self.line.push_str(": ");
        self.styled(colours.label, &visible(label(name, pattern)));
        self.line.push_str(": ");
        push_bytes(&mut self.line, before);
        let shown = &excerpt.found[..excerpt.found.len().min(FOUND_BYTES_SHOWN)];
        let mut found = String::new();
        push_bytes(&mut found, shown);
        if shown.len() < excerpt.found.len() {
            found.push('…');
        }
        self.styled(colours.found, &found);
        push_bytes(&mut self.line, after);
        if let Some(later) = later {
            self.line.push('\n');
            let start = number_of(offset) + (excerpt.found.len() + after.len() + 1) as u64;
            self.neighbours(source, start, later);
            self.line.pop();
        }
    }

    /// A string of a rule that holds; the rule alone if it has no string.
    fn rule(&mut self, values: &[Value<'_>], found: &[u8]) {
        let [source, scope, rule, _, string, offset, ..] = values else { return };
        let colours = self.colours;
        self.styled(colours.source, &visible(text_of(source)));
        self.line.push(':');
        if let Value::Unsigned(offset) = offset {
            self.styled(colours.offset, &offset.to_string());
            self.line.push(':');
        }
        self.line.push(' ');
        self.styled(colours.label, &visible(text_of(rule)));
        if let Value::Text(string) = string {
            self.line.push_str(&format!(" {}", visible(string)));
        }
        if text_of(scope) != SOURCE_SCOPE {
            self.line.push_str(&format!(" in {}", visible(text_of(scope))));
        }
        if matches!(string, Value::Text(_)) {
            self.line.push_str(": ");
            let shown = &found[..found.len().min(FOUND_BYTES_SHOWN)];
            let mut text = String::new();
            push_bytes(&mut text, shown);
            if shown.len() < found.len() {
                text.push('…');
            }
            self.styled(colours.found, &text);
        }
    }

    /// Lines around that of a finding, from `offset` on: `source-offset- bytes`.
    fn neighbours(&mut self, source: &Value<'_>, mut offset: u64, lines: &[u8]) {
        let colours = self.colours;
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            self.styled(colours.source, &visible(text_of(source)));
            self.line.push('-');
            self.styled(colours.offset, &offset.to_string());
            self.line.push_str("- ");
            push_bytes(&mut self.line, line.strip_suffix(b"\n").unwrap_or(line));
            self.line.push('\n');
            offset += line.len() as u64;
        }
    }

    /// The bytes found: text verbatim, other bytes as `\xNN`.
    fn matched(&mut self, found: &[u8]) {
        for part in found.utf8_chunks() {
            self.line.push_str(&visible(part.valid()));
            self.line.extend(part.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
        }
    }

    fn condition(&mut self, values: &[Value<'_>]) {
        let [condition, count] = values else { return };
        let colours = self.colours;
        self.styled(colours.offset, &format!("{:>12}", number_of(count)));
        self.line.push_str("  ");
        self.styled(colours.label, &visible(text_of(condition)));
    }

    /// A message and a condition that is true for it.
    fn met(&mut self, values: &[Value<'_>]) {
        let [_, _, condition, message] = values else { return };
        let colours = self.colours;
        self.styled(colours.label, &visible(text_of(condition)));
        self.line.push('\t');
        self.line.push_str(&visible(text_of(message)));
    }

    fn carved(&mut self, values: &[Value<'_>]) {
        let [_, kind, offset, length, _, status, reason, _, _, more @ ..] = values else { return };
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
        for value in more {
            // The containing file, and whether the file is known.
            let (Value::Text(text) | Value::Json(text)) = value else { continue };
            self.line.push_str("  ");
            self.line.push_str(&visible(text));
        }
    }

    fn file(&mut self, values: &[Value<'_>]) {
        let [_, partition, path, _, kind, state, size, modified, ..] = values else { return };
        let colours = self.colours;
        let mark = if text_of(state) == "deleted" { '*' } else { ' ' };
        self.line.push_str(&format!("{mark} {:<6} ", text_of(kind)));
        self.styled(colours.offset, &format!("{:>14}", number_of(size)));
        // To the second; the other formats keep all digits.
        let modified = text_of(modified).get(..19).unwrap_or_default().replace('T', " ");
        self.line.push_str(&format!("  {modified:<19}  "));
        if number_of(partition) > 0 {
            self.line.push_str(&format!("#{}", number_of(partition)));
        }
        self.styled(colours.label, &visible(text_of(path)));
    }

    /// The number of bytes of a cached object.
    fn cached(&mut self, values: &[Value<'_>]) {
        let [source, length, bytes, ..] = values else { return };
        let colours = self.colours;
        let [bytes, length] = [bytes, length].map(|value| number::bytes(number_of(value)));
        self.styled(colours.offset, &format!("{bytes:>10} of {length:>10}"));
        self.line.push_str("  ");
        self.styled(colours.label, &visible(text_of(source)));
    }

    /// The number of units, and their cost.
    fn planned(&mut self, values: &[Value<'_>]) {
        let [units, bytes, seconds, done, rate, nodes @ ..] = values else { return };
        let (units, done) = (number_of(units), number_of(done));
        self.line.push_str(&number::counted(units, "unit"));
        self.line.push_str(&format!(", {}", number::bytes(number_of(bytes))));
        if done > 0 {
            self.line.push_str(&format!("; {} done already", number::count(done)));
        }
        if let (Value::Number(seconds), Value::Number(rate)) = (seconds, rate) {
            let time = number::seconds(*seconds);
            self.line.push_str(&format!("; about {time} at {}", number::rate(*rate)));
        }
        if let [nodes, Value::Number(seconds), Value::Text(limit)] = nodes {
            self.line.push_str(&format!(
                "; simulated on {}: {}, limited by the {limit}",
                number::counted(number_of(nodes), "node"),
                number::seconds(*seconds),
            ));
        }
    }

    fn loaded(&mut self, values: &[Value<'_>]) {
        let [table, source, messages, rejected, start, bytes, seconds, ..] = values else { return };
        let colours = self.colours;
        self.styled(colours.label, &visible(text_of(table)));
        let (messages, start) = (number_of(messages), number_of(start));
        self.line.push_str(&format!(
            ": {} of {}, {}, durable: {}",
            number::counted(messages, "message"),
            visible(text_of(source)),
            number::bytes(number_of(bytes)),
            per_second(messages, seconds),
        ));
        if number_of(rejected) > 0 {
            self.line.push_str(&format!("; {} left out", number::count(number_of(rejected))));
        }
        if start > 0 {
            self.line.push_str(&format!("; continued at byte {start}"));
        }
    }

    fn reindexed(&mut self, values: &[Value<'_>]) {
        let [table, messages, bytes, memory_bytes, seconds, ..] = values else { return };
        let colours = self.colours;
        self.styled(colours.label, &visible(text_of(table)));
        self.line.push_str(&format!(
            ": {}, {}, in columns {}: {}",
            number::counted(number_of(messages), "message"),
            number::bytes(number_of(bytes)),
            number::bytes(number_of(memory_bytes)),
            per_second(number_of(messages), seconds),
        ));
    }

    fn count(&mut self, values: &[Value<'_>]) {
        let [pattern, name, count] = values else { return };
        let colours = self.colours;
        self.styled(colours.offset, &format!("{:>12}", number_of(count)));
        self.line.push_str("  ");
        self.styled(colours.label, &visible(label(name, pattern)));
    }
}

impl TextRows {
    /// `count  label: match`
    fn frequency(&mut self, values: &[Value<'_>]) {
        let [pattern, name, found, count] = values else { return };
        let colours = self.colours;
        self.styled(colours.offset, &format!("{:>12}", number_of(count)));
        self.line.push_str("  ");
        self.styled(colours.label, &visible(label(name, pattern)));
        self.line.push_str(": ");
        self.styled(colours.found, &visible(text_of(found)));
    }
}

impl Rows for TextRows {
    fn row(&mut self, values: &[Value<'_>], excerpt: Excerpt<'_>) -> io::Result<()> {
        self.line.clear();
        match self.layout {
            Layout::Findings => self.finding(values, excerpt),
            Layout::Rules => self.rule(values, excerpt.found),
            Layout::Matches => self.matched(excerpt.found),
            Layout::Sources => {
                self.line.extend(values.iter().map(|value| visible(text_of(value))));
            }
            Layout::Counts => self.count(values),
            Layout::Histogram => self.frequency(values),
            Layout::Conditions => self.condition(values),
            Layout::Matched => self.met(values),
            Layout::Carved => self.carved(values),
            Layout::Files => self.file(values),
            Layout::Cached => self.cached(values),
            Layout::Loaded => self.loaded(values),
            Layout::Reindexed => self.reindexed(values),
            Layout::Planned => self.planned(values),
            Layout::Number => {
                self.line.extend(values.iter().map(|value| number_of(value).to_string()));
            }
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Splits the bytes before a finding into the lines before it and the start of its own line. Unless
/// `is_lines`, all of them belong to its line.
fn last_line(before: &[u8], is_lines: bool) -> (&[u8], &[u8]) {
    let newline = before.iter().rposition(|&byte| byte == b'\n').filter(|_| is_lines);
    before.split_at(newline.map_or(0, |newline| newline + 1))
}

/// Splits the bytes after a finding into the rest of its line and the lines after it, if any.
fn first_line(after: &[u8], is_lines: bool) -> (&[u8], Option<&[u8]>) {
    match after.iter().position(|&byte| byte == b'\n').filter(|_| is_lines) {
        Some(newline) => (&after[..newline], Some(&after[newline + 1..])),
        None => (after, None),
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

fn per_second(messages: u64, seconds: &Value<'_>) -> String {
    let seconds = if let Value::Number(seconds) = seconds { *seconds } else { 0.0 };
    let rate = if seconds > 0.0 { messages as f64 / seconds } else { 0.0 };
    let (factor, prefix) = number::large_prefix(rate);
    let space = if prefix.is_empty() { "" } else { " " };
    format!("{} {prefix}{space}messages/s", number::significant(rate / factor))
}

/// Printable ASCII unchanged, every other byte as a dot.
fn push_bytes(line: &mut String, bytes: &[u8]) {
    line.extend(bytes.iter().map(|&b| if matches!(b, b' '..=b'~') { b as char } else { '.' }));
}
