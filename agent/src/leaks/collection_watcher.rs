//! A thread of the agent's own looks after collections that no thread of the program looks after: a program that hangs
//! allocates nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use lucce_jvmti::VmHandle;

use crate::counting::AgentCounting;
use crate::leaks::{LeakDetector, PAUSE_DIVISOR};

/// Threads of the program that allocate look first.
const GRACE: Duration = Duration::from_millis(100);
/// Between two looks without a collection, at least.
const LEAST: Duration = Duration::from_secs(1);

/// The thread, and whether it goes on.
#[derive(Default)]
pub struct CollectionWatcher {
    thread: OnceLock<Thread>,
    has_ended: AtomicBool,
}

impl CollectionWatcher {
    /// There was a collection. Takes no lock: the VM's thread calls it while all others stand still.
    pub fn wake_thread(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Nothing is followed any more.
    pub fn request_end(&self) {
        // Release: pairs with `has_ended`.
        self.has_ended.store(true, Ordering::Release);
        self.wake_thread();
    }

    fn has_ended(&self) -> bool {
        // Acquire: pairs with `end`.
        self.has_ended.load(Ordering::Acquire)
    }

    /// Until there was a collection, or for so long.
    fn wait_for_collection(&self, longest: Duration) {
        if !self.has_ended() {
            thread::park_timeout(longest);
        }
    }

    /// For so long, however many collections there are.
    fn pause_for(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.has_ended() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::park_timeout(left);
        }
    }
}

/// The VM is initialised. Without a thread only threads that allocate look.
pub fn start_watcher(counting: &'static AgentCounting, leaks: &'static LeakDetector, vm: VmHandle) {
    let watch = move || run_watcher(counting, leaks, vm);
    let _ = counting.agent_threads.spawn_thread("lucce-leaks", watch);
}

fn run_watcher(counting: &'static AgentCounting, leaks: &'static LeakDetector, vm: VmHandle) {
    let watcher = &leaks.watcher;
    let _ = watcher.thread.set(thread::current());
    while !watcher.has_ended() {
        watcher.wait_for_collection(LEAST.max(leaks.started.elapsed() / PAUSE_DIVISOR));
        watcher.pause_for(GRACE);
        if !watcher.has_ended() && leaks.is_check_due() {
            // A VM that has no room for a thread's object is looked at when it says that it is exhausted.
            let _ = vm.run_attached(|env| {
                leaks.check_heap_in_background(counting, counting.jni_env(env))
            });
        }
    }
}
