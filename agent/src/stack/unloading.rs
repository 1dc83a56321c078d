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
use crate::stack::StackTracker;

/// Frees everything about classes of these unloaded loaders.
pub fn forget_loaders(stack: &StackTracker, loaders: &[ClassLoaderId]) {
    stack.frames.forget_loaders(loaders);
    stack.vm_entry_cache.forget_loaders(loaders);
    // New methods may get the addresses of freed ones.
    stack.verified_traces.forget_all();
    if stack.tracking.may_forget(&stack.options) {
        stack.registry_mut().remove_loaders(loaders);
        sweep_unloaded(stack);
    }
}

/// Sweeps registry and graph if enough methods have left the registry.
pub fn sweep_unloaded(stack: &StackTracker) {
    if !stack.registry().is_sweep_due() || !stack.tracking.may_forget(&stack.options) {
        return;
    }
    let mut book = stack.registry_mut();
    if !book.is_sweep_due() {
        return;
    }
    book.sweep_indexes();
    let gone = UnloadedCode {
        methods: book.removed_methods().clone(),
        sites: stack.method_of_site,
    };
    // Lock order: the encoder takes its own lock before the registry's.
    drop(book);
    stack.encoder.sweep_dead_code(&gone);
    // Traces that were compared meanwhile may contain freed methods.
    stack.verified_traces.forget_all();
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
