//! Virtual threads that act as their carrier.
//!
//! In JDK 21 a virtual thread does some work as its carrier, on its own stack. It schedules the end of its own wait,
//! and the continuation of an unparked thread. `Thread.currentThread()` is the carrier then. So the helper class
//! exchanges the values of both threads' fields (`toCarrier`). For JVMTI the current thread is still the virtual one.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::jobject;

use crate::thread::OwnState;
use crate::thread::ThreadParts;
use lucce_jvmti::FieldId;
use lucce_jvmti::JniEnvironment;

/// Whether virtual threads of this JDK act as their carrier.
static ACTS_AS_CARRIER: AtomicBool = AtomicBool::new(false);

/// The field `VirtualThread.carrierThread`. `None`: the JDK has no such field.
static CARRIER: OnceLock<Option<FieldId>> = OnceLock::new();

/// Called when the methods in which threads act as their carrier have hooks.
pub fn enable_carrier_lookup() {
    ACTS_AS_CARRIER.store(true, Ordering::Relaxed);
}

/// Runs `body` with the thread whose fields hold the values of `thread`, which is the current thread for JVMTI.
pub fn with_field_holder<T>(
    agent: ThreadParts<'_>,
    env: JniEnvironment,
    thread: jobject,
    body: impl FnOnce(jobject) -> T,
) -> T {
    let carrier = find_carrier(agent, env, thread);
    let result = body(carrier.unwrap_or(thread));
    if let Some(carrier) = carrier {
        env.delete_local(carrier);
    }
    result
}

/// The carrier that a virtual thread acts as.
fn find_carrier(agent: ThreadParts<'_>, env: JniEnvironment, thread: jobject) -> Option<jobject> {
    if !ACTS_AS_CARRIER.load(Ordering::Relaxed) || !env.is_virtual_thread(thread) {
        return None;
    }
    let fields = agent.core.fields.get()?;
    // Its field holds the carrier's state.
    // SAFETY: `thread` is the current thread, so its field holds the state of the thread that runs here.
    let own = unsafe { OwnState::from_field(env.get_long(thread, fields.state.as_raw())) };
    if own.get()?.is_virtual {
        return None;
    }
    let field = CARRIER.get_or_init(|| {
        let class = env.class_of(thread);
        let field = env.field_id(class, c"carrierThread", c"Ljava/lang/Thread;");
        env.delete_local(class);
        field.map(FieldId::new)
    });
    let carrier = env.get_object(thread, (*field)?.as_raw());
    (!carrier.is_null()).then_some(carrier)
}
