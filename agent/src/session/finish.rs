//! The end of recording: the log's last records, and one line for the user.

use std::sync::atomic::Ordering;

use lucce_instrument::kinds::{ALLOC, THREAD};
use lucce_tracelog::EndRecord;

use crate::events;
use crate::leaks::LeakDetector;
use crate::memory::event_mask::BurstTimes;
use crate::memory::locks::{LockKindWaits, lock_waits};
use crate::options::LogLevel;
use crate::registry::file_state::FileState;
use crate::session::Agent;
use crate::session::control_socket;
use crate::session::event_totals::{
    ContextNumberScope, EventTotals, count_context_numbers, count_dropped_events,
};
use crate::session::file_watch;
use crate::session::push;
use crate::stack::entry_loss::LossReason;
use crate::thread::lifecycle::sum_verified;

/// Ends recording when the VM ends or the agent leaves it.
pub fn finish_recording(agent: &Agent) {
    // First: events counted later would make the sums wrong.
    agent.core.event_mask.end_counting();
    agent.core.live.store(false, Ordering::Release);
    control_socket::stop_listener();
    agent.core.vm_end.signal_end();
    agent.classes.cache.close(agent.class_parts());
    let bursts = agent.core.event_mask.burst_times();
    let sampled = agent.leaks.as_ref().map(LeakDetector::count_samples);
    for source in events::wanted_sources(&agent.core.options.hooked_events()) {
        events::disable_source(agent.core.jvmti, source);
    }
    if let Some(budget) = &agent.core.budget {
        budget.finish();
    }
    let counted = EventTotals::count_events(agent);
    let numbers = count_context_numbers(agent, ContextNumberScope::Allocations);
    let lost = count_dropped_events(agent);
    write_run_counts(agent, (counted.sum_events(), lost));
    write_bursts(agent, bursts);
    agent.core.finish_named_methods();
    if let Some(warning) = agent.counters.tracking.mismatch_warning() {
        agent.core.report_message(LogLevel::Warn, &warning);
    }
    if let Some(why) = file_watch::report_full_log(agent) {
        // As a number, for which there is still room.
        agent.core.append_stat(why.key(), 1);
    }
    agent.core.append_record(EndRecord {});
    let file_state = agent.core.log.file_state(&agent.core.options.out);
    let _ = agent.core.log.close();
    let recorded = RunSummary {
        totals: counted,
        context_numbers: numbers,
        samples: sampled,
        dropped: lost,
    };
    let level = match file_state.has_lost_data() {
        true => LogLevel::Error,
        false => LogLevel::Info,
    };
    agent
        .core
        .report_message(level, &recorded.format_line(agent, &file_state));
    finish_other_files(agent);
    push::finish_push(agent);
}

/// Writes the statistics of the whole run.
fn write_run_counts(agent: &Agent, (events, lost): (u64, u64)) {
    let graph = agent.core.encoder.collect_stats();
    for (key, value) in [
        (
            "run.millis",
            agent.core.started.elapsed().as_millis() as u64,
        ),
        ("events.recorded", events),
        ("events.lost", lost),
    ] {
        agent.core.append_stat(key, value);
    }
    let counts = &agent.core.counts;
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
        ("counters.requested", &counts.counters_requested),
        ("agent.upcalls", &counts.vm_entries),
        ("agent.upcalls_near", &counts.vm_entries_near),
        ("agent.upcalls_deferred", &counts.vm_entries_deferred),
        ("agent.upcalls_located", &counts.vm_entries_located),
        ("agent.upcalls_by_frames", &counts.vm_entries_by_frames),
        ("agent.unsaid", &counts.untracked_calls),
        ("agent.repairs", &counts.repairs),
        ("agent.panics", &counts.panics),
    ] {
        agent.core.append_stat(key, count.load(Ordering::Relaxed));
    }
    write_lost_vm_entries(agent);
    write_lock_waits(agent);
    if agent.core.options.verify > 0 {
        let sums = sum_verified(agent.thread_parts());
        agent.core.append_stat("verify.events", sums.events);
        agent.core.append_stat("verify.threads", sums.threads);
        agent
            .core
            .append_stat("verify.threads_not_compared", sums.threads_not_compared);
    }
    agent
        .core
        .append_stat("graph.slow_lookups", graph.slow_lookups);
    agent.core.append_stat("graph.unknown", graph.unknown);
    agent
        .core
        .append_stat("graph.memory", graph.memory_bytes as u64);
}

/// Writes the number of frames that the VM entered and whose caller is unknown: the total, and the numbers by reason.
fn write_lost_vm_entries(agent: &Agent) {
    let counts = &agent.core.counts;
    for (reason, count) in LossReason::ALL.iter().zip(&counts.vm_entries_unresolved_by) {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            agent
                .core
                .append_stat(&format!("agent.upcalls_lost.{}", reason.key()), count);
        }
    }
    let all = counts.vm_entries_unresolved.load(Ordering::Relaxed);
    agent.core.append_stat("agent.upcalls_lost", all);
}

/// Writes how long threads waited for locks of the agent: the total, and the longest wait for each lock kind.
fn write_lock_waits(agent: &Agent) {
    let graph = agent.core.encoder.lock_wait();
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
        agent.core.append_stat(&key, kind.longest_ns);
    }
    agent.core.append_stat("locks.waits", waits);
    agent.core.append_stat("locks.longest_wait_ns", longest_ns);
}

fn write_bursts(agent: &Agent, bursts: Option<BurstTimes>) {
    if let Some(bursts) = bursts {
        agent.core.append_stat("bursts", bursts.bursts);
        agent
            .core
            .append_stat("bursts.open_ns", bursts.open.as_nanos() as u64);
        agent
            .core
            .append_stat("bursts.of_ns", bursts.total.as_nanos() as u64);
    }
    if agent.core.options.hooked_events().has_kind(&THREAD) {
        let unfollowed = agent.stack.tasks.unfollowed.load(Ordering::Relaxed);
        agent.core.append_stat("tasks.unfollowed", unfollowed);
    }
    for (key, value) in agent.counters.tracking.collect_stats() {
        agent.core.append_stat(key, value);
    }
}

/// Ends the stream and the call recording, and reports their paths.
fn finish_other_files(agent: &Agent) {
    if let Some(streamer) = &agent.core.streamer {
        let (level, line) = streamer.finish();
        agent.core.report_message(level, &line);
    }
    if let Some((level, line)) = agent.counters.tracking.finish_file() {
        agent.core.report_message(level, &line);
    }
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
    fn format_line(&self, agent: &Agent, file_state: &FileState) -> String {
        let log = file_state.current_path(&agent.core.options.out).display();
        let megabytes = agent.core.log.written_bytes() as f64 / 1e6;
        let RunSummary {
            totals: counted,
            context_numbers: numbers,
            dropped: lost,
            ..
        } = self;
        let allocations = counted.allocations;
        let mut parts = Vec::new();
        if agent.core.budget.is_some() {
            parts.push(format!(
                "about {allocations} allocations under {numbers} context numbers, from samples"
            ));
        } else if let Some(bytes) = agent.core.sampling_interval() {
            parts.push(format!(
                "about {allocations} allocations under {numbers} context numbers, from a sample every {bytes} bytes"
            ));
        } else if agent.core.options.events.has_kind(&ALLOC) || allocations > 0 {
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
        if let Some(what) = file_state
            .describe_loss(&agent.core.options.out)
            .filter(|_| file_state.has_lost_data())
        {
            let lost = lost + counted.sum_events();
            return format!("{what}: nothing is recorded, at least {lost} events are lost");
        }
        let recorded = match (
            parts.is_empty(),
            agent.core.options.events.kinds().mask_bits() == 0,
        ) {
            (false, _) => parts.join(", "),
            (true, true) => "contexts without events".to_owned(),
            (true, false) => "no events".to_owned(),
        };
        let mut line = format!("{recorded} recorded in {log} ({megabytes:.1} MB)");
        if *lost > 0 {
            line += &format!("; {lost} events lost");
        }
        if let Some(bursts) = agent.core.event_mask.burst_times() {
            let share = 100.0 * bursts.open.as_secs_f64() / bursts.total.as_secs_f64();
            line += &format!("; counted during {share:.1}% of the time");
        }
        if agent.core.options.verify > 0 {
            let compared = agent.core.counts.compared.load(Ordering::Relaxed);
            let mismatches = agent.core.counts.mismatches.load(Ordering::Relaxed);
            line += &format!(
                "; {compared} compared with the VM's own stack trace, {mismatches} mismatches"
            );
        }
        line
    }
}
