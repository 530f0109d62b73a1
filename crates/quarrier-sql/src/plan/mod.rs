//! What is done to plans.

mod counts;

mod groups;

mod keys;

mod lineage;

mod memberships;
pub(crate) use memberships::Memberships;

mod misled;

mod multisets;
pub(crate) use multisets::Multisets;

mod no_groups;

mod one_distinct;

mod rule;

mod strict;
pub(crate) use strict::StrictKinds;

mod top_rows;
pub(crate) use top_rows::TOP_ROWS_MAX;

mod whole_orders;

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;

use no_groups::NoGroups;
use one_distinct::OneDistinct;
use rule::Rule;

/// The rules for plans as they are written, in their order.
pub(crate) fn logical_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let ours: [Arc<dyn OptimizerRule + Send + Sync>; 2] =
        [Arc::<OneDistinct>::default(), Arc::<NoGroups>::default()];
    let mut rules = Optimizer::new().rules;
    for rule in &mut rules {
        // Ours are called as those that they hold.
        if let Some(instead) = ours.iter().find(|one| one.name() == rule.name()) {
            *rule = Arc::clone(instead);
        }
    }
    rules
}

/// The rules for plans as they run, in their order.
pub(crate) fn physical_rules() -> [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 6] {
    [
        Rule::new("whole_orders", whole_orders::instead),
        Rule::new("top_rows", top_rows::instead),
        Rule::new("counts", counts::instead),
        Rule::new("groups", groups::instead),
        Arc::new(misled::Misled),
        Rule::new("keys", keys::instead),
    ]
}
