//! Rows on their way to clients, and the bytes that several clients get of them.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use bytes::Bytes;
use quarrier_core::sync::lock;

use crate::failure::Result;
use crate::sql::CopyOptions;

/// Maximum number of forms to keep of the same rows.
const FORMS_MAX: usize = 4;
/// Maximum bytes of a form to keep.
const FORM_BYTES_MAX: usize = 256 << 10;

/// Rows to send to a client.
#[derive(Debug, Clone)]
pub struct Batch {
    rows: RecordBatch,
    forms: Option<Arc<Forms>>,
}

/// A form in which clients get rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormKey {
    /// As rows of a result, with the format of each column.
    Rows(Vec<bool>),
    /// As data of a COPY.
    Copy(CopyOptions),
    /// As server-sent events.
    Events,
}

#[derive(Debug, Default)]
struct Forms {
    encoded: Mutex<Vec<(FormKey, Bytes)>>,
}

impl From<RecordBatch> for Batch {
    fn from(rows: RecordBatch) -> Self {
        Batch { rows, forms: None }
    }
}

impl Deref for Batch {
    type Target = RecordBatch;

    fn deref(&self) -> &RecordBatch {
        &self.rows
    }
}

impl Batch {
    /// Makes rows whose clones go to several clients: they are encoded once for each form, unless that is large.
    pub fn shared(rows: RecordBatch) -> Self {
        Batch { rows, forms: Some(Arc::default()) }
    }

    /// Returns the rows.
    pub fn into_rows(self) -> RecordBatch {
        self.rows
    }

    /// Returns whether clones of these rows share their bytes.
    pub(crate) fn is_shared(&self) -> bool {
        self.forms.is_some()
    }

    /// Returns the bytes of all rows in a form; the first of many clients encodes them while others wait.
    pub(crate) fn encoded(
        &self,
        key: FormKey,
        encode: impl FnOnce(&RecordBatch) -> Result<Vec<u8>>,
    ) -> Result<Bytes> {
        let Some(forms) = &self.forms else { return encode(&self.rows).map(Bytes::from) };
        let mut encoded = lock(&forms.encoded);
        if let Some((_, bytes)) = encoded.iter().find(|(known, _)| *known == key) {
            return Ok(bytes.clone());
        }
        let bytes = Bytes::from(encode(&self.rows)?);
        if encoded.len() < FORMS_MAX && bytes.len() <= FORM_BYTES_MAX {
            encoded.push((key, bytes.clone()));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use arrow_array::{ArrayRef, Int32Array};

    use super::*;
    use crate::failure::{Failure, state};

    #[test]
    fn clones_of_shared_rows_are_encoded_once_for_each_form() {
        let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let rows = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let count = Cell::new(0_u8);
        let encode = |batch: &Batch, key: FormKey, length: usize| {
            let encode = |rows: &RecordBatch| {
                count.set(count.get() + 1);
                Ok(vec![rows.num_rows() as u8 + count.get(); length])
            };
            batch.encoded(key, encode).unwrap()[0]
        };
        let shared = Batch::shared(rows.clone());
        assert!(shared.is_shared());
        assert_eq!(encode(&shared, FormKey::Events, 1), 3);
        assert_eq!(encode(&shared.clone(), FormKey::Events, 1), 3);
        assert_eq!(encode(&shared, FormKey::Rows(vec![true]), 1), 4);
        assert_eq!(encode(&shared.clone(), FormKey::Rows(vec![true]), 1), 4);
        // Large ones, and forms beyond the maximum, are encoded each time.
        assert_eq!(encode(&shared, FormKey::Rows(vec![]), FORM_BYTES_MAX + 1), 5);
        assert_eq!(encode(&shared, FormKey::Rows(vec![]), 1), 6);
        assert_eq!(encode(&shared, FormKey::Rows(vec![false]), 1), 7);
        assert_eq!(encode(&shared, FormKey::Rows(vec![false, true]), 1), 8);
        assert_eq!(encode(&shared, FormKey::Rows(vec![false, true]), 1), 9);
        let alone = Batch::from(rows);
        assert!(!alone.is_shared());
        assert_eq!(encode(&alone, FormKey::Events, 1), 10);
        assert_eq!(encode(&alone.clone(), FormKey::Events, 1), 11);
        let failing = Batch::shared(alone.into_rows());
        let fail = |_: &RecordBatch| Err(Failure::new(state::INTERNAL, "no"));
        assert!(failing.encoded(FormKey::Events, fail).is_err());
        assert_eq!(encode(&failing, FormKey::Events, 1), 12);
    }
}
