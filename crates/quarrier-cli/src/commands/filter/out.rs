//! The output of `filter`.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use quarrier::filter::{Form, Header, Rows};
use quarrier_core::sync::lock;
use quarrier_report::{EscapingWriter, Manner};

use crate::StandardOutput;
use crate::output::Format;
use crate::output::rows::{self, Column, Excerpt, Layout, Value};

/// Maximum number of bytes held back.
const HELD_BYTES_MAX: usize = 64 << 20;

/// Output held back until every requested column has been seen, since it is dropped if one is missing.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// `None` if output passes through at once.
    bytes: Mutex<Option<Vec<u8>>>,
}

impl Held {
    /// Holds back later output, up to a bound.
    pub(super) fn hold(&self) {
        *self.lock() = Some(Vec::new());
    }

    /// Writes the output held back, and lets later output through.
    pub(super) fn release(&self) -> io::Result<()> {
        match self.lock().take() {
            Some(bytes) if !bytes.is_empty() => {
                let mut out = StandardOutput::new();
                out.write_all(&bytes)?;
                out.flush()
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Drops the output held back, and blocks later output.
    pub(super) fn discard(&self) {
        if let Some(bytes) = &mut *self.lock() {
            bytes.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        lock(&self.bytes)
    }
}

/// A writer whose bytes may be held back first.
struct Holding<W> {
    out: W,
    held: Arc<Held>,
}

impl<W: Write> Write for Holding<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.held.lock();
        match &mut *held {
            Some(kept) if kept.len() + bytes.len() <= HELD_BYTES_MAX => {
                kept.extend_from_slice(bytes);
                return Ok(bytes.len());
            }
            Some(kept) => {
                let kept = std::mem::take(kept);
                *held = None;
                self.out.write_all(&kept)?;
            }
            None => {}
        }
        drop(held);
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The destination of matching messages.
pub(super) enum Out {
    /// None: they are only counted.
    Nothing,
    /// Verbatim, as in the source.
    Lines(Box<dyn Write + Send>),
    /// As rows that the workers format.
    Rows(Box<dyn Write + Send>),
    Batches(Box<StreamWriter<Box<dyn Write + Send>>>),
    /// As rows of message and condition, with the strings of the conditions.
    Matches(Box<dyn rows::Rows>, Vec<String>),
}

const MATCH_COLUMNS: &[Column] = &[
    Column { name: "source", kind: rows::Kind::Text },
    Column { name: "offset", kind: rows::Kind::Unsigned },
    Column { name: "condition", kind: rows::Kind::Text },
    Column { name: "message", kind: rows::Kind::Text },
];

impl Out {
    /// Opens standard output and writes the header, which stays in `held` like all other output.
    pub(super) fn open(
        (form, format): (Form, Format),
        header: &Header,
        held: &Arc<Held>,
    ) -> io::Result<Self> {
        let stdout = || stdout(held, manner(form));
        match (form, &header.schema) {
            (Form::Count, _) => Ok(Out::Nothing),
            (Form::Matches, _) => {
                let strings = header.conditions.strings().map(str::to_string).collect();
                let rows = rows::to_stdout(format, Layout::Matched, MATCH_COLUMNS)?;
                Ok(Out::Matches(rows, strings))
            }
            (Form::Messages, _) => Ok(Out::Lines(stdout())),
            (_, Some(schema)) => {
                let writer = StreamWriter::try_new(stdout(), schema);
                Ok(Out::Batches(Box::new(writer.map_err(to_io)?)))
            }
            (_, None) => {
                let mut out = stdout();
                out.write_all(&header.text)?;
                Ok(Out::Rows(out))
            }
        }
    }

    pub(super) fn write(&mut self, rows: &Rows<'_>) -> io::Result<()> {
        match self {
            Out::Nothing => Ok(()),
            Out::Lines(out) => {
                for message in rows.messages() {
                    out.write_all(message.bytes)?;
                    out.write_all(b"\n")?;
                }
                Ok(())
            }
            Out::Rows(out) => out.write_all(rows.text()),
            Out::Matches(out, strings) => {
                for (message, condition) in rows.messages().zip(rows.conditions()) {
                    let text = String::from_utf8_lossy(message.bytes);
                    let values = [
                        Value::Text(rows.source()),
                        Value::Unsigned(message.offset),
                        strings.get(condition).map_or(Value::Missing, |text| Value::Text(text)),
                        Value::Text(&text),
                    ];
                    out.row(&values, Excerpt::default())?;
                }
                Ok(())
            }
            Out::Batches(writer) => match rows.batch() {
                Some(batch) => writer.write(&batch).map_err(to_io),
                None => Ok(()),
            },
        }
    }

    /// Flushes held output, because no more input is available.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Out::Nothing => Ok(()),
            Out::Lines(out) | Out::Rows(out) => out.flush(),
            Out::Batches(writer) => writer.get_mut().flush(),
            Out::Matches(rows, _) => rows.flush(),
        }
    }

    /// Flushes held output and ends the rows.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self {
            Out::Batches(writer) => writer.finish().map_err(to_io)?,
            Out::Matches(rows, _) => return rows.finish(),
            Out::Nothing | Out::Lines(_) | Out::Rows(_) => {}
        }
        self.flush()
    }
}

/// How to escape the output on a terminal; `None` for binary output.
fn manner(form: Form) -> Option<Manner> {
    match form {
        Form::Json => Some(Manner::Json),
        Form::Messages | Form::Text | Form::Csv => Some(Manner::Text),
        _ => None,
    }
}

/// Standard output: a terminal gets escaped lines at once, a pipe gets large unchanged pieces.
fn stdout(held: &Arc<Held>, manner: Option<Manner>) -> Box<dyn Write + Send> {
    let stdout = StandardOutput::new();
    let is_terminal = stdout.is_terminal();
    let out = Holding { out: stdout, held: Arc::clone(held) };
    match manner {
        _ if !is_terminal => Box::new(BufWriter::with_capacity(BUFFER_BYTES, out)),
        Some(manner) => Box::new(EscapingWriter::new(out, manner)),
        None => Box::new(out),
    }
}

const BUFFER_BYTES: usize = 128 << 10;

fn to_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
