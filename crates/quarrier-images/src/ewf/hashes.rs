//! Hashes stored in an image, and their verification.

use md5::Md5;
use sha1::{Digest, Sha1};

use super::layout::{DIGEST_BYTES, HASH_BYTES, is_sealed};

/// The hashes stored in an image, over all bytes of the media.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredHashes {
    /// The MD5, if stored.
    pub md5: Option<[u8; 16]>,
    /// The SHA-1, if stored.
    pub sha1: Option<[u8; 20]>,
}

impl StoredHashes {
    pub(crate) fn add_hash(&mut self, bytes: &[u8; HASH_BYTES]) -> Result<(), &'static str> {
        if !is_sealed(bytes) {
            return Err("the checksum of the stored hash is wrong");
        }
        self.md5 = self.md5.or(known(&bytes[..]));
        Ok(())
    }

    pub(crate) fn add_digest(&mut self, bytes: &[u8; DIGEST_BYTES]) -> Result<(), &'static str> {
        if !is_sealed(bytes) {
            return Err("the checksum of the stored digests is wrong");
        }
        self.md5 = self.md5.or(known(&bytes[..]));
        self.sha1 = self.sha1.or(known(&bytes[16..]));
        Ok(())
    }
}

/// The hash at the start of `bytes`; all zeros mean that none is stored.
fn known<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied().filter(|hash| *hash != [0; N])
}

/// A stored hash and the computed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check<const N: usize> {
    /// The hash stored in the image.
    pub stored: [u8; N],
    /// The hash computed from the media.
    pub computed: [u8; N],
}

/// The result of a verification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// The MD5, if one is stored.
    pub md5: Option<Check<16>>,
    /// The SHA-1, if one is stored.
    pub sha1: Option<Check<20>>,
}

impl Verified {
    /// Whether at least one hash is stored and every stored hash matches.
    pub fn holds(&self) -> bool {
        let md5 = self.md5.map(|check| check.stored == check.computed);
        let sha1 = self.sha1.map(|check| check.stored == check.computed);
        [md5, sha1].into_iter().flatten().reduce(|all, one| all && one) == Some(true)
    }
}

/// The stored hashes while they are computed.
pub(crate) struct Hashing {
    stored: StoredHashes,
    md5: Md5,
    sha1: Sha1,
}

impl Hashing {
    pub(crate) fn new(stored: StoredHashes) -> Self {
        Hashing { stored, md5: Md5::new(), sha1: Sha1::new() }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if self.stored.md5.is_some() {
            self.md5.update(bytes);
        }
        if self.stored.sha1.is_some() {
            self.sha1.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> Verified {
        let (md5, sha1) = (self.md5.finalize().into(), self.sha1.finalize().into());
        Verified {
            md5: self.stored.md5.map(|stored| Check { stored, computed: md5 }),
            sha1: self.stored.sha1.map(|stored| Check { stored, computed: sha1 }),
        }
    }
}
