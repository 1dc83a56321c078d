//! Kinds of the program's own events that Java code knows, so that it finds a cell without the agent.
//!
//! The helper class has an array of texts, `kinds`, in which it looks for the one that it is given: from a place
//! that all bytes of the text say, up to the first empty one. The text's type lies here, at the same place. Texts
//! come and stay; there is room for as many as kinds are told apart, and the array is twice as large.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_tracelog::EventTypeId;

use crate::memory::shared_layout::INT_BITS;
use crate::thread::coverage::Coverage;
use lucce_vm::Env;

/// A power of two: the helper class takes so many bits of a hash.
const PLACES: usize = 1 << 11;
const MOST: usize = PLACES / 2;
// How Java code finds a type.
const _: () = assert!(size_of::<AtomicU32>() == 1 << INT_BITS);

pub struct OwnKinds {
    /// 0: none.
    types: Box<[AtomicU32]>,
    /// How many places are taken; a thread that takes one holds the lock.
    taken: Mutex<usize>,
}

impl Default for OwnKinds {
    fn default() -> OwnKinds {
        OwnKinds {
            types: (0..PLACES).map(|_| AtomicU32::new(0)).collect(),
            taken: Mutex::default(),
        }
    }
}

impl OwnKinds {
    /// Where the types are, each of four bytes.
    pub fn address(&self) -> usize {
        self.types.as_ptr() as usize
    }

    /// Makes the array, with room for texts like this one.
    pub fn begin(
        &self,
        (coverage, env): (&Coverage, Env),
        helper: jclass,
        text: jobject,
    ) -> Option<()> {
        let _taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if !env
            .static_object(helper, c"kinds", c"[Ljava/lang/String;")?
            .is_null()
        {
            return None;
        }
        let array = coverage.ours(env, || env.new_objects(env.class_of(text), PLACES as i32))?;
        env.set_static_object(helper, c"kinds", c"[Ljava/lang/String;", array)
    }

    /// Puts a text where Java code found room for it; below 0: it found none.
    pub fn learn(
        &self,
        env: Env,
        (texts, place): (jobject, i32),
        text: jobject,
        event: EventTypeId,
    ) {
        if self.take(place, event).is_some() {
            env.set_element(texts, place, text);
        }
    }

    /// `None`: somebody else has taken it, or no more are taken.
    fn take(&self, place: i32, event: EventTypeId) -> Option<()> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.types.get(usize::try_from(place).ok()?)?;
        // Relaxed: Java code that sees the text without the type asks the agent again.
        let is_free = known.load(Ordering::Relaxed) == 0 && *taken < MOST;
        is_free.then(|| {
            known.store(event.0, Ordering::Relaxed);
            *taken += 1;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_once_and_half_of_them_stay_empty() {
        let kinds = OwnKinds::default();
        assert_eq!(kinds.take(7, EventTypeId(3)), Some(()));
        assert_eq!(kinds.take(7, EventTypeId(4)), None);
        assert_eq!(kinds.types[7].load(Ordering::Relaxed), 3);
        for place in [-1, PLACES as i32, i32::MIN, i32::MAX] {
            assert_eq!(kinds.take(place, EventTypeId(5)), None);
        }
        let more = (8..PLACES as i32).filter(|place| kinds.take(*place, EventTypeId(6)).is_some());
        assert_eq!(more.count(), MOST - 1);
    }
}
