//! Living blocks of memory outside of the heap, by the context that allocated them, in counters of the log: the log of a killed
//! JVM has them too.
//!
//! ```text
//! allocation ─► site (context, kind): number, bytes, age ─► its two counters
//!          └──► table: address ─► site, place in the site's order, bytes
//! release    ─► table: address ─► site: one block less             in any thread
//! ```
//!
//! The table has a fixed number of entries. A block without room counts as unlisted: it never lives here. Memory that is released
//! where the agent sees nothing stays in the table until its address is allocated again.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use lucce_callgraph::ContextId;
use lucce_instrument::kinds::{LIVING_BLOCKS, OLDEST_BLOCKS};
use lucce_tracelog::{CounterBlock, EventCounter, EventTypeId, TotalCounter};
use rustc_hash::FxHashMap;

use crate::counting::CountingParts;
use crate::counting::block_order::{BlockOrder, BlockPlace};
use crate::memory::locks::{WatchedMutex, WatchedRwLock};
use crate::thread::alive_counters::milliseconds_now;
use crate::thread::event_kind::EventKind;
use crate::thread::shared_counters::SharedCounters;

const SHARDS: usize = 64;
/// Maximum number of blocks in a shard: a million in all.
const MAX_BLOCKS: usize = (1 << 20) / SHARDS;

/// Names of the totals in the log, in the order of [`TotalKind`].
const TOTALS: [&str; 4] = [
    "native.unlisted",
    "native.unlisted_bytes",
    "native.no_context",
    "native.no_context_bytes",
];

/// Why a block does not live in the table. The value is the index of its totals.
#[derive(Clone, Copy)]
enum TotalKind {
    /// The table or the log has no room.
    Unlisted = 0,
    /// No Java frame, or the frame is unknown.
    NoContext = 2,
}

/// Memory outside of the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBlock {
    pub address: usize,
    pub bytes: u64,
}

/// Maximum number of counters: two for each context and kind.
const MAX_COUNTERS: usize = 1 << 16;

/// The living blocks, once they are recorded.
#[derive(Default)]
pub struct LivingBlocks(OnceLock<BlockTable>);

struct BlockTable {
    sites: WatchedRwLock<FxHashMap<BlockSource, Option<Arc<BlockSite>>>>,
    counters: WatchedMutex<SharedCounters>,
    shards: Vec<WatchedMutex<BlockShard>>,
    totals: Option<CounterBlock<TotalCounter>>,
    /// When recording started, also in milliseconds since 1970.
    start: (Instant, u64),
    /// The time of the last allocation.
    clock: WatchedMutex<Option<&'static EventCounter>>,
}

#[derive(Default)]
struct BlockShard {
    blocks: FxHashMap<usize, LivingBlock>,
}

/// A context and the address of its kind of events.
type BlockSource = (ContextId, usize);

struct LivingBlock {
    site: Arc<BlockSite>,
    place: BlockPlace,
    bytes: u64,
}

/// The blocks of one context and kind.
struct BlockSite {
    living: &'static EventCounter,
    oldest: &'static EventCounter,
    blocks: WatchedMutex<SiteBlocks>,
}

#[derive(Default)]
struct SiteBlocks {
    order: BlockOrder,
    bytes: u64,
}

/// A released block, which [`LivingBlocks::restore_block`] takes if the release failed.
pub struct ReleasedBlock {
    address: usize,
    block: LivingBlock,
    born: u64,
}

impl LivingBlocks {
    /// Records blocks from now on.
    pub fn start_recording(&self, agent: CountingParts<'_>) {
        let _ = self.0.set(BlockTable {
            sites: WatchedRwLock::default(),
            counters: WatchedMutex::new(SharedCounters::with_capacity(MAX_COUNTERS)),
            shards: (0..SHARDS).map(|_| WatchedMutex::default()).collect(),
            totals: agent.core.log.add_totals(&TOTALS).ok(),
            start: (Instant::now(), milliseconds_now()),
            clock: WatchedMutex::new(None),
        });
    }

    /// A block was allocated in this context. `None`: the context is unknown.
    pub fn add_block(
        &self,
        agent: CountingParts<'_>,
        (context, kind): (Option<ContextId>, &'static EventKind),
        block: MemoryBlock,
    ) {
        let Some(table) = self.0.get() else { return };
        // The earlier block at this address was released where the agent saw nothing.
        self.remove_block(block.address);
        match context {
            None => table.add_total(TotalKind::NoContext, block.bytes),
            Some(context) => {
                if table.add_block(agent, (context, kind), block).is_none() {
                    table.add_total(TotalKind::Unlisted, block.bytes);
                }
            }
        }
    }

    /// A block was allocated, and is released already: another block may have its address.
    pub fn count_released(&self, context: Option<ContextId>, bytes: u64) {
        if let (Some(table), None) = (self.0.get(), context) {
            table.add_total(TotalKind::NoContext, bytes);
        }
    }

    /// The block at this address is about to be released. `None`: it is not in the table.
    pub fn remove_block(&self, address: usize) -> Option<ReleasedBlock> {
        let table = self.0.get()?;
        let block = table.shard(address)?.lock().blocks.remove(&address)?;
        let born = block.site.remove_block(&block);
        Some(ReleasedBlock {
            address,
            block,
            born,
        })
    }

    /// The block was not released after all, or only its first `without` bytes were.
    pub fn restore_block(&self, released: ReleasedBlock, without: u64) {
        let ReleasedBlock {
            address,
            block,
            born,
        } = released;
        let bytes = block.bytes.saturating_sub(without);
        let address = address.saturating_add(without as usize);
        if let (Some(table), 1..) = (self.0.get(), bytes) {
            table.insert_block(block.site, MemoryBlock { address, bytes }, born);
        }
    }
}

impl BlockTable {
    fn shard(&self, address: usize) -> Option<&WatchedMutex<BlockShard>> {
        // Blocks begin at multiples of 16.
        let hash = (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize);
        self.shards.get(hash >> (usize::BITS - SHARDS.ilog2()))
    }

    /// `None`: there is no room.
    fn add_block(
        &self,
        agent: CountingParts<'_>,
        source: (ContextId, &'static EventKind),
        block: MemoryBlock,
    ) -> Option<()> {
        if self.shard(block.address)?.lock().blocks.len() >= MAX_BLOCKS {
            return None;
        }
        let site = self.find_or_add_site(agent, source)?;
        // By a clock that never goes back.
        let now = self.start.1 + self.start.0.elapsed().as_millis() as u64;
        self.set_clock(agent, source.0, now);
        self.insert_block(site, block, now);
        Some(())
    }

    fn insert_block(&self, site: Arc<BlockSite>, block: MemoryBlock, born: u64) {
        let place = site.add_block(block.bytes, born);
        let living = LivingBlock {
            site,
            place,
            bytes: block.bytes,
        };
        if let Some(shard) = self.shard(block.address) {
            let replaced = shard.lock().blocks.insert(block.address, living);
            if let Some(replaced) = replaced {
                replaced.site.remove_block(&replaced);
            }
        }
    }

    fn find_or_add_site(
        &self,
        agent: CountingParts<'_>,
        (context, kind): (ContextId, &'static EventKind),
    ) -> Option<Arc<BlockSite>> {
        let key = (context, std::ptr::from_ref(kind).addr());
        if let Some(known) = self.sites.read().get(&key) {
            return known.clone();
        }
        let detail = format!("({})", kind.how);
        let find_type = |of: &lucce_instrument::kinds::KindDescriptor| {
            agent.find_or_add_event_type(of.name, of.unit, &detail)
        };
        let types = find_type(&LIVING_BLOCKS).zip(find_type(&OLDEST_BLOCKS));
        let new_site = |(living, oldest): (EventTypeId, EventTypeId)| {
            let mut counters = self.counters.lock();
            Some(Arc::new(BlockSite {
                living: counters.new_counter(agent.core, context, living)?,
                oldest: counters.new_counter(agent.core, context, oldest)?,
                blocks: WatchedMutex::default(),
            }))
        };
        let mut sites = self.sites.write();
        let site = sites.entry(key).or_insert_with(|| types.and_then(new_site));
        site.clone()
    }

    fn set_clock(&self, agent: CountingParts<'_>, context: ContextId, now: u64) {
        let mut clock = self.clock.lock();
        if clock.is_none() {
            let name = OLDEST_BLOCKS.name;
            let event = agent.find_or_add_event_type(name, OLDEST_BLOCKS.unit, "(clock)");
            let mut counters = self.counters.lock();
            *clock = event.and_then(|event| counters.new_counter(agent.core, context, event));
        }
        if let Some(clock) = *clock {
            set_counter(clock, 1, now);
        }
    }

    fn add_total(&self, kind: TotalKind, bytes: u64) {
        let Some(totals) = &self.totals else { return };
        let index = kind as usize;
        for (total, more) in [(index, 1), (index + 1, bytes)] {
            if let Some(total) = totals.get(total) {
                total.add(more);
            }
        }
    }
}

impl BlockSite {
    fn add_block(&self, bytes: u64, born: u64) -> BlockPlace {
        let mut blocks = self.blocks.lock();
        blocks.bytes = blocks.bytes.saturating_add(bytes);
        let place = blocks.order.add_block(born);
        self.publish_counts(&blocks);
        place
    }

    /// Returns when the block was allocated.
    fn remove_block(&self, block: &LivingBlock) -> u64 {
        let mut blocks = self.blocks.lock();
        blocks.bytes = blocks.bytes.saturating_sub(block.bytes);
        let born = blocks.order.remove_block(block.place);
        self.publish_counts(&blocks);
        born
    }

    /// Only the thread that holds the lock may call this.
    fn publish_counts(&self, blocks: &SiteBlocks) {
        set_counter(self.living, blocks.order.len() as u64, blocks.bytes);
        let oldest = blocks.order.oldest();
        set_counter(
            self.oldest,
            u64::from(oldest.is_some()),
            oldest.unwrap_or_default(),
        );
    }
}

fn set_counter(counter: &EventCounter, count: u64, value: u64) {
    // Relaxed: the numbers do not depend on each other.
    counter.value.store(value.to_le(), Ordering::Relaxed);
    counter.count.store(count.to_le(), Ordering::Relaxed);
}
