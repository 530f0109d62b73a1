//! The file of users, one per line: `"name" "SCRAM-SHA-256$4096:salt$StoredKey:ServerKey"`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Mutex;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use quarrier_core::sync::lock;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

use super::is_same;

/// Rounds of new verifiers, as in PostgreSQL.
const ROUNDS: u32 = 4_096;
/// Maximum rounds: with more, a file could make each login take seconds.
const ROUNDS_MAX: u32 = 1_000_000;
/// Maximum bytes of a file of users.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of recently verified passwords to remember.
const REMEMBERED_MAX: usize = 1_024;

/// A password's verifier, from which the password cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verifier {
    pub(super) rounds: NonZeroU32,
    pub(super) salt: Vec<u8>,
    pub(super) stored_key: Vec<u8>,
    pub(super) server_key: Vec<u8>,
}

/// Users and the verifiers of their passwords.
pub struct Users {
    verifiers: BTreeMap<String, Verifier>,
    /// Derives salts for unknown names, so that they are indistinguishable from users.
    pub(super) pretence: hmac::Key,
    /// Digests of names and verified passwords, so that later requests need not derive keys again.
    right: Mutex<HashMap<[u8; 32], String>>,
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.verifiers.keys()).finish()
    }
}

/// The reason why the users could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsersError {
    /// The file, or another origin.
    pub place: String,
    /// The line, from 1; 0 for the whole file.
    pub line: usize,
    /// Why it is invalid, and what to try.
    pub reason: String,
}

impl fmt::Display for UsersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.reason),
            line => write!(f, "{}, line {line}: {}", self.place, self.reason),
        }
    }
}

impl std::error::Error for UsersError {}

impl Users {
    /// Reads the users in a file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line does not define a user.
    pub fn read(path: &Path) -> Result<Self, UsersError> {
        let failed =
            |reason: String| UsersError { place: path.display().to_string(), line: 0, reason };
        let size = std::fs::metadata(path).map(|meta| meta.len());
        if size.is_ok_and(|bytes| bytes > FILE_BYTES_MAX) {
            return Err(failed("it is longer than 16 MiB".to_string()));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::of(&text, &path.display().to_string())
    }

    /// Parses the lines of users; `place` is their origin for errors.
    ///
    /// # Errors
    /// If a line does not define a user.
    pub fn of(text: &str, place: &str) -> Result<Self, UsersError> {
        let mut verifiers = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |reason: &str| UsersError {
                place: place.to_string(),
                line: number + 1,
                reason: reason.to_string(),
            };
            let (name, verifier) = user(line).ok_or_else(|| {
                wrong("expected \"name\" \"SCRAM-SHA-256$…\"; --make-user NAME prints such a line")
            })?;
            if verifiers.insert(name, verifier).is_some() {
                return Err(wrong("this user is listed twice"));
            }
        }
        let mut secret = [0; 32];
        // Without random numbers, SCRAM fails as well, and reports it.
        let _ = SystemRandom::new().fill(&mut secret);
        let pretence = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        Ok(Users { verifiers, pretence, right: Mutex::default() })
    }

    /// Returns the number of users.
    pub fn len(&self) -> usize {
        self.verifiers.len()
    }

    /// Whether there are no users.
    pub fn is_empty(&self) -> bool {
        self.verifiers.is_empty()
    }

    /// Returns the verifier of a user's password, or a decoy for an unknown user.
    pub(super) fn verifier(&self, name: &str) -> (Verifier, bool) {
        if let Some(verifier) = self.verifiers.get(name) {
            return (verifier.clone(), true);
        }
        let salt = hmac::sign(&self.pretence, name.as_bytes()).as_ref()[..16].to_vec();
        let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
        (Verifier { rounds, salt, stored_key: vec![0; 32], server_key: vec![0; 32] }, false)
    }

    /// Whether this password was found to be the user's recently. Takes a microsecond.
    pub fn is_remembered(&self, name: &str, password: &str) -> bool {
        lock(&self.right).contains_key(&self.digest(name, password))
    }

    fn digest(&self, name: &str, password: &str) -> [u8; 32] {
        let mut both = hmac::Context::with_key(&self.pretence);
        both.update(&(name.len() as u64).to_be_bytes());
        both.update(name.as_bytes());
        both.update(password.as_bytes());
        let tag = both.sign();
        let mut seen = [0; 32];
        seen.copy_from_slice(tag.as_ref());
        seen
    }

    /// Whether this is the user's password. Takes a millisecond the first time.
    pub fn is_right(&self, name: &str, password: &str) -> bool {
        if self.is_remembered(name, password) {
            return true;
        }
        let (verifier, is_known) = self.verifier(name);
        let derived = derived(password, verifier.rounds, &verifier.salt);
        let is_right = is_same(&derived.0, &verifier.stored_key) && is_known;
        if is_right {
            let mut right = lock(&self.right);
            if right.len() >= REMEMBERED_MAX {
                right.clear();
            }
            right.insert(self.digest(name, password), name.to_string());
        }
        is_right
    }
}

/// Derives the stored key and the server key of a password.
fn derived(password: &str, rounds: NonZeroU32, salt: &[u8]) -> ([u8; 32], [u8; 32]) {
    let mut salted = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), &mut salted);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &salted);
    let client_key = hmac::sign(&key, b"Client Key");
    let (mut stored, mut server) = ([0; 32], [0; 32]);
    stored.copy_from_slice(digest::digest(&digest::SHA256, client_key.as_ref()).as_ref());
    server.copy_from_slice(hmac::sign(&key, b"Server Key").as_ref());
    (stored, server)
}

fn user(line: &str) -> Option<(String, Verifier)> {
    let (name, rest) = quoted(line)?;
    let (verifier, rest) = quoted(rest.trim_start())?;
    let is_one = !name.is_empty() && rest.trim().is_empty();
    is_one.then_some((name, verifier_of(&verifier)?))
}

/// Parses a string in double quotes, doubled within it; returns it and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut out = String::new();
    loop {
        let end = rest.find('"')?;
        out.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                out.push('"');
                rest = more;
            }
            None => return Some((out, rest)),
        }
    }
}

fn verifier_of(text: &str) -> Option<Verifier> {
    let mut parts = text.strip_prefix("SCRAM-SHA-256$")?.split(['$', ':']);
    let mut next = || parts.next();
    let rounds = next()?.parse::<NonZeroU32>().ok().filter(|rounds| rounds.get() <= ROUNDS_MAX)?;
    let salt = BASE64_STANDARD.decode(next()?).ok()?;
    let stored_key = BASE64_STANDARD.decode(next()?).ok()?;
    let server_key = BASE64_STANDARD.decode(next()?).ok()?;
    let is_whole = next().is_none() && stored_key.len() == 32 && server_key.len() == 32;
    is_whole.then_some(Verifier { rounds, salt, stored_key, server_key })
}

/// Makes a user's line for a file of users.
///
/// # Errors
/// If the system provides no random numbers, or if the name or the password is empty.
pub fn made_line(name: &str, password: &str) -> Result<String, String> {
    if name.is_empty() || name.contains(['\n', '\r', '\0']) {
        return Err("a user name must be a single line that is not empty".to_string());
    }
    if password.is_empty() {
        return Err("the password is empty".to_string());
    }
    let mut salt = [0; 16];
    let random = SystemRandom::new().fill(&mut salt);
    random.map_err(|_| "the system provides no random numbers".to_string())?;
    let rounds = NonZeroU32::new(ROUNDS).unwrap_or(NonZeroU32::MIN);
    let (stored, server) = derived(password, rounds, &salt);
    let name = name.replace('"', "\"\"");
    let [salt, stored, server] = [&salt[..], &stored, &server].map(|it| BASE64_STANDARD.encode(it));
    Ok(format!("\"{name}\" \"SCRAM-SHA-256${ROUNDS}:{salt}${stored}:{server}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_line_authenticates_its_user() {
        let line = made_line("a\"b", "secret").unwrap();
        let users = Users::of(&format!("# users\n\n{line}\n"), "users").unwrap();
        assert!(users.is_right("a\"b", "secret") && users.is_right("a\"b", "secret"));
        assert!(users.is_remembered("a\"b", "secret") && !users.is_remembered("a\"b", "Secret"));
        assert!(!users.is_right("a\"b", "Secret") && !users.is_right("c", "secret"));
        assert!(!line.contains("secret"));
    }

    #[test]
    fn invalid_lines_are_refused_with_their_position() {
        let line = made_line("a", "b").unwrap();
        for wrong in [
            "a b".to_string(),
            "\"a\" \"md5abc\"".to_string(),
            "\"a\" \"SCRAM-SHA-256$0:YQ==$YQ==:YQ==\"".to_string(),
            line.replace("4096", "400000000"),
            format!("{line} \"more\""),
            format!("{line}\n{line}"),
        ] {
            let error = Users::of(&wrong, "users").unwrap_err();
            assert!(error.line > 0, "{wrong}: {error}");
        }
    }
}
