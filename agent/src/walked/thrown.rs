//! Exceptions where classes have no hooks: what is thrown, by bytecode, by native methods and by the VM itself, and
//! whether a method that the thread is in catches it.

use jvmti_bindings::sys::jni::jobject;
use lucce_vm::Env;

use crate::counting::Counting;
use crate::events::exception::{CAUGHT, UNCAUGHT};
use crate::memory::counter::count;
use crate::walked::sampled::{Spot, with_local};

/// The current thread throws `exception`.
pub fn thrown(
    counting: &'static Counting,
    env: Env,
    (thread, exception): (jobject, jobject),
    is_caught: bool,
) {
    if counted(counting, env, (thread, exception), is_caught).is_none() {
        count(&counting.counts.events_lost);
    }
}

/// `None`: it is lost.
fn counted(
    counting: &'static Counting,
    env: Env,
    (thread, exception): (jobject, jobject),
    is_caught: bool,
) -> Option<()> {
    let kind = if is_caught { &CAUGHT } else { &UNCAUGHT };
    with_local(counting, |local| {
        // Without a frame that is shown it has no context.
        let Some(number) = local.number((env, thread), Spot::default())? else {
            return Some(());
        };
        let event = super::event(counting, env, exception, kind)?;
        local.count(env, thread, (number, event), 0)
    })?
}
