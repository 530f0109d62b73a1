//! The memory pool of statements: operators that can spill do so early enough that others find
//! room.

use std::fmt;
use std::sync::Mutex;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use quarrier_core::sync::lock;

/// Maximum number of bytes that spilling consumers leave free, for the merges of sorted or spilled rows,
/// joins and functions. They leave half of the free memory if that is less.
const KEPT_BYTES_MAX: usize = 256 << 20;

/// Consumers with few, short-lived buffers, which do not reduce the shares of others.
const LIGHT: &str = "RepartitionExec";

/// Consumers that cannot spill, but do with less: the merge of a sort's spilled runs reads as many at once
/// as it gets memory for. One that got all the rest would let the merges of other partitions fail.
const MERGES: &str = "ExternalSorterMerge";

/// A memory limit for all statements together. Consumers that cannot spill take what they need, but the
/// merges of spilled runs share one half evenly; those that can spill share the rest evenly, minus a reserve.
#[derive(Debug)]
pub(super) struct Pool {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of consumers that can spill, without the light ones.
    spillers: usize,
    /// Bytes held by consumers that can spill.
    spillable: usize,
    /// Bytes held by consumers that cannot spill.
    held: usize,
    /// The number of merges of spilled runs.
    merges: usize,
}

impl Pool {
    pub(super) fn new(bytes_max: usize) -> Self {
        Pool { bytes_max, state: Mutex::default() }
    }

    /// Maximum number of bytes for each spilling consumer.
    fn share(&self, state: &State) -> usize {
        let free = self.bytes_max.saturating_sub(state.held);
        let shared = free - (free / 2).min(KEPT_BYTES_MAX);
        shared / state.spillers.max(1)
    }

    fn refused(&self, who: &MemoryReservation, more: usize, available: usize) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!(
            "{} needs {} more than its {}, and {} of {} are left for it",
            who.consumer().name(),
            human_readable_size(more),
            human_readable_size(who.size()),
            human_readable_size(available),
            human_readable_size(self.bytes_max),
        ))
    }
}

fn is_merge(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with(MERGES)
}

fn is_counted(consumer: &MemoryConsumer) -> bool {
    consumer.can_spill() && !consumer.name().starts_with(LIGHT)
}

impl MemoryPool for Pool {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let mut state = lock(&self.state);
        state.spillers += usize::from(is_counted(consumer));
        state.merges += usize::from(is_merge(consumer));
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        let mut state = lock(&self.state);
        state.spillers = state.spillers.saturating_sub(is_counted(consumer).into());
        state.merges = state.merges.saturating_sub(is_merge(consumer).into());
    }

    fn grow(&self, who: &MemoryReservation, more: usize) {
        let mut state = lock(&self.state);
        match who.consumer().can_spill() {
            true => state.spillable = state.spillable.saturating_add(more),
            false => state.held = state.held.saturating_add(more),
        }
    }

    fn shrink(&self, who: &MemoryReservation, less: usize) {
        let mut state = lock(&self.state);
        match who.consumer().can_spill() {
            true => state.spillable = state.spillable.saturating_sub(less),
            false => state.held = state.held.saturating_sub(less),
        }
    }

    fn try_grow(&self, who: &MemoryReservation, more: usize) -> Result<()> {
        let mut state = lock(&self.state);
        if who.consumer().can_spill() {
            let available = self.share(&state).saturating_sub(who.size());
            if more > available {
                return Err(self.refused(who, more, available));
            }
            state.spillable += more;
        } else {
            let free = self.bytes_max.saturating_sub(state.held + state.spillable);
            let available = match is_merge(who.consumer()) {
                true => {
                    free.min((self.bytes_max / 2 / state.merges.max(1)).saturating_sub(who.size()))
                }
                false => free,
            };
            if more > available {
                return Err(self.refused(who, more, available));
            }
            state.held += more;
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        let state = lock(&self.state);
        state.spillable + state.held
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes_max)
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name(), human_readable_size(self.bytes_max))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn spilling_consumers_leave_room_for_others() {
        let pool: Arc<dyn MemoryPool> = Arc::new(Pool::new(1_000));
        let spills = |name: &str| MemoryConsumer::new(name).with_can_spill(true).register(&pool);
        let (one, other) = (spills("one"), spills("other"));
        let light = spills("RepartitionExec[0]");
        assert!(one.try_grow(251).is_err());
        one.try_grow(250).unwrap();
        other.try_grow(250).unwrap();
        assert!(light.try_grow(501).is_err());
        let holds = MemoryConsumer::new("holds").register(&pool);
        let said = holds.try_grow(501).unwrap_err().to_string();
        assert!(said.contains("501.0 B more") && said.contains("500.0 B of 1000.0 B"), "{said}");
        holds.try_grow(500).unwrap();
        assert_eq!(pool.reserved(), 1_000);
        drop((one, other, light, holds));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn merges_of_spilled_runs_leave_room_for_each_other() {
        let pool: Arc<dyn MemoryPool> = Arc::new(Pool::new(1_000));
        let merge = |name: &str| MemoryConsumer::new(name).register(&pool);
        let (one, other) = (merge("ExternalSorterMerge[0]"), merge("ExternalSorterMerge[1]"));
        one.try_grow(200).unwrap();
        let said = one.try_grow(51).unwrap_err().to_string();
        assert!(said.contains("50.0 B of 1000.0 B"), "{said}");
        other.try_grow(250).unwrap();
        drop(other);
        one.try_grow(300).unwrap();
        assert!(one.try_grow(1).is_err());
    }
}
