//! Classes that the VM has unloaded: what the agent holds of them is given back. Their code runs nowhere and never will,
//! the log has what their numbers need, and no id or number is given out twice.
//!
//! Methods, sites and names leave the book; when enough have, contexts through them leave the graph and the tables that
//! Java code reads, and threads' indices forget them before they would grow (`ThreadCounters::sweep_index`).

use lucce_callgraph::{DeadCode, MethodId, SiteId};
use lucce_instrument::INTRINSICS;

use crate::memory::address_space::MethodOfSite;
use crate::memory::bit_set::BitSet;
use crate::registry::ClassLoaderId;
use crate::stack::StackTracker;

/// The VM has unloaded these loaders' classes.
pub fn forget_loaders(stack: &StackTracker, loaders: &[ClassLoaderId]) {
    stack.frames.forget_loaders(loaders);
    stack.vm_entry_cache.forget_loaders(loaders);
    // What is made next may have their addresses.
    stack.verified_traces.forget_all();
    if stack.comparison.may_forget(&stack.options) {
        stack.registry_mut().remove_loaders(loaders);
        sweep_unloaded(stack);
    }
}

/// Sweeps book and graph if enough has gone from the book.
pub fn sweep_unloaded(stack: &StackTracker) {
    if !stack.registry().is_sweep_due() || !stack.comparison.may_forget(&stack.options) {
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
    // The encoder takes its own lock before the book's.
    drop(book);
    stack.encoder.sweep_dead_code(&gone);
    // And what was compared meanwhile may be among what has gone.
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
        // The first ones are reserved: their methods may come yet.
        site.0 as usize > INTRINSICS.len() && site.0 <= SiteId::MAX && self.sites.get(site.0) == 0
    }
}
