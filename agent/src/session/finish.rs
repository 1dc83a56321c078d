//! The end of recording: the log's last records, and one line for the user.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use lucce_instrument::kinds::{ALLOC, THREAD};
use lucce_tracelog::{EndRecord, EventTypeId};

use crate::events;
use crate::leaks::LeakDetector;
use crate::memory::event_mask::BurstTimes;
use crate::memory::java_table::MULTIPLIER;
use crate::memory::locks::{LockKindWaits, lock_waits};
use crate::options::LogLevel;
use crate::registry::file_state::FileState;
use crate::session::Agent;
use crate::session::control;
use crate::session::file_watch;
use crate::session::push;
use crate::stack::entry_loss::LossReason;
use crate::thread::lifecycle::sum_verified;

/// Ends recording when the VM ends or the agent leaves it.
pub fn finish_recording(agent: &Agent) {
    // First: events counted later would make the sums wrong.
    agent.event_mask.end_counting();
    agent.live.store(false, Ordering::Release);
    control::stop_listener();
    agent.vm_end.signal_end();
    agent.cache.close(agent);
    let bursts = agent.event_mask.burst_times();
    let sampled = agent.leaks.as_ref().map(LeakDetector::count_samples);
    for source in events::wanted_sources(&agent.options.hooked_events()) {
        events::disable_source(agent.jvmti, source);
    }
    let counted = EventTotals::count_events(agent);
    let numbers = count_context_numbers(agent, ContextNumberScope::Allocations);
    let lost = count_dropped_events(agent);
    write_run_counts(agent, (counted.sum_events(), lost));
    write_bursts(agent, bursts);
    if let Some(warning) = agent.tracking.mismatch_warning() {
        agent.report_message(LogLevel::Warn, &warning);
    }
    if let Some(why) = file_watch::report_full_log(agent) {
        // As a number, for which there is still room.
        agent.append_stat(why.key(), 1);
    }
    agent.append_record(EndRecord {});
    let fate = agent.log.file_state(&agent.options.out);
    let _ = agent.log.close();
    let recorded = RunSummary {
        totals: counted,
        context_numbers: numbers,
        samples: sampled,
        dropped: lost,
    };
    let level = match fate.is_lost() {
        true => LogLevel::Error,
        false => LogLevel::Info,
    };
    agent.report_message(level, &recorded.format_line(agent, &fate));
    finish_other_files(agent);
    push::finish_push(agent);
}

/// The number of events that no counter contains.
pub fn count_dropped_events(agent: &Agent) -> u64 {
    agent.counts.events_dropped.load(Ordering::Relaxed) + agent.counter_pool.dropped_events()
}

/// Writes the statistics of the whole run.
fn write_run_counts(agent: &Agent, (events, lost): (u64, u64)) {
    let graph = agent.encoder.collect_stats();
    for (key, value) in [
        ("run.millis", agent.started.elapsed().as_millis() as u64),
        ("events.recorded", events),
        ("events.lost", lost),
    ] {
        agent.append_stat(key, value);
    }
    let counts = &agent.counts;
    for (key, count) in [
        ("verify.compared", &counts.compared),
        ("verify.mismatches", &counts.mismatches),
        ("verify.skipped.dropped", &counts.dropped_uncompared),
        ("verify.skipped.frames_unknown", &counts.frames_unknown),
        ("classes.rewritten", &counts.classes),
        ("classes.cached", &counts.classes_cached),
        ("classes.skipped", &counts.classes_skipped),
        ("classes.kept_hooks", &counts.classes_kept),
        ("methods.skipped", &counts.methods_skipped),
        ("agent.upcalls", &counts.vm_entries),
        ("agent.upcalls_near", &counts.vm_entries_near),
        ("agent.upcalls_by_frames", &counts.vm_entries_by_frames),
        ("agent.unsaid", &counts.untracked_calls),
        ("agent.repairs", &counts.repairs),
        ("agent.panics", &counts.panics),
    ] {
        agent.append_stat(key, count.load(Ordering::Relaxed));
    }
    write_lost_vm_entries(agent);
    write_lock_waits(agent);
    if agent.options.verify > 0 {
        let sums = sum_verified(agent);
        agent.append_stat("verify.events", sums.events);
        agent.append_stat("verify.threads", sums.threads);
        agent.append_stat("verify.threads_not_compared", sums.threads_not_compared);
    }
    agent.append_stat("graph.slow_lookups", graph.slow_lookups);
    agent.append_stat("graph.unknown", graph.unknown);
    agent.append_stat("graph.memory", graph.memory_bytes as u64);
}

/// Writes the number of frames that the VM entered and whose caller is unknown: the total, and the numbers by reason.
fn write_lost_vm_entries(agent: &Agent) {
    let counts = &agent.counts;
    for (reason, count) in LossReason::ALL.iter().zip(&counts.vm_entries_unresolved_by) {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            agent.append_stat(&format!("agent.upcalls_lost.{}", reason.key()), count);
        }
    }
    let all = counts.vm_entries_unresolved.load(Ordering::Relaxed);
    agent.append_stat("agent.upcalls_lost", all);
}

/// Writes how long threads waited for locks of the agent: the total, and the longest wait for each lock kind.
fn write_lock_waits(agent: &Agent) {
    let graph = agent.encoder.lock_wait();
    let graph = LockKindWaits {
        name: "callgraph::Encoder".to_owned(),
        waits: graph.wait_count(),
        longest_ns: graph.longest_ns(),
    };
    let mut waits = 0;
    let mut longest_ns = 0;
    for kind in lock_waits().chain(Some(graph).filter(|kind| kind.waits > 0)) {
        waits += kind.waits;
        longest_ns = longest_ns.max(kind.longest_ns);
        let key = format!("locks.longest_wait_ns.{}", kind.name);
        agent.append_stat(&key, kind.longest_ns);
    }
    agent.append_stat("locks.waits", waits);
    agent.append_stat("locks.longest_wait_ns", longest_ns);
}

fn write_bursts(agent: &Agent, bursts: Option<BurstTimes>) {
    if let Some(bursts) = bursts {
        agent.append_stat("bursts", bursts.bursts);
        agent.append_stat("bursts.open_ns", bursts.open.as_nanos() as u64);
        agent.append_stat("bursts.of_ns", bursts.total.as_nanos() as u64);
    }
    if agent.options.hooked_events().has_kind(&THREAD) {
        let unfollowed = agent.tasks.unfollowed.load(Ordering::Relaxed);
        agent.append_stat("tasks.unfollowed", unfollowed);
    }
    for (key, value) in agent.tracking.collect_stats() {
        agent.append_stat(key, value);
    }
}

/// Ends the stream and the call recording, and reports their paths.
fn finish_other_files(agent: &Agent) {
    if let Some(streamer) = &agent.streamer {
        let (level, line) = streamer.finish();
        agent.report_message(level, &line);
    }
    if let Some((level, line)) = agent.tracking.finish_file() {
        agent.report_message(level, &line);
    }
}

/// Numbers of events.
pub struct EventTotals {
    allocations: u64,
    /// By kind, without allocations.
    others: HashMap<String, u64>,
}

impl EventTotals {
    /// Reads all counters.
    pub fn count_events(agent: &Agent) -> EventTotals {
        let all = agent.lock_counter_blocks();
        let cells = all.iter().flat_map(|counters| counters.iter());
        let untyped: u64 = cells
            .map(|cell| u64::from_le(cell.count.load(Ordering::Relaxed)))
            .sum();
        drop(all);
        let mut others = agent.events_by_kind();
        // Objects that the VM creates have counters by type.
        let typed = others.remove(ALLOC.name).unwrap_or_default();
        EventTotals {
            allocations: untyped + typed,
            others,
        }
    }

    /// The number of all events.
    pub fn sum_events(&self) -> u64 {
        self.allocations + self.others.values().sum::<u64>()
    }
}

/// The events whose context numbers are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ContextNumberScope {
    Allocations,
    All,
}

/// The number of distinct context numbers of events. A context may have several numbers: only the decoder detects equal traces.
pub fn count_context_numbers(agent: &Agent, which: ContextNumberScope) -> u64 {
    let kinds = agent.event_types.kinds_by_id();
    let is_meant = |event: EventTypeId| {
        which == ContextNumberScope::All || kinds.get(&event).is_some_and(|kind| kind == ALLOC.name)
    };
    let (cells, event_cells) = (
        agent.lock_counter_blocks(),
        agent.lock_event_counter_blocks(),
    );
    let untyped = || {
        let all = cells.iter().flat_map(|counters| counters.iter());
        let used = all.filter(|cell| cell.count.load(Ordering::Relaxed) != 0);
        used.map(|cell| cell.id().0)
    };
    let typed = || {
        let all = event_cells.iter().flat_map(|counters| counters.iter());
        let used = all.filter(|cell| cell.count.load(Ordering::Relaxed) != 0);
        used.filter(|cell| is_meant(cell.event_type()))
            .map(|cell| cell.id().0)
    };
    let numbers = count_distinct(|| untyped().chain(typed()));
    cells.iter().for_each(|counters| counters.release_pages());
    event_cells
        .iter()
        .for_each(|counters| counters.release_pages());
    numbers
}

/// Counts distinct numbers in little memory: a part of the range at a time.
fn count_distinct<I: Iterator<Item = u64>>(numbers: impl Fn() -> I) -> u64 {
    const AT_A_TIME: usize = 1 << 17;
    const MOST_PARTS: usize = 32;
    let count = numbers().count();
    // Each part needs one pass over all numbers.
    let parts = count.div_ceil(AT_A_TIME.max(count / MOST_PARTS)) as u64;
    let mut contexts = Vec::new();
    let in_part = |part: u64| {
        // Numbers of contexts are consecutive.
        let of = |number: u64| number.wrapping_mul(MULTIPLIER) >> 32;
        numbers().filter(move |number| of(*number) % parts == part)
    };
    let mut different = 0;
    for part in 0..parts {
        contexts.clear();
        contexts.extend(in_part(part));
        contexts.sort_unstable();
        contexts.dedup();
        different += contexts.len() as u64;
    }
    different
}

/// The summary for the user at the end.
struct RunSummary {
    totals: EventTotals,
    /// Context numbers of allocations.
    context_numbers: u64,
    /// Sampled objects, with `events=leak`.
    samples: Option<u64>,
    dropped: u64,
}

impl RunSummary {
    fn format_line(&self, agent: &Agent, fate: &FileState) -> String {
        let log = fate.current_path(&agent.options.out).display();
        let megabytes = agent.log.written_bytes() as f64 / 1e6;
        let RunSummary {
            totals: counted,
            context_numbers: numbers,
            dropped: lost,
            ..
        } = self;
        let allocations = counted.allocations;
        let mut parts = Vec::new();
        if let Some(bytes) = agent.sampling_interval() {
            parts.push(format!(
                "about {allocations} allocations under {numbers} context numbers, from a sample every {bytes} bytes"
            ));
        } else if agent.options.events.has_kind(&ALLOC) || allocations > 0 {
            parts.push(format!(
                "{allocations} allocations under {numbers} context numbers"
            ));
        }
        if let Some(sampled) = self.samples {
            parts.push(format!("{sampled} sampled objects"));
        }
        let mut kinds: Vec<_> = counted.others.iter().collect();
        kinds.sort_by_key(|(kind, count)| (u64::MAX - **count, *kind));
        let (first, rest) = kinds.split_at(kinds.len().min(4));
        parts.extend(
            first
                .iter()
                .map(|(kind, count)| format!("{count} × {kind}")),
        );
        if !rest.is_empty() {
            parts.push(format!("{} more kinds of events", rest.len()));
        }
        if let Some(what) = fate
            .describe_loss(&agent.options.out)
            .filter(|_| fate.is_lost())
        {
            let lost = lost + counted.sum_events();
            return format!("{what}: nothing is recorded, at least {lost} events are lost");
        }
        let recorded = match (
            parts.is_empty(),
            agent.options.events.kinds().mask_bits() == 0,
        ) {
            (false, _) => parts.join(", "),
            (true, true) => "contexts without events".to_owned(),
            (true, false) => "no events".to_owned(),
        };
        let mut line = format!("{recorded} recorded in {log} ({megabytes:.1} MB)");
        if *lost > 0 {
            line += &format!("; {lost} events lost");
        }
        if let Some(bursts) = agent.event_mask.burst_times() {
            let share = 100.0 * bursts.open.as_secs_f64() / bursts.total.as_secs_f64();
            line += &format!("; counted during {share:.1}% of the time");
        }
        if agent.options.verify > 0 {
            let compared = agent.counts.compared.load(Ordering::Relaxed);
            let mismatches = agent.counts.mismatches.load(Ordering::Relaxed);
            line += &format!(
                "; {compared} compared with the VM's own stack trace, {mismatches} mismatches"
            );
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_numbers_are_counted_in_parts() {
        assert_eq!(count_distinct(|| 0..0), 0);
        let numbers = || (0..1_000_000_u64).map(|n| (n % 300_000) << 12 | 7);
        assert_eq!(count_distinct(numbers), 300_000);
    }
}
