//! Functions whose results may be much larger than their arguments, such as `repeat`. Memory for
//! the results is reserved before they are computed. If there is not enough, the call fails.

mod argument;
mod sizes;
mod wide;

pub(crate) use wide::{Wide, is_wide};

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{ExprSchema, Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryPool, MemoryReservation, human_readable_size,
};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, StructFieldMapping,
};
use datafusion::prelude::SessionContext;

use sizes::Size;

/// Smaller results are not counted.
const LIGHT_BYTES: u64 = 1 << 20;

/// The strings of a batch have 32-bit offsets.
const BATCH_BYTES_MAX: u64 = i32::MAX as u64;

/// Maximum size of constant calls that are folded while a plan is made: plans are copied and
/// displayed, with their constants.
const CONSTANT_BYTES_MAX: u64 = 64 << 10;

thread_local! {
    /// Whether this thread is making a plan.
    static IS_PLANNED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, in which planning does not fold constant calls with large results.
pub(crate) fn planned<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_PLANNED.set(self.0);
        }
    }
    let _before = Before(IS_PLANNED.replace(true));
    work()
}

/// Replaces functions by bounded ones of the same names.
pub(super) fn register(context: &SessionContext) {
    let pool = &context.runtime_env().memory_pool;
    for (name, _) in sizes::ALL {
        let Ok(function) = context.udf(name) else { continue };
        if let Some(bounded) = bounded(&function, pool) {
            context.register_udf(bounded);
        }
    }
}

/// Whether the results of this function are bounded.
pub(crate) fn is_bounded(function: &ScalarUDF) -> bool {
    sizes::ALL.iter().any(|(name, _)| *name == function.name())
}

/// The bounded version of a function; `None` if the function needs no bounds, or is bounded
/// already.
pub(crate) fn bounded(function: &Arc<ScalarUDF>, pool: &Arc<dyn MemoryPool>) -> Option<ScalarUDF> {
    let known = |(name, _): &&(&str, Size)| *name == function.name();
    let (_, size) = sizes::ALL.iter().find(known)?;
    if function.inner().is::<Bounded>() {
        return None;
    }
    let inner = Arc::clone(function);
    Some(ScalarUDF::new_from_impl(Bounded { inner, size: *size, pool: Arc::clone(pool) }))
}

/// Reserves memory for `bytes` of results until the returned value is dropped.
///
/// # Errors
/// There is not enough memory, or the results exceed the maximum of a batch.
pub(crate) fn taken(
    pool: &Arc<dyn MemoryPool>,
    name: &str,
    bytes: u64,
) -> Result<Option<MemoryReservation>> {
    if bytes < LIGHT_BYTES {
        return Ok(None);
    }
    let shown = || human_readable_size(usize::try_from(bytes).unwrap_or(usize::MAX));
    let refused = |limit: String| {
        let reason = format!("the results of {name} would take {} at once, and {limit}", shown());
        DataFusionError::ResourcesExhausted(reason)
    };
    if bytes > BATCH_BYTES_MAX {
        return Err(refused("the maximum is 2 GiB".to_string()));
    }
    let taken = MemoryConsumer::new(name).register(pool);
    match taken.try_grow(bytes as usize) {
        Ok(()) => Ok(Some(taken)),
        Err(error) => match error.find_root() {
            DataFusionError::ResourcesExhausted(reason) => Err(refused(reason.clone())),
            _ => Err(error),
        },
    }
}

/// A function whose results are bounded.
#[derive(Debug)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    size: Size,
    pool: Arc<dyn MemoryPool>,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

/// Everything except the bounds is forwarded.
impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.inner().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.inner().return_field_from_args(args)
    }

    #[expect(deprecated, reason = "the function may answer it")]
    fn is_nullable(&self, args: &[Expr], schema: &dyn ExprSchema) -> bool {
        self.inner.inner().is_nullable(args, schema)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bytes = (self.size)(&args.args, args.number_rows)?;
        if bytes > CONSTANT_BYTES_MAX && IS_PLANNED.get() {
            return Err(DataFusionError::Plan("a large constant is computed at run time".into()));
        }
        let _taken = taken(&self.pool, self.name(), bytes)?;
        self.inner.inner().invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.inner().simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        lit_expr: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.inner.inner().preimage(args, lit_expr, info)
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.inner().conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.inner.inner().short_circuits()
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.inner.inner().evaluate_bounds(input)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.inner.inner().propagate_constraints(interval, inputs)
    }

    fn struct_field_mapping(
        &self,
        literal_args: &[Option<ScalarValue>],
    ) -> Option<StructFieldMapping> {
        self.inner.inner().struct_field_mapping(literal_args)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.inner().output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.inner().preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.inner().strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.inner().coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.inner().documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.inner().placement(args)
    }
}
