//! The memory of a question, and the end of one that has none.
//!
//! A join by equal columns holds one side whole. If that has no room the plan is lost: what the pool refuses to a join is kept, and
//! who asks ends with that, whatever else of the plan goes on, and makes another plan (`engine.rs`). Joins count more than they hold: parts
//! of one array each count all of it.
//!
//! What hands rows from some threads to others (`RepartitionExec`) holds few of them, and writes files where it is refused. DataFusion 54.1
//! may wait for itself then, without an end (in a third of the tries, with a dataset of a thousand runs and a join that had nearly no
//! room). So it gets a little more than there is.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, TrackConsumersPool,
};
use tokio::sync::SetOnce;

/// How DataFusion names what a join holds.
const HELD: &str = "HashJoinInput";
/// How DataFusion names what hands rows over.
const HANDED: &str = "RepartitionExec";
/// Of the pool, one part of so many is what such rows may take beyond it.
const BEYOND: usize = 8;

/// What a join was refused first, which it cannot do without: for the one that asks.
pub type JoinRefusal = SetOnce<String>;

/// DataFusion's pool, and what it refuses to joins.
#[derive(Debug)]
pub struct QueryMemoryPool {
    inner: TrackConsumersPool<FairSpillPool>,
    bytes: usize,
    refused: Arc<JoinRefusal>,
}

impl QueryMemoryPool {
    /// A pool of so many bytes.
    pub fn new(bytes: usize, refused: Arc<JoinRefusal>) -> QueryMemoryPool {
        let most = std::num::NonZeroUsize::MIN;
        QueryMemoryPool {
            inner: TrackConsumersPool::new(FairSpillPool::new(bytes), most),
            bytes,
            refused,
        }
    }
}

impl fmt::Display for QueryMemoryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl MemoryPool for QueryMemoryPool {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.inner.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.inner.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.inner.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.inner.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let Err(error) = self.inner.try_grow(reservation, additional) else {
            return Ok(());
        };
        let name = reservation.consumer().name();
        if name.starts_with(HANDED)
            && self.reserved().saturating_add(additional) <= self.bytes + self.bytes / BEYOND
        {
            self.inner.grow(reservation, additional);
            return Ok(());
        }
        if name.starts_with(HELD) {
            // Others may have been refused before.
            let _ = self.refused.set(error.strip_backtrace());
        }
        Err(error)
    }

    fn reserved(&self) -> usize {
        self.inner.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.inner.memory_limit()
    }
}

#[cfg(test)]
mod memory_pool_tests {
    use super::*;

    /// A pool of a thousand bytes, and what it refuses.
    fn pool() -> (Arc<dyn MemoryPool>, Arc<JoinRefusal>) {
        let refused = Arc::new(JoinRefusal::new());
        (
            Arc::new(QueryMemoryPool::new(1000, Arc::clone(&refused))),
            refused,
        )
    }

    fn reservation(name: &str, pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
        MemoryConsumer::new(name).register(pool)
    }

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap()
    }

    #[test]
    fn what_a_join_is_refused_ends_who_waits() {
        let (pool, refused) = pool();
        let join = reservation("HashJoinInput[0]", &pool);
        join.try_grow(600).unwrap();
        let why = join.try_grow(600).unwrap_err().strip_backtrace();
        let reason = runtime().block_on(refused.wait());
        assert_eq!(*reason, why);
        assert!(why.contains("HashJoinInput[0]"), "{why}");
    }

    #[test]
    fn others_that_are_refused_go_on() {
        let (pool, refused) = pool();
        let sort = reservation("ExternalSorter[0]", &pool);
        sort.try_grow(2000).unwrap_err();
        let waited = runtime().block_on(async {
            let time = std::time::Duration::from_millis(10);
            tokio::time::timeout(time, refused.wait()).await
        });
        assert!(waited.is_err());
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn rows_that_are_handed_over_have_a_little_more() {
        let (pool, _) = pool();
        let join = reservation("HashJoinInput[0]", &pool);
        join.try_grow(1000).unwrap();
        let handed = MemoryConsumer::new("RepartitionExec[1]").with_can_spill(true);
        let handed = handed.register(&pool);
        handed.try_grow(100).unwrap();
        handed.try_grow(26).unwrap_err();
        handed.try_grow(25).unwrap();
        assert_eq!(pool.reserved(), 1125);
        handed.shrink(125);
        join.shrink(1000);
        assert_eq!(pool.reserved(), 0);
    }
}
