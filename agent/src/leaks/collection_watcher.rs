//! A thread of the agent that checks the heap after collections if no thread of the program does. A program that hangs allocates
//! nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use lucce_jvmti::VmHandle;

use crate::counting::CountingParts;
use crate::leaks::{LeakDetector, PAUSE_DIVISOR};

/// Waiting time after a collection: allocating threads of the program check first.
const GRACE: Duration = Duration::from_millis(100);
/// Minimum time between two checks without a collection.
const LEAST: Duration = Duration::from_secs(1);

/// The watcher thread, and whether it must end.
#[derive(Default)]
pub struct CollectionWatcher {
    thread: OnceLock<Thread>,
    has_ended: AtomicBool,
}

impl CollectionWatcher {
    /// Reports a collection. Takes no lock: the VM's thread calls it while all other threads stand still.
    pub fn wake_thread(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Ends the thread: no object is followed any more.
    pub fn request_end(&self) {
        // Release: pairs with `has_ended`.
        self.has_ended.store(true, Ordering::Release);
        self.wake_thread();
    }

    fn has_ended(&self) -> bool {
        // Acquire: pairs with `request_end`.
        self.has_ended.load(Ordering::Acquire)
    }

    /// Waits until there was a collection, or for `longest`.
    fn wait_for_collection(&self, longest: Duration) {
        if !self.has_ended() {
            thread::park_timeout(longest);
        }
    }

    /// Waits for `pause`, regardless of collections.
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

/// Starts the thread once the VM is initialized. Without the thread, only allocating threads check.
pub fn start_watcher(agent: CountingParts<'static>, leaks: &'static LeakDetector, vm: VmHandle) {
    let watch = move || run_watcher(agent, leaks, vm);
    let _ = agent.core.agent_threads.spawn_thread("lucce-leaks", watch);
}

fn run_watcher(agent: CountingParts<'static>, leaks: &'static LeakDetector, vm: VmHandle) {
    let watcher = &leaks.watcher;
    let _ = watcher.thread.set(thread::current());
    while !watcher.has_ended() {
        watcher.wait_for_collection(LEAST.max(leaks.started.elapsed() / PAUSE_DIVISOR));
        watcher.pause_for(GRACE);
        if !watcher.has_ended() && leaks.is_check_due() {
            // If the VM has no room for the thread's object, the heap is checked when the VM reports that it is exhausted.
            let _ = vm
                .run_attached(|env| leaks.check_heap_in_background(agent, agent.core.jni_env(env)));
        }
    }
}
