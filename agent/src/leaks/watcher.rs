//! A thread of the agent's own looks after collections that no thread of the program looks after: a program that hangs
//! allocates nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use lucce_vm::Vm;

use crate::counting::Counting;
use crate::leaks::{Leaks, PART};

/// Threads of the program that allocate look first.
const GRACE: Duration = Duration::from_millis(100);
/// Between two looks without a collection, at least.
const LEAST: Duration = Duration::from_secs(1);

/// The thread, and whether it goes on.
#[derive(Default)]
pub struct Watcher {
    thread: OnceLock<Thread>,
    has_ended: AtomicBool,
}

impl Watcher {
    /// There was a collection. Takes no lock: the VM's thread calls it while all others stand still.
    pub fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Nothing is followed any more.
    pub fn end(&self) {
        // Release: pairs with `has_ended`.
        self.has_ended.store(true, Ordering::Release);
        self.wake();
    }

    fn has_ended(&self) -> bool {
        // Acquire: pairs with `end`.
        self.has_ended.load(Ordering::Acquire)
    }

    /// Until there was a collection, or for so long.
    fn wait(&self, longest: Duration) {
        if !self.has_ended() {
            thread::park_timeout(longest);
        }
    }

    /// For so long, however many collections there are.
    fn pause(&self, pause: Duration) {
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
pub fn start(counting: &'static Counting, leaks: &'static Leaks, vm: Vm) {
    let watch = move || watch(counting, leaks, vm);
    let _ = counting.helpers.start("lucce-leaks", watch);
}

fn watch(counting: &'static Counting, leaks: &'static Leaks, vm: Vm) {
    let watcher = &leaks.watcher;
    let _ = watcher.thread.set(thread::current());
    while !watcher.has_ended() {
        watcher.wait(LEAST.max(leaks.started.elapsed() / PART));
        watcher.pause(GRACE);
        if !watcher.has_ended() && leaks.is_behind() {
            // A VM that has no room for a thread's object is looked at when it says that it is exhausted.
            let _ = vm.in_thread(|env| leaks.look_again(counting, counting.env(env)));
        }
    }
}
