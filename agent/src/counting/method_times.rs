//! `events=time:METHODS`: counters of times, by powers of two.
//!
//! A time from 2^k to 2^(k+1) ns is counted as `time` with the detail `from 2^k`, so that the sums are exact and the details
//! are a histogram. Times that an exception ended have details of their own. `time-longest` has the longest time of a
//! thread in a context: its value is no sum.
//!
//! `events=alloc=sizes`: counters of array sizes, in the same way. The detail `2^k` is of arrays from 2^k to 2^(k+1) bytes.

use std::sync::atomic::{AtomicU32, Ordering};

use lucce_callgraph::ContextId;
use lucce_instrument::kinds::{ALLOCATION_SIZES, NAMED_TIME};
use lucce_jvmti::JniEnvironment;
use lucce_tracelog::EventTypeId;

use crate::counting::CountingParts;
use crate::memory::counter::increment_counter;
use crate::memory::shared_layout::{FIRST_SIZE, INT_BITS, THROWN_TIMES};
use crate::thread::ThreadState;
use crate::thread::counter_access::{current_counters, event_counter};
use crate::thread::thread_counters::counter_address;

pub use crate::memory::shared_layout::LONGEST_TIME;

// Java code computes the address of a type by this size.
const _: () = assert!(size_of::<AtomicU32>() == 1 << INT_BITS);

/// The event types of times and sizes by their index, for Java code; 0: not known yet.
pub struct MethodTimes(Box<[AtomicU32]>);

impl Default for MethodTimes {
    fn default() -> MethodTimes {
        let indices = 0..FIRST_SIZE + u64::BITS;
        MethodTimes(indices.map(|_| AtomicU32::new(0)).collect())
    }
}

impl MethodTimes {
    /// Address of the types, of four bytes each.
    pub fn types_address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }
}

/// The address of the current thread's counter for times with this index, added if needed. `None`: the event counts as
/// dropped.
pub fn insert_time_counter(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (number, index): (ContextId, u32),
) -> Option<usize> {
    let counter = find_time_type(agent, index).and_then(|event| {
        let counters = &mut *current_counters(agent.thread_parts(), env, state);
        let counter = event_counter(agent.thread_parts(), counters, number, event);
        state.publish_index(counters);
        counter
    });
    if counter.is_none() {
        increment_counter(&agent.core.counts.events_dropped);
    }
    counter.map(counter_address)
}

/// The event type of times or sizes with this index.
pub fn find_time_type(agent: CountingParts<'_>, index: u32) -> Option<EventTypeId> {
    let place = agent.counting.method_times.0.get(index as usize)?;
    let [time, longest] = NAMED_TIME.log_kinds else {
        return None;
    };
    let (kind, detail) = match index {
        FIRST_SIZE.. => (&ALLOCATION_SIZES, size_detail(index - FIRST_SIZE)),
        LONGEST_TIME => (*longest, String::new()),
        _ => (*time, time_detail(index)),
    };
    let event = agent.find_or_add_event_type(kind.name, kind.unit, &detail)?;
    // Relaxed: the log explains the type; a thread that does not see it yet comes here again.
    place.store(event.0, Ordering::Relaxed);
    Some(event)
}

/// The index of a time in nanoseconds. `is_thrown`: an exception ended it.
pub fn time_index(passed: u64, is_thrown: bool) -> u32 {
    let power = passed.checked_ilog2().unwrap_or(0);
    power + if is_thrown { THROWN_TIMES } else { 0 }
}

/// What the log says about arrays of 2^power bytes and more.
fn size_detail(power: u32) -> String {
    format!("2^{power}")
}

/// What the log says about times with this index.
pub fn time_detail(index: u32) -> String {
    match index.checked_sub(THROWN_TIMES) {
        None => format!("from {}", format_power(index)),
        Some(power) if power < THROWN_TIMES => format!("from {}, threw", format_power(power)),
        Some(_) => String::new(),
    }
}

/// 2^power nanoseconds in the largest unit.
fn format_power(power: u32) -> String {
    let nanos = 1_u64.checked_shl(power).filter(|_| power != 0).unwrap_or(0) as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let unit = units.into_iter().find(|(size, _)| nanos >= *size);
    let (size, name) = unit.unwrap_or((1.0, "ns"));
    let amount = nanos / size;
    let digits = match amount {
        ..10.0 if size > 1.0 => 2,
        ..100.0 if size > 1.0 => 1,
        _ => 0,
    };
    format!("{amount:.digits$} {name}")
}

#[cfg(test)]
mod method_times_tests {
    use super::*;

    #[test]
    fn details_are_powers_of_two() {
        for (index, detail) in [
            (0, "from 0 ns"),
            (1, "from 2 ns"),
            (9, "from 512 ns"),
            (10, "from 1.02 us"),
            (20, "from 1.05 ms"),
            (29, "from 537 ms"),
            (30, "from 1.07 s"),
            (63, "from 9223372037 s"),
            (64 + 14, "from 16.4 us, threw"),
            (LONGEST_TIME, ""),
        ] {
            assert_eq!(time_detail(index), detail);
        }
    }
}
