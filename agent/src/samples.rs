//! Samples of allocations: `events=alloc=SIZE`, and what an attached agent counts.
//!
//! The VM tells the thread in the middle of its `new` (SampledObjectAlloc). Here the thread's shadow stack says
//! where that is; without hooks it is `attach::sampled`. A sample is counted as the objects that it stands for.

use jvmti_bindings::sys::jni::{JNIEnv, jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::{ContextId, SiteId};

use crate::agent::{Agent, count};
use crate::attach;
use crate::cells::{self, lane_of};
use crate::frames::Kind;
use crate::gate;
use crate::here::{self, Made};
use crate::hook::extra_allocation;
use crate::jvm::{Env, Failed};
use crate::lane::Lane;
use crate::natives::{context_id, guard_event, state_of};
use crate::thread::{OwnState, ThreadState};
use crate::verify;
use crate::vm_events::lost_unless_out_of_scope;

/// Bytes between two samples, if allocations are samples.
pub fn interval(agent: &Agent) -> Option<u32> {
    attach::interval(agent).or(agent.options.events.sampled)
}

/// The VM is initialised: from now on it takes samples.
///
/// # Errors
/// The VM's.
pub fn start(agent: &Agent, bytes: u32) -> Result<(), Failed> {
    agent.meta("sampled.bytes", &bytes.to_string());
    agent.jvmti.sample_every(bytes)?;
    agent.jvmti.enable(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC)
}

/// The current thread has made an object of `size` bytes, and the VM took it as a sample.
pub fn sampled(env: *mut JNIEnv, thread: jobject, class: jclass, size: u64) {
    guard_event(gate::SAMPLES, |agent| {
        let env = agent.env(env);
        let own = match env.has_exception() {
            true => OwnState::NONE,
            false => state_of(agent, env, thread),
        };
        if let Some(state) = own.get() {
            record(agent, env, state, class, size);
        } else if agent.jvmti.frame(0).is_some_and(|(method, _)| {
            agent.frames.resolve(agent, env, method).kind != Kind::Helper
        }) {
            count(&agent.counts.events_lost);
        }
    });
}

fn record(agent: &Agent, env: Env, state: &ThreadState, class: jclass, size: u64) {
    let here = match here::made(agent, env, state) {
        Made::Here(here) => here,
        // What the slow paths of hooks make is not the program's.
        Made::Ours => return,
        Made::Unknown => return lost_unless_out_of_scope(agent, env),
    };
    let line = {
        let book = agent.book();
        book.site(here.site.0).map(|site| book.line(&site))
    };
    let of = agent.jvmti.signature(class);
    let site = line.zip(of);
    let site = site.and_then(|(line, of)| extra_allocation(agent, here.method.0, line, &of));
    let number = match (context_id(agent, state, here.context), site) {
        (ContextId::UNKNOWN, _) | (_, None) => ContextId::UNKNOWN,
        (context, Some(site)) => agent.encoder.event(context, SiteId(site), here.method),
    };
    if number == ContextId::UNKNOWN {
        count(&agent.counts.events_lost);
        return;
    }
    let bytes = interval(agent).unwrap_or(0);
    add(
        agent,
        &mut lane_of(agent, env, state),
        number,
        (size, bytes),
    );
    if state.must_verify(agent.options.verify) {
        verify::compare(agent, env, number, 0);
    }
}

/// A sample of `size` bytes in a context, taken every so many bytes; 0: every allocation.
pub fn add(agent: &Agent, lane: &mut Lane, number: ContextId, (size, interval): (u64, u32)) {
    let objects = lane.weight.of(size, interval);
    let cell = match lane.samples.get(&number) {
        Some(known) => *known,
        None => {
            let Some(cell) = cells::new_cell(agent, lane, number) else {
                lane.lost_cell().add(objects, 0);
                return;
            };
            cells::sweep_samples(agent, lane);
            lane.samples.insert(number, cell);
            cell
        }
    };
    cell.add(objects, objects.saturating_mul(size));
}
