//! A pager for answers that do not fit the screen: `$PAGER`, or `less` without wrapped lines.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use quarrier_report::width;

use super::view::Screen;

/// Writes text to a screen. It holds the text back while it fits on the screen. As soon as the text
/// does not fit, a pager gets all of it; without a pager, the text goes to the terminal.
pub(super) struct Pager<W: Write> {
    out: W,
    screen: Screen,
    state: State,
}

enum State {
    /// All text written before now, which fits on the screen.
    Held(Vec<u8>),
    /// A pager shows the text.
    Paged(Child),
    /// The terminal shows the text.
    Through,
}

impl<W: Write> Pager<W> {
    pub(super) fn new(out: W, screen: Screen) -> Self {
        Pager { out, screen, state: State::Held(Vec::new()) }
    }

    /// Writes the text that was held back, or waits until the pager ends.
    ///
    /// # Errors
    /// Writing to the terminal failed.
    pub(super) fn end(mut self) -> io::Result<()> {
        if let State::Held(held) = &self.state {
            self.out.write_all(held)?;
            self.out.flush()?;
        }
        // `drop` waits for the pager.
        Ok(())
    }

    /// Starts the pager, and passes on the text that was held back.
    fn open(&mut self) -> io::Result<()> {
        let State::Held(held) = std::mem::replace(&mut self.state, State::Through) else {
            return Ok(());
        };
        match command().and_then(|mut command| command.stdin(Stdio::piped()).spawn().ok()) {
            Some(pager) => {
                self.state = State::Paged(pager);
                self.write_all(&held)
            }
            None => self.out.write_all(&held),
        }
    }
}

impl<W: Write> Write for Pager<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Through => self.out.write(bytes),
            State::Paged(pager) => match &mut pager.stdin {
                Some(stdin) => stdin.write(bytes),
                None => Ok(bytes.len()),
            },
            State::Held(held) => {
                held.extend_from_slice(bytes);
                if !fits(held, self.screen) {
                    self.open()?;
                }
                Ok(bytes.len())
            }
        }
    }

    /// Keeps holding text back, since more may follow.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Held(_) => Ok(()),
            State::Paged(pager) => pager.stdin.as_mut().map_or(Ok(()), Write::flush),
            State::Through => self.out.flush(),
        }
    }
}

impl<W: Write> Drop for Pager<W> {
    /// Waits for the pager, which owns the terminal until it exits.
    fn drop(&mut self) {
        if let State::Paged(pager) = &mut self.state {
            // Closing its input marks the end of the text.
            drop(pager.stdin.take());
            let _ = pager.wait();
        }
    }
}

/// Whether the text wraps no line and leaves room for the row count and the next prompt.
fn fits(text: &[u8], screen: Screen) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut lines = 0;
    text.lines().all(|line| {
        lines += 1;
        lines + 2 <= screen.rows && width(line) <= screen.columns
    })
}

/// The pager; `None` if `$PAGER` is empty.
fn command() -> Option<Command> {
    let Some(pager) = std::env::var_os("PAGER") else {
        let mut less = Command::new("less");
        // `-S` cuts lines at the edge, and the arrow keys show the rest; `-X` keeps the text on the
        // screen.
        less.arg("-SX");
        return Some(less);
    };
    if pager.is_empty() {
        return None;
    }
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(pager);
    Some(shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen { columns: 10, rows: 5 };

    #[test]
    fn text_fits_with_two_spare_lines_and_the_width_of_the_screen() {
        assert!(fits(b"", SCREEN));
        assert!(fits(b"1\n2\n3\n", SCREEN));
        assert!(!fits(b"1\n2\n3\n4\n", SCREEN));
        assert!(fits(b"1234567890\n", SCREEN));
        assert!(!fits(b"12345678901\n", SCREEN));
        // Each character takes two cells.
        assert!(fits("日本語日本\n".as_bytes(), SCREEN));
        assert!(!fits("日本語日本語\n".as_bytes(), SCREEN));
    }

    #[test]
    fn text_that_fits_is_written_at_the_end() {
        let mut out = Vec::new();
        let mut pager = Pager::new(&mut out, SCREEN);
        pager.write_all(b"a\n").unwrap();
        pager.flush().unwrap();
        pager.write_all(b"b\n").unwrap();
        pager.end().unwrap();
        assert_eq!(out, b"a\nb\n");
    }
}
