//! What a worker of a cluster does: it scans a unit, and runs a fragment over it.

use std::ops::Range;
use std::sync::Arc;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use quarrier::Named;

use super::{Answer, Engine, answer};
use crate::files::{self, UnitContent, UnitScan, within};
use crate::net::caught;
use crate::plan::named_files;
use crate::rows::Rows;
use crate::{Error, Result};

impl Engine {
    /// The scan of what a file has in a range of its bytes; `0..u64::MAX` is all of it. `shown` is the value of the
    /// column with its name.
    ///
    /// # Errors
    /// The file cannot be read, or has other columns.
    pub async fn unit(
        &self,
        (named, shown): (&Named, &str),
        range: &Range<u64>,
        scan: &UnitScan,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        caught(async {
            if !scan.is_valid() {
                return Err(Error::text("the plan has a column that the table lacks"));
            }
            let table =
                files::unit_of(&self.context, (named, shown), (range, scan), &self.opening).await?;
            if table.schema() != scan.table {
                return Err(Error::table(shown, "has other columns now; run the statement again"));
            }
            let columns = scan.columns_of_file();
            let state = self.context.state();
            let plan = table.scan(&state, Some(&columns), &[], scan.limit).await?;
            let plan = match scan.content {
                UnitContent::RowGroups => within(plan, range)?,
                UnitContent::Messages(_) | UnitContent::Description(_) => plan,
            };
            Ok(scan.with_name(plan, shown)?)
        })
        .await
    }

    /// Begins to run a plan.
    ///
    /// # Errors
    /// The plan cannot be run.
    pub async fn run_plan(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Rows> {
        caught(async {
            let state = self.context.state();
            let options = state.config_options();
            // With the conditions, the scan skips row groups.
            let plan = FilterPushdown::new().optimize(plan, options)?;
            let plan = named_files(plan)?;
            match answer::direct(&self.context, plan)? {
                Answer::Rows(rows) => Ok(rows),
                Answer::Copy { .. } => Err(Error::text("a plan of a unit writes no file")),
            }
        })
        .await
    }
}
