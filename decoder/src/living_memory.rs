//! Memory outside of the heap by the context that allocated it: what was allocated, what lives, and how old it is.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use lucce_callgraph::DecodeError;
use lucce_contentid::StackId;
use lucce_options::kinds::{LIVING_BLOCKS, NATIVE_MEMORY};
use serde::Serialize;

use crate::events::ContextCounter;
use crate::profile::{Profile, StackTrace};

/// Memory that one context allocated in one way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemorySource {
    pub allocation: StackTrace,
    /// The way, such as `(Unsafe)` or `(malloc)`.
    pub how: String,
    pub allocated: BlockSum,
    pub living: BlockSum,
    /// Milliseconds since the allocation of the oldest living block.
    pub oldest_ms: Option<u64>,
}

/// Blocks of memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct BlockSum {
    pub blocks: u64,
    pub bytes: u64,
}

impl BlockSum {
    #[must_use]
    pub fn plus(self, more: BlockSum) -> BlockSum {
        BlockSum {
            blocks: self.blocks.saturating_add(more.blocks),
            bytes: self.bytes.saturating_add(more.bytes),
        }
    }

    fn add(&mut self, blocks: u64, bytes: u64) {
        self.blocks = self.blocks.saturating_add(blocks);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// All memory outside of the heap.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LivingMemory {
    /// Sources with most living bytes first.
    pub rows: Vec<MemorySource>,
    /// Memory that threads without a Java frame allocated, or whose context is unknown.
    pub no_context: BlockSum,
    /// Blocks of which it is unknown whether they live: the agent had no room to follow them.
    pub unlisted: BlockSum,
}

/// Lists memory outside of the heap by context and kind. `None`: the run does not record which memory lives.
///
/// # Errors
/// The log does not explain a context.
pub fn list_living_memory(profile: &Profile) -> Result<Option<LivingMemory>, DecodeError> {
    if !profile.types.has_kind(NATIVE_MEMORY.name) {
        return Ok(None);
    }
    let mut rows: BTreeMap<(StackId, String), MemorySource> = BTreeMap::new();
    let mut add_row = |counter: &ContextCounter, change: &dyn Fn(&mut MemorySource)| {
        let detail = profile.types.get(counter.event);
        let how = detail.and_then(|info| info.detail.clone());
        let how = how.unwrap_or_default();
        let allocation = profile.decode_trace(counter.id)?;
        let row = rows
            .entry((allocation.stack, how.clone()))
            .or_insert_with(|| MemorySource {
                allocation,
                how,
                allocated: BlockSum::default(),
                living: BlockSum::default(),
                oldest_ms: None,
            });
        change(row);
        Ok(())
    };
    for counter in profile.events.as_slice() {
        if profile.types.is_of_kind(counter.event, NATIVE_MEMORY.name) {
            add_row(counter, &|row| {
                row.allocated.add(counter.count, counter.value);
            })?;
        }
    }
    let clocks: Vec<_> = profile
        .living_memory
        .iter()
        .filter(|counter| is_clock(profile, counter))
        .collect();
    let now = profile.end_ms(clocks.iter().map(|clock| clock.value));
    let living = profile.living_memory.iter();
    for counter in living.filter(|counter| counter.count > 0 && !is_clock(profile, counter)) {
        match profile.types.is_of_kind(counter.event, LIVING_BLOCKS.name) {
            true => add_row(counter, &|row| row.living.add(counter.count, counter.value))?,
            false => {
                let age = now.saturating_sub(counter.value);
                add_row(counter, &|row| {
                    row.oldest_ms = row.oldest_ms.max(Some(age));
                })?;
            }
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.sort_by_key(|row| {
        let amounts = (row.living.bytes, row.allocated.bytes);
        (Reverse(amounts), row.allocation.id)
    });
    let total = |key: &str| BlockSum {
        blocks: profile.stat_value(key),
        bytes: profile.stat_value(&format!("{key}_bytes")),
    };
    Ok(Some(LivingMemory {
        rows,
        no_context: total("native.no_context"),
        unlisted: total("native.unlisted"),
    }))
}

/// Whether the counter has the time of the last allocation.
fn is_clock(profile: &Profile, counter: &ContextCounter) -> bool {
    let info = profile.types.get(counter.event);
    info.is_some_and(|info| info.detail.as_deref() == Some("(clock)"))
}
