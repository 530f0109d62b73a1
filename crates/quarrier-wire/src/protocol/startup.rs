//! The first message of a client, which has no type byte.

use crate::failure::{Failure, Result, state};

/// Maximum bytes that a client may send before it is authenticated.
pub(super) const BYTES_MAX: usize = 10_000;

const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// The first message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// Requests TLS.
    Tls,
    /// Requests GSS encryption.
    Gss,
    /// Requests to cancel the statement of another connection.
    Cancel {
        /// The number of the other connection.
        connection: u32,
        /// The secret that its client received.
        secret: Vec<u8>,
    },
    /// Starts a session.
    Start {
        /// The minor version: 0 for 3.0, 2 for 3.2.
        minor: u16,
        /// The client's parameters: `user`, `database`, `application_name` and settings.
        parameters: Vec<(String, String)>,
    },
}

fn wrong(what: &str) -> Failure {
    Failure::fatal(state::PROTOCOL, format!("invalid startup message: {what}"))
}

/// Decodes the first message in `bytes`; returns it with its length, or `None` if it is incomplete.
///
/// # Errors
/// If the bytes are not such a message, or are too long.
pub fn opening(bytes: &[u8]) -> Result<Option<(Opening, usize)>> {
    let Some((head, _)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_be_bytes(*head) as usize;
    if !(8..=BYTES_MAX).contains(&length) {
        return Err(wrong(&format!("its length is {length}")));
    }
    let Some(message) = bytes.get(..length) else { return Ok(None) };
    let (code, rest) = (u32_at(message, 4), &message[8..]);
    let opening = match code {
        TLS => Opening::Tls,
        GSS => Opening::Gss,
        CANCEL if (8..=260).contains(&rest.len()) => {
            Opening::Cancel { connection: u32_at(rest, 0), secret: rest[4..].to_vec() }
        }
        CANCEL => return Err(wrong("an invalid cancel request")),
        version if version >> 16 == 3 => {
            Opening::Start { minor: version as u16, parameters: parameters(rest)? }
        }
        version => {
            let (major, minor) = (version >> 16, version & 0xffff);
            return Err(wrong(&format!("protocol {major}.{minor} is not supported; use 3.0")));
        }
    };
    Ok(Some((opening, length)))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let read = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    read.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn parameters(bytes: &[u8]) -> Result<Vec<(String, String)>> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let text = text.strip_suffix('\0').ok_or_else(|| wrong("it is unterminated"))?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let text = text.strip_suffix('\0').ok_or_else(|| wrong("a parameter is unterminated"))?;
    let words: Vec<&str> = text.split('\0').collect();
    if words.len() % 2 == 1 {
        return Err(wrong("a parameter has no value"));
    }
    Ok(words.chunks_exact(2).map(|pair| (pair[0].to_string(), pair[1].to_string())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(code: u32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = ((rest.len() + 8) as u32).to_be_bytes().to_vec();
        bytes.extend(code.to_be_bytes());
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn a_startup_message_names_the_client() {
        let bytes = sent(3 << 16, b"user\0ann\0database\0d\0\0");
        let (said, length) = opening(&bytes).unwrap().unwrap();
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let parameters = vec![pair("user", "ann"), pair("database", "d")];
        assert_eq!(said, Opening::Start { minor: 0, parameters });
        assert_eq!(length, bytes.len());
        for end in 0..bytes.len() {
            assert_eq!(opening(&bytes[..end]), Ok(None), "{end}");
        }
        assert_eq!(opening(&sent(TLS, b"")).unwrap().unwrap().0, Opening::Tls);
        for refused in [
            sent(3 << 16, b"user\0ann\0"),
            sent(3 << 16, b"user\0\0"),
            sent(2 << 16, b"\0"),
            sent(CANCEL, b"abc"),
            b"\0\0\0\x07".to_vec(),
            b"\x7f\xff\xff\xff".to_vec(),
            b"GET / HTTP/1.1\r\n".to_vec(),
        ] {
            assert!(opening(&refused).is_err(), "{refused:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, code: u32) {
            let _ = opening(&bytes);
            for code in [code, CANCEL, TLS, 3 << 16] {
                let _ = opening(&sent(code, &bytes));
            }
        }
    }
}
