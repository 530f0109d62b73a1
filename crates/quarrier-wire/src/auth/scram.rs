//! The server's side of SCRAM-SHA-256 (RFC 5802 and 7677), which never sees a password.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

use super::is_same;
use super::users::{Users, Verifier};
use crate::failure::{Failure, Result, state};

/// The mechanism's name.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";

/// The state between the two messages of a client.
pub(crate) struct Exchange {
    verifier: Verifier,
    is_known: bool,
    /// The messages exchanged so far.
    said: String,
    nonce: String,
    /// The client's channel binding, in base64.
    channel: String,
}

fn malformed() -> Failure {
    Failure::fatal(state::PROTOCOL, "malformed SCRAM message")
}

/// Returns the value of the attribute `name` at the start of a part.
fn attribute<'a>(part: Option<&'a str>, name: &str) -> Result<&'a str> {
    part.and_then(|part| part.strip_prefix(name)).ok_or_else(malformed)
}

impl Exchange {
    /// Reads a client's first message, and returns the response.
    pub(crate) fn begin(users: &Users, user: &str, message: &[u8]) -> Result<(Self, String)> {
        let message = std::str::from_utf8(message).map_err(|_| malformed())?;
        let mut parts = message.splitn(3, ',');
        let (flag, authorized) = (parts.next().unwrap_or_default(), parts.next());
        let bare = parts.next().ok_or_else(malformed)?;
        // `p=…` would bind the channel, which the server did not offer.
        if !matches!(flag, "n" | "y") || authorized.is_none_or(|name| !name.is_empty()) {
            return Err(malformed());
        }
        let mut attributes = bare.split(',');
        // PostgreSQL's clients send the name in the startup message instead.
        attribute(attributes.next(), "n=")?;
        let client_nonce = attribute(attributes.next(), "r=")?;
        if client_nonce.is_empty() || !client_nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(malformed());
        }
        let mut random = [0; 18];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| Failure::fatal(state::SYSTEM, "the system provides no random numbers"))?;
        let nonce = format!("{client_nonce}{}", BASE64_STANDARD.encode(random));
        let (verifier, is_known) = users.verifier(user);
        let salt = BASE64_STANDARD.encode(&verifier.salt);
        let answer = format!("r={nonce},s={salt},i={}", verifier.rounds);
        let said = format!("{bare},{answer}");
        let channel = BASE64_STANDARD.encode(format!("{flag},,"));
        Ok((Exchange { verifier, is_known, said, nonce, channel }, answer))
    }

    /// Reads a client's last message. Returns the server's signature, which proves its identity to
    /// the client.
    pub(crate) fn end(self, user: &str, message: &[u8]) -> Result<String> {
        let message = std::str::from_utf8(message).map_err(|_| malformed())?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or_else(malformed)?;
        let mut attributes = without_proof.split(',');
        let channel = attribute(attributes.next(), "c=")?;
        let nonce = attribute(attributes.next(), "r=")?;
        if channel != self.channel || nonce != self.nonce {
            return Err(malformed());
        }
        let proof = BASE64_STANDARD.decode(proof).map_err(|_| malformed())?;
        let said = format!("{},{without_proof}", self.said);
        let stored = hmac::Key::new(hmac::HMAC_SHA256, &self.verifier.stored_key);
        let signature = hmac::sign(&stored, said.as_bytes());
        if proof.len() != signature.as_ref().len() {
            return Err(malformed());
        }
        let both = proof.iter().zip(signature.as_ref());
        let client_key: Vec<u8> = both.map(|(proof, mask)| proof ^ mask).collect();
        let key = digest::digest(&digest::SHA256, &client_key);
        if !is_same(key.as_ref(), &self.verifier.stored_key) || !self.is_known {
            let said = format!("password authentication failed for user \"{user}\"");
            return Err(Failure::fatal(state::PASSWORD, said));
        }
        let server = hmac::Key::new(hmac::HMAC_SHA256, &self.verifier.server_key);
        Ok(format!("v={}", BASE64_STANDARD.encode(hmac::sign(&server, said.as_bytes()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::made_line;

    fn users() -> Users {
        Users::of(&made_line("ann", "pencil").unwrap(), "users").unwrap()
    }

    /// Makes the last message of a client that knows a password.
    fn last(first: &str, answer: &str, password: &str) -> String {
        let part = |name: &str| {
            answer.split(',').find_map(|part| part.strip_prefix(name)).unwrap().to_string()
        };
        let salt = BASE64_STANDARD.decode(part("s=")).unwrap();
        let rounds = part("i=").parse().unwrap();
        let mut salted = [0; 32];
        let kind = ring::pbkdf2::PBKDF2_HMAC_SHA256;
        ring::pbkdf2::derive(kind, rounds, &salt, password.as_bytes(), &mut salted);
        let sign = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
        };
        let client_key = sign(&salted, b"Client Key");
        let stored = digest::digest(&digest::SHA256, &client_key);
        let without = format!("c=biws,r={}", part("r="));
        let said = format!("{first},{answer},{without}");
        let mask = sign(stored.as_ref(), said.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(mask).map(|(key, mask)| key ^ mask).collect();
        format!("{without},p={}", BASE64_STANDARD.encode(proof))
    }

    #[test]
    fn only_the_right_password_authenticates() {
        let users = users();
        for (user, password, comes_in) in
            [("ann", "pencil", true), ("ann", "Pencil", false), ("bob", "pencil", false)]
        {
            let (exchange, answer) = Exchange::begin(&users, user, b"n,,n=,r=abc").unwrap();
            let last = last("n=,r=abc", &answer, password);
            let ended = exchange.end(user, last.as_bytes());
            assert_eq!(ended.is_ok(), comes_in, "{user}, {password}");
            assert!(ended.is_ok() || ended.unwrap_err().state == state::PASSWORD);
        }
    }

    #[test]
    fn salts_of_strangers_do_not_change() {
        let users = users();
        let salt = |user: &str| users.verifier(user).0.salt;
        assert_eq!(salt("bob"), salt("bob"));
        assert_ne!(salt("bob"), salt("eve"));
    }

    proptest::proptest! {
        #[test]
        fn no_messages_make_it_panic(first: Vec<u8>, words: String, last: Vec<u8>) {
            let users = users();
            let _ = Exchange::begin(&users, "ann", &first);
            let worded = format!("n,,n=,r={words}");
            let _ = Exchange::begin(&users, "ann", worded.as_bytes());
            if let Ok((exchange, _)) = Exchange::begin(&users, "ann", b"n,,n=,r=a") {
                let _ = exchange.end("ann", &last);
            }
        }
    }
}
