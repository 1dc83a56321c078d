//! Creates the counter for events at a site when a thread first meets that site in a context.

use lucce_callgraph::{ContextId, MethodId, SiteId};
use lucce_instrument::kinds::{CALL, counted_as};
use lucce_jvmti::JniEnvironment;

use crate::counting::{CountingParts, object_sizes};
use crate::memory::counter::increment_counter;
use crate::registry::RegisteredSiteKind;
use crate::stack::contexts;
use crate::thread::ThreadState;
use crate::thread::counter_access;
use crate::thread::counter_access::current_counters;
use crate::thread::thread_counters::{ThreadCounters, counter_address};

/// The address of the counter for events at `site` of a frame with this context.
pub fn insert_counter(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    (context, site): (u64, SiteId),
) -> Option<usize> {
    increment_counter(&agent.core.counts.counters_requested);
    // The counters may come from an earlier thread that has it.
    if let Some(known) =
        current_counters(agent.thread_parts(), env, state).find_counter(context, site.0)
    {
        return Some(known);
    }
    let site_events = find_site_events(agent, env, site)?;
    let frame = contexts::context_number(agent.stack_parts(), state, context);
    let number = match frame {
        ContextId::UNKNOWN => frame,
        _ => agent
            .core
            .encoder
            .encode_event(frame, site, site_events.method),
    };
    if number == ContextId::UNKNOWN {
        increment_counter(&agent.core.counts.events_dropped);
        return None;
    }
    let counters = &mut *current_counters(agent.thread_parts(), env, state);
    counter_access::sweep_index(agent.thread_parts(), counters);
    let cell = match site_events.kind {
        Some(kind) => typed_counter(agent, counters, number, kind),
        None => match counter_access::new_counter(agent.thread_parts(), counters, number) {
            Some(cell) => counter_address(cell),
            None => counter_address(counters.dropped_counter()),
        },
    };
    counters.insert_counter(context, site.0, cell);
    state.publish_index(counters);
    Some(cell)
}

/// What the counters of a site need.
struct SiteEvents {
    method: MethodId,
    /// The kind of all events, for counters by type.
    kind: Option<&'static str>,
}

/// Finds what the counters of a site need. The first call writes the size of the site's objects to the log. `None`: there
/// is no such site.
fn find_site_events(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    site: SiteId,
) -> Option<SiteEvents> {
    let sites = agent.core.method_of_site;
    if sites.is_countable(site.0) {
        let method = MethodId(sites.get(site.0));
        return Some(SiteEvents { method, kind: None });
    }
    let info = agent.core.registry().site(site.0)?;
    let kind = match info.kind {
        RegisteredSiteKind::Entry => Some(CALL.name),
        RegisteredSiteKind::EventCall(of) => counted_as(of),
        _ => None,
    };
    if let RegisteredSiteKind::New(_) = info.kind {
        object_sizes::record_site_size(agent, env, site.0);
    }
    // Other tracking modes keep values for contexts that Java code cannot turn into numbers.
    if kind.is_none() && agent.counters.tracking.is_lazy() {
        sites.mark_countable(site.0);
    }
    let method = MethodId(info.method);
    Some(SiteEvents { method, kind })
}

/// The address of a counter by type, at a site with events of one type only.
fn typed_counter(
    agent: CountingParts<'_>,
    counters: &mut ThreadCounters,
    number: ContextId,
    kind: &str,
) -> usize {
    let event = agent.find_or_add_event_type(kind, "", "");
    let cell = event.and_then(|event| {
        counter_access::event_counter(agent.thread_parts(), counters, number, event)
    });
    counter_address(cell.unwrap_or_else(|| counters.dropped_event_counter()))
}
