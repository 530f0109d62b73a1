//! The hashes by which files are recognised, computed in one pass.

use md5::Md5;
use quarrier_core::hex;
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Zeros that are hashed at once.
const ZEROS: [u8; 16 << 10] = [0; 16 << 10];

/// The hashes of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digests {
    /// MD5.
    pub md5: [u8; 16],
    /// SHA-1.
    pub sha1: [u8; 20],
    /// SHA-256.
    pub sha256: [u8; 32],
}

impl Digests {
    /// SHA-256 in hexadecimal.
    pub fn sha256_hex(&self) -> String {
        hex::encode(&self.sha256)
    }
}

/// Hashes bytes piece by piece: always SHA-256, and on request MD5 and SHA-1.
pub struct Hasher {
    old: Option<(Md5, Sha1)>,
    sha256: Sha256,
}

impl Hasher {
    /// A hasher of nothing yet; with MD5 and SHA-1 where `with_old`.
    pub fn new(with_old: bool) -> Self {
        let old = with_old.then(|| (Md5::new(), Sha1::new()));
        Hasher { old, sha256: Sha256::new() }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        if let Some((md5, sha1)) = &mut self.old {
            md5.update(bytes);
            sha1.update(bytes);
        }
        self.sha256.update(bytes);
    }

    /// Adds zeros.
    pub fn zeros(&mut self, mut count: u64) {
        while count > 0 {
            let step = count.min(ZEROS.len() as u64);
            self.update(&ZEROS[..step as usize]);
            count -= step;
        }
    }

    /// The hashes; those that were not wanted are zeros.
    pub fn finish(self) -> Digests {
        let (md5, sha1) = self.old.map_or(([0; 16], [0; 20]), |(md5, sha1)| {
            (md5.finalize().into(), sha1.finalize().into())
        });
        Digests { md5, sha1, sha256: self.sha256.finalize().into() }
    }
}
