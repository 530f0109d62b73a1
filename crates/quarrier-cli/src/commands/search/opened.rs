//! What the command line calls SOURCE, for who reads at offsets.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quarrier_core::source::Source;

use super::remote::Client;
use super::source::{self, Input, Named};

/// Sources that a text names: a file, a device, an image in parts, a URL, or a glob of files.
pub struct Sources {
    named: Vec<Named>,
    client: Client,
}

impl Sources {
    /// What `text` names. When `stop` becomes true, those that are remote give up.
    pub fn of(text: &str, stop: &Arc<AtomicBool>) -> Sources {
        let named = source::expand(&[OsString::from(text)]);
        Sources { named, client: Client::plain(stop) }
    }

    /// Whether `text` is a URL.
    pub fn is_remote(text: &str) -> bool {
        quarrier_remote::is_remote(text)
    }

    /// What of `text` may be shown: of a URL no password and no signature.
    pub fn shown(text: &str) -> String {
        source::shown(text)
    }

    /// Opens one after another.
    ///
    /// # Errors
    /// In place of a source: why it cannot be opened, or read at offsets.
    pub fn iter(&self) -> impl Iterator<Item = Result<Box<dyn Source>, String>> + '_ {
        self.named.iter().map(|named| match named.open(false, &self.client)? {
            Input::Source(source) => Ok(source),
            Input::Remote(source) => {
                source.announce(0..source.length());
                Ok(Box::new(source) as Box<dyn Source>)
            }
            Input::Stream(name, _) => Err(format!(
                "{name}: can only be read in order, and files are read wherever they lie; \
                 write it to a file first"
            )),
        })
    }
}
