//! The threads that live.

use std::collections::HashMap;
use std::sync::MutexGuard;

use jvmti_bindings::sys::jni::jlong;

use crate::memory::locks::WatchedMutex;
use crate::memory::slots::SlotRange;

/// The threads that live, by what their fields hold, and where their slots are.
#[derive(Default)]
pub struct Threads(WatchedMutex<HashMap<jlong, SlotRange>>);

impl Threads {
    pub fn add(&self, field: jlong, slots: SlotRange) {
        self.lock().insert(field, slots);
    }

    pub fn remove(&self, field: jlong) {
        self.lock().remove(&field);
    }

    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// None of them ends meanwhile.
    pub fn each(&self, stack: impl FnMut(SlotRange)) {
        self.lock().values().copied().for_each(stack);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<jlong, SlotRange>> {
        self.0.lock()
    }
}
