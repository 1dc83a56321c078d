//! Calls of methods that the VM enters, too, by code and by natives that have said so: where one frame more tells what a walk
//! would.
//!
//! A program that calls `ClassLoader.loadClass` by itself comes to a method that asks the VM who called, again and again
//! from the same places. Who stands at a call with a hook before it has just run that hook: the thread's pointer is right,
//! as no other Java code has run in between but what is entered like this, and that puts the pointer back. So it is
//! enough that the caller's frame stands at that very instruction. Which those are is read once, of the code that the
//! VM runs, where a place has come a few times.

use std::sync::Arc;

use lucce_callgraph::SiteId;
use rustc_hash::FxHashMap;

use crate::memory::locks::WatchedRwLock;
use crate::registry::ClassLoaderId;
use crate::stack::StackTracker;
use crate::stack::frames::{ResolvedFrame, ResolvedMethod};
use lucce_jvmti::JniEnvironment;

/// So often a place comes before its code is read: most come a few times, while a program starts.
const OFTEN: u8 = 8;

/// What is known of the site in the slot below the pointer, where the VM has entered a method.
#[derive(Clone)]
pub enum VmEntrySite {
    /// All callers were asked for, so many times.
    Seen(u8),
    /// It calls a native, in the middle of which the VM enters methods.
    Native,
    /// It is that of the hook before the call at this location.
    Call(Arc<ResolvedMethod>, i64),
    /// One frame does not tell.
    Unclear,
}

#[derive(Default)]
pub struct VmEntryCache(WatchedRwLock<FxHashMap<SiteId, VmEntrySite>>);

impl VmEntryCache {
    pub fn get_site(&self, site: SiteId) -> Option<VmEntrySite> {
        let places = self.0.read();
        places.get(&site).cloned()
    }

    fn set_site(&self, site: SiteId, place: VmEntrySite) {
        let mut places = self.0.write();
        places.insert(site, place);
    }

    /// The frame at this site called a native.
    pub fn record_native_call(&self, site: SiteId) {
        self.set_site(site, VmEntrySite::Native);
    }

    /// `caller` stood at this site, the pointer was right, and a method was entered that may have been called from there.
    pub fn record_call(
        &self,
        stack: &StackTracker,
        env: JniEnvironment,
        site: SiteId,
        caller: &ResolvedFrame,
    ) {
        let place = match self.get_site(site).unwrap_or(VmEntrySite::Seen(0)) {
            VmEntrySite::Seen(times) if times < OFTEN => VmEntrySite::Seen(times + 1),
            VmEntrySite::Seen(_) if is_after_call_hook(stack, env, caller) => {
                VmEntrySite::Call(Arc::clone(&caller.method), caller.location)
            }
            // Code has changed, say.
            VmEntrySite::Seen(_) | VmEntrySite::Native | VmEntrySite::Call(..) => {
                VmEntrySite::Unclear
            }
            VmEntrySite::Unclear => return,
        };
        self.set_site(site, place);
    }

    /// Methods may have other code now.
    pub fn forget_all(&self) {
        let mut places = self.0.write();
        *places = FxHashMap::default();
    }

    /// The VM has unloaded these loaders' classes.
    pub fn forget_loaders(&self, loaders: &[ClassLoaderId]) {
        let mut places = self.0.write();
        places.retain(|_, place| match place {
            VmEntrySite::Call(method, _) => !loaders.contains(&method.loader()),
            _ => true,
        });
    }
}

/// Whether the frame stands at a call right before which the hook of calls is.
fn is_after_call_hook(stack: &StackTracker, env: JniEnvironment, frame: &ResolvedFrame) -> bool {
    let method = frame.method.vm_id();
    // The constants are those of the class as it is now.
    if stack.jvmti.is_obsolete(method) {
        return false;
    }
    let Some(class) = stack.jvmti.declaring_class(method) else {
        return false;
    };
    let pool = stack.jvmti.constant_pool(class);
    env.delete_local(class);
    let (Some((count, pool)), Ok(at)) = (pool, u16::try_from(frame.location)) else {
        return false;
    };
    lucce_instrument::is_published_call(&stack.jvmti.method_bytecodes(method), at, count, &pool)
}
