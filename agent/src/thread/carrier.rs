//! In JDK 21 a virtual thread does some things as its carrier, on its own stack: it schedules its own end of waiting, and
//! what goes on when another one is unparked. `Thread.currentThread()` is the carrier then, so the helper class has the two
//! change what they hold (`toCarrier`); for the tool interface the current thread is still the virtual one.
#![allow(unsafe_code, reason = "the state that the current thread holds")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti_bindings::sys::jni::jobject;

use crate::thread::Counters;
use crate::thread::OwnState;
use lucce_vm::Env;
use lucce_vm::Field;

/// Whether the JDK has virtual threads that act so.
static ACT: AtomicBool = AtomicBool::new(false);

/// `VirtualThread.carrierThread`; `None`: the JDK has none.
static CARRIER: OnceLock<Option<Field>> = OnceLock::new();

/// The methods by which they do have their hooks.
pub fn hooked() {
    ACT.store(true, Ordering::Relaxed);
}

/// Runs `body` with the thread whose fields hold what belongs to `thread`, the current one for the tool
/// interface.
pub fn holder<T>(
    counters: &Counters,
    env: Env,
    thread: jobject,
    body: impl FnOnce(jobject) -> T,
) -> T {
    let carrier = carrier(counters, env, thread);
    let found = body(carrier.unwrap_or(thread));
    if let Some(carrier) = carrier {
        env.forget(carrier);
    }
    found
}

/// The carrier that a virtual thread acts as.
fn carrier(counters: &Counters, env: Env, thread: jobject) -> Option<jobject> {
    if !ACT.load(Ordering::Relaxed) || !env.is_virtual_thread(thread) {
        return None;
    }
    let fields = counters.fields.get()?;
    // It holds its carrier's.
    // SAFETY: of the current thread.
    let own = unsafe { OwnState::of_field(env.get_long(thread, fields.state.id())) };
    if own.get()?.is_virtual {
        return None;
    }
    let field = CARRIER.get_or_init(|| {
        let class = env.class_of(thread);
        let field = env.field(class, c"carrierThread", c"Ljava/lang/Thread;");
        env.forget(class);
        field.map(Field::new)
    });
    let carrier = env.get_object(thread, (*field)?.id());
    (!carrier.is_null()).then_some(carrier)
}
