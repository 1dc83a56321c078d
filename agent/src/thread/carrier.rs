//! In JDK 21 a virtual thread does some things as its carrier, on its own stack: it schedules its own end of waiting, and
//! what goes on when another one is unparked. `Thread.currentThread()` is the carrier then, so the helper class has the two
//! change what they hold (`toCarrier`); for the tool interface the current thread is still the virtual one.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::jobject;

use crate::thread::CounterStore;
use crate::thread::OwnState;
use lucce_jvmti::FieldId;
use lucce_jvmti::JniEnvironment;

/// Whether the JDK has virtual threads that act so.
static ACTS_AS_CARRIER: AtomicBool = AtomicBool::new(false);

/// `VirtualThread.carrierThread`; `None`: the JDK has none.
static CARRIER: OnceLock<Option<FieldId>> = OnceLock::new();

/// The methods by which they do have their hooks.
pub fn enable_carrier_lookup() {
    ACTS_AS_CARRIER.store(true, Ordering::Relaxed);
}

/// Runs `body` with the thread whose fields hold what belongs to `thread`, the current one for the tool
/// interface.
pub fn with_field_holder<T>(
    counters: &CounterStore,
    env: JniEnvironment,
    thread: jobject,
    body: impl FnOnce(jobject) -> T,
) -> T {
    let carrier = find_carrier(counters, env, thread);
    let found = body(carrier.unwrap_or(thread));
    if let Some(carrier) = carrier {
        env.delete_local(carrier);
    }
    found
}

/// The carrier that a virtual thread acts as.
fn find_carrier(counters: &CounterStore, env: JniEnvironment, thread: jobject) -> Option<jobject> {
    if !ACTS_AS_CARRIER.load(Ordering::Relaxed) || !env.is_virtual_thread(thread) {
        return None;
    }
    let fields = counters.fields.get()?;
    // It holds its carrier's.
    // SAFETY: of the current thread.
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
