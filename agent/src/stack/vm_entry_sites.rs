//! Remembers calls of methods that can be VM entries, and native methods that make VM entries. There, one or two
//! frames prove the slot without a walk.
//!
//! A program that calls `ClassLoader.loadClass` enters a method that asks the VM for its caller, repeatedly from the
//! same places. A frame stopped at an instrumented call has just executed its hook. So the thread's pointer is valid:
//! in between, Java code runs only in VM entries, and these restore the pointer. The proof is that the caller's frame
//! is at that very instruction. The VM's current code is read once to find these instructions, after a place has
//! occurred several times.

use std::sync::Arc;

use lucce_callgraph::SiteId;
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedRwLock;
use crate::registry::ClassLoaderId;
use crate::stack::StackParts;
use crate::stack::frames::{ResolvedFrame, ResolvedMethod};
use lucce_jvmti::JniEnvironment;

/// Occurrences of a place before its code is read. Most places occur a few times, while a program starts.
const OFTEN: u8 = 8;

/// What is known about the site in the slot below the pointer at a VM entry.
#[derive(Clone)]
pub enum VmEntrySite {
    /// All callers were matched, this number of times.
    Seen(u8),
    /// The site calls a native method, in the middle of which the VM enters methods.
    Native,
    /// The site belongs to the hook before the call at this location.
    Call(Arc<ResolvedMethod>, i64),
    /// One frame proves nothing.
    Unclear,
}

/// What is known about the call sites of VM entries, by the site in the slot below the pointer.
#[derive(Default)]
pub struct VmEntrySites(WatchedRwLock<FxHashMap<SiteId, VmEntrySite>>);

impl VmEntrySites {
    pub fn get_site(&self, site: SiteId) -> Option<VmEntrySite> {
        let places = self.0.read();
        places.get(&site).cloned()
    }

    fn set_site(&self, site: SiteId, place: VmEntrySite) {
        let mut places = self.0.write();
        places.insert(site, place);
    }

    /// Records that the frame at this site called a native method.
    pub fn record_native_call(&self, site: SiteId) {
        self.set_site(site, VmEntrySite::Native);
    }

    /// Records a VM entry whose `caller` was at this site, with a valid pointer. The caller may have called the
    /// method itself.
    pub fn record_call(
        &self,
        agent: StackParts<'_>,
        env: JniEnvironment,
        site: SiteId,
        caller: &ResolvedFrame,
    ) {
        let place = match self.get_site(site).unwrap_or(VmEntrySite::Seen(0)) {
            VmEntrySite::Seen(times) if times < OFTEN => VmEntrySite::Seen(times + 1),
            VmEntrySite::Seen(_) if is_after_call_hook(agent, env, caller) => {
                VmEntrySite::Call(Arc::clone(&caller.method), caller.location)
            }
            // For example, code has changed.
            VmEntrySite::Seen(_) | VmEntrySite::Native | VmEntrySite::Call(..) => {
                VmEntrySite::Unclear
            }
            VmEntrySite::Unclear => return,
        };
        self.set_site(site, place);
    }

    /// Forgets all sites, because methods may have other code now.
    pub fn forget_all(&self) {
        let mut places = self.0.write();
        *places = FxHashMap::default();
    }

    /// Forgets the callers of unloaded loaders.
    pub fn forget_loaders(&self, loaders: &[ClassLoaderId]) {
        let mut places = self.0.write();
        places.retain(|_, place| match place {
            VmEntrySite::Call(method, _) => !loaders.contains(&method.loader()),
            _ => true,
        });
    }
}

/// Whether the frame is at a call directly after the hook of calls.
fn is_after_call_hook(agent: StackParts<'_>, env: JniEnvironment, frame: &ResolvedFrame) -> bool {
    let method = frame.method.vm_id();
    // The constants are those of the current class.
    if agent.core.jvmti.is_obsolete(method) {
        return false;
    }
    let Some(class) = agent.core.jvmti.declaring_class(method) else {
        return false;
    };
    let pool = agent.core.jvmti.constant_pool(class);
    env.delete_local(class);
    let (Some((count, pool)), Ok(at)) = (pool, u16::try_from(frame.location)) else {
        return false;
    };
    lucce_instrument::is_published_call(
        &agent.core.jvmti.method_bytecodes(method),
        at,
        count,
        &pool,
    )
}
