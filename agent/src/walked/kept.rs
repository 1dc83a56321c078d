//! What a thread keeps wherever it goes on, in the tool interface's storage for threads: a virtual thread may go on on
//! another native thread than before.
#![allow(unsafe_code, reason = "storage by a pointer")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jvmti_bindings::sys::jni::jobject;
use jvmti_bindings::sys::jvmti as ti;
use lucce_callgraph::ContextId;
use lucce_vm::{Env, Jvmti};

use crate::counting::Counting;
use crate::thread::tags::{OpenTags, TagSet};
use crate::walked::locks::Waits;

/// A frame of `CallContext.Scope` whose callers are those of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Frames from the outermost one to this one, both of them counted.
    pub depth: usize,
    pub number: ContextId,
}

/// Of one thread.
#[derive(Default)]
pub struct Kept {
    pub waits: Waits,
    pub tags: OpenTags,
    /// The outermost first, which has the least depth.
    pub scopes: Vec<Scope>,
}

impl Kept {
    fn new() -> Kept {
        // So that no number of a tag that was closed is ever that of another tag.
        const TAGS: u64 = 1 << 32;
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        Kept {
            tags: OpenTags::numbered_from(TAGS * BEGUN.fetch_add(1, Ordering::Relaxed)),
            ..Kept::default()
        }
    }

    fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.tags.is_empty() && self.scopes.is_empty()
    }
}

/// Whether any thread has had a tag or a scope: until then events need not look.
static ASKED: AtomicBool = AtomicBool::new(false);

/// What `body` does with what the thread keeps, or will keep from now on. It must not call the VM. `None`: the VM has no
/// memory for it.
pub fn with<T>(
    counting: &Counting,
    thread: jobject,
    body: impl FnOnce(&mut Kept) -> T,
) -> Option<T> {
    let known = counting.jvmti.kept(thread)?.cast::<Kept>();
    let kept = match known.is_null() {
        true => Box::into_raw(Box::new(Kept::new())),
        false => known,
    };
    // SAFETY: made here, and used by callbacks of its own thread only, one after the other.
    let done = body(unsafe { &mut *kept });
    if known.is_null() && counting.jvmti.keep(thread, kept.cast()).is_err() {
        // SAFETY: made above, and no other owner has it.
        drop(unsafe { Box::from_raw(kept) });
        return None;
    }
    Some(done)
}

/// As [`with`], of a thread that keeps something: when that is nothing any more, the storage is given back.
pub fn with_known<T>(
    counting: &Counting,
    thread: jobject,
    body: impl FnOnce(&mut Kept) -> T,
) -> Option<T> {
    let kept = counting.jvmti.kept(thread)?.cast::<Kept>();
    // SAFETY: null, or as in with().
    let known = unsafe { kept.as_mut() }?;
    let done = body(known);
    if known.is_empty() && counting.jvmti.keep(thread, ptr::null_mut()).is_ok() {
        // SAFETY: made in with(), and the thread has it no more.
        drop(unsafe { Box::from_raw(kept) });
    }
    Some(done)
}

/// The program has asked for tags or scopes: from now on events look, and what a thread leaves open ends with it.
pub fn asked(counting: &Counting) {
    if ASKED.swap(true, Ordering::Relaxed) {
        return;
    }
    // The second one is known to JDK 21 and later.
    for event in [
        ti::JVMTI_EVENT_THREAD_END,
        ti::JVMTI_EVENT_VIRTUAL_THREAD_END,
    ] {
        let _ = counting.jvmti.enable(event);
    }
}

/// The tags that the thread counts under now.
pub fn tags(counting: &Counting, thread: jobject) -> TagSet {
    if_asked(counting, thread, |kept| kept.tags.now())
}

/// The scopes that the thread is in now.
pub fn scopes(counting: &Counting, thread: jobject) -> Vec<Scope> {
    if_asked(counting, thread, |kept| kept.scopes.clone())
}

fn if_asked<T: Default>(
    counting: &Counting,
    thread: jobject,
    of: impl FnOnce(&mut Kept) -> T,
) -> T {
    match ASKED.load(Ordering::Relaxed) {
        true => with_known(counting, thread, of).unwrap_or_default(),
        false => T::default(),
    }
}

/// The thread ends.
pub fn ends(jvmti: Jvmti, thread: jobject) {
    let kept = jvmti.kept(thread).filter(|kept| !kept.is_null());
    if let Some(kept) = kept
        && jvmti.keep(thread, ptr::null_mut()).is_ok()
    {
        // SAFETY: made in with(); the thread has it no more, and no callback uses it.
        drop(unsafe { Box::from_raw(kept.cast::<Kept>()) });
    }
}

/// The agent leaves the VM, and no event comes any more: what threads keep is forgotten.
pub fn let_go(jvmti: Jvmti, env: Env) {
    ASKED.store(false, Ordering::Relaxed);
    for thread in jvmti.threads() {
        ends(jvmti, thread);
        env.forget(thread);
    }
}
