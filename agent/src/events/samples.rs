//! Samples of allocations: `events=alloc=SIZE`, and what an attached agent counts.
//!
//! The VM tells the thread in the middle of its `new` (SampledObjectAlloc). Here the thread's shadow stack says
//! where that is; without hooks it is `attach::sampled`. A sample is counted as the objects that it stands for.

use jvmti_bindings::sys::jni::{jclass, jobject};
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::{ContextId, SiteId};
use lucce_vm::{Env, Failed};

use crate::counting::Counting;
use crate::counting::found::lost_unless_out_of_scope;
use crate::memory::counter::count;
use crate::stack::frames::MethodKind;
use crate::stack::here::Made;
use crate::stack::{contexts, here, verify};
use crate::thread::cells::lane_of;
use crate::thread::lane::Lane;
use crate::thread::life::state_of;
use crate::thread::{OwnState, ThreadState, cells};

/// The VM is initialised: from now on it takes samples.
///
/// # Errors
/// The VM's.
pub fn start(counting: &Counting, bytes: u32) -> Result<(), Failed> {
    counting.meta("sampled.bytes", &bytes.to_string());
    counting.jvmti.sample_every(bytes)?;
    counting.jvmti.enable(ti::JVMTI_EVENT_SAMPLED_OBJECT_ALLOC)
}

/// The current thread has made an object of `size` bytes, and the VM took it as a sample.
pub fn sampled(counting: &Counting, env: Env, thread: jobject, class: jclass, size: u64) {
    let own = match env.has_exception() {
        true => OwnState::NONE,
        false => state_of(counting, env, thread),
    };
    if let Some(state) = own.get() {
        record(counting, env, state, class, size);
    } else if counting.jvmti.frame(0).is_some_and(|(method, _)| {
        counting.frames.resolve(counting, env, method).kind != MethodKind::Helper
    }) {
        count(&counting.counts.events_lost);
    }
}

fn record(counting: &Counting, env: Env, state: &ThreadState, class: jclass, size: u64) {
    let here = match here::made(counting, env, state) {
        Made::Here(here) => here,
        // What the slow paths of hooks make is not the program's, nor what the VM makes for itself.
        Made::Ours | Made::Nowhere => return,
        Made::Unknown => return lost_unless_out_of_scope(counting, env),
    };
    let line = {
        let book = counting.book();
        book.site(here.site.0).map(|site| book.line(&site))
    };
    let of = counting.jvmti.signature(class);
    let site = line.zip(of);
    let site = site.and_then(|(line, of)| counting.extra_allocation(here.method.0, line, &of));
    let number = match (contexts::number(counting, state, here.context), site) {
        (ContextId::UNKNOWN, _) | (_, None) => ContextId::UNKNOWN,
        (context, Some(site)) => counting.encoder.event(context, SiteId(site), here.method),
    };
    if number == ContextId::UNKNOWN {
        count(&counting.counts.events_lost);
        return;
    }
    let bytes = counting.sampled_bytes().unwrap_or(0);
    add(
        counting,
        &mut lane_of(counting, env, state),
        number,
        (size, bytes),
    );
    if state.countdown.count_event(counting.options.verify) {
        verify::compare(counting, env, number, 0);
    }
}

/// A sample of `size` bytes in a context, taken every so many bytes; 0: every allocation.
pub fn add(counting: &Counting, lane: &mut Lane, number: ContextId, (size, interval): (u64, u32)) {
    let objects = lane.weight.of(size, interval);
    let cell = match lane.samples.get(&number) {
        Some(known) => *known,
        None => {
            let Some(cell) = cells::new_cell(counting, lane, number) else {
                lane.lost_cell().add(objects, 0);
                return;
            };
            cells::sweep_samples(counting, lane);
            lane.samples.insert(number, cell);
            cell
        }
    };
    cell.add(objects, objects.saturating_mul(size));
}
