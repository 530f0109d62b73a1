//! Rules for logical and physical plans.

mod bounds;
pub(crate) use bounds::Bounds;

mod conversions;
pub(crate) use conversions::Conversions;

mod correlated;
pub(crate) use correlated::Correlated;

mod counts;

mod dated;

mod except;

mod files;

mod groups;

mod in_lists;

mod keys;

mod lineage;

mod memberships;
pub(crate) use memberships::Memberships;

mod misrouted;

mod multisets;
pub(crate) use multisets::Multisets;

mod no_groups;

mod null_keys;

mod numbers;
pub(crate) use numbers::Numbers;

mod orders;

mod one_distinct;

mod rule;

mod spread;
pub(crate) use spread::Spreads;

mod strict;
pub(crate) use strict::StrictKinds;

mod time_units;
pub(crate) use time_units::TimeUnits;

mod top_rows;
pub(crate) use top_rows::TOP_ROWS_MAX;

mod whole_orders;

mod windows;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use except::Except;
use rule::Rule;

type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;

/// Adds the name of its file to the errors of each scan of a file.
pub(crate) fn named_files(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    files::Files.optimize(plan, &ConfigOptions::default())
}

/// The rules for logical plans, in order.
pub(crate) fn logical_rules() -> Vec<LogicalRule> {
    let kept = |rule: LogicalRule| -> LogicalRule {
        match rule.name() {
            "simplify_expressions" => {
                Arc::new(in_lists::InLists(Arc::new(bounds::Constants(rule))))
            }
            "push_down_filter" => Except::new(rule, no_groups::is_filtered),
            "extract_equijoin_predicate" => Except::new(rule, null_keys::has_conditions),
            "eliminate_cross_join" => Except::new(rule, null_keys::are_joined),
            "single_distinct_aggregation_to_group_by" => {
                Except::new(rule, one_distinct::sums_exactly)
            }
            _ => rule,
        }
    };
    Optimizer::new().rules.into_iter().map(kept).collect()
}

/// The rules for physical plans, in order.
pub(crate) fn physical_rules() -> [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 8] {
    [
        Rule::new("whole_orders", whole_orders::instead),
        Rule::new("top_rows", top_rows::instead),
        Rule::new("counts", counts::instead),
        Rule::new("groups", groups::instead),
        Arc::new(misrouted::MisroutedDynamicFilters),
        Rule::new("keys", keys::instead),
        Arc::new(files::Files),
        Arc::new(windows::Windows),
    ]
}
