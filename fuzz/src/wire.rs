//! Any bytes as messages of a PostgreSQL client: a message that is equal when written again, or an
//! error; never a panic, and never more bytes than were sent.

use quarrier_wire::protocol::{Bound, Frontend, Named, Target as Of, framed, opening};

use crate::{Target, Verdict};

/// See the module.
pub const TARGET: Target = Target { name: "wire", run, once: &[], seeds: SEEDS, words: WORDS };

const SEEDS: &[&[u8]] = &[
    b"\0\0\0\x08\x04\xd2\x16\x2f",
    b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01abcd",
    b"\0\0\0\x1e\0\x03\0\0user\0ann\0database\0d\0\0",
    b"Q\0\0\0\x0dSELECT 1\0",
    b"P\0\0\0\x16s\0SELECT $1\0\0\x01\0\0\0\x17",
    b"B\0\0\0\x1cp\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0D\0\0\0\x06Ss\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04",
    b"C\0\0\0\x06Pp\0d\0\0\0\x08rowsc\0\0\0\x04f\0\0\0\x07no\0H\0\0\0\x04X\0\0\0\x04",
    b"p\0\0\0\x09p=abcF\0\0\0\x06\0\0",
];

const WORDS: &[&[u8]] = &[
    b"\0",
    b"\0\0",
    b"\0\x01",
    b"\0\0\0\x04",
    b"\0\0\0\x05",
    b"\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"Q",
    b"P",
    b"B",
    b"D",
    b"E",
    b"C",
    b"S",
    b"d",
    b"p",
    b"SELECT $1\0",
    b"user\0",
    b"\0\x03\0\0",
    b"\xc3\xa9",
    b"\xc3",
];

/// Maximum length of an accepted message.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Reads `bytes` as the first message of a client, and as the later ones.
pub fn run(bytes: &[u8]) -> Verdict {
    let mut verdict = Verdict::Skipped;
    if let Ok(Some((_, length))) = opening(bytes) {
        assert!((8..=bytes.len()).contains(&length), "{length} bytes were taken");
        verdict = Verdict::Checked;
    }
    let mut rest = bytes;
    while let Ok(Some((kind, length))) = framed(rest, MESSAGE_BYTES_MAX) {
        assert!(length <= MESSAGE_BYTES_MAX + 5, "{length} bytes were let in");
        let Some(message) = rest.get(..length) else { break };
        if let Ok(parsed) = Frontend::parse(kind, &message[5..]) {
            if let Some(again) = written(&parsed) {
                assert_eq!(again, message[5..], "it says something else when it is written again");
            }
            verdict = Verdict::Checked;
        }
        rest = &rest[length..];
    }
    verdict
}

/// Returns the body of a message; `None` for types without one.
fn written(message: &Frontend<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, text: &str| out.extend([text.as_bytes(), b"\0"].concat());
    match message {
        Frontend::Query(query) => text(&mut out, query),
        Frontend::CopyFail(why) => text(&mut out, why),
        Frontend::Parse { name, text: query, kinds } => {
            text(&mut out, name);
            text(&mut out, query);
            out.extend((kinds.len() as u16).to_be_bytes());
            kinds.iter().for_each(|kind| out.extend(kind.to_be_bytes()));
        }
        Frontend::Bind(Bound { portal, statement, formats, values, results }) => {
            text(&mut out, portal);
            text(&mut out, statement);
            let listed = |out: &mut Vec<u8>, formats: &[bool]| {
                out.extend((formats.len() as u16).to_be_bytes());
                formats.iter().for_each(|is_binary| out.extend([0, u8::from(*is_binary)]));
            };
            listed(&mut out, formats);
            out.extend((values.len() as u16).to_be_bytes());
            for value in values {
                match value {
                    None => out.extend([0xff; 4]),
                    Some(value) => {
                        out.extend((value.len() as u32).to_be_bytes());
                        out.extend(*value);
                    }
                }
            }
            listed(&mut out, results);
        }
        Frontend::Describe(named) | Frontend::Close(named) => {
            let Named { target, name } = named;
            out.push(if *target == Of::Statement { b'S' } else { b'P' });
            text(&mut out, name);
        }
        Frontend::Execute { portal, rows_max } => {
            text(&mut out, portal);
            out.extend(rows_max.to_be_bytes());
        }
        Frontend::CopyData(data) | Frontend::Password(data) => out.extend(*data),
        Frontend::FunctionCall => return None,
        Frontend::Sync | Frontend::Flush | Frontend::Terminate | Frontend::CopyDone => {}
    }
    Some(out)
}
