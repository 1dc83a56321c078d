//! The methods by which the JDK starts threads and its executors take, run and reject tasks; and the classes of tasks.
//!
//! Origin: `java.util.concurrent` of JDK 17, 21 and 25. Rows for one JDK name it.

use lucce_bytecode::{CodeScan, MethodCall, NewField};

const POOL: &str = "java/util/concurrent/ThreadPoolExecutor";
const SCHEDULED_POOL: &str = "java/util/concurrent/ScheduledThreadPoolExecutor";
const FORK_JOIN_POOL: &str = "java/util/concurrent/ForkJoinPool";
const FORK_JOIN_TASK: &str = "java/util/concurrent/ForkJoinTask";
const FUTURE_TASK: &str = "java/util/concurrent/FutureTask";
const VIRTUAL_THREAD: &str = "java/lang/VirtualThread";
/// `CompletableFuture` uses it on machines with at most two processors.
const THREAD_PER_TASK: &str = "java/util/concurrent/CompletableFuture$ThreadPerTaskExecutor";

/// What a call means for code that continues on another thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskCall {
    /// It starts the platform thread `this`.
    Start,
    /// It starts the virtual thread `this`.
    StartVirtual,
    /// An executor without a pool starts the thread on top of the stack for one task.
    StartForTask,
    /// An executor receives a task, in this local or on top of the stack.
    Submit(Option<u8>),
    /// The executor rejects the task in this local.
    Reject(u8),
    /// An executor runs the task on top of the stack.
    Run,
    /// An executor has finished the task that it ran.
    Finish,
    /// A virtual thread passes its own continuation to an executor.
    Schedule,
}

/// In methods of these classes named `start`, a call of this method starts the thread.
const STARTING: [(&str, &str); 4] = [
    ("java/lang/Thread", "start0"),
    (VIRTUAL_THREAD, "submitRunContinuation"),
    (VIRTUAL_THREAD, "externalSubmitRunContinuation"),
    (VIRTUAL_THREAD, "externalSubmitRunContinuationOrThrow"),
];

/// Returns what a call in this method means; `None`: nothing.
pub fn find_task_call(
    (class, method): (&str, &str),
    scan: &CodeScan<'_>,
    call: &MethodCall<'_>,
) -> Option<TaskCall> {
    if method == "start" && call.owner == class && STARTING.contains(&(class, &*call.name)) {
        return Some(match class {
            VIRTUAL_THREAD => TaskCall::StartVirtual,
            _ => TaskCall::Start,
        });
    }
    match (class, method, &*call.name) {
        (POOL, "execute", "get") if is_first(scan, call) => Some(TaskCall::Submit(Some(1))),
        (POOL, "execute", "reject") => Some(TaskCall::Reject(1)),
        (POOL, "runWorker", "run") => Some(TaskCall::Run),
        (POOL, "runWorker", "afterExecute") => Some(TaskCall::Finish),
        (THREAD_PER_TASK, "execute", "start") => Some(TaskCall::StartForTask),
        (SCHEDULED_POOL, "delayedExecute", "add") => Some(TaskCall::Submit(None)),
        // The scheduler of virtual threads calls this.
        (FORK_JOIN_POOL, "lazySubmit", _) => None,
        (FORK_JOIN_POOL, _, "poolSubmit" | "externalSubmit") if call.owner == class => {
            Some(TaskCall::Submit(None))
        }
        // JDK 22 and later.
        (FORK_JOIN_POOL, "scheduleDelayedTask", "pend") => Some(TaskCall::Submit(None)),
        (FORK_JOIN_TASK, "fork", "push" | "externalPush") => Some(TaskCall::Submit(Some(0))),
        (FORK_JOIN_TASK, "doExec", "exec") => Some(TaskCall::Run),
        (VIRTUAL_THREAD, _, "execute") => Some(TaskCall::Schedule),
        _ => None,
    }
}

/// Whether the call is the first with its name in the method.
fn is_first(scan: &CodeScan<'_>, call: &MethodCall<'_>) -> bool {
    let first = scan.calls.iter().find(|other| other.name == call.name);
    first.is_some_and(|first| first.bci == call.bci)
}

/// Whether the method runs one task and has no hook behind it: its own ends are the task's.
#[must_use]
pub fn ends_with_task(class: &str, method: &str) -> bool {
    (class, method) == (FORK_JOIN_TASK, "doExec")
}

/// What a method's frame says about the owner of the frames above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MethodRole {
    /// It calls the task that an executor has given it.
    RunsTask,
    /// A thread of an executor fetches its next task, or marks the start or end of one.
    BetweenTasks,
    /// The first frame of a thread of an executor.
    WorksForExecutor,
    /// The thread that calls it starts another one.
    StartsThread,
    /// An executor adds a thread of its own.
    AddsWorker,
}

/// Returns the role of a method; `None`: it has none.
pub fn method_role(class: &str, method: &str) -> Option<MethodRole> {
    match (class, method) {
        (POOL, "runWorker") | (FORK_JOIN_TASK, "doExec") => Some(MethodRole::RunsTask),
        (POOL, "getTask" | "processWorkerExit") | (_, "beforeExecute" | "afterExecute") => {
            Some(MethodRole::BetweenTasks)
        }
        ("java/util/concurrent/ThreadPoolExecutor$Worker", "run")
        | ("java/util/concurrent/ForkJoinWorkerThread", "run") => {
            Some(MethodRole::WorksForExecutor)
        }
        ("java/lang/Thread" | VIRTUAL_THREAD, "start") => Some(MethodRole::StartsThread),
        (POOL, "addWorker") | (FORK_JOIN_POOL, "createWorker" | "startDelayScheduler") => {
            Some(MethodRole::AddsWorker)
        }
        _ => None,
    }
}

/// Returns the fields that are added to a class of tasks; the helper class explains them.
pub fn task_fields(class: &str) -> Vec<NewField<'static>> {
    const PUBLIC_VOLATILE_TRANSIENT_SYNTHETIC: u16 = 0x10C1;
    if ![FUTURE_TASK, FORK_JOIN_TASK].contains(&class) {
        return Vec::new();
    }
    let fields = [("$lucceOrigin", "J"), ("$lucceTags", "I")];
    let fields = fields.map(|(name, descriptor)| NewField {
        name,
        descriptor,
        access: PUBLIC_VOLATILE_TRANSIENT_SYNTHETIC,
    });
    fields.to_vec()
}
