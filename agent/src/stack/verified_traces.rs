//! Numbers with the traces that they were found to decode to, so that the oracle looks seldom at one again.
//!
//! A number always decodes to one trace, and a method and location of the VM to one line until classes
//! change or go. So an event whose number and frames, as the VM gives them, were compared before needs no second
//! comparison. Every so often there is one nevertheless, as it is what is verified that says whether classes have changed. Kept is a hash of 64 bits: that two of a million differ and have one hash is less likely
//! than one in ten million.

use std::hash::{DefaultHasher, Hasher};
use std::sync::MutexGuard;

use lucce_callgraph::ContextId;
use rustc_hash::FxHashMap;

use lucce_jvmti::FrameInfo;

use crate::memory::locks::WatchedMutex;

/// With more of them all are forgotten: 16 MB at most.
const MOST: usize = 1 << 20;
/// A pair is compared again when it comes for the so manieth time.
const AGAIN: u8 = 32;

/// A number and the frames that the VM gave with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash(u64);

impl TraceHash {
    /// `returned`: how many of the innermost frames have returned already.
    pub fn from_frames(number: ContextId, returned: usize, frames: &[FrameInfo]) -> TraceHash {
        let mut hash = DefaultHasher::new();
        hash.write_u64(number.0);
        hash.write_usize(returned);
        for frame in frames {
            hash.write_usize(frame.method as usize);
            hash.write_i64(frame.location);
        }
        TraceHash(hash.finish())
    }
}

/// How often methods had got other code when something was compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeGeneration(u64);

#[derive(Default)]
struct VerifiedTraceState {
    /// How often they came since they were compared.
    pairs: FxHashMap<u64, u8>,
    changes: u64,
}

#[derive(Default)]
pub struct VerifiedTraces(WatchedMutex<VerifiedTraceState>);

impl VerifiedTraces {
    /// Whether the pair was found to be alike; else what `add` wants to know once it is.
    pub fn check_verified(&self, pair: TraceHash) -> Result<(), CodeGeneration> {
        let mut known = self.lock_state();
        let age = CodeGeneration(known.changes);
        let times = known.pairs.get_mut(&pair.0).ok_or(age)?;
        *times += 1;
        match *times < AGAIN {
            true => Ok(()),
            false => Err(age),
        }
    }

    /// Not if code changed while the pair was compared.
    pub fn add_trace(&self, pair: TraceHash, age: CodeGeneration) {
        let mut known = self.lock_state();
        if known.changes != age.0 {
            return;
        }
        if known.pairs.len() >= MOST {
            known.pairs.clear();
        }
        known.pairs.insert(pair.0, 0);
    }

    /// The pair is not alike any more.
    pub fn remove_trace(&self, pair: TraceHash) {
        self.lock_state().pairs.remove(&pair.0);
    }

    /// Methods may have other code now, whose lines begin elsewhere, or are gone.
    pub fn forget_all(&self) {
        let mut known = self.lock_state();
        known.pairs.clear();
        known.changes += 1;
    }

    fn lock_state(&self) -> MutexGuard<'_, VerifiedTraceState> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    fn frames(locations: &[i64]) -> Vec<FrameInfo> {
        let frame = |&location: &i64| FrameInfo {
            method: ptr::without_provenance_mut(0x1000),
            location,
        };
        locations.iter().map(frame).collect()
    }

    #[test]
    fn only_what_was_added_is_known_and_only_until_code_changes() {
        let alike = VerifiedTraces::default();
        let pair = TraceHash::from_frames(ContextId(7), 0, &frames(&[1, 2]));
        let age = alike.check_verified(pair).unwrap_err();
        alike.add_trace(pair, age);
        assert_eq!(alike.check_verified(pair), Ok(()));
        alike.forget_all();
        assert!(alike.check_verified(pair).is_err());
        alike.add_trace(pair, age);
        assert!(
            alike.check_verified(pair).is_err(),
            "code changed in between"
        );
    }

    #[test]
    fn a_pair_is_compared_again_now_and_then() {
        let alike = VerifiedTraces::default();
        let pair = TraceHash::from_frames(ContextId(7), 0, &frames(&[1]));
        let mut compared = 0;
        for _ in 0..4 * u32::from(AGAIN) {
            if let Err(age) = alike.check_verified(pair) {
                compared += 1;
                alike.add_trace(pair, age);
            }
        }
        assert_eq!(compared, 4);
        alike.remove_trace(pair);
        assert!(alike.check_verified(pair).is_err());
    }

    #[test]
    fn another_number_location_or_depth_is_another_pair() {
        let pair = TraceHash::from_frames(ContextId(7), 0, &frames(&[1, 2]));
        let others = [
            TraceHash::from_frames(ContextId(8), 0, &frames(&[1, 2])),
            TraceHash::from_frames(ContextId(7), 1, &frames(&[1, 2])),
            TraceHash::from_frames(ContextId(7), 0, &frames(&[1, 3])),
            TraceHash::from_frames(ContextId(7), 0, &frames(&[2, 1])),
            TraceHash::from_frames(ContextId(7), 0, &frames(&[1, 2, 3])),
            TraceHash::from_frames(ContextId(7), 0, &frames(&[1])),
        ];
        assert!(others.iter().all(|other| *other != pair));
    }
}
