//! The configuration of the DataFusion session.

use std::sync::Arc;

use datafusion::common::config::ConfigNonZeroUsize;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::optimizer::Analyzer;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::Options;
use super::names::Names;
use super::pool::Pool;
use crate::Result;
use crate::ceiling::Ceiling;
use crate::function::Notes;
use crate::plan::{
    Bounds, Conversions, Correlated, Memberships, Multisets, Numbers, Spreads, StrictKinds,
    TimeUnits, logical_rules, physical_rules,
};

/// The sorts of a plan together reserve one part in this many of the memory.
const SPILL_SHARE: usize = 8;

/// Memory limit per partition: each sort, join and group needs some for itself.
const PARTITION_BYTES_MIN: usize = 32 << 20;

/// Memory limit per 1,024 rows of batch size: a merge holds a batch of each of its dozens of
/// streams.
const KILOROW_BYTES: usize = 128 << 20;

/// Rows per batch for a memory limit in bytes.
fn batch_rows(bytes: usize) -> usize {
    const ROWS: usize = 1 << 10;
    (bytes / KILOROW_BYTES).clamp(1, 8) * ROWS
}

pub(super) fn context(
    options: &Options,
    names: &Arc<Names>,
    notes: &Notes,
) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_target_partitions(options.workers)
        .with_information_schema(true)
        .with_extension(Arc::new(Ceiling::of(&options.machine)));
    let settings = config.options_mut();
    // `rewrite` resolves the spelling of names.
    settings.sql_parser.enable_ident_normalization = false;
    // As in SQL-92, 1.5 is exact and 1.5e0 is approximate.
    settings.sql_parser.parse_float_as_decimal = true;
    // Above some joins, DataFusion derives an aggregate that is never NULL as nullable. That only
    // makes this check refuse the plan.
    settings.execution.skip_physical_aggregate_schema_check = true;
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = options.memory_bytes_max {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Each sort reserves this memory for merging spilled rows. DataFusion's default would
        // exceed a small limit, and fail.
        let partitions = (bytes / PARTITION_BYTES_MIN).clamp(1, options.workers);
        let kept = bytes / SPILL_SHARE / partitions;
        let execution = &mut settings.execution;
        execution.target_partitions = partitions;
        // A repartition waits for itself forever if two of its spill files are open
        // (https://github.com/apache/datafusion/issues/24883), so each batch gets a file of its own.
        execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1)?;
        execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(kept);
        runtime = runtime.with_memory_pool(Arc::new(Pool::new(bytes)));
        let rows = batch_rows(bytes).min(config.batch_size());
        config = config.with_batch_size(rows);
    }
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(StrictKinds));
    rules.insert(1, Arc::new(Numbers));
    rules.insert(2, Arc::new(Multisets));
    rules.insert(3, Arc::new(Memberships));
    rules.insert(4, Arc::new(TimeUnits));
    rules.insert(5, Arc::new(Correlated));
    rules.push(Arc::new(Conversions));
    let runtime = runtime.build_arc()?;
    let mut optimizers = logical_rules();
    optimizers.push(Arc::new(Bounds::new(&runtime.memory_pool)));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_analyzer_rules(rules)
        .with_optimizer_rules(optimizers);
    for rule in physical_rules() {
        state = state.with_physical_optimizer_rule(rule);
    }
    if let Some(spread) = &options.spread {
        let rule = Spreads { spread: spread.clone(), notes: notes.clone() };
        state = state.with_physical_optimizer_rule(Arc::new(rule));
    }
    let context = SessionContext::new_with_state(state.build());
    let catalog = context.catalog("datafusion").ok_or_else(|| crate::Error::Setup {
        reason: "there is no catalog to put tables in".to_string(),
    })?;
    catalog.register_schema("public", Arc::clone(names) as _)?;
    Ok(context)
}
