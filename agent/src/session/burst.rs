//! `burst=ON/PERIOD`: counting events during a part of each period only, as in static bursting (Ausiello et al., "k-Calling Context
//! Profiling", OOPSLA 2012, Sections 5.2 and 6). Calls are tracked all the time, so every number stands for the whole context.
//!
//! A thread of the agent sets and clears the event mask. The mask measures how long counting was really enabled. The log has both
//! times, and nothing is scaled.

use std::time::Instant;

use crate::options::{BurstOptions, LogLevel};
use crate::session::Agent;
use lucce_jvmti::signals;

/// Starts bursts once the VM is initialized, if the options request them. If the thread cannot start, all events are counted,
/// because no event would be counted otherwise.
pub fn start_bursts(agent: &'static Agent) {
    let Some(burst) = &agent.core.options.burst else {
        return;
    };
    agent.core.append_meta("burst", &burst.text);
    agent.core.event_mask.measure_bursts();
    let thread = std::thread::Builder::new().name("lucce-burst".into());
    let started = signals::with_signals_blocked(|| thread.spawn(move || run_bursts(agent, burst)));
    if let Err(error) = started {
        agent
            .core
            .report_message(LogLevel::Error, &format!("burst= does not work: {error}"));
    }
}

/// A burst that begins late, because the machine was busy, is not extended.
fn run_bursts(agent: &Agent, burst: &BurstOptions) {
    let mut begin = Instant::now();
    loop {
        agent.core.event_mask.begin_burst();
        if agent.core.vm_end.wait_until(begin + burst.on) {
            return;
        }
        agent.core.event_mask.pause_counting();
        begin = (begin + burst.period).max(Instant::now());
        if agent.core.vm_end.wait_until(begin) {
            return;
        }
    }
}
