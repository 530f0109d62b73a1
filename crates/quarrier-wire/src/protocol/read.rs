//! Decodes messages from clients.

use crate::failure::{Failure, Result, state};

/// Bytes before a message's body: its type and its length.
const HEAD_BYTES: usize = 5;

/// Maximum size of messages other than statements, values and data.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// The name of a statement or portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'a> {
    /// The kind of object.
    pub target: Target,
    /// The name; empty for the unnamed one.
    pub name: &'a str,
}

/// The kind of object that a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A Bind message: a statement with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound<'a> {
    /// The name of the new portal.
    pub portal: &'a str,
    /// The name of the statement.
    pub statement: &'a str,
    /// Whether values are in binary: no entry, one for all, or one each.
    pub formats: Vec<bool>,
    /// The values; None is NULL.
    pub values: Vec<Option<&'a [u8]>>,
    /// Whether result columns are to be in binary: no entry, one for all, or one each.
    pub results: Vec<bool>,
}

/// A message from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frontend<'a> {
    /// Statements for the simple protocol.
    Query(&'a str),
    /// Prepares a statement.
    Parse {
        /// The statement's name; empty for the unnamed one.
        name: &'a str,
        /// The statement.
        text: &'a str,
        /// The types of its parameters; 0 if the client leaves one open.
        kinds: Vec<u32>,
    },
    /// Binds values to a statement.
    Bind(Bound<'a>),
    /// Requests parameters and columns.
    Describe(Named<'a>),
    /// Requests rows.
    Execute {
        /// The portal.
        portal: &'a str,
        /// Maximum number of rows; 0 for all.
        rows_max: u32,
    },
    /// Closes a statement or portal.
    Close(Named<'a>),
    /// Ends a sequence of messages of the extended protocol.
    Sync,
    /// Requests the output so far.
    Flush,
    /// Ends the connection.
    Terminate,
    /// Data of a COPY.
    CopyData(&'a [u8]),
    /// Ends the data of a COPY.
    CopyDone,
    /// Aborts a COPY, for this reason.
    CopyFail(&'a str),
    /// A password, or a step of SASL.
    Password(&'a [u8]),
    /// A function call, which clients have not sent for twenty years.
    FunctionCall,
}

fn wrong(what: &str) -> Failure {
    Failure::fatal(state::PROTOCOL, format!("invalid message: {what}"))
}

/// Returns the type and the length, including its head, of the message at the start of `bytes`;
/// `None` if the head is incomplete. A message that is longer than `bytes_max`, or of a type that
/// no client sends, is refused before any of it is buffered.
///
/// # Errors
/// If the message is refused.
pub fn framed(bytes: &[u8], bytes_max: usize) -> Result<Option<(u8, usize)>> {
    let [kind, a, b, c, d, ..] = *bytes else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    let body = length.checked_sub(4).ok_or_else(|| wrong("it is shorter than its head"))?;
    let most = match kind {
        b'Q' | b'P' | b'B' | b'd' => bytes_max,
        b'C' | b'D' | b'E' | b'F' | b'f' | b'p' => SMALL_BYTES_MAX.min(bytes_max),
        b'S' | b'H' | b'X' | b'c' => 0,
        _ => return Err(wrong(&format!("unknown message type {kind:#04x}"))),
    };
    if body > most {
        let shown = char::from(kind);
        let message = format!("message '{shown}' of {body} bytes is longer than {most}");
        return Err(Failure::fatal(state::PROTOCOL, message));
    }
    Ok(Some((kind, HEAD_BYTES + body)))
}

impl<'a> Frontend<'a> {
    /// Decodes the body of a message of type `kind`.
    ///
    /// # Errors
    /// If it is too short, too long, or invalid.
    pub fn parse(kind: u8, body: &'a [u8]) -> Result<Self> {
        let mut rest = Rest(body);
        let message = match kind {
            b'Q' => Frontend::Query(rest.text()?),
            b'P' => parsed(&mut rest)?,
            b'B' => Frontend::Bind(bound(&mut rest)?),
            b'D' => Frontend::Describe(rest.named()?),
            b'E' => Frontend::Execute { portal: rest.text()?, rows_max: rest.u32()? },
            b'C' => Frontend::Close(rest.named()?),
            b'S' => Frontend::Sync,
            b'H' => Frontend::Flush,
            b'X' => Frontend::Terminate,
            b'd' => Frontend::CopyData(rest.all()),
            b'c' => Frontend::CopyDone,
            b'f' => Frontend::CopyFail(rest.text()?),
            b'p' => Frontend::Password(rest.all()),
            b'F' => {
                rest.all();
                Frontend::FunctionCall
            }
            _ => return Err(wrong("unknown message type")),
        };
        match rest.0 {
            [] => Ok(message),
            more => Err(wrong(&format!("{} bytes after its end", more.len()))),
        }
    }
}

fn parsed<'a>(rest: &mut Rest<'a>) -> Result<Frontend<'a>> {
    let (name, text) = (rest.text()?, rest.text()?);
    let count = rest.count(4)?;
    let kinds = (0..count).map(|_| rest.u32()).collect::<Result<_>>()?;
    Ok(Frontend::Parse { name, text, kinds })
}

fn bound<'a>(rest: &mut Rest<'a>) -> Result<Bound<'a>> {
    let (portal, statement) = (rest.text()?, rest.text()?);
    let formats = rest.formats()?;
    let count = rest.count(4)?;
    let values = (0..count).map(|_| rest.value()).collect::<Result<Vec<_>>>()?;
    if formats.len() > 1 && formats.len() != values.len() {
        let said = format!("{} formats for {} values", formats.len(), values.len());
        return Err(wrong(&said));
    }
    Ok(Bound { portal, statement, formats, values, results: rest.formats()? })
}

/// The unread part of a message.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(bytes).ok_or_else(|| wrong("it is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn u16(&mut self) -> Result<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Reads the number of items that follow, each of at least `item_bytes` bytes, so that no more
    /// memory is allocated than the client sent.
    fn count(&mut self, item_bytes: usize) -> Result<usize> {
        let count = usize::from(self.u16()?);
        match count * item_bytes <= self.0.len() {
            true => Ok(count),
            false => Err(wrong("it counts more items than it has")),
        }
    }

    fn text(&mut self) -> Result<&'a str> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| wrong("an unterminated string"))?;
        let text = self.take(end + 1)?;
        std::str::from_utf8(&text[..end]).map_err(|_| {
            Failure::new(state::ENCODING, "invalid byte sequence for encoding \"UTF8\"")
        })
    }

    fn named(&mut self) -> Result<Named<'a>> {
        let target = match self.take(1)? {
            b"S" => Target::Statement,
            b"P" => Target::Portal,
            _ => return Err(wrong("a name is neither a statement's nor a portal's")),
        };
        Ok(Named { target, name: self.text()? })
    }

    fn formats(&mut self) -> Result<Vec<bool>> {
        let count = self.count(2)?;
        let mut formats = Vec::with_capacity(count);
        for _ in 0..count {
            formats.push(match self.u16()? {
                0 => false,
                1 => true,
                other => return Err(wrong(&format!("unknown format {other}"))),
            });
        }
        Ok(formats)
    }

    fn value(&mut self) -> Result<Option<&'a [u8]>> {
        match self.u32()? {
            u32::MAX => Ok(None),
            bytes => self.take(bytes as usize).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_checked_before_anything_is_buffered() {
        let frame = |bytes: &[u8]| framed(bytes, 1000);
        assert_eq!(frame(b"Q\0\0\0"), Ok(None));
        assert_eq!(frame(b"Q\0\0\0\x09abcd\0"), Ok(Some((b'Q', 10))));
        assert_eq!(frame(b"S\0\0\0\x04"), Ok(Some((b'S', 5))));
        for refused in [&b"Q\0\0\0\x03"[..], b"S\0\0\0\x05", b"Q\x3f\xff\xff\xff", b"\0\0\0\0\x04"]
        {
            let failure = frame(refused).unwrap_err();
            assert!(failure.is_fatal && failure.state == state::PROTOCOL, "{failure:?}");
        }
    }

    #[test]
    fn messages_are_decoded_exactly_to_their_end() {
        let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0";
        let Ok(Frontend::Bind(bound)) = Frontend::parse(b'B', bind) else { unreachable!() };
        assert_eq!((bound.portal, bound.statement), ("p", "s"));
        assert_eq!(bound.values, [Some(&b"ab"[..]), None]);
        assert_eq!((bound.formats, bound.results), (vec![true], vec![]));
        for end in 0..bind.len() {
            assert!(Frontend::parse(b'B', &bind[..end]).is_err(), "{end}");
        }
        let longer: Vec<u8> = bind.iter().copied().chain([0]).collect();
        assert!(Frontend::parse(b'B', &longer).is_err());
        assert!(Frontend::parse(b'P', b"\0a\0\xff\xff").is_err());
        assert!(Frontend::parse(b'Q', b"\xff\0").is_err());
        assert!(Frontend::parse(b'D', b"Xa\0").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind: u8, body: Vec<u8>) {
            for kind in [kind, b'P', b'B', b'D', b'E', b'C', b'f', b'Q'] {
                let _ = Frontend::parse(kind, &body);
            }
            let _ = framed(&body, 1 << 20);
        }
    }
}
