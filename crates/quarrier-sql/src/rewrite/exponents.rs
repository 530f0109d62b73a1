//! Numbers with an exponent are floats. DataFusion would make `1.5e0` exact, and refuse `1.5e300`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Value, VisitorMut,
};

use super::walk::{Flow, Stop};

/// Replaces such a number by a cast of its digits to DOUBLE.
pub(super) struct Exponents;

impl VisitorMut for Exponents {
    type Break = Stop;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let Expr::Value(written) = &*expr else { return ControlFlow::Continue(()) };
        let Value::Number(digits, _) = &written.value else { return ControlFlow::Continue(()) };
        if !digits.contains(['e', 'E']) {
            return ControlFlow::Continue(());
        }
        if !digits.parse().is_ok_and(|number: f64| number.is_finite()) {
            let refused = super::refused(format!("the number {digits} is too large"));
            return ControlFlow::Break(Some(Box::new(refused)));
        }
        let digits = Value::SingleQuotedString(digits.clone());
        *expr = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(Expr::Value(digits.into())),
            data_type: DataType::Double(ExactNumberInfo::None),
            array: false,
            format: None,
        };
        ControlFlow::Continue(())
    }
}
