//! The session: how the engine is set up.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::optimizer::Analyzer;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::Options;
use crate::Result;
use crate::ceiling::Ceiling;
use crate::plan::{
    Conversions, Correlated, Memberships, Multisets, Numbers, StrictKinds, TimeUnits,
    logical_rules, physical_rules,
};

/// All sorts of a plan together keep one part of so many back.
const SPILL_SHARE: usize = 8;

pub(super) fn context(options: &Options) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_target_partitions(options.workers)
        .with_information_schema(true)
        .with_extension(Arc::new(Ceiling::of(&options.machine)));
    let settings = config.options_mut();
    // Names are given their spelling by `rewrite`.
    settings.sql_parser.enable_ident_normalization = false;
    // 1.5 is exact, as SQL-92 has it; 1.5e0 is floating.
    settings.sql_parser.parse_float_as_decimal = true;
    // Above some joins it takes an aggregate that is never NULL for one that may be, which changes nothing
    // but whether the plan is refused.
    settings.execution.skip_physical_aggregate_schema_check = true;
    let mut runtime = RuntimeEnvBuilder::new();
    if let Some(bytes) = options.memory_bytes_max {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // What each sort keeps back for merging what it has spilled; the engine would keep more
        // than there is, and give up.
        let kept = bytes / SPILL_SHARE / options.workers;
        let execution = &mut settings.execution;
        execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(kept);
        runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
    }
    let mut rules = Analyzer::new().rules;
    rules.insert(0, Arc::new(StrictKinds));
    rules.insert(1, Arc::new(Numbers));
    rules.insert(2, Arc::new(Multisets));
    rules.insert(3, Arc::new(Memberships));
    rules.insert(4, Arc::new(TimeUnits));
    rules.insert(5, Arc::new(Correlated));
    rules.push(Arc::new(Conversions));
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime.build_arc()?)
        .with_default_features()
        .with_analyzer_rules(rules)
        .with_optimizer_rules(logical_rules());
    for rule in physical_rules() {
        state = state.with_physical_optimizer_rule(rule);
    }
    Ok(SessionContext::new_with_state(state.build()))
}
