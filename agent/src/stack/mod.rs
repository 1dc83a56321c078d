//! Where a thread is: its shadow stack beside what the VM says of its frames.

pub mod alike;
pub mod announced;
pub mod calls;
pub mod class_versions;
pub mod contexts;
pub mod ended;
pub mod entry_loss;
pub mod frames;
pub mod here;
pub mod innermost;
mod known;
pub mod monitor;
pub mod scopes;
#[cfg(test)]
mod simulated;
pub mod tasks;
pub mod throwable_trace;
pub mod trace;
pub mod uninstrumented;
pub mod unloading;
pub mod upcall;
pub mod verify;

use std::ops::Deref;

use crate::thread::Counters;

use alike::Alike;
use announced::Announced;
use frames::FrameCache;
use tasks::Tasks;
use throwable_trace::ThrowableTraces;
use trace::Archive;

pub use known::add as add_class;

pub struct Stack {
    pub counters: Counters,
    pub frames: FrameCache,
    /// From where methods are called that the VM enters, too.
    pub announced: Announced,
    /// Only with `verify=N`: what was compared already.
    pub alike: Alike,
    /// What the log says of classes that are gone.
    pub archive: Archive,
    /// Where tasks of executors were submitted.
    pub tasks: Tasks,
    /// For frames that may run older code.
    pub throwables: ThrowableTraces,
}

impl Deref for Stack {
    type Target = Counters;

    fn deref(&self) -> &Counters {
        &self.counters
    }
}

impl Stack {
    /// Methods may have other code now.
    pub fn forget_code(&self) {
        self.frames.forget_all();
        self.announced.forget_all();
        self.alike.forget_all();
    }

    pub fn new(counters: Counters) -> Stack {
        Stack {
            counters,
            frames: FrameCache::default(),
            announced: Announced::default(),
            alike: Alike::default(),
            archive: Archive::default(),
            tasks: Tasks::default(),
            throwables: ThrowableTraces::default(),
        }
    }
}
