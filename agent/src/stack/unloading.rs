//! Classes that the VM has unloaded: what the agent holds of them is given back. Their code runs nowhere and never will,
//! the log has what their numbers need, and no id or number is given out twice.
//!
//! Methods, sites and names leave the book; when enough have, contexts through them leave the graph and the tables that
//! Java code reads, and threads' indices forget them before they would grow (`Lane::sweep`).

use lucce_callgraph::{Gone, MethodId, SiteId};
use lucce_hooks::INTRINSICS;

use crate::book::Loader;
use crate::memory::bits::Bits;
use crate::memory::map::MethodOfSite;
use crate::stack::Stack;

/// The VM has unloaded these loaders' classes.
pub fn forget(stack: &Stack, loaders: &[Loader]) {
    stack.frames.forget(loaders);
    stack.announced.forget(loaders);
    // What is made next may have their addresses.
    stack.alike.forget_all();
    if stack.comparison.may_forget(&stack.options) {
        stack.book_mut().leave(loaders);
        tidy(stack);
    }
}

/// Sweeps book and graph if enough has gone from the book.
pub fn tidy(stack: &Stack) {
    if !stack.book().is_due() || !stack.comparison.may_forget(&stack.options) {
        return;
    }
    let mut book = stack.book_mut();
    if !book.is_due() {
        return;
    }
    book.sweep();
    let gone = GoneCode {
        methods: book.gone_methods().clone(),
        sites: stack.method_of_site,
    };
    // The encoder takes its own lock before the book's.
    drop(book);
    stack.encoder.sweep(&gone);
    // And what was compared meanwhile may be among what has gone.
    stack.alike.forget_all();
}

struct GoneCode {
    methods: Bits,
    sites: MethodOfSite,
}

impl Gone for GoneCode {
    fn method(&self, method: MethodId) -> bool {
        self.methods.has(method.0)
    }

    fn site(&self, site: SiteId) -> bool {
        // The first ones are reserved: their methods may come yet.
        site.0 as usize > INTRINSICS.len() && site.0 <= SiteId::MAX && self.sites.get(site.0) == 0
    }
}
