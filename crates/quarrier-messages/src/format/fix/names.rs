//! Keys of fields: the numbers of tags, and numbers assigned to names.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::dictionary::Dictionary;
use crate::Fault;

/// Converts the keys in messages to the names of columns.
#[derive(Debug)]
pub(super) enum Names {
    /// FIX.
    Tags(Arc<Dictionary>),
    /// NVFIX. Names that are not in the dictionary are numbered from [`OWN`].
    Names {
        dictionary: Arc<Dictionary>,
        numbers: HashMap<Box<str>, u32, RandomState>,
        own: Vec<Box<str>>,
        own_max: usize,
    },
}

/// Greater than all tags.
const OWN: u32 = 1 << 31;
/// Maximum number of digits of a tag.
const TAG_DIGITS_MAX: usize = 9;
/// Maximum length of a name; longer names are refused.
const NAME_BYTES_MAX: usize = 1_024;

impl Names {
    /// Forgets the numbers of names.
    pub(super) fn forget(&mut self) {
        if let Names::Names { numbers, own, .. } = self {
            numbers.clear();
            own.clear();
        }
    }

    pub(super) fn dictionary(&self) -> &Dictionary {
        match self {
            Names::Tags(dictionary) | Names::Names { dictionary, .. } => dictionary,
        }
    }

    /// Returns the number of a key, which is at `at` in the message; `None` if there are too many
    /// distinct keys.
    pub(super) fn number(&mut self, key: &str, at: usize) -> Result<Option<u32>, Fault> {
        match self {
            Names::Tags(_) => {
                tag(key).map(Some).ok_or(Fault::new(at, "a tag that is not a number"))
            }
            Names::Names { .. } if key.is_empty() => Err(Fault::new(at, "a field without name")),
            Names::Names { dictionary, numbers, own, own_max } => {
                if let Some(&number) = numbers.get(key) {
                    return Ok(Some(number));
                }
                if own.len() >= *own_max || key.len() > NAME_BYTES_MAX {
                    return Ok(None);
                }
                let number = dictionary.tag(key).unwrap_or(OWN + own.len() as u32);
                if number >= OWN {
                    own.push(key.into());
                }
                numbers.insert(key.into(), number);
                Ok(Some(number))
            }
        }
    }

    /// Returns the name of a key's column.
    pub(super) fn name(&self, number: u32) -> Cow<'_, str> {
        if let Names::Names { own, .. } = self
            && let Some(name) = number.checked_sub(OWN).and_then(|at| own.get(at as usize))
        {
            return Cow::Borrowed(name);
        }
        match self.dictionary().name(number) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("tag_{number}")),
        }
    }
}

fn tag(key: &str) -> Option<u32> {
    let is_plain = key.len() <= TAG_DIGITS_MAX
        && !key.starts_with('0')
        && key.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { key.parse().ok() } else { None }
}
