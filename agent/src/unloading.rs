//! Classes that the VM has unloaded: what the agent holds of them is given back. Their code runs nowhere and never will,
//! the log has what their numbers need, and no id or number is given out twice.
//!
//! Methods, sites and names leave the book; when enough have, contexts through them leave the graph and the tables that
//! Java code reads, and threads' indices forget them before they would grow (`Lane::sweep`).

use lucce_callgraph::{Gone, MethodId, SiteId};

use crate::agent::Agent;
use crate::bits::Bits;
use crate::book::Loader;
use crate::jvm::Env;
use crate::memory::MethodOfSite;
use crate::options::{Record, Tracking};
use crate::planner::INTRINSICS;

/// Looks after a few loaders; asked for whenever a class is loaded.
pub fn look(agent: &Agent, env: Env) {
    let gone = agent.loaders.gone(env);
    if !gone.is_empty() {
        forget(agent, &gone);
    }
}

fn forget(agent: &Agent, loaders: &[Loader]) {
    agent.frames.forget(loaders);
    // What is made next may have their addresses.
    agent.alike.forget_all();
    agent.originals.forget(loaders);
    agent.watch.forget_all(loaders);
    if !may_go(agent) {
        return;
    }
    agent.book_mut().leave(loaders);
    tidy(agent);
}

/// Sweeps book and graph if enough has gone from the book.
pub fn tidy(agent: &Agent) {
    if !agent.book().is_due() || !may_go(agent) {
        return;
    }
    let mut book = agent.book_mut();
    if !book.is_due() {
        return;
    }
    book.sweep();
    let gone = GoneCode {
        methods: book.gone_methods().clone(),
        sites: agent.method_of_site,
    };
    // The encoder takes its own lock before the book's.
    drop(book);
    agent.encoder.sweep(&gone);
    // And what was compared meanwhile may be among what has gone.
    agent.alike.forget_all();
}

/// Recordings, plans and the modes for comparison name methods by their ids until the end.
fn may_go(agent: &Agent) -> bool {
    let options = &agent.options;
    options.tracking == Tracking::Lazy
        && options.record != Record::Calls
        && options.encoding.adapt_after == 0
        && agent.matches.is_none()
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
