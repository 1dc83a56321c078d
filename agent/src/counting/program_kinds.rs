//! Kinds of the program's own events that Java code knows, so that it finds a cell without the agent.
//!
//! The helper class has an array of texts, `kinds`, in which it looks for the one that it is given: from a place
//! that all bytes of the text say, up to the first empty one. The text's type lies here, at the same place. Texts
//! come and stay; there is room for as many as kinds are told apart, and the array is twice as large.

use std::sync::atomic::AtomicU32;

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_tracelog::EventTypeId;

use crate::counting::places::TextNumbers;
use crate::memory::shared_layout::INT_BITS;
use crate::thread::coverage::CoverageTracker;
use lucce_jvmti::JniEnvironment;

/// A power of two: the helper class takes so many bits of a hash.
const KIND_PLACES: usize = 1 << 11;
// How Java code finds a type.
const _: () = assert!(size_of::<AtomicU32>() == 1 << INT_BITS);

/// The types.
pub struct ProgramKinds(TextNumbers);

impl Default for ProgramKinds {
    fn default() -> ProgramKinds {
        ProgramKinds(TextNumbers::new(KIND_PLACES))
    }
}

impl ProgramKinds {
    /// Where the types are, each of four bytes.
    pub fn types_address(&self) -> usize {
        self.0.numbers_address()
    }

    /// Makes the array, with room for texts like this one.
    pub fn create_array(
        &self,
        (coverage, env): (&CoverageTracker, JniEnvironment),
        helper: jclass,
        text: jobject,
    ) -> Option<()> {
        let _alone = self.0.lock();
        if !env
            .static_object(helper, c"kinds", c"[Ljava/lang/String;")?
            .is_null()
        {
            return None;
        }
        let array = coverage.exclude_allocations(env, || {
            env.new_objects(env.class_of(text), KIND_PLACES as i32)
        })?;
        env.set_static_object(helper, c"kinds", c"[Ljava/lang/String;", array)
    }

    /// Puts a text where Java code found room for it; below 0: it found none.
    pub fn add_kind(
        &self,
        env: JniEnvironment,
        (texts, place): (jobject, i32),
        text: jobject,
        event: EventTypeId,
    ) {
        if self.0.claim_place(place, event.0).is_some() {
            env.set_element(texts, place, text);
        }
    }
}
