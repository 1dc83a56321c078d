//! The methods by which the JDK's executors take, run and refuse tasks, and the classes that tasks are of.
//!
//! How it was made: read in `java.util.concurrent` of JDK 17, 21 and 25; rows of one JDK name it.

use lucce_bytecode::{Call, Method, NewField};

use crate::shape::Mark;

const POOL: &str = "java/util/concurrent/ThreadPoolExecutor";
const SCHEDULED_POOL: &str = "java/util/concurrent/ScheduledThreadPoolExecutor";
const FORK_JOIN_POOL: &str = "java/util/concurrent/ForkJoinPool";
const FORK_JOIN_TASK: &str = "java/util/concurrent/ForkJoinTask";
const FUTURE_TASK: &str = "java/util/concurrent/FutureTask";
const VIRTUAL_THREAD: &str = "java/lang/VirtualThread";

/// What a call means for tasks, if anything. `is_first`: of those with its name in the method.
pub fn mark(
    class: &str,
    method: &Method<'_>,
    call: &Call<'_>,
    is_first: &dyn Fn() -> bool,
) -> Option<Mark> {
    match (class, &*method.name, &*call.name) {
        (POOL, "execute", "get") if is_first() => Some(Mark::Submit(Some(1))),
        (POOL, "execute", "reject") => Some(Mark::Reject(1)),
        (POOL, "runWorker", "run") => Some(Mark::Run),
        (POOL, "runWorker", "afterExecute") => Some(Mark::Ran),
        (SCHEDULED_POOL, "delayedExecute", "add") => Some(Mark::Submit(None)),
        // What virtual threads are scheduled by.
        (FORK_JOIN_POOL, "lazySubmit", _) => None,
        (FORK_JOIN_POOL, _, "poolSubmit" | "externalSubmit") if call.owner == class => {
            Some(Mark::Submit(None))
        }
        // JDK 22 and later.
        (FORK_JOIN_POOL, "scheduleDelayedTask", "pend") => Some(Mark::Submit(None)),
        (FORK_JOIN_TASK, "fork", "push" | "externalPush") => Some(Mark::Submit(Some(0))),
        (FORK_JOIN_TASK, "doExec", "exec") => Some(Mark::Run),
        (VIRTUAL_THREAD, _, "execute") => Some(Mark::Schedule),
        _ => None,
    }
}

/// The field of tasks of a class: see the helper class.
pub fn field(class: &str) -> Option<NewField<'static>> {
    const PUBLIC_VOLATILE_TRANSIENT_SYNTHETIC: u16 = 0x10C1;
    [FUTURE_TASK, FORK_JOIN_TASK]
        .contains(&class)
        .then_some(NewField {
            name: "$cx",
            descriptor: "J",
            access: PUBLIC_VOLATILE_TRANSIENT_SYNTHETIC,
        })
}
