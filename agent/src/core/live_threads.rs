//! Threads that are alive.

use std::collections::HashMap;
use std::sync::MutexGuard;

use jvmti_bindings::sys::jni::jlong;

use crate::memory::locks::WatchedMutex;
use crate::memory::slots::SlotRange;

/// The slots of each live thread, by the value of the thread's state field.
#[derive(Default)]
pub struct LiveThreads(WatchedMutex<HashMap<jlong, SlotRange>>);

impl LiveThreads {
    pub fn insert(&self, field: jlong, slots: SlotRange) {
        self.lock().insert(field, slots);
    }

    /// Removes a thread. `end` runs while no other thread reads its state.
    pub fn remove(&self, field: jlong, end: impl FnOnce()) {
        let mut threads = self.lock();
        threads.remove(&field);
        end();
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Visits the slots of each thread. No thread is removed meanwhile.
    #[cfg(feature = "lab")]
    pub fn for_each_stack(&self, stack: impl FnMut(SlotRange)) {
        self.lock().values().copied().for_each(stack);
    }

    /// Passes the values of all state fields to `read`. No thread is removed meanwhile.
    pub fn read_fields<T>(&self, read: impl FnOnce(&mut dyn Iterator<Item = jlong>) -> T) -> T {
        read(&mut self.lock().keys().copied())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<jlong, SlotRange>> {
        self.0.lock()
    }
}
