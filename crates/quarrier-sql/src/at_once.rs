//! Table providers that plan their scans synchronously.

/// Implements `scan` within `impl TableProvider` for a type with a method `plan` of the same
/// arguments. The method is what `async_trait` would generate, except that the future captures no
/// argument. If the future captured expressions, the compiler would have to prove for each `scan`,
/// through all types of SQL's syntax, that they are `Send`, which takes three and a half seconds.
macro_rules! scan_at_once {
    () => {
        fn scan<'table, 'session, 'columns, 'filters, 'scan>(
            &'table self,
            state: &'session dyn datafusion::catalog::Session,
            projection: Option<&'columns Vec<usize>>,
            filters: &'filters [datafusion::logical_expr::Expr],
            limit: Option<usize>,
        ) -> futures::future::BoxFuture<
            'scan,
            datafusion::common::Result<
                std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>,
            >,
        >
        where
            'table: 'scan,
            'session: 'scan,
            'columns: 'scan,
            'filters: 'scan,
        {
            Box::pin(std::future::ready(self.plan(state, projection, filters, limit)))
        }
    };
}

pub(crate) use scan_at_once;
