//! The threads that live.

use std::collections::HashMap;
use std::sync::MutexGuard;

use jvmti_bindings::sys::jni::jlong;

use crate::memory::locks::WatchedMutex;
use crate::memory::slots::SlotRange;

/// The threads that live, by what their fields hold, and where their slots are.
#[derive(Default)]
pub struct LiveThreads(WatchedMutex<HashMap<jlong, SlotRange>>);

impl LiveThreads {
    pub fn insert(&self, field: jlong, slots: SlotRange) {
        self.lock().insert(field, slots);
    }

    /// `end`: runs while no other thread looks at the thread.
    pub fn remove(&self, field: jlong, end: impl FnOnce()) {
        let mut threads = self.lock();
        threads.remove(&field);
        end();
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// None of them ends meanwhile.
    pub fn for_each_stack(&self, stack: impl FnMut(SlotRange)) {
        self.lock().values().copied().for_each(stack);
    }

    /// What their fields hold. None of them ends meanwhile.
    pub fn read_fields<T>(&self, read: impl FnOnce(&mut dyn Iterator<Item = jlong>) -> T) -> T {
        read(&mut self.lock().keys().copied())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<jlong, SlotRange>> {
        self.0.lock()
    }
}
