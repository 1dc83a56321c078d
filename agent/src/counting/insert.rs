//! The cell for events at a site, when a thread meets that site in a context for the first time.

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_hooks::kinds::{CALL, counted_as};
use lucce_vm::Env;

use crate::book;
use crate::book::What;
use crate::counting::{Counting, sizes};
use crate::memory::counter::count;
use crate::stack::contexts;
use crate::thread::ThreadState;
use crate::thread::cells;
use crate::thread::cells::lane_of;
use crate::thread::lane::{Lane, address_of};

/// The cell for events at `site` of a frame with this context.
pub fn insert(
    counting: &Counting,
    env: Env,
    state: &ThreadState,
    (context, site): (u64, SiteId),
    info: &book::SiteInfo,
) -> Option<usize> {
    // A lane of an earlier thread may have it.
    if let Some(known) = lane_of(counting, env, state).find(context, site.0) {
        return Some(known);
    }
    let frame = contexts::number(counting, state, context);
    let number = match frame {
        ContextId::UNKNOWN => frame,
        _ => {
            if let What::New(_) = info.what {
                sizes::ask_once(counting, env, site.0);
            }
            counting.encoder.event(frame, site, MethodId(info.method))
        }
    };
    if number == ContextId::UNKNOWN {
        count(&counting.counts.events_lost);
        return None;
    }
    let lane = &mut *lane_of(counting, env, state);
    cells::sweep(counting, lane);
    let kind = match info.what {
        What::Entry => Some(CALL.name),
        What::Of(of) => counted_as(of),
        _ => None,
    };
    let cell = match kind {
        Some(kind) => typed_cell(counting, lane, number, kind),
        None => match cells::new_cell(counting, lane, number) {
            Some(cell) => address_of(cell),
            None => address_of(lane.lost_cell()),
        },
    };
    lane.insert(context, site.0, cell);
    state.indexed(lane);
    Some(cell)
}

/// The address of a cell by type, at a site that has events of one type only.
fn typed_cell(counting: &Counting, lane: &mut Lane, number: ContextId, kind: &str) -> usize {
    let event = counting.event_type(kind, "", "");
    let cell = event.and_then(|event| cells::event_cell(counting, lane, number, event));
    address_of(cell.unwrap_or_else(|| lane.lost_event_cell()))
}
