//! Sets of files that are known by their hashes.
//!
//! Reads lists of MD5, SHA-1 and SHA-256, one a line, with any text after them (`md5sum`, `sha256sum`,
//! BSD's `MD5 (name) = …`), the files of `hashdeep` and the CSV of NSRL: every field with the digits of
//! a hash is one.

use std::io::{self, Read};

use crate::digests::{Digests, Hasher};

/// Bytes of a list that are read at once; no line with a hash is longer.
const STEP_BYTES: usize = 1 << 20;

/// Hashes, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    md5: Vec<[u8; 16]>,
    sha1: Vec<[u8; 20]>,
    sha256: Vec<[u8; 32]>,
}

impl Known {
    /// Adds the hashes of a list, and returns how many it has. Call [`sort`](Known::sort) after the last.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it contains no hash, and the reader's error.
    pub fn read(&mut self, mut list: impl Read) -> io::Result<u64> {
        let mut buffer = vec![0; STEP_BYTES];
        let (mut filled, mut found, mut is_first) = (0, 0, true);
        loop {
            let bytes = match list.read(&mut buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let all = &buffer[..filled + bytes];
            if std::mem::take(&mut is_first) && all.starts_with(b"SQLite format 3\0") {
                let reason = "is an SQLite database; export its hashes as text first, as with \
                              sqlite3 FILE 'SELECT sha256 FROM FILE'";
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            // The last line may go on; one without end is taken in pieces.
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

    /// Adds a word, if it has as many digits as a hash.
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
        let mut hasher = Hasher::new(false);
        self.md5.iter().for_each(|hash| hasher.update(hash));
        self.sha1.iter().for_each(|hash| hasher.update(hash));
        self.sha256.iter().for_each(|hash| hasher.update(hash));
        hasher.finish().sha256_hex()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.md5.len() + self.sha1.len() + self.sha256.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether MD5 and SHA-1 are needed to know a file.
    pub fn needs_old(&self) -> bool {
        !self.md5.is_empty() || !self.sha1.is_empty()
    }

    /// Whether a file with these hashes is known.
    pub fn has(&self, digests: &Digests) -> bool {
        self.sha256.binary_search(&digests.sha256).is_ok()
            || (!self.sha1.is_empty() && self.sha1.binary_search(&digests.sha1).is_ok())
            || (!self.md5.is_empty() && self.md5.binary_search(&digests.md5).is_ok())
    }
}

/// The bytes of twice as many digits.
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
    use super::Known;
    use crate::digests::Hasher;

    #[test]
    fn hashes_are_found_in_lists_of_every_kind() {
        let mut hasher = Hasher::new(true);
        hasher.update(b"abc");
        let abc = hasher.finish();
        let mut hasher = Hasher::new(true);
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
            let mut known = Known::default();
            assert!(known.read(list.as_bytes()).is_ok(), "{list}");
            known.sort();
            assert!(known.has(&abc) && !known.has(&zeros), "{list}");
        }
        assert!(Known::default().read(&b"no hash\n"[..]).is_err());
        assert!(Known::default().read(&b"SQLite format 3\0"[..]).is_err());
    }
}
