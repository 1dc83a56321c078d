//! Data of a thread in JVMTI's thread-local storage. It follows a virtual thread, which may continue on another native thread.
#![allow(unsafe_code, reason = "storage by a pointer")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_jvmti::{JniEnvironment, Jvmti};
use lucce_tracelog::EventTypeId;

use crate::counting::CountingParts;
use crate::thread::monitor_waits::MonitorWaits;
use crate::thread::open_times::OpenMethodTimes;
use crate::thread::tags::{OpenTags, TagSet};

/// A frame of `CallContext.Scope` whose callers are replaced by a context number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallContextScope {
    /// Number of frames from the outermost one to this one, both included.
    pub depth: usize,
    pub number: ContextId,
}

/// The data of one thread.
#[derive(Default)]
pub struct ThreadStorage {
    /// What counts a wait: its context and its event type.
    pub waits: MonitorWaits<(ContextId, EventTypeId)>,
    pub tags: OpenTags,
    /// The outermost first, with the smallest depth.
    pub scopes: Vec<CallContextScope>,
    /// Named methods in progress whose times are recorded.
    pub open_times: OpenMethodTimes,
}

impl ThreadStorage {
    fn new() -> ThreadStorage {
        // The number of a closed tag is never that of another tag.
        const TAGS: u64 = 1 << 32;
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        ThreadStorage {
            tags: OpenTags::with_last_number(TAGS * BEGUN.fetch_add(1, Ordering::Relaxed)),
            ..ThreadStorage::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.waits.is_empty()
            && self.tags.is_empty()
            && self.scopes.is_empty()
            && self.open_times.is_empty()
    }
}

/// Whether any thread has had a tag or a scope. Until then events skip the look-up.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Runs `body` with the thread's data, which is created if necessary. `body` must not call the VM. `None`: the VM has no memory
/// for it.
pub fn with_storage<T>(
    agent: CountingParts<'_>,
    thread: jobject,
    body: impl FnOnce(&mut ThreadStorage) -> T,
) -> Option<T> {
    let known = agent
        .core
        .jvmti
        .thread_storage(thread)?
        .cast::<ThreadStorage>();
    let kept = match known.is_null() {
        true => Box::into_raw(Box::new(ThreadStorage::new())),
        false => known,
    };
    // SAFETY: this function made it. Only callbacks of its own thread use it, one after the other.
    let done = body(unsafe { &mut *kept });
    if known.is_null()
        && agent
            .core
            .jvmti
            .set_thread_storage(thread, kept.cast())
            .is_err()
    {
        // SAFETY: this call made it, and the VM has not taken it, so it has no other owner.
        drop(unsafe { Box::from_raw(kept) });
        return None;
    }
    Some(done)
}

/// Like [`with_storage`], for a thread with data. Data that has become empty is freed.
pub fn with_existing_storage<T>(
    agent: CountingParts<'_>,
    thread: jobject,
    body: impl FnOnce(&mut ThreadStorage) -> T,
) -> Option<T> {
    let kept = agent
        .core
        .jvmti
        .thread_storage(thread)?
        .cast::<ThreadStorage>();
    // SAFETY: null, or made by `with_storage`. Only callbacks of its own thread use it, one after the other.
    let storage = unsafe { kept.as_mut() }?;
    let done = body(storage);
    if storage.is_empty()
        && agent
            .core
            .jvmti
            .set_thread_storage(thread, ptr::null_mut())
            .is_ok()
    {
        // SAFETY: `with_storage` made it. The thread has just lost it, so nothing else refers to it.
        drop(unsafe { Box::from_raw(kept) });
    }
    Some(done)
}

/// The program uses tags or scopes: from now on events look them up, and a thread's open ones end with the thread.
pub fn enable_storage(agent: CountingParts<'_>) {
    if IS_USED.swap(true, Ordering::Relaxed) {
        return;
    }
    // The second event exists in JDK 21 and later.
    for event in [
        ti::JVMTI_EVENT_THREAD_END,
        ti::JVMTI_EVENT_VIRTUAL_THREAD_END,
    ] {
        let _ = agent.core.jvmti.enable_event(event);
    }
}

/// The tags that the thread counts under now.
pub fn current_tags(agent: CountingParts<'_>, thread: jobject) -> TagSet {
    read_if_used(agent, thread, |kept| kept.tags.current_set())
}

/// The scopes that the thread is in now.
pub fn current_scopes(agent: CountingParts<'_>, thread: jobject) -> Vec<CallContextScope> {
    read_if_used(agent, thread, |kept| kept.scopes.clone())
}

fn read_if_used<T: Default>(
    agent: CountingParts<'_>,
    thread: jobject,
    of: impl FnOnce(&mut ThreadStorage) -> T,
) -> T {
    match IS_USED.load(Ordering::Relaxed) {
        true => with_existing_storage(agent, thread, of).unwrap_or_default(),
        false => T::default(),
    }
}

/// Frees the data of a thread that ends.
pub fn end_thread(jvmti: Jvmti, thread: jobject) {
    let kept = jvmti.thread_storage(thread).filter(|kept| !kept.is_null());
    if let Some(kept) = kept
        && jvmti.set_thread_storage(thread, ptr::null_mut()).is_ok()
    {
        // SAFETY: `with_storage` made it. The thread has lost it, and no callback uses it.
        drop(unsafe { Box::from_raw(kept.cast::<ThreadStorage>()) });
    }
}

/// Frees the data of all threads when the agent leaves the VM. No event comes any more.
pub fn release_all(jvmti: Jvmti, env: JniEnvironment) {
    IS_USED.store(false, Ordering::Relaxed);
    for thread in jvmti.all_threads() {
        end_thread(jvmti, thread);
        env.delete_local(thread);
    }
}
