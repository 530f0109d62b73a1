//! Values that are checked against the free memory: large constants, which a batch would repeat for
//! each row, and results of `||`, whose size doubles with each nested `||`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use super::argument::Argument;

/// Smaller constants are not checked.
const WIDE_BYTES: usize = 4 << 10;

/// Whether a constant takes much memory.
pub(crate) fn is_wide(value: &ScalarValue) -> bool {
    // Values of a fixed size are small.
    let is_fixed = value.data_type().is_primitive();
    !is_fixed && value.size() > WIDE_BYTES
}

/// `wide(value)`: returns the value, or an error if there is too little memory for one copy a row.
#[derive(Debug)]
pub(crate) struct Wide {
    signature: Signature,
    pool: Arc<dyn MemoryPool>,
}

impl Wide {
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        // Volatile, so that the optimizer does not fold it.
        Wide { signature: Signature::any(1, Volatility::Volatile), pool: Arc::clone(pool) }
    }
}

impl PartialEq for Wide {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Wide {}

impl Hash for Wide {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl ScalarUDFImpl for Wide {
    fn name(&self) -> &'static str {
        "wide"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = &args.arg_fields[0];
        Ok(Arc::new(Field::new(self.name(), of.data_type().clone(), of.is_nullable())))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let Some(value) = args.args.pop() else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Null));
        };
        let bytes = Argument::new(&value)?.all_bytes(rows);
        super::taken(&self.pool, "long values", bytes)?;
        Ok(value)
    }
}
