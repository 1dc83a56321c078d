//! Numbers with traces that they were proven to decode to, so that verification rarely repeats a comparison.
//!
//! A number always decodes to one trace. A method and location of the VM map to one line until classes change or are
//! unloaded. So an event whose number and VM frames were compared before needs no second comparison. A pair is
//! compared again from time to time nevertheless, because the notice of changed classes is part of what is verified.
//! New pairs share most of their frames with others, and the VM takes long to tell lines, so lines are kept for them. Each is
//! read again from time to time, and each of a pair that is compared again.
//! The table holds hashes of 64 bits: the probability that two of a million different pairs share a hash is below one
//! in ten million.

use std::hash::{DefaultHasher, Hasher};
use std::sync::MutexGuard;

use lucce_callgraph::ContextId;
use rustc_hash::FxHashMap;

use lucce_jvmti::FrameInfo;

use crate::memory::locks::WatchedMutex;

/// Maximum number of entries, 16 MB. A full table is cleared.
const MOST: usize = 1 << 20;
/// Maximum number of lines of frames. A full table is cleared.
const MOST_LINES: usize = 1 << 16;
/// A pair is compared again, and a line of new pairs is read again, at every 32nd occurrence.
const AGAIN: u8 = 32;

/// A hash of a number and the frames that the VM reported with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceHash(u64);

impl TraceHash {
    /// `returned`: the number of innermost frames that have returned already.
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

/// A comparison that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueComparison {
    /// The number of code changes before it.
    changes: u64,
    /// The pair was proven equal before.
    is_repeated: bool,
}

#[derive(Default)]
struct VerifiedTraceState {
    /// Occurrences of each pair since its comparison.
    pairs: FxHashMap<u64, u8>,
    /// Lines that the VM reported for a method and a location, and their occurrences since.
    lines: FxHashMap<(usize, i64), (i32, u8)>,
    changes: u64,
}

/// The pairs of number and trace that were proven equal.
#[derive(Default)]
pub struct VerifiedTraces(WatchedMutex<VerifiedTraceState>);

impl VerifiedTraces {
    /// `Ok`: the pair was proven equal. `Err`: the comparison to pass to [`VerifiedTraces::add_trace`] behind it.
    pub fn check_verified(&self, pair: TraceHash) -> Result<(), DueComparison> {
        let mut state = self.lock_state();
        let due = |is_repeated| DueComparison {
            changes: state.changes,
            is_repeated,
        };
        let (first, again) = (due(false), due(true));
        let times = state.pairs.get_mut(&pair.0).ok_or(first)?;
        *times += 1;
        match *times < AGAIN {
            true => Ok(()),
            false => Err(again),
        }
    }

    /// Adds a pair that was proven equal, unless code changed during the comparison.
    pub fn add_trace(&self, pair: TraceHash, due: DueComparison) {
        let mut state = self.lock_state();
        if state.changes != due.changes {
            return;
        }
        if state.pairs.len() >= MOST {
            state.pairs.clear();
        }
        state.pairs.insert(pair.0, 0);
    }

    /// Removes a pair that is no longer equal.
    pub fn remove_trace(&self, pair: TraceHash) {
        self.lock_state().pairs.remove(&pair.0);
    }

    /// For each frame the line that was read before, unless it is to be read again or code has changed.
    pub fn known_lines(&self, frames: &[FrameInfo], due: DueComparison) -> Vec<Option<i32>> {
        let mut state = self.lock_state();
        if due.is_repeated || state.changes != due.changes {
            return vec![None; frames.len()];
        }
        let known = |frame: &FrameInfo| {
            let (line, times) = state.lines.get_mut(&line_key(frame))?;
            *times = (*times + 1) % AGAIN;
            (*times > 0).then_some(*line)
        };
        frames.iter().map(known).collect()
    }

    /// Adds lines that the VM reported for frames of code that was never replaced, unless code changed meanwhile.
    pub fn add_lines(&self, lines: impl Iterator<Item = (FrameInfo, i32)>, due: DueComparison) {
        let mut state = self.lock_state();
        if state.changes != due.changes {
            return;
        }
        if state.lines.len() >= MOST_LINES {
            state.lines.clear();
        }
        let lines = lines.map(|(frame, line)| (line_key(&frame), (line, 0)));
        state.lines.extend(lines);
    }

    /// Removes lines of frames whose code was replaced.
    pub fn remove_lines<'f>(&self, frames: impl Iterator<Item = &'f FrameInfo>) {
        let mut state = self.lock_state();
        for frame in frames {
            state.lines.remove(&line_key(frame));
        }
    }

    /// Forgets all pairs and lines, because methods may have new code with other lines, or are unloaded.
    pub fn forget_all(&self) {
        let mut state = self.lock_state();
        state.pairs.clear();
        state.lines.clear();
        state.changes += 1;
    }

    fn lock_state(&self) -> MutexGuard<'_, VerifiedTraceState> {
        self.0.lock()
    }
}

fn line_key(frame: &FrameInfo) -> (usize, i64) {
    (frame.method as usize, frame.location)
}

#[cfg(test)]
mod verified_traces_tests {
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
    fn lines_are_known_until_code_changes_and_read_again_now_and_then() {
        let traces = VerifiedTraces::default();
        let (frames, pair) = (frames(&[1, 2]), TraceHash(0));
        let due = traces.check_verified(pair).unwrap_err();
        assert_eq!(traces.known_lines(&frames, due), [None, None]);
        traces.add_lines([(frames[0], 17)].into_iter(), due);
        for _ in 1..AGAIN {
            assert_eq!(traces.known_lines(&frames, due), [Some(17), None]);
        }
        assert_eq!(traces.known_lines(&frames, due), [None, None]);
        assert_eq!(traces.known_lines(&frames, due), [Some(17), None]);
        traces.remove_lines(frames.iter());
        assert_eq!(traces.known_lines(&frames, due), [None, None]);

        traces.add_lines([(frames[0], 17)].into_iter(), due);
        traces.forget_all();
        let later = traces.check_verified(pair).unwrap_err();
        assert_eq!(traces.known_lines(&frames, later), [None, None]);
        traces.add_lines([(frames[0], 17)].into_iter(), due);
        let message = "code changed in between";
        assert_eq!(traces.known_lines(&frames, later), [None; 2], "{message}");
        traces.add_lines([(frames[0], 18)].into_iter(), later);
        assert_eq!(traces.known_lines(&frames, due), [None; 2], "{message}");
        assert_eq!(traces.known_lines(&frames, later), [Some(18), None]);
    }

    #[test]
    fn pairs_that_are_compared_again_use_no_known_line() {
        let traces = VerifiedTraces::default();
        let (frames, pair) = (frames(&[1]), TraceHash(0));
        let first = traces.check_verified(pair).unwrap_err();
        traces.add_lines([(frames[0], 17)].into_iter(), first);
        traces.add_trace(pair, first);
        let again = (1..=AGAIN).find_map(|_| traces.check_verified(pair).err());
        assert_eq!(traces.known_lines(&frames, again.unwrap()), [None]);
        let other = traces.check_verified(TraceHash(1)).unwrap_err();
        assert_eq!(traces.known_lines(&frames, other), [Some(17)]);
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
