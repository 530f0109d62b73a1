//! Sets of known files, identified by hash.
//!
//! Reads lists with one MD5, SHA-1 or SHA-256 per line and any text after it (`md5sum`, `sha256sum`,
//! BSD's `MD5 (name) = …`), `hashdeep` files and NSRL's CSV: every field that looks like a hash counts
//! as one. The [databases](database) of NSRL are queried in place, not loaded.

mod database;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::digests::{Digests, HashKinds, Hasher};
use database::Database;

/// Bytes of a list read at once; this also bounds the length of a line with a hash.
const STEP_BYTES: usize = 1 << 20;

/// Known hashes: sorted arrays, and databases.
#[derive(Default)]
pub struct KnownHashes {
    md5: Vec<[u8; 16]>,
    sha1: Vec<[u8; 20]>,
    sha256: Vec<[u8; 32]>,
    databases: Vec<Database>,
}

impl fmt::Debug for KnownHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownHashes")
            .field("hashes", &self.len())
            .field("databases", &self.databases.len())
            .finish()
    }
}

impl KnownHashes {
    /// Adds the hashes of a file: a list, or an SQLite database as NSRL publishes it (RDS v3), which
    /// stays open. Call [`sort`](KnownHashes::sort) after the last file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for a file without hashes, a damaged database, or one without an
    /// index of its hashes; errors of the operating system.
    pub fn add(&mut self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        let mut head = Vec::new();
        (&mut file).take(database::MAGIC.len() as u64).read_to_end(&mut head)?;
        if head == database::MAGIC {
            self.databases.push(Database::open(path)?);
            return Ok(());
        }
        self.read((&head[..]).chain(file)).map(drop)
    }

    /// Adds the hashes of a list, and returns their number. Call [`sort`](KnownHashes::sort) after the last
    /// list.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it contains no hash, and the reader's error.
    pub fn read(&mut self, mut list: impl Read) -> io::Result<u64> {
        let mut buffer = vec![0; STEP_BYTES];
        let (mut filled, mut found) = (0, 0);
        loop {
            let bytes = match list.read(&mut buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let all = &buffer[..filled + bytes];
            // The last line may be incomplete; an endless line is processed in pieces.
            let newline = all.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            let whole = match newline {
                _ if bytes == 0 => all.len(),
                Some(end) => end,
                None if all.len() == STEP_BYTES => all.len(),
                None => 0,
            };
            found += self.lines(&all[..whole]);
            if bytes == 0 {
                break;
            }
            filled = all.len() - whole;
            buffer.copy_within(whole..whole + filled, 0);
        }
        match found {
            0 => {
                let reason = "has no MD5, SHA-1 or SHA-256 in hexadecimal";
                Err(io::Error::new(io::ErrorKind::InvalidData, reason))
            }
            found => Ok(found),
        }
    }

    fn lines(&mut self, lines: &[u8]) -> u64 {
        let mut found = 0;
        for line in lines.split(|byte| *byte == b'\n') {
            if !line.starts_with(b"%") && !line.starts_with(b"#") {
                let words = line.split(|byte| !byte.is_ascii_hexdigit());
                found += words.map(|word| u64::from(self.word(word))).sum::<u64>();
            }
        }
        found
    }

    /// Adds a word if it has as many hexadecimal digits as a hash.
    fn word(&mut self, word: &[u8]) -> bool {
        match word.len() {
            32 => self.md5.extend(bytes::<16>(word)),
            40 => self.sha1.extend(bytes::<20>(word)),
            64 => self.sha256.extend(bytes::<32>(word)),
            _ => return false,
        }
        true
    }

    /// Sorts the added hashes.
    pub fn sort(&mut self) {
        fn sorted<T: Ord>(hashes: &mut Vec<T>) {
            hashes.sort_unstable();
            hashes.dedup();
            hashes.shrink_to_fit();
        }
        sorted(&mut self.md5);
        sorted(&mut self.sha1);
        sorted(&mut self.sha256);
    }

    /// Identifies this set, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        let mut hasher = Hasher::sha256();
        self.md5.iter().for_each(|hash| hasher.update(hash));
        self.sha1.iter().for_each(|hash| hasher.update(hash));
        self.sha256.iter().for_each(|hash| hasher.update(hash));
        self.databases.iter().for_each(|one| hasher.update(one.fingerprint()));
        hasher.finish().sha256_hex()
    }

    /// The number of hashes from lists.
    pub fn len(&self) -> usize {
        self.md5.len() + self.sha1.len() + self.sha256.len()
    }

    /// Whether the set has no hash and no database.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.databases.is_empty()
    }

    /// The hashes besides SHA-256 that are needed to recognize a file.
    pub fn needs(&self) -> HashKinds {
        let of_lists =
            HashKinds { md5: !self.md5.is_empty(), sha1: !self.sha1.is_empty(), blake3: false };
        self.databases.iter().fold(of_lists, |all, one| all.or(one.needs()))
    }

    /// Whether a file with these hashes is known.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if a database is damaged.
    pub fn has(&self, digests: &Digests) -> io::Result<bool> {
        let is_listed = self.sha256.binary_search(&digests.sha256).is_ok()
            || digests.sha1.is_some_and(|hash| self.sha1.binary_search(&hash).is_ok())
            || digests.md5.is_some_and(|hash| self.md5.binary_search(&hash).is_ok());
        if is_listed {
            return Ok(true);
        }
        for database in &self.databases {
            if database.has(digests)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Decodes hexadecimal digits.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::KnownHashes;
    use crate::digests::{HashKinds, Hasher};

    #[test]
    fn hashes_are_found_in_every_list_format() {
        let kinds = HashKinds { md5: true, sha1: true, blake3: false };
        let mut hasher = Hasher::new(kinds);
        hasher.update(b"abc");
        let abc = hasher.finish();
        let mut hasher = Hasher::new(kinds);
        hasher.zeros(100_000);
        let zeros = hasher.finish();
        for list in [
            "900150983cd24fb0d6963f7d28e17f72  abc\n",
            "MD5 (abc) = 900150983CD24FB0D6963F7D28E17F72\r\n",
            "# a comment\na9993e364706816aba3e25717850c26c9cd0d89d\n",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "%%%% HASHDEEP-1.0\n%%%% size,md5,sha256,filename\n\
             3,900150983cd24fb0d6963f7d28e17f72,\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad,/abc\n",
            "\"SHA-1\",\"MD5\",\"CRC32\"\n\"A9993E364706816ABA3E25717850C26C9CD0D89D\",\"\",\"352441C2\"\n",
        ] {
            let mut known = KnownHashes::default();
            assert!(known.read(list.as_bytes()).is_ok(), "{list}");
            known.sort();
            let has = |digests| known.has(digests).is_ok_and(|is_known| is_known);
            assert!(has(&abc) && !has(&zeros), "{list}");
        }
        assert!(KnownHashes::default().read(&b"no hash\n"[..]).is_err());
    }
}
