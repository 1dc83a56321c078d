//! Who waits for whom: the contexts that wait for locks, each with the context that held the lock when the wait began.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use lucce_callgraph::{ContextId, DecodeError};
use lucce_contentid::StackId;
use lucce_options::kinds::LOCK_WAITS;

use crate::profile::{Profile, StackTrace};

/// Classes of the JDK whose objects have an owner while they are locked.
const OWNED_LOCKS: [&str; 5] = [
    "java.util.concurrent.locks.ReentrantLock$NonfairSync",
    "java.util.concurrent.locks.ReentrantLock$FairSync",
    "java.util.concurrent.locks.ReentrantReadWriteLock$NonfairSync",
    "java.util.concurrent.locks.ReentrantReadWriteLock$FairSync",
    "java.util.concurrent.ThreadPoolExecutor$Worker",
];
/// The ends of details of waits, in brackets.
const ENTER: &str = " (enter)";
const PARK: &str = " (park)";

/// Waits of one context for one context that held the lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockPair {
    /// The class of the lock.
    pub lock: String,
    pub waiting: StackTrace,
    pub holder: StackTrace,
    pub waits: u64,
    /// Nanoseconds from the begin of each wait until the holder released the lock.
    pub held_ns: u64,
}

/// All waits for locks with an owner: monitors, and locks of `java.util.concurrent`.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct LockPairs {
    /// The longest time first.
    pub pairs: Vec<LockPair>,
    /// Number and nanoseconds of all waits that have ended.
    pub waits: u64,
    pub waited_ns: u64,
    /// Number of waits whose holder is known. The others are unknown.
    pub known: u64,
}

impl LockPairs {
    /// Number of waits whose holder is unknown.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.waits.saturating_sub(self.known)
    }

    /// The holder of locks of this class for which others waited longest.
    #[must_use]
    pub fn main_holder(&self, lock: &str) -> Option<&LockPair> {
        self.pairs.iter().find(|pair| pair.lock == lock)
    }
}

/// Lists who waits for whom in a run with `events=lock`.
///
/// # Errors
/// The log does not explain a context.
pub fn list_lock_pairs(profile: &Profile) -> Result<LockPairs, DecodeError> {
    let mut pairs: BTreeMap<(String, StackId, StackId), LockPair> = BTreeMap::new();
    let mut owned: BTreeSet<&str> = OWNED_LOCKS.into();
    let mut known = 0_u64;
    for counter in profile.lock_holders.as_slice() {
        let Some(info) = profile.types.get(counter.event) else {
            continue;
        };
        known = known.saturating_add(counter.count);
        let detail = info.detail.as_deref().unwrap_or_default();
        let lock = detail.strip_suffix(PARK).inspect(|lock| {
            owned.insert(lock);
        });
        let lock = lock.or(detail.strip_suffix(ENTER)).unwrap_or(detail);
        let waiting = decode_trace(profile, info.waiting)?;
        let holder = decode_trace(profile, Some(counter.id))?;
        let key = (lock.to_owned(), waiting.stack, holder.stack);
        let pair = pairs.entry(key).or_insert_with(|| LockPair {
            lock: lock.to_owned(),
            waiting,
            holder,
            waits: 0,
            held_ns: 0,
        });
        pair.waits = pair.waits.saturating_add(counter.count);
        pair.held_ns = pair.held_ns.saturating_add(counter.value);
    }
    let mut pairs: Vec<_> = pairs.into_values().collect();
    pairs.sort_by_key(|pair| (Reverse((pair.held_ns, pair.waits)), pair.holder.id));
    let (waits, waited_ns) = sum_waits(profile, &owned);
    Ok(LockPairs {
        pairs,
        waits: waits.max(known),
        waited_ns,
        known,
    })
}

/// A context without an id has no frames: the log had no room for its type.
fn decode_trace(profile: &Profile, id: Option<ContextId>) -> Result<StackTrace, DecodeError> {
    match id {
        Some(id) => profile.decode_trace(id),
        None => Ok(StackTrace {
            id: ContextId::UNKNOWN,
            stack: StackId::EMPTY,
            allocated: None,
            frames: Vec::new(),
        }),
    }
}

/// Number and nanoseconds of waits for monitors, and for locks of these classes.
fn sum_waits(profile: &Profile, owned: &BTreeSet<&str>) -> (u64, u64) {
    let waits = profile.events.as_slice().iter().filter(|counter| {
        let info = profile.types.get(counter.event);
        info.is_some_and(|info| {
            let detail = info.detail.as_deref().unwrap_or_default();
            let parked = detail.strip_suffix(PARK);
            LOCK_WAITS.is_kind(&info.kind)
                && (detail.ends_with(ENTER) || parked.is_some_and(|lock| owned.contains(lock)))
        })
    });
    waits.fold((0, 0), |(count, value), counter| {
        let count: u64 = count;
        let value: u64 = value;
        (
            count.saturating_add(counter.count),
            value.saturating_add(counter.value),
        )
    })
}
