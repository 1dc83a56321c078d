//! The end: the log's last records, and one line for the user.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use lucce_hooks::kinds::{ALLOC, THREAD};
use lucce_tracelog::{End, EventTypeId};

use crate::book::fate::Fate;
use crate::events;
use crate::leaks::Leaks;
use crate::memory::gate::Bursts;
use crate::memory::java_table::MULTIPLIER;
use crate::memory::locks::{KindWaits, lock_waits};
use crate::options::Level;
use crate::session::Agent;
use crate::session::control;
use crate::session::fate;
use crate::session::push;
use crate::stack::entry_loss::LossReason;
use crate::thread::life::sum_verified;

/// The VM ends, or the agent leaves it.
pub fn finish(agent: &Agent) {
    // First: what is counted from here on would not be put right.
    agent.gate.end();
    agent.live.store(false, Ordering::Release);
    control::end();
    agent.ended.tell();
    agent.cache.close(agent);
    let bursts = agent.gate.bursts();
    let sampled = agent.leaks.as_ref().map(Leaks::so_far);
    for source in events::wanted(&agent.options.hooks()) {
        events::stop(agent.jvmti, source);
    }
    let counted = Counted::by(agent);
    let numbers = numbers(agent, Which::Allocations);
    let lost = lost(agent);
    note_counts(agent, (counted.all(), lost));
    note_bursts(agent, bursts);
    if let Some(warning) = agent.comparison.warning() {
        agent.say(Level::Warn, &warning);
    }
    if let Some(why) = fate::tell_full(agent) {
        // As a number, for which there still is room.
        agent.stat(why.key(), 1);
    }
    agent.note(End {});
    let fate = agent.log.fate(&agent.options.out);
    let _ = agent.log.close();
    let recorded = Recorded {
        counted,
        numbers,
        sampled,
        lost,
    };
    let level = match fate.is_lost() {
        true => Level::Error,
        false => Level::Info,
    };
    agent.say(level, &recorded.line(agent, &fate));
    end_files_beside(agent);
    push::finish(agent);
}

/// Events that happened and are counted nowhere.
pub fn lost(agent: &Agent) -> u64 {
    agent.counts.events_lost.load(Ordering::Relaxed) + agent.lanes.lost()
}

/// What the log says of the run as a whole.
fn note_counts(agent: &Agent, (events, lost): (u64, u64)) {
    let graph = agent.encoder.stats();
    for (key, value) in [
        ("run.millis", agent.began.elapsed().as_millis() as u64),
        ("events.recorded", events),
        ("events.lost", lost),
    ] {
        agent.stat(key, value);
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
        ("agent.upcalls", &counts.upcalls),
        ("agent.upcalls_near", &counts.upcalls_near),
        ("agent.upcalls_by_frames", &counts.upcalls_by_frames),
        ("agent.unsaid", &counts.unsaid),
        ("agent.repairs", &counts.repairs),
        ("agent.panics", &counts.panics),
    ] {
        agent.stat(key, count.load(Ordering::Relaxed));
    }
    note_lost_entries(agent);
    note_lock_waits(agent);
    if agent.options.verify > 0 {
        let sums = sum_verified(agent);
        agent.stat("verify.events", sums.events);
        agent.stat("verify.threads", sums.threads);
        agent.stat("verify.threads_not_compared", sums.threads_not_compared);
    }
    agent.stat("graph.slow_lookups", graph.slow_lookups);
    agent.stat("graph.unknown", graph.unknown);
    agent.stat("graph.memory", graph.memory as u64);
}

/// Frames that the VM entered and whose caller is not known: all together, and by reason where there are any.
fn note_lost_entries(agent: &Agent) {
    let counts = &agent.counts;
    for (reason, count) in LossReason::ALL.iter().zip(&counts.upcalls_lost_by) {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            agent.stat(&format!("agent.upcalls_lost.{}", reason.key()), count);
        }
    }
    let all = counts.upcalls_lost.load(Ordering::Relaxed);
    agent.stat("agent.upcalls_lost", all);
}

/// How long threads waited for locks of the agent: all kinds together, and the longest wait for each kind.
fn note_lock_waits(agent: &Agent) {
    let graph = agent.encoder.lock_wait();
    let graph = KindWaits {
        name: "callgraph::Encoder".to_owned(),
        waits: graph.waits(),
        longest_ns: graph.longest_ns(),
    };
    let mut waits = 0;
    let mut longest_ns = 0;
    for kind in lock_waits().chain(Some(graph).filter(|kind| kind.waits > 0)) {
        waits += kind.waits;
        longest_ns = longest_ns.max(kind.longest_ns);
        let key = format!("locks.longest_wait_ns.{}", kind.name);
        agent.stat(&key, kind.longest_ns);
    }
    agent.stat("locks.waits", waits);
    agent.stat("locks.longest_wait_ns", longest_ns);
}

fn note_bursts(agent: &Agent, bursts: Option<Bursts>) {
    if let Some(bursts) = bursts {
        agent.stat("bursts", bursts.bursts);
        agent.stat("bursts.open_ns", bursts.open.as_nanos() as u64);
        agent.stat("bursts.of_ns", bursts.total.as_nanos() as u64);
    }
    if agent.options.hooks().has(&THREAD) {
        let unfollowed = agent.tasks.unfollowed.load(Ordering::Relaxed);
        agent.stat("tasks.unfollowed", unfollowed);
    }
    for (key, value) in agent.comparison.stats() {
        agent.stat(key, value);
    }
}

/// The stream and the recording end, and the user is told where they are.
fn end_files_beside(agent: &Agent) {
    if let Some(streamer) = &agent.streamer {
        let (level, line) = streamer.finish();
        agent.say(level, &line);
    }
    let Some(recorder) = &agent.recorder else {
        return;
    };
    let (bytes, whole) = recorder.finish();
    let fate = recorder.fate();
    let path = fate.path(recorder.path()).display();
    let megabytes = bytes as f64 / 1e6;
    let cut = match whole {
        true => "",
        false => ", cut: the limit was reached",
    };
    match fate.told(recorder.path()).filter(|_| fate.is_lost()) {
        Some(what) => agent.say(Level::Error, &format!("{what}: the calls are lost")),
        None => agent.say(
            Level::Info,
            &format!("calls recorded in {path} ({megabytes:.1} MB{cut})"),
        ),
    }
}

/// How many events there were.
pub struct Counted {
    allocations: u64,
    /// By kind; allocations are not among them.
    others: HashMap<String, u64>,
}

impl Counted {
    pub fn by(agent: &Agent) -> Counted {
        let all = agent.all_cells();
        let cells = all.iter().flat_map(|counters| counters.iter());
        let untyped: u64 = cells
            .map(|cell| u64::from_le(cell.count.load(Ordering::Relaxed)))
            .sum();
        drop(all);
        let mut others = agent.events_by_kind();
        // Of those that the VM makes the cells say a type.
        let typed = others.remove(ALLOC.name).unwrap_or_default();
        Counted {
            allocations: untyped + typed,
            others,
        }
    }

    pub fn all(&self) -> u64 {
        self.allocations + self.others.values().sum::<u64>()
    }
}

/// Of which events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Allocations,
    All,
}

/// How many different numbers events have had. A context may have several: only the decoder sees which traces read alike.
pub fn numbers(agent: &Agent, which: Which) -> u64 {
    let kinds = agent.event_types.kinds();
    let is_meant = |event: EventTypeId| {
        which == Which::All || kinds.get(&event).is_some_and(|kind| kind == ALLOC.name)
    };
    let (cells, event_cells) = (agent.all_cells(), agent.all_event_cells());
    let untyped = || {
        let all = cells.iter().flat_map(|counters| counters.iter());
        let used = all.filter(|cell| cell.count.load(Ordering::Relaxed) != 0);
        used.map(|cell| cell.id().0)
    };
    let typed = || {
        let all = event_cells.iter().flat_map(|counters| counters.iter());
        let used = all.filter(|cell| cell.count.load(Ordering::Relaxed) != 0);
        used.filter(|cell| is_meant(cell.event()))
            .map(|cell| cell.id().0)
    };
    let numbers = different(|| untyped().chain(typed()));
    cells.iter().for_each(|counters| counters.release());
    event_cells.iter().for_each(|counters| counters.release());
    numbers
}

/// How many different ones there are, in little memory: a part of all possible numbers at a time.
fn different<I: Iterator<Item = u64>>(numbers: impl Fn() -> I) -> u64 {
    const AT_A_TIME: usize = 1 << 17;
    const MOST_PARTS: usize = 32;
    let count = numbers().count();
    // Each part is one pass over all of them.
    let parts = count.div_ceil(AT_A_TIME.max(count / MOST_PARTS)) as u64;
    let mut contexts = Vec::new();
    let in_part = |part: u64| {
        // Numbers of contexts follow each other.
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

/// What the user is told at the end.
struct Recorded {
    counted: Counted,
    /// Of allocations.
    numbers: u64,
    /// With `events=leak`.
    sampled: Option<u64>,
    lost: u64,
}

impl Recorded {
    fn line(&self, agent: &Agent, fate: &Fate) -> String {
        let log = fate.path(&agent.options.out).display();
        let megabytes = agent.log.bytes() as f64 / 1e6;
        let Recorded {
            counted,
            numbers,
            lost,
            ..
        } = self;
        let allocations = counted.allocations;
        let mut parts = Vec::new();
        if let Some(bytes) = agent.sampled_bytes() {
            parts.push(format!(
                "about {allocations} allocations under {numbers} context numbers, from a sample every {bytes} bytes"
            ));
        } else if agent.options.events.has(&ALLOC) || allocations > 0 {
            parts.push(format!(
                "{allocations} allocations under {numbers} context numbers"
            ));
        }
        if let Some(sampled) = self.sampled {
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
        if let Some(what) = fate.told(&agent.options.out).filter(|_| fate.is_lost()) {
            let lost = lost + counted.all();
            return format!("{what}: nothing is recorded, at least {lost} events are lost");
        }
        let mut line = match parts.is_empty() {
            true => format!("tracked without recording, log in {log} ({megabytes:.1} MB)"),
            false => format!("{} recorded in {log} ({megabytes:.1} MB)", parts.join(", ")),
        };
        if *lost > 0 {
            line += &format!("; {lost} events lost");
        }
        if let Some(bursts) = agent.gate.bursts() {
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
        assert_eq!(different(|| 0..0), 0);
        let numbers = || (0..1_000_000_u64).map(|n| (n % 300_000) << 12 | 7);
        assert_eq!(different(numbers), 300_000);
    }
}
