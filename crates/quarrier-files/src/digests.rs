//! The hashes that identify files, computed in one pass.

use md5::Md5;
use quarrier_core::hex;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Zeros hashed at once.
const ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// The hashes to compute in addition to SHA-256, which is always computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HashKinds {
    /// MD5.
    pub md5: bool,
    /// SHA-1.
    pub sha1: bool,
    /// BLAKE3.
    pub blake3: bool,
}

impl HashKinds {
    /// The union of two selections.
    #[must_use]
    pub fn or(self, other: HashKinds) -> HashKinds {
        HashKinds {
            md5: self.md5 || other.md5,
            sha1: self.sha1 || other.sha1,
            blake3: self.blake3 || other.blake3,
        }
    }

    /// Adds a hash by name: `md5`, `sha1`, `sha256` or `blake3`; false for any other name.
    pub fn add(&mut self, name: &str) -> bool {
        match name {
            "md5" => self.md5 = true,
            "sha1" => self.sha1 = true,
            "blake3" => self.blake3 = true,
            "sha256" => {}
            _ => return false,
        }
        true
    }

    /// The names of the selected hashes besides SHA-256, in the order of rows.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [("md5", self.md5), ("sha1", self.sha1), ("blake3", self.blake3)];
        all.into_iter().filter_map(|(name, is_chosen)| is_chosen.then_some(name))
    }
}

/// The hashes of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digests {
    /// MD5, if it was computed.
    pub md5: Option<[u8; 16]>,
    /// SHA-1, if it was computed.
    pub sha1: Option<[u8; 20]>,
    /// SHA-256.
    pub sha256: [u8; 32],
    /// BLAKE3, if it was computed.
    pub blake3: Option<[u8; 32]>,
}

impl Digests {
    /// SHA-256 in hexadecimal.
    pub fn sha256_hex(&self) -> String {
        hex::encode(&self.sha256)
    }

    /// The hashes in `kinds` that were computed, as name and hexadecimal digits.
    pub fn named(&self, kinds: HashKinds) -> Vec<(&'static str, String)> {
        let encoded = |name: &'static str| {
            let bytes: &[u8] = match name {
                "md5" => self.md5.as_ref()?,
                "sha1" => self.sha1.as_ref()?,
                _ => self.blake3.as_ref()?,
            };
            Some((name, hex::encode(bytes)))
        };
        kinds.names().filter_map(encoded).collect()
    }
}

/// Computes hashes incrementally.
pub struct Hasher {
    md5: Option<Md5>,
    sha1: Option<Sha1>,
    sha256: Sha256,
    blake3: Option<Box<blake3::Hasher>>,
}

impl Hasher {
    /// A hasher with no input yet.
    pub fn new(kinds: HashKinds) -> Self {
        Hasher {
            md5: kinds.md5.then(Md5::new),
            sha1: kinds.sha1.then(Sha1::new),
            sha256: Sha256::new(),
            blake3: kinds.blake3.then(Box::default),
        }
    }

    /// A hasher with no input yet that computes only SHA-256.
    pub fn sha256() -> Self {
        Hasher::new(HashKinds::default())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        // Small chunks stay in the CPU cache while each hash reads them.
        for piece in bytes.chunks(ZEROS.len()) {
            if let Some(md5) = &mut self.md5 {
                md5.update(piece);
            }
            if let Some(sha1) = &mut self.sha1 {
                sha1.update(piece);
            }
            if let Some(blake3) = &mut self.blake3 {
                blake3.update(piece);
            }
            self.sha256.update(piece);
        }
    }

    /// Adds zeros.
    pub fn zeros(&mut self, mut count: u64) {
        while count > 0 {
            let step = count.min(ZEROS.len() as u64);
            self.update(&ZEROS[..step as usize]);
            count -= step;
        }
    }

    /// The hashes.
    pub fn finish(self) -> Digests {
        Digests {
            md5: self.md5.map(|md5| md5.finalize().into()),
            sha1: self.sha1.map(|sha1| sha1.finalize().into()),
            sha256: self.sha256.finalize().into(),
            blake3: self.blake3.map(|blake3| blake3.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HashKinds, Hasher};

    #[test]
    fn the_hashes_are_those_that_their_authors_publish() {
        let mut kinds = HashKinds::default();
        for name in ["blake3", "md5", "sha256", "sha1"] {
            assert!(kinds.add(name));
        }
        assert!(!kinds.add("sha512"));
        let mut hasher = Hasher::new(kinds);
        hasher.update(b"ab");
        hasher.update(b"c");
        let abc = hasher.finish();
        let named = [
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("blake3", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
        ];
        assert_eq!(abc.named(kinds), named.map(|(name, hash)| (name, hash.to_string())));
        assert_eq!(
            abc.sha256_hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let mut other = Hasher::sha256();
        other.update(b"abc");
        assert_eq!(other.finish().named(kinds), []);
    }
}
