//! In JDK 21 a virtual thread does some things as its carrier (`toCarrier` in the helper class): it schedules its own end of
//! waiting, and what goes on when another one is unparked. The VM tells no agent anything then, not even that a class is
//! loaded, which so would get no hooks. What is needed there is loaded before the first time.

use std::sync::Once;

use jvmti_bindings::sys::jni::jvalue;

use crate::jvm::Env;

const CLASSES: [&str; 58] = [
    "java.lang.VirtualThread",
    "java.lang.invoke.VarHandleBooleans$FieldInstanceReadOnly",
    "java.lang.invoke.VarHandleBooleans$FieldInstanceReadWrite",
    "java.lang.invoke.VarHandleInts$Array",
    "java.lang.invoke.VarHandleInts$FieldInstanceReadOnly",
    "java.lang.invoke.VarHandleInts$FieldInstanceReadWrite",
    "java.lang.invoke.VarHandleLongs$FieldInstanceReadOnly",
    "java.lang.invoke.VarHandleLongs$FieldInstanceReadWrite",
    "java.lang.invoke.VarHandleReferences$Array",
    "java.lang.invoke.VarHandleReferences$FieldInstanceReadOnly",
    "java.lang.invoke.VarHandleReferences$FieldInstanceReadWrite",
    "java.util.concurrent.AbstractExecutorService",
    "java.util.concurrent.Callable",
    "java.util.concurrent.CancellationException",
    "java.util.concurrent.Executors",
    "java.util.concurrent.Executors$DelegatedExecutorService",
    "java.util.concurrent.Executors$DelegatedScheduledExecutorService",
    "java.util.concurrent.Executors$RunnableAdapter",
    "java.util.concurrent.ForkJoinPool",
    "java.util.concurrent.ForkJoinPool$DefaultForkJoinWorkerThreadFactory",
    "java.util.concurrent.ForkJoinPool$ManagedBlocker",
    "java.util.concurrent.ForkJoinPool$WorkQueue",
    "java.util.concurrent.ForkJoinTask",
    "java.util.concurrent.ForkJoinTask$AdaptedRunnable",
    "java.util.concurrent.ForkJoinTask$AdaptedRunnableAction",
    "java.util.concurrent.ForkJoinTask$Aux",
    "java.util.concurrent.ForkJoinTask$RunnableExecuteAction",
    "java.util.concurrent.ForkJoinWorkerThread",
    "java.util.concurrent.FutureTask",
    "java.util.concurrent.FutureTask$WaitNode",
    "java.util.concurrent.RejectedExecutionException",
    "java.util.concurrent.ScheduledThreadPoolExecutor",
    "java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue",
    "java.util.concurrent.ScheduledThreadPoolExecutor$ScheduledFutureTask",
    "java.util.concurrent.ThreadLocalRandom",
    "java.util.concurrent.ThreadPoolExecutor",
    "java.util.concurrent.ThreadPoolExecutor$AbortPolicy",
    "java.util.concurrent.ThreadPoolExecutor$Worker",
    "java.util.concurrent.TimeUnit",
    "java.util.concurrent.atomic.AtomicInteger",
    "java.util.concurrent.atomic.AtomicLong",
    "java.util.concurrent.locks.AbstractOwnableSynchronizer",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionNode",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer$ExclusiveNode",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer$Node",
    "java.util.concurrent.locks.LockSupport",
    "java.util.concurrent.locks.ReentrantLock",
    "java.util.concurrent.locks.ReentrantLock$FairSync",
    "java.util.concurrent.locks.ReentrantLock$NonfairSync",
    "java.util.concurrent.locks.ReentrantLock$Sync",
    "jdk.internal.misc.CarrierThread",
    "jdk.internal.misc.CarrierThreadLocal",
    "jdk.internal.misc.InnocuousThread",
    "jdk.internal.vm.SharedThreadContainer",
    "jdk.internal.vm.ThreadContainer",
    "jdk.internal.vm.ThreadContainers",
];

/// Whoever comes second waits until it is done.
pub fn load(env: Env) {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        // If the VM has no such method, nothing can be done.
        let _ = load_all(env);
    });
}

fn load_all(env: Env) -> Option<()> {
    let loader = env.find_class(c"java/lang/ClassLoader")?;
    // Does not initialise the class, and calls no Java.
    let find = env.static_method(
        loader,
        c"findBootstrapClass",
        c"(Ljava/lang/String;)Ljava/lang/Class;",
    )?;
    for name in CLASSES {
        let name = env.string(name)?;
        if let Some(class) = env.call_static_object(loader, find, &[jvalue { l: name }]) {
            env.forget(class);
        }
        env.forget(name);
    }
    env.forget(loader);
    Some(())
}
