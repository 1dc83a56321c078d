//! What programs ask for by `CallContext` and the native interface where no class has hooks: the VM is asked for the stack
//! each time.

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_vm::Env;

use crate::counting::Counting;
use crate::counting::event_types::own_kind;
use crate::memory::counter::count;
use crate::options::Level;
use crate::thread::tags::{Bound, TagSet};
use crate::walked::kept::{self, Scope};
use crate::walked::sampled::{Place, with_local};

/// The number of where the current thread is, whose innermost `own` frames do not count. `None`: that is not known, or
/// no frame is shown.
pub fn number(counting: &'static Counting, env: Env, own: usize) -> Option<ContextId> {
    in_thread(counting, env, |thread| {
        let place = Place {
            own,
            location: None,
        };
        with_local(counting, |local| local.number((env, thread), place))
            .flatten()
            .flatten()
    })
}

/// An event of the program's own there; its number. `None`: it is lost.
pub fn event(
    counting: &'static Counting,
    env: Env,
    (kind, value): (&str, i64),
    own: usize,
) -> Option<ContextId> {
    let counted = number(counting, env, own).filter(|number| {
        let event = counting.event_type(&own_kind(kind), "", "");
        let value = u64::try_from(value).unwrap_or(0);
        let counted = in_thread(counting, env, |thread| {
            let count = |event| {
                with_local(counting, |local| {
                    local.count(env, thread, (*number, event), value)
                })
            };
            event.and_then(count).flatten()
        });
        counted.is_some()
    });
    if counted.is_none() {
        count(&counting.counts.events_lost);
    }
    counted
}

/// From now on the current thread counts under one more tag. The number by which that is closed; 0: it is as it was.
pub fn tag(counting: &'static Counting, env: Env, (key, value): (&str, &str)) -> u64 {
    kept::asked(counting);
    let number = in_thread(counting, env, |thread| {
        let (outer, is_full) = kept::with(counting, thread, |kept| {
            (kept.tags.now(), kept.tags.is_full())
        })?;
        if is_full {
            tell(counting, Bound::Nested, key);
            return Some(0);
        }
        let (set, bound) = counting.tags.with(outer, key, value);
        if let Some(bound) = bound {
            tell(counting, bound, key);
        }
        let opened = kept::with(counting, thread, |kept| kept.tags.open(set));
        leave(counting, (outer, set));
        opened
    });
    number.unwrap_or(0)
}

/// What was opened with this number is closed, and what was opened since.
pub fn untag(counting: &'static Counting, env: Env, number: u64) {
    in_thread(counting, env, |thread| {
        let (before, outer) = kept::with_known(counting, thread, |kept| {
            let before = kept.tags.now();
            Some((before, kept.tags.close(number)?))
        })
        .flatten()?;
        leave(counting, (before, outer));
        Some(())
    });
}

/// Lanes of the tags that hold no more are free for other threads.
fn leave(counting: &'static Counting, (from, to): (TagSet, TagSet)) {
    if from != to {
        let _ = with_local(counting, |local| local.leaves(from));
    }
}

fn tell(counting: &Counting, bound: Bound, key: &str) {
    if counting.tags.is_new(bound) {
        counting.say(Level::Warn, &bound.text(key));
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
