//! `burst=ON/PERIOD`: events are counted during a part of each period only, as in static bursting
//! (Ausiello et al., "k-Calling Context Profiling", OOPSLA 2012, Sections 5.2 and 6), but calls are tracked all the
//! time, so every number is that of the whole context.
//!
//! A thread of the agent's own opens and closes the gate. How long it was really open the gate measures;
//! the log has both times, and nothing is scaled.

use std::time::Instant;

use crate::options::{BurstOptions, LogLevel};
use crate::session::Agent;
use lucce_jvmti::signals;

/// The VM is initialised: bursts begin, if they were asked for. Without the thread nothing would ever be
/// counted, so then everything is.
pub fn start_bursts(agent: &'static Agent) {
    let Some(burst) = &agent.options.burst else {
        return;
    };
    agent.append_meta("burst", &burst.text);
    agent.event_mask.measure_bursts();
    let thread = std::thread::Builder::new().name("lucce-burst".into());
    let started = signals::with_signals_blocked(|| thread.spawn(move || run_bursts(agent, burst)));
    if let Err(error) = started {
        agent.report_message(LogLevel::Error, &format!("burst= does not work: {error}"));
    }
}

/// A burst that begins late, because the machine was busy, is not made up for.
fn run_bursts(agent: &Agent, burst: &BurstOptions) {
    let mut begin = Instant::now();
    loop {
        agent.event_mask.begin_burst();
        if agent.vm_end.wait_until(begin + burst.on) {
            return;
        }
        agent.event_mask.pause_counting();
        begin = (begin + burst.period).max(Instant::now());
        if agent.vm_end.wait_until(begin) {
            return;
        }
    }
}
