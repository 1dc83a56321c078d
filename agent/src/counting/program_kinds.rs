//! Kinds of the program's own events that Java code knows, so that it finds a counter without the agent.
//!
//! The helper class searches its array of texts, `kinds`, from an index that depends on all bytes of the text, up to the first
//! empty slot. The type of the text has the same index in this table. Texts are never removed. The array has twice as many slots
//! as there are distinct kinds.

use std::sync::atomic::AtomicU32;

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_layout::text_numbers::TextNumbers;
use lucce_tracelog::EventTypeId;

use crate::memory::shared_layout::INT_BITS;
use crate::thread::coverage::CoverageTracker;
use lucce_jvmti::JniEnvironment;

/// A power of two: the helper class takes this number of bits of a hash.
const KIND_PLACES: usize = 1 << 11;
// Java code computes the address of a type by this size.
const _: () = assert!(size_of::<AtomicU32>() == 1 << INT_BITS);

/// Event types by the slots of their texts.
pub struct ProgramKinds(TextNumbers);

impl Default for ProgramKinds {
    fn default() -> ProgramKinds {
        ProgramKinds(TextNumbers::new(KIND_PLACES))
    }
}

impl ProgramKinds {
    /// Address of the types, of four bytes each.
    pub fn types_address(&self) -> usize {
        self.0.numbers_address()
    }

    /// Creates the array, for texts of the same class as `text`.
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

    /// Puts a text into the slot that Java code found empty. Below 0: it found none.
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
