//! `delay=`: counting begins some time after the start, or when the program is ready. Calls are tracked from the start, so every
//! number stands for the whole context.

use std::time::Instant;

use crate::options::{LogLevel, StartDelay};
use crate::session::Agent;

/// Begins to count at the time that the options say. If the agent's thread cannot start, counting begins at once, because no
/// event would be counted otherwise.
pub fn wait_for_delay(agent: &'static Agent) {
    let Some(StartDelay::Time(delay)) = agent.core.options.delay else {
        return;
    };
    let until = Instant::now() + delay;
    let wait = move || {
        if !agent.core.vm_end.wait_until(until) {
            begin_counting(agent);
        }
    };
    if let Err(error) = agent.core.agent_threads.spawn_thread("lucce-delay", wait) {
        agent
            .core
            .report_message(LogLevel::Error, &format!("delay= does not work: {error}"));
        begin_counting(agent);
    }
}

/// Ends the delay, if it has not ended, and records the time.
pub fn begin_counting(agent: &Agent) {
    if agent.core.event_mask.end_delay() {
        let millis = agent.core.started.elapsed().as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        agent.core.append_stat("counting.began_ms", millis);
    }
}
