//! Finds idle contexts: threads that wait because there is no work.
//!
//! ```text
//! main ── Pool.runWorker ── Pool.getTask ── Queue.take ── park     idle: `getTask` only waits
//! main ── Timer.mainLoop ── app.Task.run ── Object.wait            not idle: a task runs
//! ```
//! Reports, pages, differences and `lucce top` all use [`Profile::find_idle_contexts`].

use lucce_callgraph::{ContextFrame, ContextId};
use lucce_contentid::FrameId;
use lucce_tracelog::EventTypeId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::events::ContextCounters;
use crate::fingerprint::fold_traces;
use crate::fingerprint::{FrameStep, TraceFingerprint};
use crate::profile::Profile;

/// Methods in which a thread waits for work, as `a.b.C.m`. They call the methods of queues and locks, in which threads
/// wait for other reasons also.
const IDLE_METHODS: [&str; 27] = [
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "java.util.concurrent.ForkJoinPool.awaitWork",
    "java.util.concurrent.DelayScheduler.loop",
    "java.util.TimerThread.mainLoop",
    "java.lang.ref.ReferenceQueue.remove",
    "java.lang.ref.Reference.waitForReferencePendingList",
    "java.awt.EventQueue.getNextEvent",
    "sun.awt.AWTAutoShutdown.run",
    "sun.nio.ch.EPollPort$EventHandlerTask.run",
    "sun.nio.ch.Poller.pollLoop",
    "sun.nio.ch.Poller.pollerLoop",
    "sun.nio.ch.Poller.subPollerLoop",
    "sun.nio.fs.AbstractWatchService.take",
    "sun.rmi.transport.GC$Daemon.run",
    "com.sun.jmx.remote.internal.ServerCommunicatorAdmin$Timeout.run",
    "com.sun.jmx.remote.internal.ClientCommunicatorAdmin$Checker.run",
    // Flight Recorder's methods, which wait on `ChunkRotationMonitor` and similar monitors.
    "jdk.jfr.internal.PlatformRecorder.takeNap",
    "jdk.jfr.internal.Utils.takeNap",
    "jdk.jfr.internal.Utils.waitFlush",
    "jdk.jfr.internal.util.Utils.takeNap",
    "jdk.jfr.internal.util.Utils.waitFlush",
    "jdk.jfr.internal.management.HiddenWait.takeNap",
    "org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask",
    "org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll",
    "org.eclipse.jetty.util.thread.QueuedThreadPool$Runner.idleJobPoll",
    "io.netty.util.concurrent.SingleThreadEventExecutor.takeTask",
    "io.netty.util.HashedWheelTimer$Worker.waitForNextTick",
];

/// Packages and classes of the frames in which the idle methods wait.
const WAITING_PREFIXES: [&str; 13] = [
    "java.lang.Object.",
    "java.lang.Thread.",
    "java.lang.ThreadImpl.",
    "java.lang.VirtualThread.",
    "java.lang.System.",
    "java.lang.ref.",
    "java.util.concurrent.",
    "jdk.internal.",
    "jdk.jfr.internal.",
    "sun.nio.ch.",
    "org.apache.tomcat.util.threads.",
    "org.eclipse.jetty.util.",
    "io.netty.util.",
];

/// How a method, written as `a.b.C.m`, changes the fingerprint of a trace: only traces that end in waiting for work have
/// one.
fn idle_step(method: &str) -> FrameStep {
    if IDLE_METHODS.contains(&method) {
        return FrameStep::Add(FrameId(1));
    }
    match WAITING_PREFIXES.iter().any(|of| method.starts_with(of)) {
        true => FrameStep::Skip,
        false => FrameStep::Restart,
    }
}

/// The contexts in which threads wait for work. The scope of the profile does not matter: frames that it leaves out count
/// also.
#[derive(Default)]
pub struct IdleContexts {
    contexts: FxHashSet<ContextId>,
    /// Whether a type's values are durations: only such events can be idle.
    times: FxHashMap<EventTypeId, bool>,
}

impl IdleContexts {
    /// Whether a thread waits for work in this context. False for types whose values are not durations.
    #[must_use]
    pub fn is_idle(&self, id: ContextId, event: EventTypeId) -> bool {
        self.times.get(&event) == Some(&true) && self.contexts.contains(&id)
    }
}

/// Finds the idle contexts of events whose values are durations.
#[must_use]
pub fn find_idle_contexts(profile: &Profile, events: &ContextCounters) -> IdleContexts {
    let mut times = FxHashMap::default();
    let mut ids = Vec::new();
    for share in events.as_slice() {
        let is_time = times.entry(share.event).or_insert_with(|| {
            let info = profile.types.get(share.event);
            info.is_some_and(|info| info.unit == "ns")
        });
        if *is_time && ids.last() != Some(&share.id) {
            ids.push(share.id);
        }
    }
    let step = |frame: ContextFrame| idle_step(&profile.code.method_name(frame.method));
    let take =
        |printed: Result<TraceFingerprint, _>| printed.is_ok_and(|printed| !printed.is_empty());
    let idle = fold_traces(profile, &ids, &|_| (), step, take);
    let contexts = ids.into_iter().zip(idle);
    IdleContexts {
        contexts: contexts
            .filter_map(|(id, is_idle)| is_idle.then_some(id))
            .collect(),
        times,
    }
}

#[cfg(test)]
mod idle_tests {
    use super::*;

    /// Frames from the thread's entry.
    fn is_idle(methods: &[&str]) -> bool {
        let steps = methods.iter().map(|method| idle_step(method));
        steps.fold(false, |waits, step| match step {
            FrameStep::Skip => waits,
            FrameStep::Add(_) => true,
            FrameStep::Restart => false,
        })
    }

    #[test]
    fn a_thread_waits_for_work_where_no_task_runs() {
        let pool = [
            "java.lang.Thread.run",
            "java.util.concurrent.ThreadPoolExecutor$Worker.run",
            "java.util.concurrent.ThreadPoolExecutor.getTask",
            "java.util.concurrent.LinkedBlockingQueue.take",
            "java.util.concurrent.locks.LockSupport.park",
        ];
        assert!(is_idle(&pool));
        let timer = [
            "java.util.TimerThread.run",
            "java.util.TimerThread.mainLoop",
        ];
        assert!(is_idle(&[&timer[..], &["java.lang.Object.wait"]].concat()));
        // A timer's task waits for something else.
        let task = ["app.Task.run", "java.lang.Object.wait"];
        assert!(!is_idle(&[&timer[..], &task].concat()));
        assert!(!is_idle(&["app.Main.main", "java.lang.Object.wait"]));
        // A handler runs in the thread that waits for input.
        let port = ["sun.nio.ch.EPollPort$EventHandlerTask.run"];
        let handler = [
            "sun.nio.ch.Invoker.invokeUnchecked",
            "app.Handler.completed",
            "java.util.concurrent.locks.ReentrantLock.lock",
        ];
        assert!(!is_idle(&[&port[..], &handler].concat()));
        assert!(is_idle(&[
            port[0],
            "java.util.concurrent.ArrayBlockingQueue.take"
        ]));
    }

    #[test]
    fn waiting_threads_of_newer_jdks_are_known() {
        assert!(is_idle(&["java.util.concurrent.DelayScheduler.loop"]));
        let recorder = [
            "jdk.jfr.internal.PlatformRecorder.periodicTask",
            "jdk.jfr.internal.PlatformRecorder.takeNap",
            "java.lang.Object.wait",
        ];
        assert!(is_idle(&recorder));
    }
}
