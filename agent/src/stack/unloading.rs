//! Frees what the agent holds of classes that the VM has unloaded. Their code never runs again. The log keeps what
//! their numbers need, and no id or number is reused.
//!
//! Methods, sites and names leave the code registry. After enough of them, their contexts leave the graph and the
//! tables that Java code reads. Threads' indices drop such contexts before they would grow
//! (`ThreadCounters::sweep_index`).

use lucce_callgraph::{DeadCode, MethodId, SiteId};
use lucce_instrument::INTRINSICS;

use crate::memory::address_space::MethodOfSite;
use crate::memory::bit_set::BitSet;
use crate::registry::ClassLoaderId;
use crate::stack::StackParts;

/// Frees everything about classes of these unloaded loaders.
pub fn forget_loaders(agent: StackParts<'_>, loaders: &[ClassLoaderId]) {
    agent.stack.frames.forget_loaders(loaders);
    agent.stack.vm_entry_sites.forget_loaders(loaders);
    // New methods may get the addresses of freed ones.
    agent.stack.verified_traces.forget_all();
    if agent.counters.tracking.may_forget(&agent.core.options) {
        agent.core.registry_mut().remove_loaders(loaders);
        sweep_unloaded(agent);
    }
}

/// Sweeps registry and graph if enough methods have left the registry.
pub fn sweep_unloaded(agent: StackParts<'_>) {
    if !agent.core.registry().is_sweep_due()
        || !agent.counters.tracking.may_forget(&agent.core.options)
    {
        return;
    }
    let mut registry = agent.core.registry_mut();
    if !registry.is_sweep_due() {
        return;
    }
    registry.sweep_indexes();
    let gone = UnloadedCode {
        methods: registry.removed_methods().clone(),
        sites: agent.core.method_of_site,
    };
    // Lock order: the encoder takes its own lock before the registry's.
    drop(registry);
    agent.core.encoder.sweep_dead_code(&gone);
    // Traces that were compared meanwhile may contain freed methods.
    agent.stack.verified_traces.forget_all();
}

struct UnloadedCode {
    methods: BitSet,
    sites: MethodOfSite,
}

impl DeadCode for UnloadedCode {
    fn is_method_dead(&self, method: MethodId) -> bool {
        self.methods.contains(method.0)
    }

    fn is_site_dead(&self, site: SiteId) -> bool {
        // The first sites are reserved: their methods may be added later.
        site.0 as usize > INTRINSICS.len() && site.0 <= SiteId::MAX && self.sites.get(site.0) == 0
    }
}
