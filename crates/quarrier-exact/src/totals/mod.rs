//! Exact SUM and AVG, which fail on overflow. DataFusion's own wrap, and truncate means of
//! decimals.

mod finish;
mod groups;
mod one;
mod total;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
    Volatility,
};

use crate::Refusal;

use finish::Finish;
use groups::Groups;
use one::{Distinct, One, STATE_DIGITS, Task};
use total::Total;
pub use values::Exact;

/// Both aggregates.
pub fn all() -> Vec<AggregateUDF> {
    [Finish::Sum, Finish::Avg].map(|finish| AggregateUDF::new_from_impl(Totals::new(finish))).into()
}

/// SUM or AVG: our own for exact numbers, DataFusion's for others.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Totals {
    finish: Finish,
    engines: Arc<AggregateUDF>,
    aliases: Vec<String>,
    signature: Signature,
}

impl Totals {
    fn new(finish: Finish) -> Self {
        let (engines, aliases) = match finish {
            Finish::Sum => (sum_udaf(), Vec::new()),
            Finish::Avg => (avg_udaf(), vec!["mean".to_string()]),
        };
        Totals {
            finish,
            engines,
            aliases,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }

    /// The task for our own accumulator; `None` if DataFusion's is used.
    fn task(&self, args: &AccumulatorArgs) -> Option<Task> {
        let exact = Exact::of(args.expr_fields.first()?.data_type())?;
        Some(Task { finish: self.finish, exact, result: args.return_field.data_type().clone() })
    }

    /// The type to which values are cast before they are summed.
    fn added_as(&self, data_type: &DataType) -> Result<DataType> {
        use DataType as T;
        Ok(match data_type {
            T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::UInt8 | T::UInt16 | T::UInt32 => T::Int64,
            T::UInt64 | T::Decimal128(..) | T::Decimal256(..) | T::Duration(_) => data_type.clone(),
            T::Decimal32(digits, scale) | T::Decimal64(digits, scale) => {
                T::Decimal128(*digits, *scale)
            }
            T::Float16 | T::Float32 | T::Float64 => T::Float64,
            T::Interval(_) if self.finish == Finish::Sum => data_type.clone(),
            T::Null if self.finish == Finish::Sum => T::Int64,
            T::Null => T::Float64,
            T::Dictionary(_, values) => return self.added_as(values),
            other => return Err(self.refused(other)),
        })
    }

    fn refused(&self, data_type: &DataType) -> datafusion::error::DataFusionError {
        let name = self.name().to_uppercase();
        let reason = match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                format!("{name} takes numbers, not strings; convert them with CAST")
            }
            other => format!("{name} takes numbers, not {other}"),
        };
        Refusal::of_arguments(reason).into()
    }
}

impl AggregateUDFImpl for Totals {
    fn name(&self) -> &str {
        match self.finish {
            Finish::Sum => "sum",
            Finish::Avg => "avg",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        match arguments {
            [one] => Ok(vec![self.added_as(one)?]),
            _ => {
                let reason = format!("{} takes one argument", self.name().to_uppercase());
                Err(Refusal::of_arguments(reason).into())
            }
        }
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.finish, arguments) {
            (Finish::Sum, [DataType::UInt64]) => Ok(DataType::Decimal128(STATE_DIGITS, 0)),
            (Finish::Avg, [DataType::Int64 | DataType::UInt64]) => Ok(DataType::Float64),
            _ => self.engines.return_type(arguments),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let Some(task) = self.task(&args) else { return self.engines.accumulator(args) };
        if args.is_distinct {
            let input = args.expr_fields[0].data_type().clone();
            let (times, total) = (HashMap::new(), Total::default());
            return Ok(Box::new(Distinct { task, times, total, input }));
        }
        Ok(Box::new(One { task, total: Total::default() }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.task(&args) {
            Some(_) => self.accumulator(args),
            None => self.engines.create_sliding_accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let input = args.input_fields[0].data_type().clone();
        let Some(exact) = Exact::of(&input) else { return self.engines.state_fields(args) };
        let field = |name: &str, data_type: DataType| -> FieldRef {
            Arc::new(Field::new(format_state_name(args.name, name), data_type, true))
        };
        if args.is_distinct {
            let values = Field::new_list_field(input, true);
            return Ok(vec![field("distinct", DataType::List(Arc::new(values)))]);
        }
        let mut fields = Vec::with_capacity(3);
        if self.finish == Finish::Avg {
            fields.push(field("count", DataType::UInt64));
        }
        fields.push(field("sum", DataType::Decimal128(STATE_DIGITS, exact.scale())));
        if exact.has_carry() {
            fields.push(field("carry", DataType::Int64));
        }
        Ok(fields)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match self.task(&args) {
            Some(_) => !args.is_distinct,
            None => self.engines.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match self.task(&args) {
            Some(task) => Ok(Box::new(Groups::new(task))),
            None => self.engines.create_groups_accumulator(args),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}
