//! Adds the file's name to errors that occur while a file is read. This rule runs after those that
//! look for file scans.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::ParquetSource;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::scan::{FileExec, FileName};

#[derive(Debug)]
pub(super) struct Files;

impl PhysicalOptimizerRule for Files {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let named = |plan: Arc<dyn ExecutionPlan>| {
            Ok(match name(&plan) {
                Some(name) => Transformed::yes(Arc::new(FileExec::new(plan, name)) as _),
                None => Transformed::no(plan),
            })
        };
        plan.transform_up(named).data()
    }

    fn name(&self) -> &'static str {
        "files"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The path or URL of a Parquet file; of several, the first.
fn name(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<str>> {
    let source = plan.downcast_ref::<DataSourceExec>()?;
    let (config, _) = source.downcast_to_file_source::<ParquetSource>()?;
    let file = config.file_groups.iter().flat_map(|group| group.files()).next()?;
    if let Some(FileName(name)) = file.extension::<FileName>() {
        return Some(Arc::clone(name));
    }
    Some(format!("/{}", file.object_meta.location).into())
}
