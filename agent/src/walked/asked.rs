//! What programs ask for by `CallContext` and the native interface where no class has hooks: the VM is asked for the stack
//! each time.

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_vm::Env;

use crate::counting::Counting;
use crate::counting::event_types::own_kind;
use crate::memory::counter::count;
use crate::thread::tags::TagSet;
use crate::thread::under;
use crate::walked::kept::{self, Scope};
use crate::walked::sampled::{Spot, with_local};

/// The number of where the current thread is, whose innermost `own` frames do not count. `None`: that is not known, or
/// no frame is shown.
pub fn number(counting: &'static Counting, env: Env, own: usize) -> Option<ContextId> {
    shown(counting, env, own).flatten()
}

/// As [`number`]. `None`: it is not known; without any: no frame is shown.
pub fn shown(counting: &'static Counting, env: Env, own: usize) -> Option<Option<ContextId>> {
    let shown = in_thread(counting, env, |thread| {
        Some(shown_in(counting, (env, thread), own))
    });
    // The VM makes the object of a thread that is about to begin.
    shown.unwrap_or_else(|| counting.jvmti.frame(0).is_none().then_some(None))
}

fn shown_in(
    counting: &'static Counting,
    whose: (Env, jobject),
    own: usize,
) -> Option<Option<ContextId>> {
    let spot = Spot {
        own,
        location: None,
    };
    with_local(counting, |local| local.number(whose, spot))?
}

/// An event of the program's own there; its number. `None`: it is lost.
pub fn event(
    counting: &'static Counting,
    env: Env,
    (kind, value): (&str, i64),
    own: usize,
) -> Option<ContextId> {
    let counted = in_thread(counting, env, |thread| {
        let number = shown_in(counting, (env, thread), own)??;
        let event = counting.event_type(&own_kind(kind), "", "")?;
        let value = u64::try_from(value).unwrap_or(0);
        with_local(counting, |local| {
            local.count(env, thread, (number, event), value)
        })??;
        Some(number)
    });
    if counted.is_none() {
        count(&counting.counts.events_lost);
    }
    counted
}

/// From now on the current thread counts under one more tag. The number by which that is closed; 0: it is as it was.
pub fn tag(counting: &'static Counting, env: Env, tag: (&str, &str)) -> u64 {
    kept::asked(counting);
    let number = in_thread(counting, env, |thread| {
        let opened = kept::with(counting, thread, |kept| {
            under::opened(counting, &mut kept.tags, tag)
        });
        let (number, sets) = opened.flatten()?;
        leave(counting, sets);
        Some(number)
    });
    number.unwrap_or(0)
}

/// What was opened with this number is closed, and what was opened since.
pub fn untag(counting: &'static Counting, env: Env, number: u64) {
    in_thread(counting, env, |thread| {
        let closed = kept::with_known(counting, thread, |kept| {
            under::closed(&mut kept.tags, number)
        });
        leave(counting, closed.flatten()?);
        Some(())
    });
}

/// Lanes of the tags that hold no more are free for other threads.
fn leave(counting: &'static Counting, (from, to): (TagSet, TagSet)) {
    if from != to {
        let _ = with_local(counting, |local| local.leaves(from));
    }
}

/// The method that has called the innermost `own` ones goes on from where `number` was taken, until its scope ends.
pub fn scope_begins(counting: &'static Counting, env: Env, number: ContextId, own: usize) {
    kept::asked(counting);
    in_thread(counting, env, |thread| {
        let depth = with_local(counting, |local| local.depth(own)).flatten()?;
        kept::with(counting, thread, |kept| {
            // Frames of that depth and beyond are new ones.
            kept.scopes.retain(|scope| scope.depth < depth);
            kept.scopes.push(Scope { depth, number });
        })
    });
}

/// The innermost scope of the current thread ends.
pub fn scope_ends(counting: &'static Counting, env: Env) {
    in_thread(counting, env, |thread| {
        kept::with_known(counting, thread, |kept| kept.scopes.pop()).flatten()
    });
}

fn in_thread<T>(
    counting: &Counting,
    env: Env,
    body: impl FnOnce(jobject) -> Option<T>,
) -> Option<T> {
    let thread = counting.jvmti.current_thread()?;
    let done = body(thread);
    env.forget(thread);
    done
}
