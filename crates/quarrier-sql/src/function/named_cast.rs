//! `sql_cast(x, name)`: `x`, which is a cast. See `rewrite::casts`.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

use crate::Error;
use crate::rewrite::NAMED_CAST;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct NamedCast {
    signature: Signature,
}

impl Default for NamedCast {
    fn default() -> Self {
        NamedCast { signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for NamedCast {
    fn name(&self) -> &str {
        NAMED_CAST
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn simplify(&self, mut args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match args.len() {
            2 => ExprSimplifyResult::Simplified(args.swap_remove(0)),
            _ => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.into_iter().next();
        value.ok_or_else(|| Error::text("a cast has an operand").into())
    }
}
