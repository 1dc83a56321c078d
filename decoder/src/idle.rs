//! Threads that wait because there is nothing to do.

/// Methods in which a thread waits because there is nothing to do, as `a.b.C.m`. The queues' and locks'
/// own methods, which threads wait in for other reasons too, are below these.
const IDLE: [&str; 10] = [
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "java.util.concurrent.ForkJoinPool.awaitWork",
    "java.util.TimerThread.mainLoop",
    "java.lang.ref.ReferenceQueue.remove",
    "java.lang.ref.Reference.waitForReferencePendingList",
    "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask",
    "org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll",
    "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.idleJobPoll",
    "io.netty.util.concurrent.SingleThreadEventExecutor.takeTask",
    "io.netty.util.HashedWheelTimer$Worker.waitForNextTick",
];

/// Whether a thread waits for work in this method, written as `a.b.C.m`.
#[must_use]
pub fn is_idle(method: &str) -> bool {
    IDLE.contains(&method)
}
