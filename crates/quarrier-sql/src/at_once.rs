//! Table providers whose scans are planned without awaiting anything.

/// Within `impl TableProvider`, for a type with a method `plan` of the same arguments: `scan`, as
/// `async_trait` would write it around that method, except that the future holds no argument. For a
/// future that holds expressions, the compiler proves that they may move to another thread, each time
/// through all types of SQL's syntax: three and a half seconds for each `scan`.
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
